//! Loops inside a function of untrusted code.
//!
//! Reductions are counted where functions are entered and where a receive starts over. A compiler makes no other loops; code
//! that jumps back past neither would never give up its slice, and is refused.

use std::collections::HashMap;

use super::build::Res;
use super::error::LowerFault;
use super::op::{Label, Op};
use super::visit::Flow;

#[derive(Clone, Copy, PartialEq)]
enum Seen {
    No,
    /// On the path from the start to here.
    Open,
    Done,
}

/// Refuses a function (its ops in code order) with a loop that costs nothing.
pub fn check(ops: &[Op]) -> Res {
    let mut at: HashMap<Label, usize> = HashMap::new();
    for (i, op) in ops.iter().enumerate() {
        if let Op::Label(l) = op {
            at.insert(*l, i);
        }
    }
    // Most functions have no jump back at all.
    let jumps_back = ops.iter().enumerate().any(|(i, op)| {
        let mut back = false;
        free_labels(op, |l| back |= at.get(&l).is_some_and(|to| *to <= i));
        back
    });
    if !jumps_back {
        return Ok(());
    }
    let mut seen = vec![Seen::No; ops.len()];
    // An op, and its successors that are left.
    let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
    for start in 0..ops.len() {
        if seen[start] != Seen::No {
            continue;
        }
        seen[start] = Seen::Open;
        path.push((start, successors(ops, &at, start)));
        while let Some((i, left)) = path.last_mut() {
            let Some(to) = left.pop() else {
                seen[*i] = Seen::Done;
                path.pop();
                continue;
            };
            match seen[to] {
                Seen::No => {
                    seen[to] = Seen::Open;
                    path.push((to, successors(ops, &at, to)));
                }
                Seen::Open => {
                    return Err(LowerFault::Inconsistent(
                        "a loop without a call or a receive",
                    ));
                }
                Seen::Done => {}
            }
        }
    }
    Ok(())
}

/// Where control may go without a reduction.
fn successors(ops: &[Op], at: &HashMap<Label, usize>, i: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let op = &ops[i];
    let costs = matches!(
        op,
        Op::Call { .. }
            | Op::CallExt { .. }
            | Op::CallFun { .. }
            | Op::CallFun2 { .. }
            | Op::Apply { .. }
    );
    if !costs && op.flow() != Flow::End && i + 1 < ops.len() {
        out.push(i + 1);
    }
    free_labels(op, |l| out.extend(at.get(&l)));
    out
}

fn free_labels(op: &Op, mut f: impl FnMut(Label)) {
    match op {
        // Starting a receive over costs a reduction.
        Op::LoopRecEnd { .. } | Op::Wait { .. } | Op::WaitTimeout { .. } => {}
        Op::Catch { handler, .. } | Op::Try { handler, .. } => f(*handler),
        _ => op.for_each_label(f),
    }
}
