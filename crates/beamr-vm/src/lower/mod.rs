//! Lowering: validated generic code to the typed form that engines translate.
//!
//! In: a decoded and validated module of `beamr-file`. Out: [`Lowered`]. Obsolete instructions
//! (`bs_init2`, `bs_put_*`, `make_fun2`, `allocate_zero`, ...) are rewritten to their modern forms here.

mod bifs;
mod bits;
mod build;
mod consts;
mod error;
mod facts;
mod instr;
mod listing;
mod loops;
pub mod op;
mod visit;

pub use build::{LowerEnv, MAX_FRAME, lower};
pub use error::{LowerError, LowerFault, Place};
pub use listing::Listing;
pub use visit::Flow;

use beamr_term::{Atom, LiteralArea, Word};
use op::{Label, Op};

/// A function of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name.
    pub name: Atom,
    /// Arity.
    pub arity: u32,
    /// Label of the entry.
    pub entry: Label,
}

/// A fun that the module makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lambda {
    /// Generated function.
    pub function: Atom,
    /// Its arity, captured values included.
    pub arity: u32,
    /// Entry label.
    pub entry: Label,
    /// `new_index`.
    pub index: u32,
    /// Captured values.
    pub num_free: u32,
    /// `old_uniq`.
    pub old_uniq: u32,
}

/// A source location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// Index into [`Lowered::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// A lowered module.
#[derive(Debug)]
pub struct Lowered {
    /// Its name.
    pub module: Atom,
    /// The image's number in the VM: index into `Ctx::instances`, set by the code server before lowering.
    pub image_id: u32,
    /// Whether hints were used and reads are unchecked.
    pub trusted: bool,
    /// Functions in code order.
    pub functions: Vec<Function>,
    /// Exported (function, arity, entry label). A function that is a native has a body that calls it.
    pub exports: Vec<(Atom, u32, Label)>,
    /// Funs by their index in the file.
    pub lambdas: Vec<Lambda>,
    /// The code.
    pub code: Vec<Op>,
    /// Labels are below this.
    pub label_count: u32,
    /// Catch handlers by index (what a catch tag holds); filled by the lowering: `Catch`/`Try` ops name
    /// labels, and the handler's index is its place here.
    pub handlers: Vec<Label>,
    /// Locations; entry 0 is "unknown".
    pub locations: Vec<Location>,
    /// File names; entry 0 is the module's own `.erl`.
    pub files: Vec<String>,
    /// Literals by index in the file.
    pub literals: Vec<Word>,
    /// Where they live.
    pub literal_area: Option<LiteralArea>,
    /// The `on_load` function's entry.
    pub on_load: Option<Label>,
    /// MD5 of the code as `module_info(md5)` gives it.
    pub md5: [u8; 16],
    /// `module_info(attributes)`, external term.
    pub attributes: Vec<u8>,
    /// `module_info(compile)`, external term.
    pub compile_info: Vec<u8>,
    /// `Docs`-free list of NIF candidates (`-nifs`), as (name, arity).
    pub nifs: Vec<(Atom, u32)>,
    /// Native record definitions (`Recs`), as literal terms `{Name, Exported, [{Field, Default} | {Field}]}`:
    /// a field without a default has no second element.
    pub records: Vec<Word>,
}
