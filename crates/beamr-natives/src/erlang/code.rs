//! `erlang` and `erts_internal`: loading, deleting and purging code, and what is known of loaded modules.
//!
//! Literals of purged code stay where they are until the VM ends; the literal collector therefore never
//! finds work ([`release_literal_area_switch_0`]).

use std::sync::{Arc, Mutex};

use beamr_abi::{Capability, Ctx, Escape, NativeClass, NativeEntry, NativeFn, TrapTarget};
use beamr_term::bits::BitsView;
use beamr_term::etf::{DecodeOptions, decode};
use beamr_term::{Atom, Build, Word, atoms};
use beamr_vm::code::table::{FinishError, PendingOnLoad};
use beamr_vm::code::{Image, Instance, ModuleTable, old_code, preloaded, server};
use beamr_vm::process::vm_of;
use beamr_vm::rt::WorkerCode;
use beamr_vm::signal::suspend::resume_waiting;

use crate::resources;
use crate::support::{ListBuilder, atom, list_items};

/// Code that was prepared and not yet used.
struct Prepared(Mutex<Option<Arc<Image>>>);

fn modules<'a>(ctx: &Ctx) -> &'a ModuleTable {
    // SAFETY: a native runs on a worker; the namespace outlives the process that runs, and hence the native.
    unsafe { &*WorkerCode::of(ctx).modules }
}

fn bytes(ctx: &mut Ctx, w: Word) -> Result<Vec<u8>, Escape> {
    match BitsView::of(w) {
        Some(v) if w.is_bitstring() && v.is_binary() => Ok(v.to_bytes().into_owned()),
        _ => Err(ctx.badarg()),
    }
}

fn tagged(ctx: &mut Ctx, tag: Atom, value: Word) -> Word {
    ctx.tuple(&[tag.word(), value])
}

/// `erts_internal:prepare_loading(Module, Binary)`: a reference, or `{error, badfile}`.
fn prepare_loading_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    let file = bytes(ctx, args[1])?;
    let table = modules(ctx);
    ctx.bump((file.len() / 64) as i64);
    let name = ctx.tables().atoms.text(module);
    match table.prepare(&file, table.binary_trust(), Some(name)) {
        Ok(image) => Ok(resources::new(ctx, Prepared(Mutex::new(Some(image))))),
        Err(_) => Ok(tagged(ctx, atoms::ERROR, atoms::BADFILE.word())),
    }
}

fn prepared<'a>(ctx: &mut Ctx, w: Word) -> Result<&'a Prepared, Escape> {
    resources::get::<Prepared>(w).ok_or_else(|| ctx.badarg())
}

/// `erlang:has_prepared_code_on_load(Prepared)`.
fn has_prepared_code_on_load_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let p = prepared(ctx, args[0])?;
    let image = p.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
    match image {
        Some(i) => Ok(Word::boolean(i.lowered.on_load.is_some())),
        None => Err(ctx.badarg()),
    }
}

/// `erlang:finish_loading([Prepared])`: `ok`, or `{not_purged | on_load | duplicated, Modules}`. Modules with an `on_load` function
/// are loaded alone: `system_limit`.
fn finish_loading_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let items = list_items(ctx, args[0])?;
    let mut images = Vec::with_capacity(items.len());
    for w in &items {
        let p = prepared(ctx, *w)?;
        let image = p.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
        images.push(image.ok_or_else(|| ctx.badarg())?);
    }
    let duplicated = atoms_of(ctx, "duplicated")?;
    let answer = |ctx: &mut Ctx, tag: Atom, list: &[Atom]| {
        let list = ctx.list(list.iter().map(|m| m.word()));
        Ok(tagged(ctx, tag, list))
    };
    match modules(ctx).finish(&images) {
        Ok(finished) => {
            for w in items {
                let p = prepared(ctx, w)?;
                p.0.lock().unwrap_or_else(|e| e.into_inner()).take();
            }
            if finished.on_load.is_empty() {
                return Ok(atoms::OK.word());
            }
            answer(ctx, atoms::ON_LOAD, &finished.on_load)
        }
        Err(FinishError::NotPurged(m)) => answer(ctx, atoms::NOT_PURGED, &m),
        Err(FinishError::Duplicate(m)) => answer(ctx, duplicated, &m),
        Err(FinishError::OnLoad(_) | FinishError::Exports(_)) => Err(ctx.system_limit()),
    }
}

