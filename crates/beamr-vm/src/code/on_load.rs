//! Running an `on_load` function before the first call of a module that was loaded on demand.
//!
//! A VM without code server processes has nobody who would run it. The call that loaded the
//! module goes to the code made here instead, `start(Module, Function, Args)`:
//!
//! ```text
//! R = (catch begin(Module)),      traps to the on_load function, or waits for who runs it
//! end(Module, R),                 keeps the module when R is ok, drops it otherwise
//! apply(Module, Function, Args)
//! ```

use beamr_abi::{Ctx, Escape, NativeEntry, Pending, TrapTarget};
use beamr_term::{Atom, AtomError, ExportId, TableFull, Tables, Word, atoms};

use super::table::PendingOnLoad;
use crate::lower::op::{CallKind, Op, Reg, Src};
use crate::lower::{Function, Location, Lowered};
use crate::rt::WorkerCode;

/// The arity under which the hidden exports of this module stand: no function of a file has it.
pub const HIDDEN_ARITY: u32 = 256;
const MODULE: &str = "beamr_on_load";

static BEGIN: NativeEntry = NativeEntry::new(MODULE, "begin", 1, begin);
static END: NativeEntry = NativeEntry::new(MODULE, "end", 2, end);

fn begin(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(module) = args[0].as_atom() else {
        return Err(ctx.badarg());
    };
    let pid = ctx.self_pid();
    // SAFETY: a native runs on a worker, and holds no other reference to its head.
    let table = unsafe { WorkerCode::of(ctx) }.modules();
    match table.begin_on_load(module, pid) {
        PendingOnLoad::Run(id) => Err(ctx.trap(TrapTarget::Export(id), &[])),
        PendingOnLoad::Busy => Err(ctx.escape(Pending::Yield)),
        PendingOnLoad::None => Ok(atoms::OK.word()),
    }
}

fn end(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(module) = args[0].as_atom() else {
        return Err(ctx.badarg());
    };
    let pid = ctx.self_pid();
    // SAFETY: as in `begin`.
    let table = unsafe { WorkerCode::of(ctx) }.modules();
    if table.pending_on_load(module) == Some(Some(pid)) {
        // A module that cannot be kept is not there: the call that follows says so.
        let _ = table.finish_on_load(module, args[1] == atoms::OK.word());
    }
    Ok(atoms::OK.word())
}

/// Whether this module and arity of `apply` are the engine's apply: `erlang:apply/3` and the hidden one.
pub(super) fn is_apply(module: Atom, arity: u32) -> bool {
    (module == atoms::ERLANG && arity == 3) || (module == atoms::ON_LOAD && arity == HIDDEN_ARITY)
}

/// The export that leads to the engine's apply.
pub(super) fn apply_export(tables: &Tables) -> Result<ExportId, TableFull> {
    tables
        .exports
        .id(atoms::ON_LOAD, atoms::APPLY, HIDDEN_ARITY)
}

/// The code of `start/3`.
pub(super) fn trampoline(tables: &Tables, image_id: u32) -> Result<Lowered, TrampolineError> {
    let module = tables.atoms.intern(MODULE)?;
    let hidden = tables
        .exports
        .id(module, atoms::START, HIDDEN_ARITY)
        .map_err(TrampolineError::from)?;
    let mv = |src, dst| Op::Move { src, dst };
    let native = |native| Op::CallNative {
        native,
        export: hidden,
        kind: CallKind::Body,
    };
    let mut code = vec![
        Op::Label(1),
        Op::FuncInfo { function: 0 },
        Op::Label(2),
        Op::Allocate {
            slots: 4,
            heap: 0,
            live: 3,
        },
    ];
    code.extend((0..3).map(|i| mv(Src::X(i), Reg::Y(i))));
    code.extend([
        Op::Catch { y: 3, handler: 3 },
        native(&BEGIN),
        Op::Label(3),
        Op::CatchEnd { y: 3 },
        mv(Src::X(0), Reg::X(1)),
        mv(Src::Y(0), Reg::X(0)),
        native(&END),
    ]);
    code.extend((0..3).map(|i| mv(Src::Y(i), Reg::X(i))));
    code.extend([
        Op::CallExt {
            export: apply_export(tables)?,
            arity: 3,
            kind: CallKind::Last(4),
        },
        Op::End,
    ]);
    Ok(Lowered {
        module,
        image_id,
        trusted: true,
        functions: vec![Function {
            name: atoms::START,
            arity: 3,
            entry: 2,
        }],
        exports: vec![(atoms::START, 3, 2)],
        lambdas: Vec::new(),
        code,
        label_count: 4,
        handlers: vec![3],
        locations: vec![Location { file: 0, line: 0 }],
        files: vec![format!("{MODULE}.erl")],
        literals: Vec::new(),
        literal_area: None,
        on_load: None,
        md5: [0; 16],
        attributes: Vec::new(),
        compile_info: Vec::new(),
        nifs: Vec::new(),
        records: Vec::new(),
    })
}

/// Why the VM's own code could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrampolineError {
    /// No room for its name.
    #[error(transparent)]
    Atom(#[from] AtomError),
    /// No room for its export.
    #[error(transparent)]
    Exports(#[from] TableFull),
}
