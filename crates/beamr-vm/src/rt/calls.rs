//! Calls whose target is not known when code is translated.
//!
//! [`undefined`] and [`bad_fun`] may lead elsewhere than the call wanted: to an error handler with other arguments, or, after
//! an exception, to a `catch`. What they give says how many X registers are live there.

use std::sync::atomic::Ordering;

use beamr_abi::{Ctx, ErrorInfo, Escape, NativeEntry, Pending, Regs, TrapTarget};
use beamr_term::{Atom, Build, ExportId, FunEntry, Subtag, Word, atoms};

use crate::code::table::Ensured;
use crate::code::{Instance, ModuleTable};
use crate::engine::CodePos;
use crate::rt::WorkerCode;
use crate::rt::exception::{raise, raise_undef};
use crate::rt::natives::plain_error;

/// Where to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Target {
    /// The position; null when the process has ended.
    pub pos: CodePos,
    /// Live X registers there: arguments and captured values, or 4 at the handler of an exception (x0 is
    /// then [`Word::NONE`]).
    pub live: usize,
}

impl Target {
    /// What [`raise`] gave.
    pub fn raised(pos: CodePos) -> Target {
        Target { pos, live: 4 }
    }
}

const HANDLE_UNDEFINED: &str = "$handle_undefined_function";

/// The position of `module:function/arity` where it exists in the process's namespace; loads the module first
/// where the VM loads on first call. Null when it does not exist: the engine then calls [`undefined`].
/// Null too for words that are no atoms: the engine checks them before.
///
/// # Safety
/// The contract of the module.
pub unsafe fn resolve(regs: &mut Regs, module: Word, function: Word, arity: usize) -> CodePos {
    let head = WorkerCode::of(&regs.ctx);
    let arity = arity as u32;
    if let Some(id) = head.cache.get(module, function, arity) {
        let at = head.modules().export(id);
        if !at.is_null() {
            note_call(&regs.ctx, id);
            return at;
        }
    }
    let (Some(m), Some(f)) = (module.as_atom(), function.as_atom()) else {
        return std::ptr::null();
    };
    let exports = &regs.ctx.tables().exports;
    // A name without number is defined nowhere; calls of such names do not fill the table.
    let mut id = exports.lookup(m, f, arity);
    let mut at = id.map_or(std::ptr::null(), |id| head.modules().export(id));
    if at.is_null() && loads(&mut regs.ctx, head.modules(), m) {
        id = exports.lookup(m, f, arity);
        at = id.map_or(std::ptr::null(), |id| head.modules().export(id));
    }
    if let Some(id) = id
        && !at.is_null()
    {
        head.cache.put(module, function, arity, id);
        note_call(&regs.ctx, id);
    }
    at
}

/// Tells the process structure of a call of an exported function, where it is found by name or its process saves calls.
#[inline]
unsafe fn note_call(ctx: &Ctx, export: ExportId) {
    let head = WorkerCode::of(ctx);
    if ctx.exports != head.modules().exports_ptr() {
        head.processes.called(ctx, export);
    }
}

/// As [`resolve`] by export id, for a call that found a null export slot.
///
/// # Safety
/// The contract of the module.
pub unsafe fn resolve_export(regs: &mut Regs, export: ExportId) -> CodePos {
    let table = WorkerCode::of(&regs.ctx).modules();
    note_call(&regs.ctx, export);
    let at = table.export(export);
    if !at.is_null() {
        return at;
    }
    match regs.ctx.tables().exports.mfa(export) {
        Some((m, _, _)) if loads(&mut regs.ctx, table, m) => table.export(export),
        _ => std::ptr::null(),
    }
}

/// Loads a module that is not there, in a namespace that does so. True when it is now.
fn loads(ctx: &mut Ctx, table: &ModuleTable, module: Atom) -> bool {
    // A file that cannot be loaded was reported to the loader; the function does not exist.
    table.loads_on_call()
        && !table.take_failed(module, ctx.self_pid())
        && matches!(table.ensure_loaded(module), Ok(Ensured::Loaded))
}

