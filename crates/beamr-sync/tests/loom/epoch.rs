//! Tried, and failed as they must: a pin without its fence, or stored Relaxed; an unpin that is Relaxed; a deferral without
//! its fence; an advance without its first fence, without its acquire fence, or that ignores pins; drops that are
//! due after one step.
//!
//! Tried, and not found: an advance whose exchange is Relaxed. The SeqCst fence of the same thread's next
//! advance hides it within these bounds; the ordering stays because the proof needs it.

use super::*;

/// A reader against a writer that replaces the object, defers its death and collects twice.
#[test]
fn nothing_dies_under_a_reader() {
    check(2, || {
        let domain = Domain::new();
        let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mortal::new(1)))));
        let (their_domain, theirs) = (domain.clone(), shared.clone());
        let writer = thread::spawn(move || {
            let me = their_domain.register();
            let new = Box::into_raw(Box::new(Mortal::new(2)));
            let guard = me.pin();
            let old = theirs.swap(new, Ordering::AcqRel);
            // SAFETY: unlinked, and the only remover.
            guard.defer_drop(unsafe { Box::from_raw(old) });
            drop(guard);
            me.collect();
            me.collect();
        });
        let me = domain.register();
        let guard = me.pin();
        // SAFETY: what the model checks.
        let value = unsafe { &*shared.load(Ordering::Acquire) }.0.read();
        assert!(value == 1 || value == 2);
        drop(guard);
        // A scan may see this pin and not the end of the one before.
        let guard = me.pin();
        writer.join().unwrap();
        drop(guard);
        // SAFETY: nobody else is left.
        drop(unsafe { Box::from_raw(shared.load(Ordering::Acquire)) });
    });
}

/// Two writers, each collecting: the epoch moves under the feet of the one that defers.
#[test]
fn two_collectors() {
    check(2, || {
        let domain = Domain::new();
        let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mortal::new(1)))));
        let (their_domain, theirs) = (domain.clone(), shared.clone());
        let other = thread::spawn(move || {
            let me = their_domain.register();
            me.collect();
            let guard = me.pin();
            // SAFETY: what the model checks.
            assert_ne!(unsafe { &*theirs.load(Ordering::Acquire) }.0.read(), 0);
            let new = Box::into_raw(Box::new(Mortal::new(3)));
            let old = theirs.swap(new, Ordering::AcqRel);
            // SAFETY: unlinked by the swap, which one thread gets.
            guard.defer_drop(unsafe { Box::from_raw(old) });
            drop(guard);
            me.collect();
        });
        let me = domain.register();
        let guard = me.pin();
        let new = Box::into_raw(Box::new(Mortal::new(2)));
        let old = shared.swap(new, Ordering::AcqRel);
        // SAFETY: unlinked by the swap, which one thread gets.
        guard.defer_drop(unsafe { Box::from_raw(old) });
        drop(guard);
        me.collect();
        other.join().unwrap();
        // SAFETY: nobody else is left.
        drop(unsafe { Box::from_raw(shared.load(Ordering::Acquire)) });
    });
}

/// The epoch is moved by a thread that neither reads nor defers, nor passes any other fence.
#[test]
fn an_outsider_advances() {
    check(1, || {
        let domain = Domain::new();
        let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mortal::new(1)))));
        let (their_domain, theirs) = (domain.clone(), shared.clone());
        let outsider = domain.register();
        let outsider = thread::spawn(move || outsider.collect());
        let writer = thread::spawn(move || {
            let me = their_domain.register();
            let new = Box::into_raw(Box::new(Mortal::new(2)));
            let guard = me.pin();
            let old = theirs.swap(new, Ordering::AcqRel);
            // SAFETY: unlinked, and the only remover.
            guard.defer_drop(unsafe { Box::from_raw(old) });
            drop(guard);
            outsider.join().unwrap();
            me.collect();
        });
        let me = domain.register();
        let guard = me.pin();
        // SAFETY: what the model checks.
        let object = unsafe { &*shared.load(Ordering::Acquire) };
        writer.join().unwrap();
        assert_ne!(object.0.read(), 0);
        drop(guard);
        // SAFETY: nobody else is left.
        drop(unsafe { Box::from_raw(shared.load(Ordering::Acquire)) });
    });
}
