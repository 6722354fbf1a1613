//! Giving up literal areas: of purged code, of persistent terms that were replaced.
//!
//! A literal is shared by everything inside a VM that refers to it, so its area can be freed only when nothing does any more.
//! Nothing waits for that; it goes in **rounds**, one bunch of areas at a time:
//!
//! 1. The areas are marked ([`LiteralArea::leave`]): copies that begin now take their terms along instead of sharing them.
//! 2. *Seen*: every process is sent a question that does nothing. Who has answered is past every copy that began before the mark; a
//!    process that is made meanwhile gets its arguments by such a copy.
//! 3. *Copied*: every process is sent a request to copy what it still refers to into its heap, its messages included. What
//!    came to it before is before the request in its queue. It also tells whether it runs purged code.
//! 4. The areas are freed, unless a process runs the code, or a dirty native runs (its process may have died and its
//!    arguments be such literals): then they wait for the next time.
//!
//! The last answer to a round begins the next one, on whichever worker gave it; a process that dies answers by dropping the request.
//! What lives outside processes holds no shared literals: tables, timers, tags of monitors, the reason that a dying process tells,
//! processes written in Rust ([`Carried::own`](crate::process::Carried::own)).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use beamr_term::{Leaving, LiteralArea, Word, atoms};

use crate::code::{Image, old_code};
use crate::gc;
use crate::process::{Carried, Outstanding, Own, ProcId, Process};
use crate::rt::ProcessSide;
use crate::signal::request::{Request, RequestKind};
use crate::signal::{Signal, push_proc};
use crate::vm::Vm;

/// What is given up.
pub(crate) enum Held {
    /// A term's own area.
    Area(LiteralArea),
    /// Purged code.
    Image(Arc<Image>),
}

impl Held {
    fn leave(&self) {
        match self {
            Held::Area(a) => a.leave(),
            Held::Image(i) => i.literal_areas().for_each(LiteralArea::leave),
        }
    }
}

#[derive(Default)]
struct State {
    /// For the next bunch.
    waiting: Vec<Held>,
    running: Vec<Held>,
    busy: bool,
}

/// The areas of a VM that are being given up.
#[derive(Default)]
pub(crate) struct Literals(Mutex<State>);

impl std::fmt::Debug for Literals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Literals")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Seen,
    Copied,
}

/// Held by every request of a round; the last one ends it.
struct Round {
    vm: Weak<Vm>,
    step: Step,
    /// Code that must not be in use.
    images: Vec<Arc<Image>>,
    in_use: AtomicBool,
}

impl Drop for Round {
    fn drop(&mut self) {
        if let Some(vm) = self.vm.upgrade()
            && !vm.stopping.load(Ordering::Acquire)
        {
            self.images.clear();
            vm.round_ended(self.step, *self.in_use.get_mut());
        }
    }
}