/// A call of a function that does not exist, arguments in x0..arity: goes to the error handler, or raises `undef` at `ip`.
/// The caller has already pushed its return address for a body call.
///
/// A namespace that loads on first call has no error handler process behind it: there
/// `'$handle_undefined_function'/2` of the module itself is called, as the error handler of OTP would; for a module that was not found,
/// [`further_handler`].
///
/// # Safety
/// The contract of the module.
pub unsafe fn undefined(
    regs: &mut Regs,
    ip: CodePos,
    module: Word,
    function: Word,
    arity: usize,
) -> Target {
    let head = WorkerCode::of(&regs.ctx);
    let table = head.modules();
    let args = arguments(regs, arity);
    let (handler, x) = if table.loads_on_call() {
        let Some(m) = module.as_atom() else {
            return Target::raised(raise_undef(regs, ip, module, function, args));
        };
        let pending = table.pending_on_load(m);
        if pending == Some(Some(regs.ctx.self_pid())) {
            // The function calls its own module, which is not there yet.
            return Target::raised(raise_undef(regs, ip, module, function, args));
        }
        if pending.is_some() {
            let run = head.server.trampoline();
            (run, [module, function, args])
        } else {
            let name = regs.ctx.tables().atoms.lookup(HANDLE_UNDEFINED);
            let own = name.map_or(std::ptr::null(), |f| table.find(m, f, 2));
            let further = match own.is_null() && !table.is_loaded(m) {
                true => further_handler(regs, atoms::UNDEFINED_FUNCTION),
                false => std::ptr::null(),
            };
            if further.is_null() {
                (own, [function, args, Word::NIL])
            } else {
                (further, [module, function, args])
            }
        }
    } else {
        let m = head.processes.error_handler(regs.ctx.body());
        let at = table.find(m, atoms::UNDEFINED_FUNCTION, 3);
        (at, [module, function, args])
    };
    if handler.is_null() {
        return Target::raised(raise_undef(regs, ip, module, function, args));
    }
    regs.x[..3].copy_from_slice(&x);
    Target {
        pos: handler,
        live: 3,
    }
}

/// The error handler for modules that a VM which loads on first call does not find: the process's own one, and that of OTP when a
/// code server runs, whose path may have grown. Null when there is none to be asked.
///
/// # Safety
/// The contract of the module.
unsafe fn further_handler(regs: &mut Regs, function: Atom) -> CodePos {
    let head = WorkerCode::of(&regs.ctx);
    let handler = head.processes.error_handler(regs.ctx.body());
    if handler == atoms::ERROR_HANDLER && !head.processes.has_code_server(&regs.ctx) {
        return std::ptr::null();
    }
    let table = head.modules();
    // A handler that cannot be loaded handles nothing.
    let _ = table.ensure_loaded(handler);
    table.find(handler, function, 3)
}

/// The list of x0..arity.
fn arguments(regs: &mut Regs, arity: usize) -> Word {
    let Regs { x, ctx, .. } = regs;
    ctx.list(x[..arity].iter().copied())
}

/// A call of a fun whose code is not loaded, or of a term that is not a fun, or with the wrong arity:
/// arguments in x0..arity (at least x0 is initialised). Loads the module and gives the position, or raises `{badfun, F}` / `{badarity, {F, Args}}` at `ip`.
///
/// The position of a loaded fun is that of its body: the captured values have been put behind the arguments, at x[arity]..
///
/// # Safety
/// The contract of the module.
pub unsafe fn bad_fun(regs: &mut Regs, ip: CodePos, fun: Word, arity: usize) -> Target {
    let ctx = &mut regs.ctx;
    match fun.subtag() {
        Some(Subtag::Export) => {
            let expected = fun.term_field(4).small_value();
            if expected != arity as i64 {
                return badarity(regs, ip, fun, arity);
            }
            let id = fun.term_field(1).small_value() as ExportId;
            let pos = resolve_export(regs, id);
            if !pos.is_null() {
                return Target { pos, live: arity };
            }
            undefined(regs, ip, fun.term_field(2), fun.term_field(3), arity)
        }
        Some(Subtag::Fun) => {
            let entry = &*(fun.field(1) as usize as *const FunEntry);
            if entry.arity as usize != arity {
                return badarity(regs, ip, fun, arity);
            }
            let head = WorkerCode::of(ctx);
            let table = head.modules();
            let mut code = entry.code.load(Ordering::Acquire);
            if code.is_null() && loads(ctx, table, entry.module) {
                code = entry.code.load(Ordering::Acquire);
            }
            if !code.is_null() {
                let free = fun.header().arity() - 1;
                for i in 0..free {
                    regs.x[arity + i] = fun.term_field(2 + i);
                }
                return Target {
                    pos: code,
                    live: arity + free,
                };
            }
            if table.is_purging(entry.module) {
                return wait_for_purge(regs, fun, entry, arity);
            }
            if table.is_loaded(entry.module) {
                return error(regs, ip, atoms::BADFUN, fun);
            }
            let at = if table.loads_on_call() {
                further_handler(regs, atoms::UNDEFINED_LAMBDA)
            } else {
                let handler = head.processes.error_handler(regs.ctx.body());
                table.find(handler, atoms::UNDEFINED_LAMBDA, 3)
            };
            if at.is_null() && table.loads_on_call() {
                return error(regs, ip, atoms::BADFUN, fun);
            }
            if at.is_null() {
                let reason = atoms::UNDEF.word();
                return Target::raised(raise(regs, ip, plain_error(reason), None, None));
            }
            let args = arguments(regs, arity);
            regs.x[0] = entry.module.word();
            regs.x[1] = fun;
            regs.x[2] = args;
            Target { pos: at, live: 3 }
        }
        _ => error(regs, ip, atoms::BADFUN, fun),
    }
}

