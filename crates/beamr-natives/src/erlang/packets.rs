//! `erlang:decode_packet/3`.

use beamr_abi::{Ctx, Escape, NativeEntry};
use beamr_term::bits::{self, BitsView};
use beamr_term::{Build, Word, arith, atoms, text};

use crate::packet::{self, Cut, Framing, FramingOptions, HEADERS, Http, METHODS, Uri};
use crate::support::{list_items, name};

/// Texts as lists or binaries.
fn string(ctx: &mut Ctx, as_binary: bool, bytes: &[u8]) -> Word {
    if as_binary {
        ctx.binary(bytes)
    } else {
        text::list_of_bytes(ctx, bytes, Word::NIL)
    }
}

fn known(ctx: &mut Ctx, list: &[&str], bytes: &[u8]) -> Result<Option<(usize, Word)>, Escape> {
    match list.iter().position(|t| t.as_bytes() == bytes) {
        Some(i) => Ok(Some((i, ctx.atom(list[i])?))),
        None => Ok(None),
    }
}

fn pair(ctx: &mut Ctx, (a, b): (u32, u32)) -> Word {
    ctx.tuple(&[Word::fixnum(i64::from(a)), Word::fixnum(i64::from(b))])
}

fn uri_term(ctx: &mut Ctx, bin: bool, uri: Uri<'_>) -> Result<Word, Escape> {
    Ok(match uri {
        Uri::Star => atoms::TIMES.word(),
        Uri::Path(p) => {
            let tag = ctx.atom("abs_path")?;
            let p = string(ctx, bin, p);
            ctx.tuple(&[tag, p])
        }
        Uri::Absolute {
            secure,
            host,
            port,
            path,
        } => {
            let tag = ctx.atom("absoluteURI")?;
            let scheme = ctx.atom(if secure { "https" } else { "http" })?;
            let host = string(ctx, bin, host);
            let port = port.map_or(atoms::UNDEFINED.word(), |p| Word::fixnum(i64::from(p)));
            let path = string(ctx, bin, path);
            ctx.tuple(&[tag, scheme, host, port, path])
        }
        Uri::Scheme(a, b) => {
            let tag = ctx.atom("scheme")?;
            let (a, b) = (string(ctx, bin, a), string(ctx, bin, b));
            ctx.tuple(&[tag, a, b])
        }
        Uri::Text(t) => string(ctx, bin, t),
    })
}

/// The term of a line of HTTP.
pub fn http_term(ctx: &mut Ctx, line: &[u8], headers: bool, bin: bool) -> Result<Word, Escape> {
    match packet::http(line, headers) {
        None => {
            let tag = ctx.atom("http_error")?;
            let l = string(ctx, bin, line);
            Ok(ctx.tuple(&[tag, l]))
        }
        Some(Http::End) => ctx.atom("http_eoh"),
        Some(Http::Response {
            version,
            status,
            phrase,
        }) => {
            let tag = ctx.atom("http_response")?;
            let v = pair(ctx, version);
            let p = string(ctx, bin, phrase);
            Ok(ctx.tuple(&[tag, v, Word::fixnum(i64::from(status)), p]))
        }
        Some(Http::Request {
            method,
            uri,
            version,
        }) => {
            let tag = ctx.atom("http_request")?;
            let m = match known(ctx, METHODS, method)? {
                Some((_, m)) => m,
                None => string(ctx, bin, method),
            };
            let u = uri_term(ctx, bin, uri)?;
            let v = pair(ctx, version);
            Ok(ctx.tuple(&[tag, m, u, v]))
        }
        Some(Http::Header {
            name,
            original,
            value,
        }) => {
            let tag = ctx.atom("http_header")?;
            let (n, name) = match known(ctx, HEADERS, &name)? {
                Some((i, a)) => (i as i64 + 1, a),
                None => (0, string(ctx, bin, &name)),
            };
            let original = string(ctx, bin, original);
            let value = string(ctx, bin, value);
            Ok(ctx.tuple(&[tag, Word::fixnum(n), name, original, value]))
        }
    }
}

