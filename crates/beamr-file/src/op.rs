//! The table of generic operations.
//!
//! One macro call lists every operation of the code chunk with its number,
//! its name, the kind of each operand and one sentence on what it does. The
//! decoder takes the arity from it, the validator the operand kinds, the
//! disassembler the name, the encoder the number. Nothing else in the project
//! numbers an operation.
//!
//! The numbers never change between releases: a number that went out of use is
//! not given again. So one table serves the files of every release, and the
//! operations that no compiler emits any more are here too; the validator
//! refuses those that no loader since OTP 24 accepts (see [`Op::is_obsolete`]).

/// What an operand may be, and what it is for.
///
/// The decoder accepts any operand anywhere (the format is self-describing);
/// the validator holds each operand against its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An unsigned number.
    U,
    /// An unsigned number: the unit of a segment size, in bits.
    Unit,
    /// An unsigned number: how many X registers hold arguments.
    Arity,
    /// An unsigned number: how many X registers, from x0, a collection keeps.
    Live,
    /// An unsigned number: the slots of a stack frame.
    Frame,
    /// Heap words: an unsigned number or an allocation list.
    Heap,
    /// An index into the imports.
    Import,
    /// An index into the lambdas.
    Lambda,
    /// An index into the line table.
    Line,
    /// An offset into the string table.
    Str,
    /// A label that exists.
    Label,
    /// A label that exists, or 0: raise an exception instead of jumping.
    Fail,
    /// An atom (or nil).
    Atom,
    /// A value: register, atom, integer, nil, literal.
    Src,
    /// A size of a binary under construction: a plain unsigned number or a value.
    Size,
    /// A register that holds a match context.
    Ctx,
    /// A register that is written.
    Dst,
    /// A Y register.
    Y,
    /// A float register.
    Float,
    /// A float register, or a value to unbox.
    FloatSrc,
    /// A float register, or a register for the boxed float.
    FloatDst,
    /// A list; each operation that has one gives it its own shape.
    List,
    /// An operand with a shape of its own, or of an obsolete operation.
    Any,
}

macro_rules! ops {
    ($($num:literal $op:ident $name:literal [$($kind:ident),*] $doc:literal;)*) => {
        /// A generic operation. The value is its number in the code chunk.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = $doc] $op = $num,)*
        }

        /// What the table says of one operation.
        #[derive(Clone, Copy, Debug)]
        pub struct OpInfo {
            /// The operation.
            pub op: Op,
            /// Its name, as compiler listings write it.
            pub name: &'static str,
            /// The kind of each operand; the length is the arity.
            pub operands: &'static [Kind],
            /// One sentence on what it does.
            pub doc: &'static str,
        }

        /// Every operation in the order of numbers, the first being number 1.
        pub static OPS: &[OpInfo] = &[
            $(OpInfo { op: Op::$op, name: $name, operands: &[$(Kind::$kind),*], doc: $doc },)*
        ];
    };
}

