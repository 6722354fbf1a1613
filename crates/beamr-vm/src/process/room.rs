//! Whether there is room for what one step would make.
//!
//! Memory is charged when a heap is collected, which is soon enough for what grows step by step. What a single native or
//! instruction makes in proportion to a *number* that it was given is asked for here before it is made.

use beamr_abi::Ctx;

use super::slot_of;
use crate::vm::Namespace;

/// What is smaller is not asked for.
pub const LARGE: usize = 1 << 16;
/// What is larger is asked of the system, too.
const HUGE: usize = 64 << 20;

/// Whether the tenant of the running process may have so many bytes more, and the system has them.
#[inline]
pub fn has_room(ctx: &Ctx, bytes: usize) -> bool {
    bytes < LARGE || namespace_has_room(&slot_of(ctx).namespace, bytes)
}

/// The same for a tenant.
pub fn namespace_has_room(namespace: &Namespace, bytes: usize) -> bool {
    namespace.has_room(i64::try_from(bytes).unwrap_or(i64::MAX)) && (bytes < HUGE || exists(bytes))
}

/// Whether the system gives a block of so many bytes.
#[cold]
fn exists(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let given = probe.try_reserve_exact(bytes).is_ok();
    // The block is asked for indeed.
    std::hint::black_box(&probe);
    given
}
