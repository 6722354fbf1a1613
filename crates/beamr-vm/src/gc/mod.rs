//! The collector.

use beamr_abi::Regs;

use crate::engine::CodePos;

/// Collects so that `need` words are free between heap and stack.
///
/// # Safety
/// The contract of the module; `live` X registers are initialised.
pub unsafe fn collect(regs: &mut Regs, need: usize, live: usize) -> Result<(), CodePos> {
    let _ = (regs, need, live);
    unimplemented!()
}