ops! {
    1 Label "label" [U] "Defines the label given by its number.";
    2 FuncInfo "func_info" [Atom, Atom, Arity] "Heads a function; executing it raises function_clause.";
    3 IntCodeEnd "int_code_end" [] "Ends the code chunk.";
    4 Call "call" [Arity, Label] "Calls a local function.";
    5 CallLast "call_last" [Arity, Label, Frame] "Drops the frame and tail-calls a local function.";
    6 CallOnly "call_only" [Arity, Label] "Tail-calls a local function without a frame.";
    7 CallExt "call_ext" [Arity, Import] "Calls an imported function.";
    8 CallExtLast "call_ext_last" [Arity, Import, Frame] "Drops the frame and tail-calls an imported function.";
    9 Bif0 "bif0" [Import, Dst] "Calls a guard BIF of no arguments.";
    10 Bif1 "bif1" [Fail, Import, Src, Dst] "Calls a guard BIF of one argument that builds nothing.";
    11 Bif2 "bif2" [Fail, Import, Src, Src, Dst] "Calls a guard BIF of two arguments that builds nothing.";
    12 Allocate "allocate" [Frame, Live] "Makes a stack frame with uninitialised slots.";
    13 AllocateHeap "allocate_heap" [Frame, Heap, Live] "Makes a stack frame and reserves heap words.";
    14 AllocateZero "allocate_zero" [Frame, Live] "Makes a stack frame with every slot set to nil.";
    15 AllocateHeapZero "allocate_heap_zero" [Frame, Heap, Live] "Makes a cleared stack frame and reserves heap words.";
    16 TestHeap "test_heap" [Heap, Live] "Reserves heap words.";
    17 Init "init" [Y] "Sets one frame slot to nil.";
    18 Deallocate "deallocate" [Frame] "Drops the stack frame.";
    19 Return "return" [] "Returns x0 to the caller.";
    20 Send "send" [] "Sends x1 to x0; the message becomes x0.";
    21 RemoveMessage "remove_message" [] "Takes the current message out of the queue.";
    22 Timeout "timeout" [] "Resets the receive position after a timeout.";
    23 LoopRec "loop_rec" [Label, Dst] "Reads the next message, or jumps when there is none.";
    24 LoopRecEnd "loop_rec_end" [Label] "Skips the current message and jumps back to loop_rec.";
    25 Wait "wait" [Label] "Suspends until a message comes, then jumps.";
    26 WaitTimeout "wait_timeout" [Label, Src] "Suspends until a message or a timeout; a timeout goes on with the next instruction.";
    27 MPlus "m_plus" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    28 MMinus "m_minus" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    29 MTimes "m_times" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    30 MDiv "m_div" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    31 IntDiv "int_div" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    32 IntRem "int_rem" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    33 IntBand "int_band" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    34 IntBor "int_bor" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    35 IntBxor "int_bxor" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    36 IntBsl "int_bsl" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    37 IntBsr "int_bsr" [Fail, Src, Src, Dst] "Obsolete arithmetic.";
    38 IntBnot "int_bnot" [Fail, Src, Dst] "Obsolete arithmetic.";
    39 IsLt "is_lt" [Fail, Src, Src] "Goes on when the first is less than the second.";
    40 IsGe "is_ge" [Fail, Src, Src] "Goes on when the first is not less than the second.";
    41 IsEq "is_eq" [Fail, Src, Src] "Goes on when both are numerically equal.";
    42 IsNe "is_ne" [Fail, Src, Src] "Goes on when both are not numerically equal.";
    43 IsEqExact "is_eq_exact" [Fail, Src, Src] "Goes on when both match.";
    44 IsNeExact "is_ne_exact" [Fail, Src, Src] "Goes on when both do not match.";
    45 IsInteger "is_integer" [Fail, Src] "Tests for an integer.";
    46 IsFloat "is_float" [Fail, Src] "Tests for a float.";
    47 IsNumber "is_number" [Fail, Src] "Tests for a number.";
    48 IsAtom "is_atom" [Fail, Src] "Tests for an atom.";
    49 IsPid "is_pid" [Fail, Src] "Tests for a pid.";
    50 IsReference "is_reference" [Fail, Src] "Tests for a reference.";
    51 IsPort "is_port" [Fail, Src] "Tests for a port.";
    52 IsNil "is_nil" [Fail, Src] "Tests for the empty list.";
    53 IsBinary "is_binary" [Fail, Src] "Tests for a binary.";
    54 IsConstant "is_constant" [Fail, Src] "Obsolete test.";
    55 IsList "is_list" [Fail, Src] "Tests for a cons cell or the empty list.";
    56 IsNonemptyList "is_nonempty_list" [Fail, Src] "Tests for a cons cell.";
    57 IsTuple "is_tuple" [Fail, Src] "Tests for a tuple.";
    58 TestArity "test_arity" [Fail, Src, U] "Tests the size of a tuple.";
    59 SelectVal "select_val" [Src, Fail, List] "Jumps by value.";
    60 SelectTupleArity "select_tuple_arity" [Src, Fail, List] "Jumps by tuple size.";
    61 Jump "jump" [Label] "Jumps.";
    62 Catch "catch" [Y, Label] "Starts a catch; the slot holds its tag.";
    63 CatchEnd "catch_end" [Y] "Ends a catch, or turns the exception into its value.";
    64 Move "move" [Src, Dst] "Copies a value into a register.";
    65 GetList "get_list" [Src, Dst, Dst] "Fetches head and tail of a cons cell.";
    66 GetTupleElement "get_tuple_element" [Src, U, Dst] "Fetches an element of a tuple, counted from 0.";
    67 SetTupleElement "set_tuple_element" [Src, Src, U] "Writes an element of a tuple just made, counted from 0.";
    68 PutString "put_string" [U, U, Dst] "Obsolete list building.";
    69 PutList "put_list" [Src, Src, Dst] "Builds a cons cell on reserved heap.";
    70 PutTuple "put_tuple" [U, Dst] "Obsolete tuple building.";
    71 Put "put" [Src] "Obsolete tuple building.";
    72 Badmatch "badmatch" [Src] "Raises a badmatch error.";
    73 IfEnd "if_end" [] "Raises an if_clause error.";
    74 CaseEnd "case_end" [Src] "Raises a case_clause error.";
    75 CallFun "call_fun" [Arity] "Calls the fun in the register after the arguments.";
    76 MakeFun "make_fun" [Any, Any, Any] "Obsolete fun building.";
    77 IsFunction "is_function" [Fail, Src] "Tests for a fun.";
    78 CallExtOnly "call_ext_only" [Arity, Import] "Tail-calls an imported function without a frame.";
    79 BsStartMatch "bs_start_match" [Fail, Src] "Obsolete matching.";
    80 BsGetInteger "bs_get_integer" [Any, Any, Any, Any, Any] "Obsolete matching.";
    81 BsGetFloat "bs_get_float" [Any, Any, Any, Any, Any] "Obsolete matching.";
    82 BsGetBinary "bs_get_binary" [Any, Any, Any, Any, Any] "Obsolete matching.";
    83 BsSkipBits "bs_skip_bits" [Any, Any, Any, Any] "Obsolete matching.";
    84 BsTestTail "bs_test_tail" [Any, Any] "Obsolete matching.";
    85 BsSave "bs_save" [Any] "Obsolete matching.";
    86 BsRestore "bs_restore" [Any] "Obsolete matching.";
    87 BsInit "bs_init" [Any, Any] "Obsolete construction.";
    88 BsFinal "bs_final" [Any, Any] "Obsolete construction.";
    89 BsPutInteger "bs_put_integer" [Fail, Size, Unit, U, Src] "Appends an integer to the binary under construction.";
    90 BsPutBinary "bs_put_binary" [Fail, Size, Unit, U, Src] "Appends a bitstring to the binary under construction.";
    91 BsPutFloat "bs_put_float" [Fail, Size, Unit, U, Src] "Appends a float to the binary under construction.";
    92 BsPutString "bs_put_string" [U, Str] "Appends bytes of the string table to the binary under construction.";
    93 BsNeedBuf "bs_need_buf" [Any] "Obsolete construction.";
    94 Fclearerror "fclearerror" [] "Clears the float error flag; does nothing since OTP 24.";
    95 Fcheckerror "fcheckerror" [Fail] "Checks the float error flag; does nothing since OTP 24.";
    96 Fmove "fmove" [FloatSrc, FloatDst] "Moves a float between a term and a float register; boxes on reserved heap.";
    97 Fconv "fconv" [Src, Float] "Converts a number into a float register.";
    98 Fadd "fadd" [Fail, Float, Float, Float] "Adds float registers.";
    99 Fsub "fsub" [Fail, Float, Float, Float] "Subtracts float registers.";
    100 Fmul "fmul" [Fail, Float, Float, Float] "Multiplies float registers.";
    101 Fdiv "fdiv" [Fail, Float, Float, Float] "Divides float registers.";
    102 Fnegate "fnegate" [Fail, Float, Float] "Negates a float register.";
    103 MakeFun2 "make_fun2" [Lambda] "Makes a fun of the first free X registers into x0.";
    104 Try "try" [Y, Label] "Starts a try; the slot holds its tag.";
    105 TryEnd "try_end" [Y] "Ends the protected part of a try.";
    106 TryCase "try_case" [Y] "Starts the handler part of a try: x0 class, x1 reason, x2 trace.";
    107 TryCaseEnd "try_case_end" [Src] "Raises a try_clause error.";
    108 Raise "raise" [Src, Src] "Raises again: trace, then reason.";
    109 BsInit2 "bs_init2" [Fail, Size, Heap, Live, U, Dst] "Starts a binary of a size in bytes.";
    110 BsBitsToBytes "bs_bits_to_bytes" [Fail, Src, Dst] "Obsolete construction.";
    111 BsAdd "bs_add" [Fail, Size, Size, Unit, Dst] "Adds sizes: first plus second times unit.";
    112 Apply "apply" [Arity] "Calls module and function held in the two registers after the arguments.";
    113 ApplyLast "apply_last" [Arity, Frame] "Drops the frame and tail-calls as apply does.";
    114 IsBoolean "is_boolean" [Fail, Src] "Tests for true or false.";
    115 IsFunction2 "is_function2" [Fail, Src, Src] "Tests for a fun of an arity.";
    116 BsStartMatch2 "bs_start_match2" [Fail, Src, Live, U, Dst] "Starts matching with save slots.";
    117 BsGetInteger2 "bs_get_integer2" [Fail, Ctx, Live, Src, Unit, U, Dst] "Extracts an integer.";
    118 BsGetFloat2 "bs_get_float2" [Fail, Ctx, Live, Src, Unit, U, Dst] "Extracts a float.";
    119 BsGetBinary2 "bs_get_binary2" [Fail, Ctx, Live, Src, Unit, U, Dst] "Extracts a bitstring.";
    120 BsSkipBits2 "bs_skip_bits2" [Fail, Ctx, Src, Unit, U] "Skips bits.";
    121 BsTestTail2 "bs_test_tail2" [Fail, Ctx, U] "Tests the number of bits left.";
    122 BsSave2 "bs_save2" [Ctx, Src] "Saves the position in a slot.";
    123 BsRestore2 "bs_restore2" [Ctx, Src] "Restores the position from a slot.";
    124 GcBif1 "gc_bif1" [Fail, Live, Import, Src, Dst] "Calls a guard BIF of one argument that may build.";
    125 GcBif2 "gc_bif2" [Fail, Live, Import, Src, Src, Dst] "Calls a guard BIF of two arguments that may build.";
    126 BsFinal2 "bs_final2" [Any, Any] "Obsolete construction.";
    127 BsBitsToBytes2 "bs_bits_to_bytes2" [Any, Any] "Obsolete construction.";
    128 PutLiteral "put_literal" [Any, Any] "Obsolete literal.";
    129 IsBitstr "is_bitstr" [Fail, Src] "Tests for a bitstring.";
    130 BsContextToBinary "bs_context_to_binary" [Src] "Turns a match context into a binary in place.";
    131 BsTestUnit "bs_test_unit" [Fail, Ctx, U] "Tests that the bits left are a multiple of a unit.";
    132 BsMatchString "bs_match_string" [Fail, Ctx, U, Str] "Matches bits of the string table.";
    133 BsInitWritable "bs_init_writable" [] "Makes an appendable binary of the size in x0 into x0.";
    134 BsAppend "bs_append" [Fail, Size, Heap, Live, Unit, Src, U, Dst] "Starts a binary by appending to another.";
    135 BsPrivateAppend "bs_private_append" [Fail, Size, Unit, Src, U, Dst] "Appends to a binary known to have no other holder.";
    136 Trim "trim" [U, U] "Drops slots from the low end of the frame.";
    137 BsInitBits "bs_init_bits" [Fail, Size, Heap, Live, U, Dst] "Starts a bitstring of a size in bits.";
    138 BsGetUtf8 "bs_get_utf8" [Fail, Ctx, Live, U, Dst] "Extracts a code point.";
    139 BsSkipUtf8 "bs_skip_utf8" [Fail, Ctx, Live, U] "Skips a code point.";
    140 BsGetUtf16 "bs_get_utf16" [Fail, Ctx, Live, U, Dst] "Extracts a code point.";
    141 BsSkipUtf16 "bs_skip_utf16" [Fail, Ctx, Live, U] "Skips a code point.";
    142 BsGetUtf32 "bs_get_utf32" [Fail, Ctx, Live, U, Dst] "Extracts a code point.";
    143 BsSkipUtf32 "bs_skip_utf32" [Fail, Ctx, Live, U] "Skips a code point.";
    144 BsUtf8Size "bs_utf8_size" [Fail, Src, Dst] "Gives the bytes of a code point as UTF-8.";
    145 BsPutUtf8 "bs_put_utf8" [Fail, U, Src] "Appends a code point to the binary under construction.";
    146 BsUtf16Size "bs_utf16_size" [Fail, Src, Dst] "Gives the bytes of a code point as UTF-16.";
    147 BsPutUtf16 "bs_put_utf16" [Fail, U, Src] "Appends a code point to the binary under construction.";
    148 BsPutUtf32 "bs_put_utf32" [Fail, U, Src] "Appends a code point to the binary under construction.";
    149 OnLoad "on_load" [] "Marks the function that runs when the module is loaded.";
    150 RecvMark "recv_mark" [Label] "Marks the end of the queue for recv_set; optional.";
    151 RecvSet "recv_set" [Label] "Starts the receive at the mark; optional.";
    152 GcBif3 "gc_bif3" [Fail, Live, Import, Src, Src, Src, Dst] "Calls a guard BIF of three arguments that may build.";
    153 Line "line" [Line] "Gives the source line of the calls that follow.";
    154 PutMapAssoc "put_map_assoc" [Fail, Src, Dst, Live, List] "Adds or replaces associations of a map.";
    155 PutMapExact "put_map_exact" [Fail, Src, Dst, Live, List] "Replaces associations of a map.";
    156 IsMap "is_map" [Fail, Src] "Tests for a map.";
    157 HasMapFields "has_map_fields" [Fail, Src, List] "Tests that a map has keys.";
    158 GetMapElements "get_map_elements" [Fail, Src, List] "Fetches the values of keys.";
    159 IsTaggedTuple "is_tagged_tuple" [Fail, Src, U, Atom] "Tests for a tuple of a size and a first element.";
    160 BuildStacktrace "build_stacktrace" [] "Turns the raw trace in x0 into a term.";
    161 RawRaise "raw_raise" [] "Raises class x0, reason x1, raw trace x2; badarg in x0 for a bad class.";
    162 GetHd "get_hd" [Src, Dst] "Fetches the head of a cons cell.";
    163 GetTl "get_tl" [Src, Dst] "Fetches the tail of a cons cell.";
    164 PutTuple2 "put_tuple2" [Dst, List] "Builds a tuple on reserved heap.";
    165 BsGetTail "bs_get_tail" [Ctx, Dst, Live] "Makes a bitstring of what is left.";
    166 BsStartMatch3 "bs_start_match3" [Fail, Src, Live, Dst] "Starts matching.";
    167 BsGetPosition "bs_get_position" [Ctx, Dst, Live] "Fetches the match position.";
    168 BsSetPosition "bs_set_position" [Ctx, Src] "Sets the match position.";
    169 Swap "swap" [Dst, Dst] "Exchanges two registers.";
    170 BsStartMatch4 "bs_start_match4" [Any, Live, Src, Dst] "Starts matching; cannot fail, or continues a context.";
    171 MakeFun3 "make_fun3" [Lambda, Dst, List] "Builds a fun with its environment on reserved heap.";
    172 InitYregs "init_yregs" [List] "Sets frame slots to nil.";
    173 RecvMarkerBind "recv_marker_bind" [Y, Src] "Ties a reserved marker to a reference.";
    174 RecvMarkerClear "recv_marker_clear" [Src] "Drops the marker of a reference.";
    175 RecvMarkerReserve "recv_marker_reserve" [Y] "Makes a receive marker.";
    176 RecvMarkerUse "recv_marker_use" [Src] "Starts the receive at the marker of a reference.";
    177 BsCreateBin "bs_create_bin" [Fail, Heap, Live, Unit, Dst, List] "Builds a bitstring of segments.";
    178 CallFun2 "call_fun2" [Any, Arity, Src] "Calls a fun given as an operand.";
    179 NifStart "nif_start" [] "Starts a function that a NIF may replace.";
    180 Badrecord "badrecord" [Src] "Raises a badrecord error.";
    181 UpdateRecord "update_record" [Atom, U, Src, Dst, List] "Copies a tuple with elements replaced.";
    182 BsMatch "bs_match" [Fail, Ctx, List] "Runs a list of matching commands.";
    183 ExecutableLine "executable_line" [Line, U] "Counts a line for coverage.";
    184 DebugLine "debug_line" [Atom, Line, U, Live] "A place where a debugger may stop.";
    185 Bif3 "bif3" [Fail, Import, Src, Src, Src, Dst] "Calls a guard BIF of three arguments that builds nothing.";
    186 IsAnyNativeRecord "is_any_native_record" [Fail, Src] "Tests for a native record.";
    187 IsNativeRecord "is_native_record" [Fail, Src, Atom, Atom] "Tests for a native record of a module and a name.";
    188 GetRecordElements "get_record_elements" [Fail, Src, List] "Fetches fields of a native record.";
    189 PutRecord "put_record" [Fail, Src, Src, Dst, Live, List] "Makes or updates a native record.";
    190 IsRecordAccessible "is_record_accessible" [Fail, Src, Atom] "Tests that the fields of a native record may be read here.";
    191 GetRecordField "get_record_field" [Fail, Src, Src, Atom, Dst] "Fetches one field of a native record.";
}