fn atoms_of(ctx: &mut Ctx, text: &str) -> Result<Atom, Escape> {
    let w = ctx.atom(text)?;
    atom(ctx, w)
}

/// `erlang:call_on_load_function(Module)`.
fn call_on_load_function_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    let pid = ctx.self_pid();
    match modules(ctx).begin_on_load(module, pid) {
        PendingOnLoad::Run(id) => Err(ctx.trap(TrapTarget::Export(id), &[])),
        PendingOnLoad::Busy | PendingOnLoad::None => Err(ctx.badarg()),
    }
}

/// `erlang:finish_after_on_load(Module, Keep)`.
fn finish_after_on_load_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    let Some(keep) = args[1].as_boolean() else {
        return Err(ctx.badarg());
    };
    match modules(ctx).end_on_load(module, keep) {
        Ok(true) => Ok(Word::TRUE),
        Ok(false) => Err(ctx.badarg()),
        Err(FinishError::Exports(_)) => Err(ctx.system_limit()),
        Err(_) => Err(ctx.badarg()),
    }
}

/// `erlang:delete_module(Module)`.
fn delete_module_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    match modules(ctx).delete(module) {
        Ok(true) => Ok(Word::TRUE),
        Ok(false) => Ok(atoms::UNDEFINED.word()),
        Err(_) => Err(ctx.badarg()),
    }
}

/// `erlang:check_old_code(Module)`.
fn check_old_code_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    Ok(Word::boolean(modules(ctx).old(module).is_some()))
}

/// `erts_internal:purge_module(Module, prepare | prepare_on_load | abort | complete)`. The purger checks all processes between
/// `prepare` and `complete`.
fn purge_module_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    let what = atom(ctx, args[1])?;
    let table = modules(ctx);
    match ctx.tables().atoms.text(what) {
        "prepare" => Ok(Word::boolean(table.begin_purge(module))),
        "prepare_on_load" => Ok(Word::boolean(table.begin_purge_on_load(module))),
        "abort" => {
            table.abort_purge(module);
            for pid in table.take_waiting(module) {
                resume_waiting(ctx, pid);
            }
            Ok(Word::FALSE)
        }
        "complete" => {
            table.purge(module);
            for pid in table.take_waiting(module) {
                resume_waiting(ctx, pid);
            }
            vm_of(ctx).give_up_purged();
            Ok(Word::TRUE)
        }
        _ => Err(ctx.badarg()),
    }
}

/// `erts_internal:check_process_code(Module)`: whether the calling process uses old code of it.
fn check_process_code_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    let Some(old) = modules(ctx).old(module) else {
        return Ok(Word::FALSE);
    };
    // SAFETY: the process runs this native, so that where it returns to is on its stack.
    let uses = unsafe { old_code::runs_in(ctx.body(), &old.image) };
    Ok(Word::boolean(uses))
}

/// `erlang:module_loaded(Module)`.
fn module_loaded_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let module = atom(ctx, args[0])?;
    Ok(Word::boolean(modules(ctx).is_loaded(module)))
}

/// `erlang:function_exported(Module, Function, Arity)`.
fn function_exported_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (m, f) = (atom(ctx, args[0])?, atom(ctx, args[1])?);
    let Some(a) = args[2].as_small().filter(|a| *a >= 0) else {
        return Err(ctx.badarg());
    };
    let arity = u32::try_from(a).ok().filter(|a| *a <= 255);
    let table = modules(ctx);
    let found = arity.is_some_and(|a| !table.find(m, f, a).is_null());
    Ok(Word::boolean(found))
}

