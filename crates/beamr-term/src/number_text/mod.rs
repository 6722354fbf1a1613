//! Integers and floats as text, and back: what the emulator's own conversions print and accept.
//!
//! `integer` has integers in bases 2 to 36, `float` the formats of `float_to_list/2` and the
//! syntax of `list_to_float/1`. The prettier forms of `io_lib` are Erlang code and not here.

mod float;
mod integer;

pub use float::{
    FloatFormat, FloatPrefixError, float_text, parse_float, push_short, string_to_float,
};
pub use integer::{
    IntegerListError, ParseIntegerError, integer_from_list, integer_to_binary, integer_to_list,
    parse_integer, push_integer, push_u64,
};
