//! Trace flags.

/// `send`.
pub const SEND: u32 = 1 << 0;
/// `'receive'`.
pub const RECEIVE: u32 = 1 << 1;
/// `call`.
pub const CALL: u32 = 1 << 2;
/// `procs`.
pub const PROCS: u32 = 1 << 3;
/// `running`.
pub const RUNNING: u32 = 1 << 4;
/// `exiting`.
pub const EXITING: u32 = 1 << 5;
/// `garbage_collection`.
pub const GC: u32 = 1 << 6;
/// `arity`.
pub const ARITY: u32 = 1 << 7;
/// `return_to`.
pub const RETURN_TO: u32 = 1 << 8;
/// `silent`.
pub const SILENT: u32 = 1 << 9;
/// `set_on_spawn`.
pub const SET_ON_SPAWN: u32 = 1 << 10;
/// `set_on_first_spawn`.
pub const SET_ON_FIRST_SPAWN: u32 = 1 << 11;
/// `set_on_link`.
pub const SET_ON_LINK: u32 = 1 << 12;
/// `set_on_first_link`.
pub const SET_ON_FIRST_LINK: u32 = 1 << 13;
/// `timestamp`.
pub const TIMESTAMP: u32 = 1 << 14;
/// `strict_monotonic_timestamp`.
pub const STRICT_MONOTONIC: u32 = 1 << 15;
/// `monotonic_timestamp`.
pub const MONOTONIC: u32 = 1 << 16;
/// `scheduler_id`.
pub const SCHEDULER_ID: u32 = 1 << 17;
/// `running_procs`.
pub const RUNNING_PROCS: u32 = 1 << 18;
/// `ports`.
pub const PORTS: u32 = 1 << 19;
/// `running_ports`.
pub const RUNNING_PORTS: u32 = 1 << 20;

/// Not a trace flag: the process saves calls.
pub(crate) const SAVES_CALLS: u32 = 1 << 24;
/// Not a trace flag: the process has a token of sequential tracing, or messages with one.
pub(crate) const TOKEN: u32 = 1 << 26;
/// Not a trace flag: the process is sensitive, nothing is traced of it.
pub(crate) const SENSITIVE: u32 = 1 << 25;

/// Every trace flag.
pub const ALL: u32 = (1 << 21) - 1;
/// What changes messages but makes none by itself, and what processes and ports have in common.
pub const MODIFIERS: u32 =
    SILENT | TIMESTAMP | STRICT_MONOTONIC | MONOTONIC | SCHEDULER_ID | RECEIVE | SEND;
/// What a port can have.
pub const OF_PORTS: u32 = MODIFIERS | PORTS | RUNNING_PORTS;
/// What a process can have.
pub const OF_PROCESSES: u32 = (ALL & !OF_PORTS) | MODIFIERS;

/// Flags by name, in the order in which `trace_info` lists them from the end.
const NAMES: [(&str, u32); 21] = [
    ("timestamp", TIMESTAMP),
    ("strict_monotonic_timestamp", STRICT_MONOTONIC),
    ("monotonic_timestamp", MONOTONIC),
    ("send", SEND),
    ("receive", RECEIVE),
    ("set_on_spawn", SET_ON_SPAWN),
    ("call", CALL),
    ("procs", PROCS),
    ("set_on_first_spawn", SET_ON_FIRST_SPAWN),
    ("set_on_link", SET_ON_LINK),
    ("set_on_first_link", SET_ON_FIRST_LINK),
    ("running", RUNNING),
    ("exiting", EXITING),
    ("garbage_collection", GC),
    ("arity", ARITY),
    ("return_to", RETURN_TO),
    ("silent", SILENT),
    ("scheduler_id", SCHEDULER_ID),
    ("ports", PORTS),
    ("running_ports", RUNNING_PORTS),
    ("running_procs", RUNNING_PROCS),
];

/// The flag of this name; `all` is every flag.
pub fn of_name(name: &str) -> Option<u32> {
    if name == "all" {
        return Some(ALL);
    }
    NAMES.iter().find(|n| n.0 == name).map(|n| n.1)
}

/// The names of flags, in the order of `trace_info(_, flags)`.
pub fn names(flags: u32) -> impl Iterator<Item = &'static str> {
    let set = NAMES.iter().rev().filter(move |n| flags & n.1 != 0);
    set.map(|n| n.0)
}