unsafe fn error(regs: &mut Regs, ip: CodePos, tag: Atom, value: Word) -> Target {
    let reason = regs.ctx.tuple(&[tag.word(), value]);
    Target::raised(raise(regs, ip, plain_error(reason), None, None))
}

unsafe fn badarity(regs: &mut Regs, ip: CodePos, fun: Word, arity: usize) -> Target {
    let args = arguments(regs, arity);
    let value = regs.ctx.tuple(&[fun, args]);
    error(regs, ip, atoms::BADARITY, value)
}

/// The fun entry of lambda `lambda` of image `image` in the process's namespace.
///
/// # Safety
/// The running code belongs to that image.
#[inline]
pub unsafe fn fun_entry(ctx: &mut Ctx, image: u32, lambda: u32) -> *const FunEntry {
    let instance = (*ctx.instances.add(image as usize)).load(Ordering::Acquire);
    (&(*instance.cast::<Instance>()).funs)[lambda as usize]
}

/// The position of an export, loading or calling the error handler when need be. Registers are
/// saved, and the return address is on the stack.
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn export_or_undefined(regs: &mut Regs, ip: CodePos, id: u32, arity: usize) -> Target {
    let pos = (*regs.ctx.exports.add(id as usize))
        .load(Ordering::Acquire)
        .cast_const();
    if !pos.is_null() {
        return Target { pos, live: arity };
    }
    let pos = resolve_export(regs, id);
    if !pos.is_null() {
        return Target { pos, live: arity };
    }
    match regs.ctx.tables().exports.mfa(id) {
        Some((m, f, a)) => undefined(regs, ip, m.word(), f.word(), a as usize),
        None => Target::raised(raise(
            regs,
            ip,
            plain_error(atoms::UNDEF.word()),
            None,
            None,
        )),
    }
}

/// The position of a function by name; as [`export_or_undefined`].
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn resolve_or_undefined(
    regs: &mut Regs,
    ip: CodePos,
    module: Word,
    function: Word,
    arity: usize,
) -> Target {
    let pos = resolve(regs, module, function, arity);
    if pos.is_null() {
        return undefined(regs, ip, module, function, arity);
    }
    Target { pos, live: arity }
}

/// The export id of `fun M:F/A` with this arity.
///
/// # Safety
/// The word is a term.
pub unsafe fn export_fun(fun: Word, arity: usize) -> Option<u32> {
    (fun.subtag() == Some(Subtag::Export) && fun.term_field(4).small_value() as usize == arity)
        .then(|| fun.term_field(1).small_value() as u32)
}

/// A call of a fun that has no code yet, has another arity, or is no fun. After an exception x0 is
/// [`Word::NONE`]; registers are saved, no return address is pushed.
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn late_fun(regs: &mut Regs, ip: CodePos, fun: Word, arity: usize) -> Target {
    if arity == 0 {
        regs.x[0] = Word::NIL;
    }
    bad_fun(regs, ip, fun, arity)
}

/// Whether [`fun_target`] finds code (or a function that is undefined) without an exception.
///
/// # Safety
/// The contract of the module.
pub unsafe fn is_callable(fun: Word, arity: usize) -> bool {
    if fun.subtag() == Some(Subtag::Fun) {
        let entry = &*(fun.field(1) as usize as *const FunEntry);
        return entry.arity as usize == arity && !entry.code.load(Ordering::Acquire).is_null();
    }
    export_fun(fun, arity).is_some()
}

