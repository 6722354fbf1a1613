//! Lowered code: what an engine translates.
//!
//! One [`Op`] per instruction after lowering: labels are numbers local to the module, literals are
//! words of the image's literal area, atoms are words, imports are export ids or natives, type hints are
//! resolved, obsolete instructions are rewritten to their modern form. Both engines translate exactly
//! this, so frames and reduction counts are the same whichever runs a function.
//!
//! `fail: Label` is where a failing test goes; [`NO_LABEL`] means "raise the exception". Ops that read
//! through an operand whose type is not proven in untrusted code carry `checked`: the engine then
//! tests the type and raises `badarg` instead of reading blindly (an op with a fail label goes there instead). In trusted
//! code `checked` is false, but for the two ops that take an `is_tuple` with them.
//!
//! Reductions: every function entry (call, tail call, apply, fun call, native call) costs one.

use beamr_abi::NativeEntry;
use beamr_term::{ExportId, Word};

/// A label, an index into the module's label table.
pub type Label = u32;
/// "No fail label": raise.
pub const NO_LABEL: Label = 0;

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Reg {
    /// X register.
    X(u16),
    /// Y register: slot of the current frame.
    Y(u16),
}

/// A source operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Src {
    /// X register.
    X(u16),
    /// Y register.
    Y(u16),
    /// An immediate or a literal.
    Const(Word),
}

/// How a call ends the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// Returns behind the call.
    Body,
    /// Tail call that gives back a frame of this many slots.
    Last(u16),
    /// Tail call without a frame.
    Only,
}

/// A type test of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TypeTest {
    Integer,
    Float,
    Number,
    Atom,
    Pid,
    Reference,
    Port,
    Nil,
    Binary,
    Bitstring,
    List,
    NonemptyList,
    Tuple,
    Boolean,
    Function,
    Map,
    AnyNativeRecord,
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// `<`
    Lt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `/=`
    Ne,
    /// `=:=`
    EqExact,
    /// `=/=`
    NeExact,
}

/// Arithmetic with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ArithOp {
    Add,
    Sub,
    Mul,
    /// `/`
    Divide,
    IntDiv,
    Rem,
    Band,
    Bor,
    Bxor,
    Bsl,
    Bsr,
}

/// Arithmetic on float registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
}

/// What is known of the operands of an arithmetic op (hints of trusted code; false when untrusted).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArithHints {
    /// The first operand is a small integer.
    pub a_small: bool,
    /// The second operand is a small integer.
    pub b_small: bool,
    /// The result cannot leave the small range (only meaningful when both are small).
    pub no_overflow: bool,
}

/// Flags of a bit syntax segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BitFlags {
    /// Signed integer.
    pub signed: bool,
    /// Little endian (native is resolved by the lowering).
    pub little: bool,
}

/// Size of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegSize {
    /// The whole rest (`all`).
    All,
    /// Not used by the type (utf8, ...).
    Undefined,
    /// In units.
    Term(Src),
}

/// One command of `bs_match`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum MatchCommand {
    /// At least `bits` remain, and the rest behind them is a multiple of `unit`.
    EnsureAtLeast {
        bits: u64,
        unit: u32,
    },
    EnsureExactly {
        bits: u64,
    },
    /// Integer of `bits` bits (already ensured).
    Integer {
        live: u16,
        flags: BitFlags,
        bits: u64,
        dst: Reg,
    },
    /// Sub-bitstring of `bits` bits (already ensured).
    Binary {
        live: u16,
        bits: u64,
        dst: Reg,
    },
    Skip {
        bits: u64,
    },
    GetTail {
        live: u16,
        dst: Reg,
    },
    /// The next `bits` bits (at most 64) must equal `value`.
    Equal {
        bits: u32,
        value: u64,
    },
}

/// Kind of a segment of `bs_create_bin`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum SegKind {
    /// First segment: extend this bitstring in place when possible.
    Append,
    /// The same where the compiler proved that the bitstring is not used again.
    PrivateAppend,
    Integer,
    Float,
    Binary,
    /// Bytes of the image: `src` is ignored, the bytes are in [`Segment::bytes`].
    String,
    Utf8,
    Utf16,
    Utf32,
}