/// A packet type as programs write it, and whether its texts are binaries.
pub fn framing(ctx: &Ctx, w: Word) -> Option<(Framing, bool)> {
    let plain = match (w.as_small(), name(ctx, w)) {
        (Some(0), _) | (_, Some("raw")) => Framing::Raw,
        (Some(n @ (1 | 2 | 4)), _) => Framing::Length(n as u8),
        (_, Some("asn1")) => Framing::Asn1,
        (_, Some("sunrm")) => Framing::SunRm,
        (_, Some("cdr")) => Framing::Cdr,
        (_, Some("fcgi")) => Framing::Fcgi,
        (_, Some("line")) => Framing::Line,
        (_, Some("tpkt")) => Framing::Tpkt,
        (_, Some("ssl_tls")) => Framing::SslTls,
        (_, Some("http")) => Framing::Http { headers: false },
        (_, Some("httph")) => Framing::Http { headers: true },
        (_, Some("http_bin")) => return Some((Framing::Http { headers: false }, true)),
        (_, Some("httph_bin")) => return Some((Framing::Http { headers: true }, true)),
        _ => return None,
    };
    Some((plain, false))
}

/// `decode_packet(Type, Binary, Options)`.
fn decode_packet_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some((framing, bin)) = framing(ctx, args[0]) else {
        let cause = ctx.atom("badopt")?;
        return Err(ctx.badarg_because(cause));
    };
    let Some(view) = BitsView::of(args[1]).filter(|_| args[1].is_bitstring()) else {
        return Err(ctx.badarg());
    };
    let mut o = FramingOptions::default();
    for item in list_items(ctx, args[2])? {
        let Some([k, v]) = item.as_tuple() else {
            return Err(ctx.badarg());
        };
        let mut buffer = 0;
        let n = arith::Int::of(*v, &mut buffer)
            .filter(|i| !i.negative)
            .and_then(|i| i.to_i64())
            .and_then(|n| u32::try_from(n).ok());
        match (name(ctx, *k), n) {
            (Some("packet_size"), Some(n)) => o.packet_size = n,
            (Some("line_length"), Some(n)) => o.line_length = n,
            (Some("line_delimiter"), Some(n @ 0..=255)) if framing == Framing::Line => {
                o.delimiter = n as u8;
            }
            _ => return Err(ctx.badarg()),
        }
    }
    // Odd bits at the end belong to the rest.
    let size = (view.bit_size / 8) as usize;
    let whole = view.to_bytes();
    let b = &whole[..size];
    ctx.bump(size as i64 / 64);
    let invalid = |ctx: &mut Ctx| Ok(ctx.tuple(&[atoms::ERROR.word(), atoms::INVALID.word()]));
    let n = match packet::cut(framing, b, &o) {
        Cut::Invalid => return invalid(ctx),
        Cut::Length(n) if n > 0 && n <= size => n,
        Cut::Length(n) if n > 0 => {
            let more = ctx.atom("more")?;
            return Ok(ctx.tuple(&[more, Word::fixnum(n as i64)]));
        }
        Cut::Unknown | Cut::Length(_) => {
            let more = ctx.atom("more")?;
            return Ok(ctx.tuple(&[more, atoms::UNDEFINED.word()]));
        }
    };
    let p = &b[..n];
    let value = match framing {
        Framing::Http { headers } => http_term(ctx, p, headers, bin)?,
        Framing::SslTls => {
            let (kind, (major, minor), content) = packet::tls(p);
            let tag = ctx.atom("ssl_tls")?;
            let v = pair(ctx, (u32::from(major), u32::from(minor)));
            let c = ctx.binary(&content);
            ctx.tuple(&[tag, Word::NIL, Word::fixnum(i64::from(kind)), v, c])
        }
        _ => {
            let body = packet::body(framing, p);
            bits::sub_bits(ctx, args[1], body.start as u64 * 8, body.len() as u64 * 8)
        }
    };
    let rest = bits::sub_bits(ctx, args[1], n as u64 * 8, view.bit_size - n as u64 * 8);
    Ok(ctx.tuple(&[atoms::OK.word(), value, rest]))
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[NativeEntry::new(
    "erlang",
    "decode_packet",
    3,
    decode_packet_3,
)];
