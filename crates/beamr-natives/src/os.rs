//! `os` (and `file:native_name_encoding/0`): the environment of the VM.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::BitsView;
use beamr_term::{Build, Word, atoms, text};
use beamr_vm::process::vm_of;

use crate::support::{ListBuilder, bad_option, name};

/// A name or value of the environment as its bytes: a list of characters or a binary, without NUL.
fn text_bytes(ctx: &mut Ctx, w: Word) -> Result<Vec<u8>, Escape> {
    let bytes = match text::string_from_list(w) {
        Some(s) => s.into_bytes(),
        None => match BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary()) {
            Some(v) => v.to_bytes().into_owned(),
            None => return Err(ctx.badarg()),
        },
    };
    if bytes.contains(&0) {
        return Err(ctx.badarg());
    }
    Ok(bytes)
}

/// Bytes of the outside as characters: UTF-8 where they are, else one by one.
fn characters(ctx: &mut Ctx, bytes: &[u8]) -> Word {
    match std::str::from_utf8(bytes) {
        Ok(s) => ctx.string(s),
        Err(_) => text::list_of_bytes(ctx, bytes, Word::NIL),
    }
}

/// `getenv(Name)`: the value, or `false`.
fn getenv_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let key = text_bytes(ctx, args[0])?;
    match vm_of(ctx).door.env(&key) {
        Some(v) => Ok(characters(ctx, &v)),
        None => Ok(Word::FALSE),
    }
}
/// `putenv(Name, Value)`.
fn putenv_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (k, v) = (text_bytes(ctx, args[0])?, text_bytes(ctx, args[1])?);
    if k.is_empty() {
        // OTP takes a variable without a name; no program can see it.
        return Ok(Word::TRUE);
    }
    match vm_of(ctx).door.set_env(&k, Some(&v)) {
        Ok(()) => Ok(Word::TRUE),
        Err(_) => Err(ctx.badarg()),
    }
}
/// `unsetenv(Name)`.
fn unsetenv_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let k = text_bytes(ctx, args[0])?;
    if k.is_empty() {
        return Ok(Word::TRUE);
    }
    match vm_of(ctx).door.set_env(&k, None) {
        Ok(()) => Ok(Word::TRUE),
        Err(_) => Err(ctx.badarg()),
    }
}
/// `env()`.
fn env_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let mut list = ListBuilder::new();
    for (k, v) in vm_of(ctx).door.env_list() {
        let (k, v) = (characters(ctx, &k), characters(ctx, &v));
        let p = ctx.tuple(&[k, v]);
        list.push(ctx, p);
    }
    Ok(list.finish(Word::NIL))
}
/// `getpid()`.
fn getpid_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let pid = vm_of(ctx).door.os_pid().to_string();
    Ok(ctx.string(&pid))
}

const SIGNALS: &[&str] = &[
    "sigabrt", "sigalrm", "sigchld", "sighup", "sigquit", "sigstop", "sigterm", "sigtstp",
    "sigusr1", "sigusr2", "sigwinch", "sigcont", "siginfo", "sigint",
];

/// `set_signal(Signal, default | handle | ignore)`: signals belong to the program around the VM. Where it takes no part in them the
/// wish is checked and granted by name only.
fn set_signal_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match (name(ctx, args[0]), name(ctx, args[1])) {
        (Some(s), Some(how @ ("default" | "handle" | "ignore"))) if SIGNALS.contains(&s) => {
            match vm_of(ctx).hooks.set_signal.get() {
                Some(set) if !set(s, how) => Err(ctx.badarg()),
                _ => Ok(atoms::OK.word()),
            }
        }
        (_, Some("default" | "handle" | "ignore")) => Err(ctx.badarg()),
        _ => Err(bad_option(ctx)),
    }
}

/// `file:native_name_encoding()`.
fn native_name_encoding_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::UTF8.word())
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("os", function, arity, func).needs(Capability::ExternalIo)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("getenv", 1, getenv_1),
    row("putenv", 2, putenv_2),
    row("unsetenv", 1, unsetenv_1),
    row("env", 0, env_0),
    row("getpid", 0, getpid_0),
    row("set_signal", 2, set_signal_2),
    NativeEntry::new("file", "native_name_encoding", 0, native_name_encoding_0),
];
