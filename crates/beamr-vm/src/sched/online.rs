//! How many workers run processes: `schedulers_online`, and the blocks of `multi_scheduling`.
//!
//! Workers are counted from the first; those beyond [`Online::active`] run no process. They fire the timers of
//! their wheels (which may make processes runnable), give what lies in their queues to the others, and sleep. Who
//! changes the number waits until the workers that are to rest do so ([`Online::at_rest`]).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::process::{Own, ProcId};
use crate::vm::Vm;

/// In [`Own::owned_resources`]: the process blocks multi-scheduling.
pub const BLOCKS: u32 = 1 << 31;

#[derive(Debug, Default)]
struct Blockers {
    /// Who blocks everything (`block`), and only normal schedulers (`block_normal`), and how often.
    all: Vec<(ProcId, bool, u32)>,
}

/// See the module.
#[derive(Debug)]
pub struct Online {
    active: AtomicUsize,
    online: AtomicUsize,
    blockers: Mutex<Blockers>,
    /// Workers that run no process now because they may not.
    rests: Box<[AtomicBool]>,
}

impl Online {
    pub(crate) fn new(workers: usize) -> Online {
        Online {
            active: AtomicUsize::new(workers.max(1)),
            online: AtomicUsize::new(workers.max(1)),
            blockers: Mutex::default(),
            rests: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        }
    }
    /// How many workers may run processes.
    #[inline]
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }
    /// `schedulers_online`.
    pub fn online(&self) -> usize {
        self.online.load(Ordering::Acquire)
    }
    /// Notes that a worker runs processes, or does not.
    pub(crate) fn note(&self, worker: usize, rests: bool) {
        if self.rests[worker].load(Ordering::Relaxed) != rests {
            self.rests[worker].store(rests, Ordering::Release);
        }
    }
    /// Whether every worker that is to rest does.
    pub fn at_rest(&self) -> bool {
        self.rests
            .iter()
            .skip(self.active())
            .all(|r| r.load(Ordering::Acquire))
    }
    fn settle(&self, vm: &Vm, blockers: &Blockers) {
        let n = if blockers.all.is_empty() {
            self.online.load(Ordering::Acquire)
        } else {
            1
        };
        self.active.store(n, Ordering::Release);
        vm.idle.wake_all();
    }
    /// Sets how many workers are online: the number before. The number is in range.
    pub fn set_online(&self, vm: &Vm, n: usize) -> usize {
        let b = self.blockers.lock().unwrap_or_else(|e| e.into_inner());
        let before = self.online.swap(n, Ordering::AcqRel);
        self.settle(vm, &b);
        before
    }
    /// A process blocks multi-scheduling once more.
    pub fn block(&self, vm: &Vm, own: &mut Own, pid: ProcId, normal: bool) {
        own.owned_resources |= BLOCKS;
        let mut b = self.blockers.lock().unwrap_or_else(|e| e.into_inner());
        match b.all.iter_mut().find(|e| e.0 == pid && e.1 == normal) {
            Some(e) => e.2 += 1,
            None => b.all.push((pid, normal, 1)),
        }
        self.settle(vm, &b);
    }
    /// Takes one block of a process back; without one nothing happens.
    pub fn unblock(&self, vm: &Vm, pid: ProcId, normal: bool) {
        let mut b = self.blockers.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(i) = b.all.iter().position(|e| e.0 == pid && e.1 == normal) {
            b.all[i].2 -= 1;
            if b.all[i].2 == 0 {
                b.all.remove(i);
            }
        }
        self.settle(vm, &b);
    }
    /// A process that blocked has died.
    pub(crate) fn ended(&self, vm: &Vm, pid: ProcId) {
        let mut b = self.blockers.lock().unwrap_or_else(|e| e.into_inner());
        b.all.retain(|e| e.0 != pid);
        self.settle(vm, &b);
    }
    /// Who blocks; `normal` says with which of the two kinds.
    pub fn blockers(&self, normal: bool) -> Vec<ProcId> {
        let b = self.blockers.lock().unwrap_or_else(|e| e.into_inner());
        b.all
            .iter()
            .filter(|e| e.1 == normal)
            .map(|e| e.0)
            .collect()
    }
}
