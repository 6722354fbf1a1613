//! The validator: what code must be before it may run unchecked.
//!
//! A module comes from anywhere. After [`validate`] accepts it, a lowering may
//! leave out every check listed under *guarantees*; what stands under *not
//! guaranteed* must be checked when the code runs, unless the module is
//! trusted. The rules are those that compilers keep (every file of OTP 25, 27,
//! 29 and of Elixir passes), found again from the file alone: nothing that a
//! compiler only asserts (types, annotations) is believed.
//!
//! The work is bounded: one pass over all operands, then for each function a
//! data flow analysis whose steps are counted against a budget proportional to
//! the size of the module. A file that would need more is refused.
//!
//! # Guarantees
//!
//! Of every instruction, reachable or not:
//!
//! * It is an operation that loaders since OTP 24 accept, and each operand is
//!   of the [`Kind`](crate::Kind) that the table of operations gives. Lists
//!   have the shape of their operation (pairs of value and label, of key and
//!   register, the segments of `bs_create_bin`, the commands of `bs_match`).
//! * X registers are below [`MAX_X`], Y registers below [`MAX_Y`], float
//!   registers below [`MAX_FLOAT`]. Arities are at most 255.
//! * Atoms, literals, imports, lambdas, line entries and string ranges are in
//!   their tables. (Types are, when the module has a type table that could be
//!   read; lines are, when it has a line table.)
//! * Each label is defined once. A jump stays in its function. The target of
//!   a local call is the entry of a function of the arity given. Exports and
//!   lambdas name entries of functions of their arity; a lambda has as many
//!   free variables as each `make_fun3` of it gives.
//! * A BIF instruction (`bif0` to `bif3`, `gc_bif1` to `gc_bif3`) names a
//!   function of the module `erlang` with the arity of the instruction. Whether
//!   that is a guard BIF, the caller must look up.
//!
//! Of every instruction that can be reached ([`Validated::is_reachable`]; others
//! must not be lowered, or into a trap):
//!
//! * Every register read has been written on every path. A Y register that is
//!   read holds a term, never the tag of a catch or try, never garbage.
//! * The frame: Y registers are inside the frame; `allocate` has no frame
//!   before it; `deallocate`, `call_last` and the like give the size of the
//!   frame; `return` and `call_only` have none; a call that returns has one. (Where
//!   paths with different frames join, only raising an exception can follow.)
//! * At every point that may collect, call or raise, all Y registers of the frame
//!   are terms or tags, and all X registers below the live count are
//!   initialised; afterwards those at or above it are not read again. The sources of an
//!   instruction are below its live count: they may be read behind the collection.
//!   Every instruction may raise but labels, lines, `move`, `swap`, jumps and type tests, comparisons,
//!   `init_yregs`, `put_list`, `put_tuple2`, `make_fun3`, `bif0`, and those named below: so the checked form of a
//!   read, like that of `get_tuple_element`, may raise. To make it so, some
//!   functions must clear their frames ([`Function::clear_frames`]).
//! * Heap: what `put_list`, `put_tuple2`, `update_record`, `fmove` to a term and
//!   `make_fun3` build was reserved in this block of code by `test_heap`, `allocate_heap` or
//!   `bs_create_bin`, `bs_init2`, `bs_init_bits`, `bs_append`, and nothing that may
//!   collect stands between. Counted apart: words (a cons 2, a tuple 1 more
//!   than its elements, a fun its free variables), floats, funs. Instructions
//!   with a live count reserve for themselves and void what was reserved. `bif0`
//!   to `bif3`, tests and moves must not use up the heap.
//!   A `make_fun3` that finds no fun reserved is in
//!   [`Validated::unreserved_funs`]; so is every `make_fun2`; they must find room themselves.
//! * Exceptions: `try` and `catch` write their tag below all other tags of the
//!   frame, so the innermost is the one with the lowest index; tags are only ended by their
//!   own `try_end`, `try_case`, `catch_end`, innermost first, and no tag is left when
//!   a frame goes. `try_case` is reached by exceptions only, with the
//!   slot of its own tag; `catch_end` by both. A raise in this function
//!   goes to the handler of the innermost tag.
//! * Float registers read have been written since the last call.
//! * A match context is only in the operand that the kind
//!   [`Ctx`](crate::Kind::Ctx) names, the source of `bs_start_match3`/`4`, of a `move` or `swap`, an argument of
//!   `bit_size` or `byte_size`, an argument of a local call
//!   ([`Function::context_params`]) and at `func_info`. It is never returned,
//!   stored in a term or sent.
//! * `bs_match` commands read no more bits than its `ensure` commands ensured.
//! * Receive: `remove_message` and `loop_rec_end` have a current message.
//!   The message of `loop_rec` and its parts may be in X registers when something
//!   collects (a guard's `gc_bif`), in no Y register then, and gone after `loop_rec_end`. They are not passed to other
//!   functions, but for [`Validated::peeked_calls`] (only OTP's `prim_eval` has
//!   such; untrusted code with any should be refused).
//! * The tuple of `set_tuple_element` is the result of `erlang:setelement/3` with
//!   nothing that may collect in between.
//! * `bs_put_*` follow `bs_init2`, `bs_init_bits`, `bs_append` or
//!   `bs_private_append` with nothing else between but other `bs_put_*` and lines. Until
//!   the last of them the register of the binary is not read; it may be written before or
//!   after.
//! * Control never leaves a function by running into the next one. After a
//!   call of a function that never returns ([`never_returns`]) flow ends: the
//!   lowering must put a trap there, as at those of [`Validated::traps`].
//!   A `call_ext_last` or `call_ext_only` of such a function may give any frame
//!   size: it must be lowered as `call_ext`, nothing deallocated.
//!
//! # What the analysis counts on
//!
//! * `init_yregs`, `init`, `try_end`, `try_case`, `catch_end` leave nil in the slot;
//!   functions with [`Function::clear_frames`] clear the frames that they allocate.
//! * When a match instruction goes to its failure label, nothing was collected and no
//!   register was written, but by earlier commands of the same `bs_match`.
//!   `get_map_elements` may have written some of its registers. `gc_bif`, `put_map_exact`,
//!   `bs_create_bin` may have collected.
//! * `bif0` and the BIFs that give a value for all arguments (comparisons,
//!   type tests of one argument, `min`, `max`, `get/1`) do not raise.
//! * `wait_timeout` reads its time only when no timer runs: after it waited, until
//!   `timeout` or `remove_message`, the register may be stale.
//! * A message belongs to the heap from `loop_rec` on, so that registers that hold
//!   parts of it stay valid when an exception ends the receive. `remove_message` leaves X registers and
//!   reserved heap as they are.
//!
//! # Not guaranteed
//!
//! * The type of any value: whether the source of `get_tuple_element` is a tuple
//!   with that element, of `get_list` a cons cell, of `get_map_elements` or `put_map_assoc` a
//!   map, of `update_record` and `set_tuple_element` a tuple of that size,
//!   of `call_fun2` a fun (whatever its tag says), of `bs_start_match4` with `no_fail` a bitstring, of `fmove`
//!   a float, of a size an integer.
//! * That a position given to `bs_set_position` was taken from that
//!   context (check it against the size), that a
//!   trace given to `raise` or `raw_raise` is one, that a marker is one.
//! * That a binary of `bs_private_append` has no other holder, that `inplace` of
//!   `update_record` may write in place, that sizes computed for `bs_init2` fit
//!   what `bs_put_*` write. Hints of the type table.

