//! Packets of byte streams: where one ends, and what is in a line of HTTP. For `erlang:decode_packet/3` and ports.

/// How a stream is cut into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// Whatever is there.
    Raw,
    /// A length of 1, 2 or 4 bytes, big endian, in front.
    Length(u8),
    /// ASN.1 BER.
    Asn1,
    /// Sun RPC record marks.
    SunRm,
    /// CORBA GIOP.
    Cdr,
    /// FastCGI.
    Fcgi,
    /// Lines.
    Line,
    /// ISO transport packets.
    Tpkt,
    /// HTTP: a start line (`headers` false) or a header line.
    Http {
        /// Headers follow.
        headers: bool,
    },
    /// TLS records.
    SslTls,
}

/// Limits and marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramingOptions {
    /// The longest packet; 0 for no limit.
    pub packet_size: u32,
    /// Lines are cut at this length; 0 for no limit.
    pub line_length: u32,
    /// What ends a line.
    pub delimiter: u8,
}

impl Default for FramingOptions {
    fn default() -> Self {
        FramingOptions {
            packet_size: 0,
            line_length: 0,
            delimiter: b'\n',
        }
    }
}

/// Where the first packet of a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// This many bytes; they may not be there yet.
    Length(usize),
    /// More bytes are needed to know.
    Unknown,
    /// This is no packet.
    Invalid,
}

fn big_endian(b: &[u8]) -> u32 {
    b.iter().fold(0, |n, x| n << 8 | u32::from(*x))
}

/// Finds the end of the first packet.
pub fn cut(framing: Framing, b: &[u8], o: &FramingOptions) -> Cut {
    let with_head = |head: usize, size: u32| {
        if o.packet_size != 0 && size > o.packet_size {
            return Cut::Invalid;
        }
        match i32::try_from(i64::from(size as i32) + head as i64) {
            Ok(n) if n >= head as i32 => Cut::Length(n as usize),
            _ => Cut::Invalid,
        }
    };
    match framing {
        Framing::Raw if b.is_empty() => Cut::Unknown,
        Framing::Raw => Cut::Length(b.len()),
        Framing::Length(n) => match b.get(..n as usize) {
            Some(head) => with_head(n as usize, big_endian(head)),
            None => Cut::Unknown,
        },
        Framing::SunRm => match b.get(..4) {
            Some(head) => with_head(4, big_endian(head) & 0x7FFF_FFFF),
            None => Cut::Unknown,
        },
        Framing::Line => line(b, o),
        Framing::Asn1 => asn1(b, with_head),
        Framing::Cdr => match b.get(..12) {
            None => Cut::Unknown,
            Some(h) if &h[..4] != b"GIOP" => Cut::Invalid,
            Some(h) => {
                let size = big_endian(&h[8..12]);
                let little = h[6] & 1 != 0;
                with_head(12, if little { size.swap_bytes() } else { size })
            }
        },
        Framing::Fcgi => match b.get(..8) {
            None => Cut::Unknown,
            Some(h) if h[0] != 1 => Cut::Invalid,
            Some(h) => with_head(8, big_endian(&h[4..6]) + u32::from(h[6])),
        },
        Framing::Tpkt => match b.get(..4) {
            None => Cut::Unknown,
            Some(h) if h[0] != 3 => Cut::Invalid,
            Some(h) => with_head(4, big_endian(&h[2..4]).wrapping_sub(4)),
        },
        Framing::SslTls => match b.get(..5) {
            None => Cut::Unknown,
            Some(h) if h[0] & 0x80 != 0 && h[2] == 1 => {
                with_head(5, (big_endian(&h[..2]) & 0x7FFF).wrapping_sub(3))
            }
            Some(h) => with_head(5, big_endian(&h[3..5])),
        },
        Framing::Http { headers } => http_line(b, headers, o),
    }
}

