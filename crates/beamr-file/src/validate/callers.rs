//! Who calls whom inside the module, with match contexts or without.

use std::collections::VecDeque;

use super::Validated;
use super::state::Slot;
use crate::module::Module;
use crate::op::Op;

/// What is known of the arguments of each function, and of whom to look at.
pub(super) struct Callers {
    /// `None` as long as no call is known.
    pub params: Vec<Option<Vec<Slot>>>,
    pub queue: VecDeque<usize>,
    pub queued: Vec<bool>,
    /// For each instruction the first at or after it that is no label or line.
    pub skip: Vec<u32>,
}

impl Callers {
    pub fn new(module: &Module, v: &Validated) -> Callers {
        let instrs = &module.code.instrs;
        let mut skip: Vec<u32> = (0..instrs.len() as u32).collect();
        for i in (0..instrs.len().saturating_sub(1)).rev() {
            if matches!(instrs[i].op, Op::Label | Op::Line) {
                skip[i] = skip[i + 1];
            }
        }
        let mut callers = Callers {
            params: vec![None; v.functions.len()],
            queue: VecDeque::new(),
            queued: vec![false; v.functions.len()],
            skip,
        };
        let labels = module.exports.iter().map(|e| e.label);
        for label in labels.chain(module.lambdas.iter().map(|l| l.label)) {
            let at = v.labels[label as usize];
            let f = v.functions.partition_point(|f| f.first <= at) - 1;
            callers.root(f, v.functions[f].arity);
        }
        callers
    }

    /// A function is called from outside the module.
    pub fn root(&mut self, f: usize, arity: u8) {
        self.call(f, &vec![Slot::TERM; arity as usize]);
    }

    /// A function is called with arguments.
    pub fn call(&mut self, f: usize, args: &[Slot]) {
        let changed = match &mut self.params[f] {
            place @ None => {
                *place = Some(args.to_vec());
                true
            }
            Some(params) => {
                let mut changed = false;
                for (param, arg) in params.iter_mut().zip(args) {
                    let joined = param.join(*arg);
                    changed |= joined != *param;
                    *param = joined;
                }
                changed
            }
        };
        if changed && !std::mem::replace(&mut self.queued[f], true) {
            self.queue.push_back(f);
        }
    }
}