mod callers;
mod flow;
mod shape;
mod state;

use crate::code::Arg;
use crate::module::Module;
use crate::op::Op;

/// X registers of valid code are below this; x1023 belongs to the loader.
pub const MAX_X: u16 = 1023;
/// Y registers of valid code are below this.
pub const MAX_Y: u16 = 1024;
/// Float registers of valid code are below this.
pub const MAX_FLOAT: u16 = 1023;

/// The words, floats or funs that one instruction may reserve.
pub const MAX_HEAP: u64 = 1 << 24;

/// A function found by the validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name, an atom number.
    pub name: u32,
    /// The arity.
    pub arity: u8,
    /// The label of the entry.
    pub label: u32,
    /// Index of its first instruction (the label that leads to `func_info`).
    pub first: u32,
    /// Index of its `func_info`.
    pub func_info: u32,
    /// Index of the label of the entry.
    pub entry: u32,
    /// Index after its last instruction.
    pub end: u32,
    /// The arguments that may be a match context in some local call, as bits.
    pub context_params: [u64; 4],
    /// `allocate` and `allocate_heap` in this function must clear the frame, as
    /// `allocate_zero` does.
    pub clear_frames: bool,
}

impl Function {
    /// Whether some local call may pass a match context as an argument.
    pub fn may_be_context(&self, argument: u8) -> bool {
        self.context_params[argument as usize / 64] >> (argument % 64) & 1 != 0
    }
}