impl Vm {
    /// Frees the area of a term that nobody can find any more, once no process refers to it.
    pub fn give_up(self: &Arc<Vm>, area: LiteralArea) {
        self.give_up_held(vec![Held::Area(area)]);
    }
    /// Frees code that was purged, once no process refers to its literals.
    pub fn give_up_purged(self: &Arc<Vm>) {
        let images = self.server.take_purged();
        if !images.is_empty() {
            self.give_up_held(images.into_iter().map(Held::Image).collect());
        }
    }
    fn give_up_held(self: &Arc<Vm>, held: Vec<Held>) {
        {
            let mut s = self.literals.0.lock().unwrap_or_else(|e| e.into_inner());
            s.waiting.extend(held);
        }
        self.next_bunch();
    }
    /// Whether areas are being given up (for tests and `erts_debug`).
    pub fn gives_up_literals(&self) -> bool {
        let s = self.literals.0.lock().unwrap_or_else(|e| e.into_inner());
        s.busy
    }
    fn next_bunch(self: &Arc<Vm>) {
        {
            let mut s = self.literals.0.lock().unwrap_or_else(|e| e.into_inner());
            if s.busy || s.waiting.is_empty() {
                return;
            }
            s.busy = true;
            s.running = std::mem::take(&mut s.waiting);
            s.running.iter().for_each(Held::leave);
        }
        self.round(Step::Seen);
    }
    fn round(self: &Arc<Vm>, step: Step) {
        let images = {
            let s = self.literals.0.lock().unwrap_or_else(|e| e.into_inner());
            let images = s.running.iter().filter_map(|h| match h {
                Held::Image(i) => Some(i.clone()),
                Held::Area(_) => None,
            });
            images.collect()
        };
        let round = Arc::new(Round {
            vm: Arc::downgrade(self),
            step,
            images,
            in_use: AtomicBool::new(false),
        });
        let w = self.guest();
        let all: Vec<ProcId> = {
            let guard = w.participant.pin();
            let ids = self.processes.iter(&guard);
            ids.map(|(id, _)| ProcId::local(id.as_u64())).collect()
        };
        for to in all {
            let mine = round.clone();
            let side = self.side.clone();
            let kind = match step {
                Step::Seen => RequestKind::Call(Box::new(move |_, _| {
                    drop(mine);
                    Word::TRUE
                })),
                Step::Copied => RequestKind::Call(Box::new(move |t, _| {
                    let uses = mine.images.iter().any(|i| {
                        // SAFETY: the process is at rest in the hands of its runner.
                        unsafe { old_code::runs_in(&t.process.body, i) }
                    });
                    if uses {
                        mine.in_use.store(true, Ordering::Release);
                    }
                    let dies = copy_out(t.process, t.own, &side);
                    if dies && let Some(vm) = mine.vm.upgrade() {
                        vm.exit(t.process.body.pid, Carried::immediate(atoms::KILL));
                    }
                    drop(mine);
                    Word::TRUE
                })),
            };
            let request = Request {
                from: None,
                id: 0,
                kind,
            };
            // Nobody there: the request is dropped.
            let _ = push_proc(&w, to, Signal::Request(Box::new(request)));
        }
    }
    fn round_ended(self: &Arc<Vm>, step: Step, in_use: bool) {
        if step == Step::Seen {
            return self.round(Step::Copied);
        }
        let again = in_use || self.dirty.running() > 0;
        let gone = {
            let mut s = self.literals.0.lock().unwrap_or_else(|e| e.into_inner());
            s.busy = false;
            let held = std::mem::take(&mut s.running);
            if again {
                s.waiting.extend(held);
                return;
            }
            held
        };
        for h in gone {
            match h {
                Held::Area(area) => drop(area),
                Held::Image(image) => self.forget_image(image),
            }
        }
        self.next_bunch();
    }
    /// No process refers to this code any more.
    fn forget_image(&self, image: Arc<Image>) {
        let instances = self.server.take_instances(image.id);
        for i in &instances {
            if let Some(n) = self.namespace(i.namespace) {
                n.modules.forget(i);
            }
        }
        // Readers of the array of instances are past this: they ran the code.
        drop(instances);
        drop(image);
    }
}

/// Copies what a process at rest refers to out of the areas that are being given up. True when its heap is too large then
/// and it must die.
fn copy_out(process: &mut Process, own: &mut Own, side: &Arc<dyn ProcessSide>) -> bool {
    let Some(areas) = Leaving::now() else {
        return false;
    };
    own.mailbox.own_literals(areas);
    if let Some(o) = &mut own.outstanding
        && let Outstanding::Done(Some(answer)) = &mut **o
        && answer.refers(areas)
    {
        *answer = Carried::copy(answer.term);
    }
    let mut owner: &dyn ProcessSide = &**side;
    // SAFETY: the process is at rest in the hands of its runner: its live registers are in `args`; the areas are alive.
    unsafe {
        let body = &mut process.body;
        if gc::refers_to_literals(body, &mut owner, &mut [], areas) {
            let report = gc::collect_literals(body, &mut owner, &mut [], areas);
            if std::mem::take(&mut body.over_limit) && report.over_limit && process.max_heap.kill {
                return true;
            }
        }
    }
    false
}