/// One segment of `bs_create_bin`.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Segment {
    pub kind: SegKind,
    pub unit: u32,
    pub flags: BitFlags,
    pub src: Src,
    pub size: SegSize,
    /// For [`SegKind::String`].
    pub bytes: Box<[u8]>,
    /// The index of the segment as the compiler counted it (for the error_info of a failure).
    pub index: u32,
}

/// Hint of `update_record`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UpdateHint {
    /// Always copy.
    Copy,
    /// Give back the source when nothing changes.
    Reuse,
    /// May be updated in place when it lies between high-water mark and heap top.
    InPlace,
}

/// A lowered instruction.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Op {
    // ---- structure
    Label(Label),
    /// Start of function `function` (index into [`super::Lowered::functions`]); jumped to when no clause
    /// matches: raises `function_clause` with x0..xArity-1. The entry label follows.
    FuncInfo {
        function: u32,
    },
    /// Source location (index into [`super::Lowered::locations`]) of what follows; 0 = none.
    Line(u32),
    Jump(Label),

    // ---- calls
    Call {
        target: Label,
        arity: u16,
        kind: CallKind,
    },
    CallExt {
        export: ExportId,
        arity: u16,
        kind: CallKind,
    },
    /// A native bound at load time (arguments in x0..). A call of a native that only raises (`erlang:error/1`, ...) is always of kind
    /// `Body`, in a function with or without a frame, and its Y registers may be garbage: nothing is collected between its
    /// return and the unwinding.
    CallNative {
        native: &'static NativeEntry,
        export: ExportId,
        kind: CallKind,
    },
    /// `call_fun`: fun in x[arity].
    CallFun {
        arity: u16,
        kind: CallKind,
    },
    /// `call_fun2`: fun in `fun`; `safe` when the compiler proved fun and arity (trusted only).
    CallFun2 {
        arity: u16,
        fun: Src,
        safe: bool,
        kind: CallKind,
    },
    /// Module in x[arity], function in x[arity + 1].
    Apply {
        arity: u16,
        kind: CallKind,
    },
    Return,
    /// Frame of `slots` Y registers (uninitialised: an [`Op::InitY`] follows where needed), and `heap` words ensured.
    Allocate {
        slots: u16,
        heap: u32,
        live: u16,
    },
    Deallocate {
        slots: u16,
    },
    /// Drops `words` slots at the top of the frame, `remaining` stay.
    Trim {
        words: u16,
        remaining: u16,
    },
    TestHeap {
        words: u32,
        live: u16,
    },
    /// Sets the slots to `[]`.
    InitY(Box<[u16]>),

    // ---- data movement and construction
    Move {
        src: Src,
        dst: Reg,
    },
    Swap {
        a: Reg,
        b: Reg,
    },
    GetHd {
        src: Reg,
        dst: Reg,
        checked: bool,
    },
    GetTl {
        src: Reg,
        dst: Reg,
        checked: bool,
    },
    GetList {
        src: Reg,
        head: Reg,
        tail: Reg,
        checked: bool,
    },
    PutList {
        head: Src,
        tail: Src,
        dst: Reg,
    },
    GetTupleElement {
        src: Reg,
        index: u32,
        dst: Reg,
        checked: bool,
    },
    PutTuple {
        elements: Box<[Src]>,
        dst: Reg,
    },
    /// Destructive (old code): element `index` (from 0) of the young tuple in `tuple`.
    SetTupleElement {
        value: Src,
        tuple: Reg,
        index: u32,
        checked: bool,
    },
    UpdateRecord {
        hint: UpdateHint,
        size: u32,
        src: Src,
        dst: Reg,
        updates: Box<[(u32, Src)]>,
        checked: bool,
    },
    /// 2 words and the environment, on reserved heap.
    MakeFun {
        lambda: u32,
        dst: Reg,
        env: Box<[Src]>,
    },

    // ---- tests
    Test {
        test: TypeTest,
        src: Src,
        fail: Label,
    },
    /// `test_arity`. `checked`: what is no tuple fails too, as the `is_tuple` before it did (not merged: it stays).
    TestArity {
        src: Src,
        arity: u32,
        fail: Label,
        checked: bool,
    },
    IsTaggedTuple {
        src: Src,
        arity: u32,
        tag: Word,
        fail: Label,
    },
    IsFunction2 {
        src: Src,
        arity: Src,
        fail: Label,
    },
    Compare {
        op: Compare,
        a: Src,
        b: Src,
        fail: Label,
    },
    /// Values are immediates (small, atom, nil): sorted by bits.
    SelectVal {
        src: Src,
        fail: Label,
        pairs: Box<[(Word, Label)]>,
    },
    /// Values that are not immediates (floats, bignums) among others: compare exactly, in order.
    SelectTerm {
        src: Src,
        fail: Label,
        pairs: Box<[(Word, Label)]>,
    },
    /// `checked` as for [`Op::TestArity`].
    SelectArity {
        src: Src,
        fail: Label,
        pairs: Box<[(u32, Label)]>,
        checked: bool,
    },
    HasMapFields {
        src: Src,
        fail: Label,
        keys: Box<[Src]>,
        checked: bool,
    },
    GetMapElements {
        src: Src,
        fail: Label,
        pairs: Box<[(Src, Reg)]>,
        checked: bool,
    },

    // ---- arithmetic and guards
    Arith {
        op: ArithOp,
        a: Src,
        b: Src,
        dst: Reg,
        live: u16,
        fail: Label,
        hints: ArithHints,
    },
    Negate {
        src: Src,
        dst: Reg,
        live: u16,
        fail: Label,
    },
    Bnot {
        src: Src,
        dst: Reg,
        live: u16,
        fail: Label,
    },
    /// Any other guard BIF (`bif0..3`, `gc_bif1..3`); `live` is `None` for `bif0..3`, which keep all
    /// registers (results that do not fit go to a fragment).
    GuardBif {
        native: &'static NativeEntry,
        args: Box<[Src]>,
        dst: Reg,
        live: Option<u16>,
        fail: Label,
    },
    /// Guard BIF that does not exist: fails or raises `undef`.
    UndefinedBif {
        export: ExportId,
        args: Box<[Src]>,
        fail: Label,
    },
    /// Guard BIFs with their own code in engines (hd tl tuple_size element/2 byte_size bit_size length
    /// map_size size self node/0 is_* comparisons as values, and or xor not, map_get is_map_key, abs, min, max, trunc, round float)
    /// are `GuardBif` too: an engine looks at `native.function` when it translates.

    // ---- floats
    /// Source is a boxed float (proven or literal), else checked.
    FloatLoad {
        src: Src,
        dst: u16,
        checked: bool,
    },
    /// Converts any number; not a number raises `badarith`; overflow of a bignum too.
    FloatConvert {
        src: Src,
        dst: u16,
    },
    /// Boxes into the ensured heap (2 words).
    FloatStore {
        src: u16,
        dst: Reg,
    },
    /// A result that is not finite raises `badarith` (or goes to `fail`).
    FloatArith {
        op: FloatOp,
        a: u16,
        b: u16,
        dst: u16,
        fail: Label,
    },
    FloatNegate {
        a: u16,
        dst: u16,
        fail: Label,
    },

    // ---- exceptions
    /// Puts a catch tag for `handler` into `y` and counts it. `handler` is the code behind `catch_end`/`try_case`.
    Catch {
        y: u16,
        handler: Label,
    },
    CatchEnd {
        y: u16,
    },
    Try {
        y: u16,
        handler: Label,
    },
    TryEnd {
        y: u16,
    },
    /// x0 class, x1 value, x2 raw trace.
    TryCase {
        y: u16,
    },
    TryCaseEnd {
        src: Src,
    },
    /// `raise Trace Value` (old): re-raise with class taken from the raw trace.
    RaiseOld {
        trace: Src,
        value: Src,
    },
    /// `raw_raise`: class x0, value x1, raw trace x2; falls through with x0 = badarg when the class is none.
    RawRaise,
    /// x0: raw trace to list.
    BuildStacktrace,
    Badmatch {
        src: Src,
    },
    IfEnd,
    CaseEnd {
        src: Src,
    },
    BadRecord {
        src: Src,
    },

    // ---- messages
    /// x1 to x0 (the message becomes x0).
    Send,
    /// Current message to x0, or jump when there is none left.
    LoopRec {
        empty: Label,
    },
    /// Next message, then jump.
    LoopRecEnd {
        next: Label,
    },
    RemoveMessage,
    Timeout,
    Wait {
        retry: Label,
    },
    WaitTimeout {
        retry: Label,
        timeout: Src,
    },
    MarkerReserve {
        dst: Reg,
    },
    MarkerBind {
        marker: Src,
        reference: Src,
    },
    MarkerClear {
        reference: Src,
    },
    MarkerUse {
        reference: Src,
    },

    // ---- maps
    /// `assoc` inserts, else keys must exist (`badkey`).
    PutMap {
        assoc: bool,
        src: Src,
        dst: Reg,
        live: u16,
        pairs: Box<[(Src, Src)]>,
        fail: Label,
    },

    // ---- bit syntax
    /// New match context, or the same one when `src` is one already (`reuse`: src may be a context).
    BsStartMatch {
        src: Src,
        dst: Reg,
        live: u16,
        fail: Label,
    },
    BsMatch {
        ctx: Reg,
        fail: Label,
        commands: Box<[MatchCommand]>,
        checked: bool,
    },
    BsGetInteger {
        ctx: Reg,
        live: u16,
        size: SegSize,
        unit: u32,
        flags: BitFlags,
        dst: Reg,
        fail: Label,
        checked: bool,
    },
    BsGetFloat {
        ctx: Reg,
        live: u16,
        size: SegSize,
        unit: u32,
        flags: BitFlags,
        dst: Reg,
        fail: Label,
        checked: bool,
    },
    BsGetBinary {
        ctx: Reg,
        live: u16,
        size: SegSize,
        unit: u32,
        dst: Reg,
        fail: Label,
        checked: bool,
    },
    BsSkipBits {
        ctx: Reg,
        size: SegSize,
        unit: u32,
        fail: Label,
        checked: bool,
    },
    BsTestTail {
        ctx: Reg,
        bits: u64,
        fail: Label,
        checked: bool,
    },
    BsTestUnit {
        ctx: Reg,
        unit: u32,
        fail: Label,
        checked: bool,
    },
    BsMatchString {
        ctx: Reg,
        bits: u64,
        bytes: Box<[u8]>,
        fail: Label,
        checked: bool,
    },
    /// `kind` is Utf8, Utf16 or Utf32; `dst: None` skips.
    BsGetUtf {
        kind: SegKind,
        flags: BitFlags,
        ctx: Reg,
        dst: Option<Reg>,
        fail: Label,
        checked: bool,
    },
    BsGetPosition {
        ctx: Reg,
        dst: Reg,
        checked: bool,
    },
    BsSetPosition {
        ctx: Reg,
        position: Src,
        checked: bool,
    },
    BsGetTail {
        ctx: Reg,
        dst: Reg,
        live: u16,
        checked: bool,
    },
    /// `heap` further words are ensured for what follows.
    BsCreateBin {
        heap: u32,
        live: u16,
        unit: u32,
        dst: Reg,
        segments: Box<[Segment]>,
        fail: Label,
    },
    BsInitWritable,
    /// Old code: bytes that x needs in UTF-8 / UTF-16 (times 1 or 2 as the instruction counts).
    BsUtfSize {
        kind: SegKind,
        src: Src,
        dst: Reg,
        fail: Label,
    },
    /// Old code: `a + b * unit`, badarg unless sizes.
    BsAdd {
        a: Src,
        b: Src,
        unit: u32,
        dst: Reg,
        fail: Label,
    },

    // ---- native records (OTP 29)
    PutRecord {
        id: Src,
        src: Src,
        dst: Reg,
        live: u16,
        pairs: Box<[(Word, Src)]>,
        fail: Label,
    },
    IsNativeRecord {
        src: Src,
        module: Word,
        name: Word,
        fail: Label,
    },
    IsRecordAccessible {
        src: Src,
        scope: Word,
        fail: Label,
    },
    GetRecordElements {
        src: Src,
        pairs: Box<[(Word, Reg)]>,
        fail: Label,
    },
    GetRecordField {
        src: Src,
        id: Src,
        field: Word,
        dst: Reg,
        fail: Label,
    },

    // ---- rest
    /// End of the function part of the module.
    End,
    /// Stands at the entry of a function that jumps back to its beginning, before what it jumps to: there a call is told from a jump.
    Enter,
    /// `nif_start`: the function may be replaced by a NIF of `load_nif`; no code.
    NifStart,
    /// Not emitted: see [`super::Lowered::on_load`].
    OnLoad,
}
