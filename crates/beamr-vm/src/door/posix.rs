//! Names of error codes of the operating system.

use super::files::Posix;

macro_rules! names {
    ($($code:ident = $name:literal),* $(,)?) => {
        fn name(code: i32) -> &'static str {
            match code {
                $(libc::$code => $name,)*
                _ => "unknown",
            }
        }
    };
}

names! {
    EPERM = "eperm", ENOENT = "enoent", ESRCH = "esrch", EINTR = "eintr", EIO = "eio", ENXIO = "enxio", E2BIG = "e2big",
    ENOEXEC = "enoexec", EBADF = "ebadf", ECHILD = "echild", EAGAIN = "eagain", ENOMEM = "enomem", EACCES = "eacces",
    EFAULT = "efault", ENOTBLK = "enotblk", EBUSY = "ebusy", EEXIST = "eexist", EXDEV = "exdev", ENODEV = "enodev",
    ENOTDIR = "enotdir", EISDIR = "eisdir", EINVAL = "einval", ENFILE = "enfile", EMFILE = "emfile", ENOTTY = "enotty",
    ETXTBSY = "etxtbsy", EFBIG = "efbig", ENOSPC = "enospc", ESPIPE = "espipe", EROFS = "erofs", EMLINK = "emlink",
    EPIPE = "epipe", EDOM = "edom", ERANGE = "erange", EDEADLK = "edeadlk", ENAMETOOLONG = "enametoolong",
    ENOLCK = "enolck", ENOSYS = "enosys", ENOTEMPTY = "enotempty", ELOOP = "eloop", EOVERFLOW = "eoverflow",
    EILSEQ = "eilseq", EUSERS = "eusers", EOPNOTSUPP = "eopnotsupp", ESTALE = "estale", EDQUOT = "edquot",
    ECANCELED = "ecanceled", EPROTO = "eproto", ENOLINK = "enolink", ENODATA = "enodata", ETIME = "etime",
    EREMOTE = "eremote", EBADMSG = "ebadmsg", EMULTIHOP = "emultihop", ENOMSG = "enomsg", EIDRM = "eidrm",
    ENOTSOCK = "enotsock", EADDRINUSE = "eaddrinuse", EADDRNOTAVAIL = "eaddrnotavail", ENETDOWN = "enetdown",
    ENETUNREACH = "enetunreach", ECONNABORTED = "econnaborted", ECONNRESET = "econnreset", ENOBUFS = "enobufs",
    EISCONN = "eisconn", ENOTCONN = "enotconn", ETIMEDOUT = "etimedout", ECONNREFUSED = "econnrefused",
    EHOSTDOWN = "ehostdown", EHOSTUNREACH = "ehostunreach", EALREADY = "ealready", EINPROGRESS = "einprogress",
    EMSGSIZE = "emsgsize", EDESTADDRREQ = "edestaddrreq", EAFNOSUPPORT = "eafnosupport",
    EPROTONOSUPPORT = "eprotonosupport", EPROTOTYPE = "eprototype", ENOPROTOOPT = "enoprotoopt",
    ESOCKTNOSUPPORT = "esocktnosupport", EPFNOSUPPORT = "epfnosupport", ENETRESET = "enetreset",
    ESHUTDOWN = "eshutdown", ETOOMANYREFS = "etoomanyrefs",
}

impl Posix {
    /// The name of a code.
    pub fn of_code(code: i32) -> Posix {
        Posix(name(code))
    }
    /// The code of the last call of the operating system on this thread.
    pub fn last() -> Posix {
        Posix::from(std::io::Error::last_os_error())
    }
}

impl From<std::io::Error> for Posix {
    fn from(e: std::io::Error) -> Posix {
        use std::io::ErrorKind;
        match e.raw_os_error() {
            Some(code) => Posix::of_code(code),
            None => Posix(match e.kind() {
                ErrorKind::NotFound => "enoent",
                ErrorKind::PermissionDenied => "eacces",
                ErrorKind::AlreadyExists => "eexist",
                ErrorKind::InvalidInput => "einval",
                ErrorKind::NotADirectory => "enotdir",
                ErrorKind::IsADirectory => "eisdir",
                ErrorKind::OutOfMemory => "enomem",
                ErrorKind::WriteZero | ErrorKind::StorageFull => "enospc",
                _ => "eio",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_codes() {
        assert_eq!(Posix::of_code(libc::ENOENT), Posix("enoent"));
        assert_eq!(Posix::of_code(-5), Posix("unknown"));
        let missing = std::fs::read("/nonexistent/file").unwrap_err();
        assert_eq!(Posix::from(missing), Posix("enoent"));
    }
}