impl Op {
    /// The highest number in the table.
    pub const MAX: u8 = 191;

    /// The operation of a number.
    pub fn from_number(number: u8) -> Option<Op> {
        OPS.get((number as usize).checked_sub(1)?)
            .map(|info| info.op)
    }

    /// The operation of a name, as compiler listings write it.
    pub fn from_name(name: &str) -> Option<Op> {
        OPS.iter()
            .find(|info| info.name == name)
            .map(|info| info.op)
    }

    /// Its number in the code chunk.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its row of the table.
    pub fn info(self) -> &'static OpInfo {
        &OPS[self as usize - 1]
    }

    /// Its name, as compiler listings write it.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The number of its operands.
    pub fn arity(self) -> usize {
        self.info().operands.len()
    }

    /// Whether no loader since OTP 24 accepts it: decoded and printed, but not
    /// valid in code to be run.
    pub fn is_obsolete(self) -> bool {
        matches!(
            self as u8,
            27..=38 | 54 | 68 | 70 | 71 | 76 | 79..=88 | 93 | 110 | 116 | 122 | 123 | 126..=128 | 130
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions() {
        assert_eq!(OPS.len(), Op::MAX as usize);
        for (i, info) in OPS.iter().enumerate() {
            assert_eq!(info.op as usize, i + 1, "{}", info.name);
            assert_eq!(Op::from_number(info.op.number()), Some(info.op));
            assert_eq!(Op::from_name(info.name), Some(info.op));
        }
        assert_eq!(Op::from_number(0), None);
        assert_eq!(Op::from_number(192), None);
    }
}
