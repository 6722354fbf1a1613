//! `erlang`: pids, ports and references as text.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Atom, Build, Word, format, ids, text};
use beamr_vm::process::own;

use crate::resources;

fn as_list(ctx: &mut Ctx, w: Word) -> Word {
    let text = format::format_term(ctx.tables(), w, format::FormatLimit::NONE);
    let text = String::from_utf8_lossy(&text).into_owned();
    ctx.string(&text)
}

/// `pid_to_list(Pid)`.
fn pid_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_pid() {
        Ok(as_list(ctx, args[0]))
    } else {
        Err(ctx.badarg())
    }
}
/// `port_to_list(Port)`.
fn port_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_port() {
        Ok(as_list(ctx, args[0]))
    } else {
        Err(ctx.badarg())
    }
}
/// `ref_to_list(Ref)`.
fn ref_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_reference() {
        Ok(as_list(ctx, args[0]))
    } else {
        Err(ctx.badarg())
    }
}

/// The numbers between `before` and `>` of a list of characters.
fn numbers(list: Word, before: &str) -> Option<Vec<u64>> {
    let s = text::string_from_list(list)?;
    let inner = s.strip_prefix(before)?.strip_suffix('>')?;
    inner
        .split('.')
        .map(|n| {
            let digits = !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| n.parse().ok()).flatten()
        })
        .collect()
}

/// The node that the first number of an identifier's text stands for: `None` for this one.
fn channel(ctx: &Ctx, n: u64) -> Option<Option<std::sync::Arc<beamr_term::NodeEntry>>> {
    let tables = ctx.tables();
    if n == 0 || n == u64::from(tables.local_node().0.index()) {
        return Some(None);
    }
    let name = u32::try_from(n).ok().filter(|n| *n < tables.atoms.len())?;
    tables
        .known_nodes()
        .into_iter()
        .find(|e| e.name == Atom::from_index(name))
        .map(Some)
}

/// `list_to_pid(String)`.
fn list_to_pid_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let parts = numbers(args[0], "<");
    if let Some([c, number, serial]) = parts.as_deref()
        && *number < 1 << ids::PID_NUMBER_BITS
        && *serial < 1 << 32
        && let Some(node) = channel(ctx, *c)
    {
        match node {
            None if *serial < 1 << (60 - ids::PID_NUMBER_BITS) => {
                return Ok(Word::pid(number | serial << ids::PID_NUMBER_BITS));
            }
            Some(e) => return Ok(ids::external_pid(ctx, e, *number as u32, *serial as u32)),
            None => {}
        }
    }
    Err(ctx.badarg())
}

/// `list_to_port(String)`.
fn list_to_port_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let parts = numbers(args[0], "#Port<");
    if let Some([c, number]) = parts.as_deref()
        && let Some(node) = channel(ctx, *c)
    {
        match node {
            None if *number < 1 << 60 => return Ok(Word::port(*number)),
            Some(e) => return Ok(ids::external_port(ctx, e, *number)),
            None => {}
        }
    }
    Err(ctx.badarg())
}

/// A reference of this node by its numbers: what it is besides (an alias of the running process, a resource) comes back.
pub fn local_reference(ctx: &mut Ctx, numbers: [u32; 3]) -> Word {
    if let Some(r) = resources::find(ctx, numbers) {
        return ctx.magic_reference(numbers, r);
    }
    let plain = ctx.reference(numbers);
    let me = ctx.self_pid();
    match beamr_vm::process::RefKey::of(plain) {
        Some(key) if own(ctx).aliases.get(key).is_some() => ctx.alias_reference(numbers, me),
        _ => plain,
    }
}

/// `list_to_ref(String)`.
fn list_to_ref_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let parts = numbers(args[0], "#Ref<");
    if let Some([c, rest @ ..]) = parts.as_deref()
        && (1..=ids::MAX_REF_NUMBERS).contains(&rest.len())
        && rest.iter().all(|n| u32::try_from(*n).is_ok())
        && let Some(node) = channel(ctx, *c)
    {
        let numbers: Vec<u32> = rest.iter().rev().map(|n| *n as u32).collect();
        match (node, numbers.as_slice()) {
            (Some(e), all) => return Ok(ids::external_ref(ctx, e, all)),
            (None, [a, b, c]) if *a < 1 << 18 => return Ok(local_reference(ctx, [*a, *b, *c])),
            _ => {}
        }
    }
    Err(ctx.badarg())
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("pid_to_list", 1, pid_to_list_1),
    row("port_to_list", 1, port_to_list_1),
    row("ref_to_list", 1, ref_to_list_1),
    row("list_to_pid", 1, list_to_pid_1),
    row("list_to_port", 1, list_to_port_1),
    row("list_to_ref", 1, list_to_ref_1),
];
