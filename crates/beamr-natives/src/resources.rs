//! Magic references: host objects behind terms.

use std::any::Any;
use std::sync::Arc;

use beamr_abi::Ctx;
use beamr_term::{Build, Resource, Subtag, Word, header};

/// A reference that owns `value`.
pub fn new<T: Any + Send + Sync>(ctx: &mut Ctx, value: T) -> Word {
    let numbers = beamr_vm::process::worker(ctx).next_ref().numbers();
    ctx.magic_reference(
        numbers,
        Arc::new(Resource {
            value: Box::new(value),
        }),
    )
}

/// The `T` behind a magic reference. The borrow ends with the native that holds the term.
pub fn get<'a, T: Any + Send + Sync>(w: Word) -> Option<&'a T> {
    if w.subtag() != Some(Subtag::Ref) || w.header().arity() != header::REF_MAGIC {
        return None;
    }
    // SAFETY: a magic reference holds a count of its resource for as long as the term lives.
    let resource: &'a Resource = unsafe { &*(w.field(2) as usize as *const Resource) };
    resource.value.downcast_ref::<T>()
}
