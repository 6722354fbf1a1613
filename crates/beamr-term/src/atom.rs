//! Atoms: an append-only table per VM, read without locks.
//!
//! An atom is an index. Its entry keeps the text, the first eight bytes as a big-endian number
//! (so that most order comparisons need no text), and the hash that `phash2` and big maps use.
//! Predefined atoms ([`atoms`]) have the same index in every table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, RwLock};

use crate::word::Word;

/// The longest atom, in characters.
pub const MAX_ATOM_CHARS: usize = 255;

/// An atom: an index into the VM's [`AtomTable`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Atom(u32);

impl Atom {
    /// An atom from its index (predefined, or given out by a table).
    #[inline(always)]
    pub const fn from_index(index: u32) -> Atom {
        Atom(index)
    }
    /// The index.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.0
    }
    /// The term.
    #[inline(always)]
    pub const fn word(self) -> Word {
        Word::atom_index(self.0)
    }
}

impl From<Atom> for Word {
    #[inline(always)]
    fn from(a: Atom) -> Word {
        a.word()
    }
}

/// Why an atom could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AtomError {
    /// More than 255 characters.
    #[error("an atom may have at most 255 characters")]
    TooLong,
    /// The bytes are not UTF-8.
    #[error("the text of an atom is not valid UTF-8")]
    NotUtf8,
    /// The table is full.
    #[error("the atom table is full ({0} atoms)")]
    Full(u32),
}

/// What the table keeps of one atom.
#[derive(Debug)]
pub struct AtomEntry {
    text: Box<str>,
    /// First eight bytes of the text, big endian, zero padded: `a < b` on prefixes implies the
    /// text order unless they are equal.
    pub prefix: u64,
    /// OTP's hash of the text (shift-and-xor over the Latin-1 form of the characters where it
    /// exists), the value `phash2` gives an atom before mixing.
    pub hash: u32,
    latin1: bool,
}

impl AtomEntry {
    fn new(text: &str) -> AtomEntry {
        let mut first = [0u8; 8];
        let n = text.len().min(8);
        first[..n].copy_from_slice(&text.as_bytes()[..n]);
        AtomEntry {
            prefix: u64::from_be_bytes(first),
            hash: otp_hash(text),
            latin1: text.chars().all(|c| (c as u32) < 256),
            text: text.into(),
        }
    }
    /// The text.
    #[inline]
    pub fn text(&self) -> &str {
        &self.text
    }
    /// Whether every character is below 256.
    #[inline]
    pub fn is_latin1(&self) -> bool {
        self.latin1
    }
}

/// OTP's atom hash (the classic PJW hash with shifts 4 and 24) over the characters; a character
/// above 127 that needs two UTF-8 bytes counts as the one Latin-1 byte it was in old tables.
fn otp_hash(text: &str) -> u32 {
    let mut h: u32 = 0;
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let mut v = bytes[i];
        i += 1;
        if v & 0xFE == 0xC2 && i < bytes.len() && bytes[i] & 0xC0 == 0x80 {
            v = (v << 6) | (bytes[i] & 0x3F);
            i += 1;
        }
        h = (h << 4).wrapping_add(u32::from(v));
        let g = h & 0xF000_0000;
        if g != 0 {
            h ^= g >> 24;
            h ^= g;
        }
    }
    h
}

const CHUNK: usize = 1024;
const SHARDS: usize = 16;

#[derive(Default)]
struct Fnv(u64);
impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
type Shard = RwLock<HashMap<&'static str, u32, BuildHasherDefault<Fnv>>>;

/// The atoms of a VM. Entries are never removed before the table itself is dropped.
pub struct AtomTable {
    chunks: Box<[AtomicPtr<[AtomicPtr<AtomEntry>; CHUNK]>]>,
    shards: [Shard; SHARDS],
    next: Mutex<u32>,
    len: AtomicU32,
    limit: u32,
}

impl std::fmt::Debug for AtomTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomTable")
            .field("len", &self.len())
            .field("limit", &self.limit)
            .finish()
    }
}

impl AtomTable {
    /// OTP's default limit.
    pub const DEFAULT_LIMIT: u32 = 1_048_576;