/// Where a trap to `fun` goes. Registers are saved, the return address is on the stack.
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn fun_target(regs: &mut Regs, ip: CodePos, fun: Word, arity: usize) -> Target {
    if let Some(id) = export_fun(fun, arity) {
        return export_or_undefined(regs, ip, id, arity);
    }
    if fun.subtag() == Some(Subtag::Fun) {
        let entry = &*(fun.field(1) as usize as *const FunEntry);
        let code = entry.code.load(Ordering::Acquire).cast_const();
        if entry.arity as usize == arity && !code.is_null() {
            let free = fun.header().arity() - 1;
            for i in 0..free {
                regs.x[arity + i] = fun.term_field(2 + i);
            }
            return Target {
                pos: code,
                live: arity + free,
            };
        }
    }
    late_fun(regs, ip, fun, arity)
}

/// Puts the list x2 into x0.. and gives the position of x0:x1.
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn spread(regs: &mut Regs, ip: CodePos) -> Target {
    let (module, function, mut list) = (regs.x[0], regs.x[1], regs.x[2]);
    let args = [module, function, list];
    let mut n = 0;
    // x255 is the last argument that a function can have.
    while let Some((h, t)) = list.as_cons() {
        if n > 255 {
            break;
        }
        regs.x[n] = h;
        n += 1;
        list = t;
    }
    let too_many = list.is_cons();
    if !module.is_atom() || !function.is_atom() || !list.is_nil() {
        let reason = if too_many {
            atoms::SYSTEM_LIMIT
        } else {
            atoms::BADARG
        };
        return Target::raised(apply_failed(regs, ip, reason, &args));
    }
    let pos = resolve(regs, module, function, n);
    if pos.is_null() {
        return undefined(regs, ip, module, function, n);
    }
    Target { pos, live: n }
}

/// A call of a fun whose code is being purged: it waits for the end of that and then is made again. As in OTP the process is suspended
/// in `erts_code_purger:pending_purge_lambda/3`; where that does not exist, it asks again and again.
unsafe fn wait_for_purge(regs: &mut Regs, fun: Word, entry: &FunEntry, arity: usize) -> Target {
    let head = WorkerCode::of(&regs.ctx);
    let table = head.modules();
    let args = arguments(regs, arity);
    let names = &regs.ctx.tables().atoms;
    let purger = names
        .lookup(PENDING.module)
        .zip(names.lookup(PENDING.function));
    let at = purger.map_or(std::ptr::null(), |(m, f)| table.find(m, f, 3));
    if !at.is_null() && head.processes.suspend_running(&regs.ctx) {
        if !table.await_purge(entry.module, regs.ctx.self_pid()) {
            head.processes.resume_running(&regs.ctx);
        }
        // The slice ends before the function begins.
        regs.ctx.fcalls = 0;
        (regs.x[0], regs.x[1], regs.x[2]) = (entry.module.word(), fun, args);
        return Target { pos: at, live: 3 };
    }
    let pos = head.server.engine.native_stub(&PENDING);
    (regs.x[0], regs.x[1]) = (fun, args);
    Target { pos, live: 2 }
}

/// A call of a fun of code that is being purged.
static PENDING: NativeEntry =
    NativeEntry::new("erts_code_purger", "pending_purge_lambda", 2, pending);

fn pending(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    // SAFETY: the word was a fun when the call was made; its entry lives as long as the VM.
    let entry = unsafe { &*(args[0].field(1) as usize as *const FunEntry) };
    // SAFETY: a native runs on a worker, and holds no other reference to its head.
    if unsafe { WorkerCode::of(ctx) }
        .modules()
        .is_purging(entry.module)
    {
        return Err(ctx.escape(Pending::Yield));
    }
    let mut list = Vec::new();
    let mut rest = args[1];
    while let Some((h, t)) = rest.as_cons() {
        list.push(h);
        rest = t;
    }
    Err(ctx.trap(TrapTarget::Fun(args[0]), &list))
}

/// For the trace of a failed fixed apply only.
static APPLY: NativeEntry = NativeEntry::new("erlang", "apply", 3, never);

fn never(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.badarg())
}

/// Raises an error of `erlang:apply/3` with these arguments.
///
/// # Safety
/// The contract of the module.
pub unsafe fn apply_failed(regs: &mut Regs, ip: CodePos, reason: Atom, args: &[Word]) -> CodePos {
    let mut r = plain_error(reason.word());
    r.own_frame = true;
    r.info = ErrorInfo::Default;
    raise(regs, ip, r, Some(&APPLY), Some(args))
}
