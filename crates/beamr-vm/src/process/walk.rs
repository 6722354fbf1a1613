//! Natives that walk over terms for longer than a slice.
//!
//! Such a native runs its walk step by step; when the slice is used up, the walk stays in the process (its words are roots) and
//! the native is called again with the same arguments when the process runs next. The process can be killed meanwhile,
//! and others run. Not for natives that guards call: they cannot give up their slice.

use std::task::Poll;

use beamr_abi::{Ctx, Escape, Pending};
use beamr_term::Word;

use super::process;

/// Steps of a walk for one reduction.
const STEPS: i64 = 16;

/// A walk over terms that can stop.
pub trait NativeWalk: Send {
    /// Goes on until done or `budget` is used up.
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>>;
    /// Shows every word that the walk holds.
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word));
}

/// Runs the walk that `start` gives to its end, over as many slices as it takes. A native returns what this returns, and
/// has no effect before.
pub fn run_walk<W: NativeWalk + 'static>(
    ctx: &mut Ctx,
    start: impl FnOnce(&mut Ctx) -> Result<W, Escape>,
) -> Result<Word, Escape> {
    let kept = process(ctx).walk.take();
    let all = (ctx.fcalls.max(1) + 64) * STEPS;
    let mut budget = all;
    let (result, kept): (_, Option<Box<dyn NativeWalk>>) = match kept {
        Some(mut walk) => {
            let r = walk.step(ctx, &mut budget);
            (r, Some(walk))
        }
        None => {
            let mut walk = start(ctx)?;
            let r = walk.step(ctx, &mut budget);
            let kept: Option<Box<dyn NativeWalk>> = match r {
                Poll::Pending => Some(Box::new(walk)),
                Poll::Ready(_) => None,
            };
            (r, kept)
        }
    };
    match result {
        Poll::Ready(r) => {
            ctx.bump((all - budget) / STEPS);
            r
        }
        Poll::Pending => {
            process(ctx).walk = kept;
            Err(ctx.escape(Pending::Yield))
        }
    }
}

/// Whether the native that runs goes on with its walk: it was called before with these arguments.
#[inline]
pub fn resumes(ctx: &Ctx) -> bool {
    process(ctx).walk.is_some()
}