fn line(b: &[u8], o: &FramingOptions) -> Cut {
    let (max, at_most) = (o.packet_size as usize, o.line_length as usize);
    match memchr::memchr(o.delimiter, b) {
        None if max != 0 && b.len() > max => Cut::Invalid,
        None if at_most != 0 && b.len() >= at_most => Cut::Length(at_most),
        None => Cut::Unknown,
        Some(i) if max != 0 && i + 1 > max => Cut::Invalid,
        Some(i) if at_most != 0 && i + 1 > at_most => Cut::Length(at_most),
        Some(i) => Cut::Length(i + 1),
    }
}

fn asn1(b: &[u8], with_head: impl Fn(usize, u32) -> Cut) -> Cut {
    if b.len() < 2 {
        return Cut::Unknown;
    }
    let mut at = 1;
    if b[0] & 0x1F == 0x1F {
        while at < b.len() && b[at] & 0x80 != 0 {
            at += 1;
        }
        if b.len() - at < 2 {
            return Cut::Unknown;
        }
        at += 1;
    }
    let n = b[at];
    at += 1;
    if n & 0x80 == 0 {
        return with_head(at, u32::from(n));
    }
    let n = (n & 0x7F) as usize;
    match b.get(at..at + n) {
        None => Cut::Unknown,
        Some(_) if n > 4 => Cut::Invalid,
        Some(len) => with_head(at + n, big_endian(len)),
    }
}

fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

fn http_line(b: &[u8], headers: bool, o: &FramingOptions) -> Cut {
    if b == b"\n" || b == b"\r\n" {
        return Cut::Length(b.len());
    }
    // Without a packet size the line length limits lines, as old users expect.
    let max = if o.packet_size != 0 {
        o.packet_size
    } else {
        o.line_length
    } as usize;
    let fits = |n: usize| max == 0 || n <= max;
    let mut from = 0;
    loop {
        let Some(i) = memchr::memchr(b'\n', &b[from..]) else {
            return if max != 0 && b.len() >= max {
                Cut::Invalid
            } else {
                Cut::Unknown
            };
        };
        let n = from + i + 1;
        let whole = if headers { n < b.len() } else { true };
        if headers && whole && is_blank(b[n]) && n > 2 {
            // The value goes on in the next line.
            from = n;
            continue;
        }
        return match (fits(n), whole) {
            (false, _) => Cut::Invalid,
            (true, true) => Cut::Length(n),
            (true, false) => Cut::Unknown,
        };
    }
}

/// The part of a packet that is given to programs.
pub fn body(framing: Framing, packet: &[u8]) -> std::ops::Range<usize> {
    match framing {
        Framing::Length(n) => n as usize..packet.len(),
        Framing::Fcgi => 0..packet.len() - packet[6] as usize,
        _ => 0..packet.len(),
    }
}