/// What the validator found out on the way.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Validated {
    /// The functions in the order of the code.
    pub functions: Vec<Function>,
    /// The instruction index of each label; `u32::MAX` for a number not used.
    pub labels: Vec<u32>,
    /// `make_fun3` and `make_fun2` instructions that must find heap themselves.
    pub unreserved_funs: Vec<u32>,
    /// Instructions that control never goes past in compiled code, as they
    /// lead into the handler of a try (after a call that never returns): the lowering must put a trap
    /// after such a one, or in its place when it is a `jump`.
    pub traps: Vec<u32>,
    /// Calls made while a message is only peeked at.
    pub peeked_calls: Vec<u32>,
    /// One more than the highest X register used.
    pub x_count: u16,
    /// The largest frame.
    pub frame_max: u16,
    /// One more than the highest float register used.
    pub float_count: u16,
    /// Steps of flow analysis done.
    pub work: u64,
    reachable: Vec<u64>,
}

impl Validated {
    /// Whether an instruction, by its index, can be reached.
    pub fn is_reachable(&self, index: u32) -> bool {
        self.reachable
            .get(index as usize / 64)
            .is_some_and(|w| w >> (index % 64) & 1 != 0)
    }

    /// The function that holds an instruction.
    pub fn function_at(&self, index: u32) -> Option<&Function> {
        let next = self.functions.partition_point(|f| f.first <= index);
        let function = self.functions.get(next.checked_sub(1)?)?;
        (index < function.end).then_some(function)
    }

    /// The function whose entry has a label.
    pub fn function_of_label(&self, label: u32) -> Option<&Function> {
        let index = *self.labels.get(label as usize)?;
        self.function_at(index).filter(|f| f.label == label)
    }

    fn reach(&mut self, index: usize) {
        self.reachable[index / 64] |= 1 << (index % 64);
    }
}

/// Code that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{module}: {function}, instruction {index} at offset {offset} ({op}): {what}")]
pub struct ValidateError {
    /// The module.
    pub module: String,
    /// The function as `name/arity`; empty outside functions.
    pub function: String,
    /// Index of the instruction.
    pub index: usize,
    /// Byte offset of the instruction in the code chunk.
    pub offset: usize,
    /// The operation.
    pub op: &'static str,
    /// What is wrong.
    pub what: Fault,
}