/// `erlang:loaded()`.
fn loaded_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let mut all = modules(ctx).loaded();
    let t = &ctx.tables().atoms;
    // The map's own order is not the same from run to run.
    all.sort_by(|a, b| t.compare(*a, *b));
    Ok(ctx.list(all.into_iter().map(Atom::word)))
}

/// `erlang:pre_loaded()`: the modules that the emulator starts with.
fn pre_loaded_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let mut list = ListBuilder::new();
    for name in preloaded(ctx.tables().release) {
        let m = ctx.atom(name)?;
        list.push(ctx, m);
    }
    Ok(list.finish(Word::NIL))
}

fn instance(ctx: &mut Ctx, w: Word) -> Result<Arc<Instance>, Escape> {
    let module = atom(ctx, w)?;
    modules(ctx).current(module).ok_or_else(|| ctx.badarg())
}

fn info(ctx: &mut Ctx, of: &Instance, key: Atom) -> Result<Word, Escape> {
    let l = &of.image.lowered;
    let external = |ctx: &mut Ctx, bytes: &[u8]| {
        if bytes.is_empty() {
            return Word::NIL;
        }
        let tables = ctx.tables();
        match decode(bytes, tables, DecodeOptions::default(), ctx) {
            Ok((w, _)) => w,
            Err(_) => Word::NIL,
        }
    };
    let names = |ctx: &mut Ctx, list: &mut dyn Iterator<Item = (Atom, u32)>| {
        let mut out = ListBuilder::new();
        for (f, a) in list {
            let item = ctx.tuple(&[f.word(), Word::fixnum(i64::from(a))]);
            out.push(ctx, item);
        }
        out.finish(Word::NIL)
    };
    Ok(match key {
        atoms::MODULE => l.module.word(),
        // The file has them last to first.
        atoms::EXPORTS => names(ctx, &mut l.exports.iter().rev().map(|e| (e.0, e.1))),
        atoms::FUNCTIONS => names(ctx, &mut l.functions.iter().map(|f| (f.name, f.arity))),
        atoms::NIFS => {
            let table = modules(ctx);
            let module = ctx.tables().atoms.text(l.module);
            let bound = |f: &(Atom, u32)| table.native(l.module, f.0, f.1).is_some();
            let all = l.functions.iter().map(|f| (f.name, f.arity));
            let mut nifs = all.filter(|f| !BIF_MODULES.contains(&module) && bound(f));
            names(ctx, &mut nifs)
        }
        atoms::ATTRIBUTES => external(ctx, &l.attributes),
        atoms::COMPILE => external(ctx, &l.compile_info),
        atoms::MD5 => ctx.binary(&l.md5),
        atoms::NATIVE => Word::FALSE,
        _ if ctx.tables().atoms.text(key) == "native_addresses" => Word::NIL,
        _ => return Err(ctx.badarg()),
    })
}

/// Modules whose natives are BIFs rather than NIFs.
const BIF_MODULES: &[&str] = &[
    "atomics",
    "binary",
    "code",
    "counters",
    "erl_ddll",
    "erlang",
    "error_logger",
    "erts_debug",
    "erts_internal",
    "erts_literal_area_collector",
    "ets",
    "file",
    "io",
    "lists",
    "maps",
    "math",
    "net_kernel",
    "os",
    "persistent_term",
    "re",
    "string",
    "unicode",
];

/// `erlang:get_module_info(Module)`.
fn get_module_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let of = instance(ctx, args[0])?;
    let mut list = ListBuilder::new();
    for key in [
        atoms::MODULE,
        atoms::EXPORTS,
        atoms::ATTRIBUTES,
        atoms::COMPILE,
        atoms::MD5,
    ] {
        let value = info(ctx, &of, key)?;
        let item = tagged(ctx, key, value);
        list.push(ctx, item);
    }
    Ok(list.finish(Word::NIL))
}