/// The target of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uri<'a> {
    /// `*`
    Star,
    /// A path.
    Path(&'a [u8]),
    /// `http://` or `https://`.
    Absolute {
        /// Which of the two.
        secure: bool,
        /// Host.
        host: &'a [u8],
        /// Port, if there is one.
        port: Option<u32>,
        /// Path.
        path: &'a [u8],
    },
    /// Another scheme, and what follows.
    Scheme(&'a [u8], &'a [u8]),
    /// Anything else.
    Text(&'a [u8]),
}

/// A line of HTTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Http<'a> {
    /// A status line.
    Response {
        /// Version.
        version: (u32, u32),
        /// Status code.
        status: u32,
        /// Reason phrase.
        phrase: &'a [u8],
    },
    /// A request line.
    Request {
        /// Method.
        method: &'a [u8],
        /// Target.
        uri: Uri<'a>,
        /// Version.
        version: (u32, u32),
    },
    /// A header.
    Header {
        /// The name in its usual spelling.
        name: Vec<u8>,
        /// The name as it stands.
        original: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The end of the headers.
    End,
}

/// Names of headers that are atoms; their place, from 1, is the header's number.
pub const HEADERS: &[&str] = &[
    "Cache-Control",
    "Connection",
    "Date",
    "Pragma",
    "Transfer-Encoding",
    "Upgrade",
    "Via",
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "From",
    "Host",
    "If-Modified-Since",
    "If-Match",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Max-Forwards",
    "Proxy-Authorization",
    "Range",
    "Referer",
    "User-Agent",
    "Age",
    "Location",
    "Proxy-Authenticate",
    "Public",
    "Retry-After",
    "Server",
    "Vary",
    "Warning",
    "Www-Authenticate",
    "Allow",
    "Content-Base",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Md5",
    "Content-Range",
    "Content-Type",
    "Etag",
    "Expires",
    "Last-Modified",
    "Accept-Ranges",
    "Set-Cookie",
    "Set-Cookie2",
    "X-Forwarded-For",
    "Cookie",
    "Keep-Alive",
    "Proxy-Connection",
];

/// Methods that are atoms.
pub const METHODS: &[&str] = &["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE"];

/// Longer names of headers are left as they are.
const MAX_NAME: usize = 50;

fn is_separator(b: u8) -> bool {
    !(33..127).contains(&b) || b"()<>@,;:\\\"/[]?={}".contains(&b)
}

fn skip_blanks(b: &[u8]) -> &[u8] {
    let n = b.iter().take_while(|x| is_blank(**x)).count();
    &b[n..]
}

fn digits(b: &[u8]) -> Option<(u32, &[u8])> {
    let n = b.iter().take_while(|x| x.is_ascii_digit()).count();
    if n == 0 {
        return None;
    }
    let v = b[..n].iter().fold(0u32, |v, d| {
        v.wrapping_mul(10).wrapping_add(u32::from(d - b'0'))
    });
    Some((v, &b[n..]))
}

fn version(b: &[u8]) -> Option<((u32, u32), &[u8])> {
    let (major, b) = digits(b.strip_prefix(b"HTTP/")?)?;
    let (minor, b) = digits(b.strip_prefix(b".")?)?;
    Some(((major, minor), b))
}

fn uri(b: &[u8]) -> Uri<'_> {
    let has =
        |prefix: &[u8]| b.len() >= prefix.len() && b[..prefix.len()].eq_ignore_ascii_case(prefix);
    if b == b"*" {
        Uri::Star
    } else if b.len() <= 1 || b[0] == b'/' {
        Uri::Path(b)
    } else if has(b"http://") {
        absolute(false, &b[7..])
    } else if has(b"https://") {
        absolute(true, &b[8..])
    } else {
        match memchr::memchr(b':', b) {
            Some(i) => Uri::Scheme(&b[..i], &b[i + 1..]),
            None => Uri::Text(b),
        }
    }
}

fn absolute(secure: bool, b: &[u8]) -> Uri<'_> {
    let (authority, path) = match memchr::memchr(b'/', b) {
        Some(i) => b.split_at(i),
        None => (b, &b"/"[..]),
    };
    let (host, port) = match memchr::memchr(b':', authority) {
        None => (authority, None),
        Some(i) => {
            let port = match digits(&authority[i + 1..]) {
                Some((n, [])) if n != 0 => Some(n),
                _ => None,
            };
            (&authority[..i], port)
        }
    };
    Uri::Absolute {
        secure,
        host,
        port,
        path,
    }
}

/// Reads a line of HTTP with its end; `None` when it is none.
pub fn http(line: &[u8], headers: bool) -> Option<Http<'_>> {
    let n = line.len();
    let b = if n >= 2 && line[n - 2] == b'\r' {
        &line[..n - 2]
    } else if n >= 1 && line[n - 1] == b'\n' {
        &line[..n - 1]
    } else {
        line
    };
    if headers {
        return header(b);
    }
    if b.starts_with(b"HTTP/") {
        let (version, rest) = version(b)?;
        let after = skip_blanks(rest);
        if after.len() == rest.len() {
            return None;
        }
        let (status, rest) = digits(after).unwrap_or((0, after));
        let phrase = skip_blanks(rest);
        if phrase.len() == rest.len() && !rest.is_empty() {
            return None;
        }
        return Some(Http::Response {
            version,
            status,
            phrase,
        });
    }
    let end = b.iter().position(|x| is_separator(*x))?;
    if end == 0 || !is_blank(b[end]) {
        return None;
    }
    let (method, rest) = b.split_at(end);
    let rest = skip_blanks(rest);
    let end = rest.iter().position(|x| is_blank(*x)).unwrap_or(rest.len());
    if end == 0 {
        return None;
    }
    let (target, rest) = rest.split_at(end);
    let rest = skip_blanks(rest);
    let version = if rest.is_empty() {
        (0, 9)
    } else if rest.len() < 8 {
        return None;
    } else {
        version(rest)?.0
    };
    Some(Http::Request {
        method,
        uri: uri(target),
        version,
    })
}