    /// A table with the predefined atoms and room for `limit` atoms in all.
    pub fn new(limit: u32) -> AtomTable {
        let limit = limit.max(atoms::TEXTS.len() as u32 + 1024);
        let n = (limit as usize).div_ceil(CHUNK);
        let t = AtomTable {
            chunks: (0..n)
                .map(|_| AtomicPtr::new(std::ptr::null_mut()))
                .collect(),
            shards: std::array::from_fn(|_| Shard::default()),
            next: Mutex::new(0),
            len: AtomicU32::new(0),
            limit,
        };
        for text in atoms::TEXTS {
            let _ = t.intern(text);
        }
        t
    }
    /// How many atoms there are.
    pub fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }
    /// Never true: predefined atoms exist.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// How many atoms there may be.
    pub fn limit(&self) -> u32 {
        self.limit
    }
    fn shard(&self, text: &str) -> &Shard {
        let mut h = Fnv::default();
        h.write(text.as_bytes());
        &self.shards[(h.finish() >> 7) as usize % SHARDS]
    }
    /// The atom of this text if it exists.
    pub fn lookup(&self, text: &str) -> Option<Atom> {
        let shard = self.shard(text).read().unwrap_or_else(|e| e.into_inner());
        shard.get(text).map(|i| Atom(*i))
    }
    /// The atom of this text, made if need be.
    pub fn intern(&self, text: &str) -> Result<Atom, AtomError> {
        if let Some(a) = self.lookup(text) {
            return Ok(a);
        }
        if text.len() > MAX_ATOM_CHARS && text.chars().count() > MAX_ATOM_CHARS {
            return Err(AtomError::TooLong);
        }
        let mut shard = self.shard(text).write().unwrap_or_else(|e| e.into_inner());
        if let Some(i) = shard.get(text) {
            return Ok(Atom(*i));
        }
        let mut next = self.next.lock().unwrap_or_else(|e| e.into_inner());
        let index = *next;
        if index >= self.limit {
            return Err(AtomError::Full(self.limit));
        }
        let entry = Box::into_raw(Box::new(AtomEntry::new(text)));
        let slot = &self.chunks[index as usize / CHUNK];
        let mut chunk = slot.load(Ordering::Acquire);
        if chunk.is_null() {
            chunk = Box::into_raw(Box::new(std::array::from_fn(|_| {
                AtomicPtr::new(std::ptr::null_mut())
            })));
            slot.store(chunk, Ordering::Release);
        }
        // SAFETY: the chunk was made above or by an earlier insertion and lives as long as the table.
        unsafe { (&(*chunk))[index as usize % CHUNK].store(entry, Ordering::Release) };
        *next = index + 1;
        self.len.store(index + 1, Ordering::Release);
        // SAFETY: entries live until the table is dropped, and the shards go with it.
        let key: &'static str = unsafe { &*std::ptr::from_ref::<str>((*entry).text()) };
        shard.insert(key, index);
        Ok(Atom(index))
    }
    /// The atom of these UTF-8 bytes.
    pub fn intern_utf8(&self, bytes: &[u8]) -> Result<Atom, AtomError> {
        self.intern(std::str::from_utf8(bytes).map_err(|_| AtomError::NotUtf8)?)
    }
    /// The atom of these Latin-1 bytes.
    pub fn intern_latin1(&self, bytes: &[u8]) -> Result<Atom, AtomError> {
        if bytes.is_ascii() {
            // ASCII is UTF-8, so this cannot fail for its form.
            return self.intern_utf8(bytes);
        }
        let text: String = bytes.iter().map(|b| char::from(*b)).collect();
        self.intern(&text)
    }
    /// The entry of an atom of this table.
    ///
    /// # Panics
    /// When the atom comes from another table and this one has no such index.
    #[inline]
    pub fn entry(&self, atom: Atom) -> &AtomEntry {
        let i = atom.index() as usize;
        let chunk = self.chunks[i / CHUNK].load(Ordering::Acquire);
        assert!(!chunk.is_null(), "atom {i} is of another table");
        // SAFETY: a chunk lives as long as the table; its entries are published with `Release`.
        unsafe {
            let e = (&(*chunk))[i % CHUNK].load(Ordering::Acquire);
            assert!(!e.is_null(), "atom {i} is of another table");
            &*e
        }
    }
    /// The text of an atom.
    #[inline]
    pub fn text(&self, atom: Atom) -> &str {
        self.entry(atom).text()
    }
    /// Text order of two atoms (UTF-8 bytes order, which is code point order).
    #[inline]
    pub fn compare(&self, a: Atom, b: Atom) -> std::cmp::Ordering {
        if a == b {
            return std::cmp::Ordering::Equal;
        }
        let (ea, eb) = (self.entry(a), self.entry(b));
        ea.prefix
            .cmp(&eb.prefix)
            .then_with(|| ea.text().cmp(eb.text()))
    }
}