/// `erlang:get_module_info(Module, Key)`.
fn get_module_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let of = instance(ctx, args[0])?;
    let key = atom(ctx, args[1])?;
    info(ctx, &of, key)
}

/// `erts_internal:beamfile_module_md5(Binary)`.
fn beamfile_module_md5_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let file = bytes(ctx, args[0])?;
    Ok(match server::file_md5(&file) {
        Some(md5) => ctx.binary(&md5),
        None => atoms::UNDEFINED.word(),
    })
}

/// `erts_internal:beamfile_chunk(Binary, Name)`.
fn beamfile_chunk_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let file = bytes(ctx, args[0])?;
    let mut name = [0u8; 4];
    let chars = list_items(ctx, args[1])?;
    if chars.len() != 4 {
        return Err(ctx.badarg());
    }
    for (n, c) in name.iter_mut().zip(chars) {
        match c.as_small().and_then(|c| u8::try_from(c).ok()) {
            Some(c) => *n = c,
            None => return Err(ctx.badarg()),
        }
    }
    Ok(match server::file_chunk(&file, &name) {
        Some(chunk) => ctx.binary(&chunk),
        None => atoms::UNDEFINED.word(),
    })
}

/// `code:get_debug_info(Module)` (28): no module is loaded with it.
fn get_debug_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    instance(ctx, args[0])?;
    Ok(atoms::NONE.word())
}

/// `erlang:load_nif(Path, Info)`: libraries are not opened; a module whose natives the VM has is bound already.
fn load_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut path = String::new();
    if let Some(v) = BitsView::of(args[0]).filter(|_| args[0].is_bitstring()) {
        path.push_str(&String::from_utf8_lossy(&v.to_bytes()));
    } else {
        for c in list_items(ctx, args[0])? {
            let c = c.as_small().and_then(|c| u32::try_from(c).ok());
            match c.and_then(char::from_u32) {
                Some(c) => path.push(c),
                None => return Err(ctx.badarg()),
            }
        }
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if modules(ctx).has_natives_of(name) {
        return Ok(atoms::OK.word());
    }
    let text = format!("Failed to load NIF library {path}: this VM has no natives of that name");
    let text = ctx.string(&text);
    let failed = ctx.atom("load_failed")?;
    let why = ctx.tuple(&[failed, text]);
    Ok(tagged(ctx, atoms::ERROR, why))
}

const fn erlang(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}
const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    internal("prepare_loading", 2, prepare_loading_2).class(NativeClass::DirtyCpu),
    erlang("has_prepared_code_on_load", 1, has_prepared_code_on_load_1),
    erlang("finish_loading", 1, finish_loading_1),
    erlang("call_on_load_function", 1, call_on_load_function_1),
    erlang("finish_after_on_load", 2, finish_after_on_load_2),
    erlang("delete_module", 1, delete_module_1),
    erlang("check_old_code", 1, check_old_code_1),
    internal("purge_module", 2, purge_module_2),
    internal("check_process_code", 1, check_process_code_1),
    erlang("module_loaded", 1, module_loaded_1),
    erlang("function_exported", 3, function_exported_3),
    erlang("loaded", 0, loaded_0),
    erlang("pre_loaded", 0, pre_loaded_0),
    erlang("get_module_info", 1, get_module_info_1),
    erlang("get_module_info", 2, get_module_info_2),
    internal("beamfile_module_md5", 1, beamfile_module_md5_1),
    internal("beamfile_chunk", 2, beamfile_chunk_2),
    erlang("load_nif", 2, load_nif_2),
    NativeEntry::new("code", "get_debug_info", 1, get_debug_info_1)
        .releases(beamr_abi::ReleaseSpan::since(28)),
];