fn header(b: &[u8]) -> Option<Http<'_>> {
    if b.is_empty() {
        return Some(Http::End);
    }
    let end = b.iter().position(|x| is_separator(*x))?;
    if b[end] != b':' {
        return None;
    }
    let original = &b[..end];
    let mut name = original.to_vec();
    if name.len() <= MAX_NAME {
        let mut first = true;
        for c in &mut name {
            if first {
                *c = c.to_ascii_uppercase();
                first = false;
            } else if *c == b'-' {
                first = true;
            } else {
                *c = c.to_ascii_lowercase();
            }
        }
    }
    Some(Http::Header {
        name,
        original,
        value: skip_blanks(&b[end + 1..]),
    })
}

/// A TLS record or the first message of SSL 2: content type, version, what stands before the content, the content.
pub fn tls(packet: &[u8]) -> (u8, (u8, u8), Vec<u8>) {
    if packet[0] & 0x80 != 0 && packet[2] == 1 {
        let content = &packet[3..];
        let len = (packet.len() - 3) as u32;
        let mut whole = vec![1];
        whole.extend_from_slice(&len.to_be_bytes()[1..]);
        whole.extend_from_slice(content);
        (22, (packet[3], packet[4]), whole)
    } else {
        (packet[0], (packet[1], packet[2]), packet[5..].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(framing: Framing, b: &[u8]) -> Cut {
        cut(framing, b, &FramingOptions::default())
    }

    #[test]
    fn lengths() {
        assert_eq!(all(Framing::Length(2), &[0, 3, 1]), Cut::Length(5));
        assert_eq!(all(Framing::Length(4), &[0, 0, 0]), Cut::Unknown);
        assert_eq!(all(Framing::Length(4), &[255; 4]), Cut::Invalid);
        assert_eq!(all(Framing::Asn1, &[0x30, 0x82, 1, 0]), Cut::Length(260));
        assert_eq!(all(Framing::Asn1, &[0x1F, 0x81, 1, 5]), Cut::Length(9));
        assert_eq!(all(Framing::Tpkt, &[3, 0, 0, 3]), Cut::Invalid);
        let o = FramingOptions {
            line_length: 3,
            ..FramingOptions::default()
        };
        assert_eq!(cut(Framing::Line, b"abcdef\n", &o), Cut::Length(3));
    }

    #[test]
    fn http_lines() {
        let h = Framing::Http { headers: true };
        assert_eq!(all(h, b"A: b\r\n"), Cut::Unknown);
        assert_eq!(all(h, b"A: b\r\n c\r\nX"), Cut::Length(10));
        let r = http(b"GET http://h:80/p HTTP/1.1\r\n", false);
        let uri = Uri::Absolute {
            secure: false,
            host: b"h",
            port: Some(80),
            path: b"/p",
        };
        assert_eq!(
            r,
            Some(Http::Request {
                method: b"GET",
                uri,
                version: (1, 1)
            })
        );
        assert_eq!(http(b"bad line\x01\r\n", true), None);
        assert_eq!(http(b"\r\n", true), Some(Http::End));
        match http(b"cOnTent-tYpe:  x\r\n", true) {
            Some(Http::Header { name, value, .. }) => {
                assert_eq!((&name[..], value), (&b"Content-Type"[..], &b"x"[..]));
            }
            other => panic!("{other:?}"),
        }
    }
}
