//! Magic references: host objects behind terms.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use beamr_abi::Ctx;
use beamr_term::{Build, Resource, ResourceRef, Subtag, Word, header};
use beamr_vm::process::vm_of;

/// Those that live, by the numbers of their reference, so that one which was written down is found again.
#[derive(Default)]
struct Living(Mutex<(HashMap<[u32; 3], Weak<Resource>>, usize)>);

/// A reference that owns `value`.
pub fn new<T: Any + Send + Sync>(ctx: &mut Ctx, value: T) -> Word {
    let numbers = beamr_vm::process::worker(ctx).next_ref().numbers();
    let resource = Arc::new(Resource {
        value: Box::new(value),
    });
    let living = vm_of(ctx).extensions.get_or_init(Living::default);
    {
        let mut l = living.0.lock().unwrap_or_else(|e| e.into_inner());
        let (map, sweep_at) = &mut *l;
        if map.len() >= *sweep_at {
            map.retain(|_, r| r.strong_count() > 0);
            *sweep_at = map.len() * 2 + 64;
        }
        map.insert(numbers, Arc::downgrade(&resource));
    }
    ctx.magic_reference(numbers, resource)
}

/// The resource whose reference has these numbers.
pub fn find(ctx: &Ctx, numbers: [u32; 3]) -> Option<ResourceRef> {
    let living = vm_of(ctx).extensions.get::<Living>()?;
    let l = living.0.lock().unwrap_or_else(|e| e.into_inner());
    l.0.get(&numbers)?.upgrade()
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
