//! Lowered code to words.
//!
//! One pass over the ops: `code` is the builder (words, labels, fixups), the other files pick the handler of each
//! op by the kinds of its operands and fuse frequent sequences. A sequence is fused only when no label
//! lies inside, so every label is the start of an instruction; a source line inside moves to
//! the start of the fused instruction, which is right because what is fused in front of the op of that line cannot fail.

mod bits;
mod calls;
mod code;
mod data;
mod rest;
mod tests;
mod values;

use beamr_vm::engine::{Emitted, EngineError};
use beamr_vm::lower::Lowered;
use beamr_vm::lower::op::Op;

pub(crate) use code::Emitter;

/// Translates a module.
pub(crate) fn emit(module: &Lowered) -> Result<Emitted, EngineError> {
    let mut e = Emitter::new(module);
    let ops = &module.code;
    let mut i = 0;
    while i < ops.len() {
        i += one(&mut e, ops, i)?;
    }
    e.finish()
}

/// Translates the op at `i` and those fused with it; gives how many were used.
fn one(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Result<usize, EngineError> {
    match &ops[i] {
        Op::Label(l) => e.label(*l),
        Op::Line(l) => e.line(*l),
        Op::FuncInfo { function } => calls::func_info(e, *function),
        Op::NifStart | Op::OnLoad => {}
        Op::End => e.op(crate::ops::exceptions::badarg),
        op => {
            if let Some(n) = data::emit(e, ops, i)
                .or_else(|| tests::emit(e, ops, i))
                .or_else(|| calls::emit(e, ops, i))
                .or_else(|| values::emit(e, ops, i))
                .or_else(|| bits::emit(e, ops, i))
                .or_else(|| rest::emit(e, ops, i))
            {
                return Ok(n);
            }
            return Err(e.unsupported(op, "no handler"));
        }
    }
    Ok(1)
}