impl Drop for AtomTable {
    fn drop(&mut self) {
        for slot in &mut self.chunks {
            let chunk = *slot.get_mut();
            if chunk.is_null() {
                continue;
            }
            // SAFETY: chunks and entries were made by `Box::into_raw` here and nothing outlives the table.
            unsafe {
                let mut chunk = Box::from_raw(chunk);
                for e in chunk.iter_mut() {
                    let e = *e.get_mut();
                    if !e.is_null() {
                        drop(Box::from_raw(e));
                    }
                }
            }
        }
    }
}

macro_rules! predefined {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// The predefined atoms: constants with the same index in every table.
        #[allow(missing_docs)]
        pub mod atoms {
            use super::Atom;
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Index { $($name),* }
            $(pub const $name: Atom = Atom::from_index(Index::$name as u32);)*
            /// Their texts, by index.
            pub const TEXTS: &[&str] = &[$($text),*];
        }
    };
}

// New atoms are added at the end of a group; numbers are not stored anywhere outside a process.
predefined! {
    FALSE = "false", TRUE = "true", OK = "ok", ERROR = "error", UNDEFINED = "undefined", NIL_ATOM = "nil", EMPTY = "",
    EXIT = "exit", THROW = "throw", EXIT_UPPER = "EXIT", DOWN = "DOWN", NORMAL = "normal", KILL = "kill", KILLED = "killed",
    NOPROC = "noproc", NOCONNECTION = "noconnection", NOCATCH = "nocatch", BADARG = "badarg", BADARITH = "badarith", BADMATCH = "badmatch",
    FUNCTION_CLAUSE = "function_clause", CASE_CLAUSE = "case_clause", IF_CLAUSE = "if_clause", TRY_CLAUSE = "try_clause",
    ELSE_CLAUSE = "else_clause", UNDEF = "undef", BADFUN = "badfun", BADARITY = "badarity", BADMAP = "badmap", BADKEY = "badkey",
    BADRECORD = "badrecord", TIMEOUT_VALUE = "timeout_value", SYSTEM_LIMIT = "system_limit", NOTSUP = "notsup", NOTALIVE = "notalive",
    TIMEOUT = "timeout", INFINITY = "infinity", ERROR_INFO = "error_info", MODULE = "module", CAUSE = "cause", FUNCTION = "function",
    FILE = "file", LINE = "line", ARGUMENTS = "arguments", NONE = "none", GENERAL = "general", REASON = "reason", TYPE = "type",
    ERLANG = "erlang", LISTS = "lists", MAPS = "maps", INIT = "init", ERROR_HANDLER = "error_handler", UNDEFINED_FUNCTION = "undefined_function",
    UNDEFINED_LAMBDA = "undefined_lambda", BREAKPOINT = "breakpoint", ERTS_INTERNAL = "erts_internal", MODULE_INFO = "module_info",
    APPLY = "apply", SPAWN = "spawn", SPAWN_LINK = "spawn_link", SEND = "send", BANG = "!", PLUS = "+", MINUS = "-", TIMES = "*", SLASH = "/",
    DIV = "div", REM = "rem", BAND = "band", BOR = "bor", BXOR = "bxor", BNOT = "bnot", BSL = "bsl", BSR = "bsr", EQ = "=:=", NEQ = "=/=",
    EQUAL = "==", NOT_EQUAL = "/=", LT = "<", LE = "=<", GT = ">", GE = ">=", AND = "and", OR = "or", XOR = "xor", NOT = "not",
    APPEND = "++", SUBTRACT = "--", ALL = "all", LINK = "link", MONITOR = "monitor", PROCESS = "process", PORT = "port", PID = "pid",
    TIME_OFFSET = "time_offset", NONODE_NOHOST = "nonode@nohost", REGISTERED_NAME = "registered_name", LINKS = "links", MONITORS = "monitors",
    MONITORED_BY = "monitored_by", STATUS = "status", WAITING = "waiting", RUNNING = "running", RUNNABLE = "runnable", EXITING = "exiting",
    GARBAGE_COLLECTING = "garbage_collecting", SUSPENDED = "suspended", MESSAGES = "messages", MESSAGE_QUEUE_LEN = "message_queue_len",
    MESSAGE_QUEUE_DATA = "message_queue_data", OFF_HEAP = "off_heap", ON_HEAP = "on_heap", MIXED = "mixed", CURRENT_FUNCTION = "current_function",
    CURRENT_LOCATION = "current_location", CURRENT_STACKTRACE = "current_stacktrace", INITIAL_CALL = "initial_call", DICTIONARY = "dictionary",
    HEAP_SIZE = "heap_size", TOTAL_HEAP_SIZE = "total_heap_size", STACK_SIZE = "stack_size", MEMORY = "memory", REDUCTIONS = "reductions",
    GARBAGE_COLLECTION = "garbage_collection", GARBAGE_COLLECTION_INFO = "garbage_collection_info", GROUP_LEADER = "group_leader",
    PRIORITY = "priority", MAX = "max", HIGH = "high", LOW = "low", TRAP_EXIT = "trap_exit", CATCHLEVEL = "catchlevel", BACKTRACE = "backtrace",
    BINARY = "binary", SUSPENDING = "suspending", MIN_HEAP_SIZE = "min_heap_size", MIN_BIN_VHEAP_SIZE = "min_bin_vheap_size",
    MAX_HEAP_SIZE = "max_heap_size", FULLSWEEP_AFTER = "fullsweep_after", MINOR_GCS = "minor_gcs", SENSITIVE = "sensitive", SAVE_CALLS = "save_calls",
    SIZE = "size", ALIAS = "alias", DEMONITOR = "demonitor", EXPLICIT_UNALIAS = "explicit_unalias", REPLY_DEMONITOR = "reply_demonitor", REPLY = "reply",
    TAG = "tag", FLUSH = "flush", INFO = "info", NOSUSPEND = "nosuspend", NOCONNECT = "noconnect", SET = "set", ORDERED_SET = "ordered_set",
    BAG = "bag", DUPLICATE_BAG = "duplicate_bag", PUBLIC = "public", PROTECTED = "protected", PRIVATE = "private", NAMED_TABLE = "named_table",
    KEYPOS = "keypos", HEIR = "heir", WRITE_CONCURRENCY = "write_concurrency", READ_CONCURRENCY = "read_concurrency",
    DECENTRALIZED_COUNTERS = "decentralized_counters", COMPRESSED = "compressed", ETS_TRANSFER = "ETS-TRANSFER", END_OF_TABLE = "$end_of_table",
    DOLLAR_DOLLAR = "$$", DOLLAR_UNDERSCORE = "$_", UNDERSCORE = "_", NAME = "name", OWNER = "owner", NODE = "node", PROTECTION = "protection", ID = "id",
    FIXED = "fixed", SAFE_FIXED = "safe_fixed", STATS = "stats", ASYNC = "async", TRUE_OR_FALSE = "boolean", CONST = "const",
    ACCESS = "access", TABLE_TYPE = "table_type", POSITION = "position", NOT_OWNER = "not_owner", ALREADY_EXISTS = "already_exists", AUTO = "auto",
    LATIN1 = "latin1", UNICODE = "unicode", UTF8 = "utf8", UTF16 = "utf16", UTF32 = "utf32", BIG = "big", LITTLE = "little", NATIVE = "native",
    INCOMPLETE = "incomplete", CHARACTERS_TO_LIST = "characters_to_list", CHARACTERS_TO_BINARY = "characters_to_binary",
    STRING = "string", ATOM = "atom", INTEGER = "integer", FLOAT = "float", APPEND_SEG = "append", PRIVATE_APPEND = "private_append",
    UTF8_SEG = "utf8_segment", SAFE = "safe", USED = "used", SHORT = "short", DECIMALS = "decimals", SCIENTIFIC = "scientific", COMPACT = "compact",
    COPY = "copy", REUSE = "reuse", INPLACE = "inplace", LOCAL = "local", EXTERNAL = "external", ENV = "env", ARITY = "arity", NEW_INDEX = "new_index",
    NEW_UNIQ = "new_uniq", UNIQ = "uniq", INDEX = "index", NOW = "now", SECOND = "second", MILLISECOND = "millisecond", MICROSECOND = "microsecond",
    NANOSECOND = "nanosecond", PERF_COUNTER = "perf_counter", SECONDS = "seconds", MILLI_SECONDS = "milli_seconds", MICRO_SECONDS = "micro_seconds",
    NANO_SECONDS = "nano_seconds", POSITIVE = "positive", MONOTONIC = "monotonic", UNIQUE = "unique", STRICT_MONOTONIC = "strict_monotonic",
    ABS = "abs", ASYNC_OPT = "async_opt", IO_REQUEST = "io_request", IO_REPLY = "io_reply", PUT_CHARS = "put_chars", GET_LINE = "get_line",
    GET_CHARS = "get_chars", GET_UNTIL = "get_until", EOF = "eof", REQUEST = "request", REQUESTS = "requests", SETOPTS = "setopts", GETOPTS = "getopts",
    GET_GEOMETRY = "get_geometry", COLUMNS = "columns", ROWS = "rows", ENOTSUP = "enotsup", ECHO = "echo", EXPAND_FUN = "expand_fun", ENCODING = "encoding",
    LIST = "list", USER = "user", STANDARD_ERROR = "standard_error", EXPORTS = "exports", IMPORTS = "imports", ATTRIBUTES = "attributes", COMPILE = "compile",
    FUNCTIONS = "functions", NIFS = "nifs", MD5 = "md5", LOADED = "loaded", NOT_LOADED = "not_loaded", NOFILE = "nofile", BADFILE = "badfile", STICKY_DIRECTORY = "sticky_directory",
    NOT_PURGED = "not_purged", ON_LOAD = "on_load", ON_LOAD_FAILURE = "on_load_failure", NOT_ALLOWED = "not_allowed", FUN = "fun", TUPLE = "tuple",
    MAP = "map", REFERENCE = "reference", HEAP = "heap", OLD_HEAP_SIZE = "old_heap_size", HEAP_BLOCK_SIZE = "heap_block_size", RECENT_SIZE = "recent_size",
    MBUF_SIZE = "mbuf_size", ASYNC_DIST = "async_dist", MONITOR_NODES = "monitor_nodes", PARENT = "parent", LABEL = "label", SPAWN_REPLY = "spawn_reply",
    YES = "yes", NO = "no", START = "start", LOG = "log", LOGGER = "logger", EMULATOR = "emulator", SMP = "smp", CANCELLED = "cancelled", VALUE = "value",
    UNIT = "unit", INVALID = "invalid", NO_FLOAT = "no_float", BADFIELD = "badfield", NOVALUE = "novalue", RECEIVE = "receive",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predefined_atoms_keep_their_numbers() {
        let t = AtomTable::new(0);
        for (i, text) in atoms::TEXTS.iter().enumerate() {
            assert_eq!(t.lookup(text), Some(Atom::from_index(i as u32)), "{text}");
        }
        assert_eq!(t.text(atoms::ETS_TRANSFER), "ETS-TRANSFER");
    }

    #[test]
    fn order_is_by_text() {
        let t = AtomTable::new(0);
        let a = t.intern("zeta_long_common_prefix_b").unwrap();
        let b = t.intern("zeta_long_common_prefix_a").unwrap();
        assert_eq!(t.compare(a, b), std::cmp::Ordering::Greater);
        assert_eq!(t.compare(b, a), std::cmp::Ordering::Less);
        assert_eq!(t.compare(a, a), std::cmp::Ordering::Equal);
    }

    #[test]
    fn limits() {
        let t = AtomTable::new(0);
        assert_eq!(t.intern(&"x".repeat(256)), Err(AtomError::TooLong));
        assert!(t.intern(&"é".repeat(255)).is_ok());
        let mut n = 0;
        loop {
            match t.intern(&format!("filler{n}")) {
                Ok(_) => n += 1,
                Err(e) => break assert_eq!(e, AtomError::Full(t.limit())),
            }
        }
    }
}
