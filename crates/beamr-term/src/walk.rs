//! What walks over terms share: a stack that starts in place, and the budget.
//!
//! A walk is a value with an explicit stack. `step` goes on until it is done or the budget is
//! used up (it takes one from the budget for about every term visited, and may overdraw it a
//! little). Between two steps the terms may move if the caller shows every word that the walk
//! holds to its collector (`visit_roots`).

use std::mem::MaybeUninit;

/// A stack whose first `N` entries need no allocation.
pub(crate) struct Stack<T: Copy, const N: usize> {
    len: usize,
    inline: [MaybeUninit<T>; N],
    spill: Vec<T>,
}

impl<T: Copy, const N: usize> Stack<T, N> {
    #[inline]
    pub fn new() -> Self {
        Stack {
            len: 0,
            inline: [const { MaybeUninit::uninit() }; N],
            spill: Vec::new(),
        }
    }
    #[inline]
    pub fn push(&mut self, v: T) {
        if self.len < N {
            self.inline[self.len].write(v);
        } else {
            self.spill.push(v);
        }
        self.len += 1;
    }
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        if self.len < N {
            // SAFETY: entries below the old length were written.
            Some(unsafe { self.inline[self.len].assume_init() })
        } else {
            self.spill.pop()
        }
    }
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        if self.len <= N {
            // SAFETY: entries below the length were written.
            Some(unsafe { self.inline[self.len - 1].assume_init_mut() })
        } else {
            self.spill.last_mut()
        }
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let n = self.len.min(N);
        self.inline[..n]
            .iter_mut()
            // SAFETY: entries below the length were written.
            .map(|m| unsafe { m.assume_init_mut() })
            .chain(self.spill.iter_mut())
    }
}

impl<T: Copy, const N: usize> std::fmt::Debug for Stack<T, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stack({})", self.len)
    }
}

/// The budget of a call that must run to its end.
pub(crate) const UNLIMITED: i64 = i64::MAX;