/// The kinds of [`ValidateError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An operation that is no longer accepted.
    #[error("obsolete operation")]
    Obsolete,
    /// An operand of the wrong kind.
    #[error("operand {0} is not of its kind")]
    Operand(usize),
    /// A register over the limit.
    #[error("register out of range")]
    Register,
    /// An index outside its table.
    #[error("{0} out of range")]
    Index(&'static str),
    /// A list that has not the shape of its operation.
    #[error("bad list: {0}")]
    List(&'static str),
    /// A label is not defined, defined twice, or over the count of the header.
    #[error("bad label {0}")]
    Label(u32),
    /// A jump out of the function.
    #[error("jump to label {0} of another function")]
    ForeignLabel(u32),
    /// A call, export or lambda names something else than an entry of its arity.
    #[error("{0} is not a function of the arity given")]
    NotAnEntry(&'static str),
    /// Instructions outside functions, or a function without its head.
    #[error("malformed function: {0}")]
    Function(&'static str),
    /// An X register is read that may not hold a term.
    #[error("x{0} {1}")]
    X(u16, &'static str),
    /// A Y register is read that may not hold a term.
    #[error("y{0} {1}")]
    Y(u16, &'static str),
    /// The frame is scanned by an exception or collection, and a slot may not be initialised.
    #[error("y{0} is not initialised when the frame is scanned")]
    Scanned(u16),
    /// A float register is read that may not be written.
    #[error("float register {0} is not initialised")]
    FloatRegister(u16),
    /// The frame is not what the instruction needs.
    #[error("frame: {0}")]
    Frame(&'static str),
    /// More is built on the heap than was reserved.
    #[error("heap: {0} not reserved")]
    Heap(&'static str),
    /// Catch and try tags are not well nested.
    #[error("catch or try: {0}")]
    Catch(&'static str),
    /// A receive is not well formed.
    #[error("receive: {0}")]
    Receive(&'static str),
    /// Binary matching or construction is not well formed.
    #[error("binary: {0}")]
    Binary(&'static str),
    /// `set_tuple_element` on something else than a new tuple.
    #[error("set_tuple_element on a tuple that is not new")]
    NotNew,
    /// Control may run into the next function.
    #[error("control runs off the end of the function")]
    FallsOff,
    /// The analysis would need too many steps.
    #[error("too much work")]
    Budget,
}

/// Checks a module; see the head of this file for what holds afterwards.
pub fn validate(module: &Module) -> Result<Validated, ValidateError> {
    let place = |(index, what): (usize, Fault), functions: &[Function]| {
        let instr = module.code.instrs.get(index);
        let next = functions.partition_point(|f| f.first as usize <= index);
        let function = next.checked_sub(1).map(|i| &functions[i]);
        ValidateError {
            module: module.name.clone(),
            function: function
                .map(|f| format!("{}/{}", module.atom(f.name), f.arity))
                .unwrap_or_default(),
            index,
            offset: instr.map_or(0, |i| i.offset as usize),
            op: instr.map_or("", |i| i.op.name()),
            what,
        }
    };
    let mut v = shape::functions(module).map_err(|e| place(e, &[]))?;
    if let Err(e) = shape::operands(module, &mut v) {
        return Err(place(e, &v.functions));
    }
    if let Err(e) = flow::flow(module, &mut v) {
        return Err(place(e, &v.functions));
    }
    Ok(v)
}

/// Whether calls of an imported function never return: those that only raise
/// or stop the system. Compilers put no code after such a call.
pub fn never_returns(module: &str, function: &str, arity: u8) -> bool {
    module == "erlang"
        && matches!(
            (function, arity),
            ("error", 1..=3) | ("exit", 1) | ("throw", 1) | ("nif_error", 1..=2) | ("halt", 0..=2)
        )
}

/// An error inside the validator: the index of the instruction, and what.
type Checked<T> = Result<T, (usize, Fault)>;

/// Whether an operation raises, jumps or returns always: control does not go
/// on with the next instruction.
fn ends_flow(op: Op) -> bool {
    matches!(
        op,
        Op::FuncInfo
            | Op::IntCodeEnd
            | Op::CallLast
            | Op::CallOnly
            | Op::CallExtLast
            | Op::CallExtOnly
            | Op::ApplyLast
            | Op::Return
            | Op::LoopRecEnd
            | Op::Wait
            | Op::Jump
            | Op::SelectVal
            | Op::SelectTupleArity
            | Op::Badmatch
            | Op::IfEnd
            | Op::CaseEnd
            | Op::TryCaseEnd
            | Op::Raise
            | Op::Badrecord
    )
}

fn label_of(arg: Arg) -> u32 {
    match arg {
        Arg::F(label) => label,
        _ => 0,
    }
}
