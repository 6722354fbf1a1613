//! What machine code calls: the runtime helpers under C's calling convention. A panic ends the process, not the VM.

use beamr_abi::{Ctx, ErrorInfo, Escape, NativeEntry, Raise, Regs};
use beamr_term::{Atom, Build, Word, arith, atoms, order};
use beamr_vm::engine::{CodePos, stop};
use beamr_vm::rt::{self, Step, WaitOutcome, plain_error};

/// `Step::pos` of a helper after which the code goes on with the value in `Step::code`.
pub const GO_ON: usize = 1;
/// The same: the fail label is next.
pub const FAIL: usize = 2;
/// In the live count of [`fun`]: an exception was raised, the position is that of its handler.
pub const RAISED_BIT: u8 = 32;

pub fn go_on(value: u64) -> Step {
    Step {
        pos: GO_ON as CodePos,
        code: value as usize,
    }
}

/// Runs a helper.
unsafe fn guard(regs: *mut Regs, f: impl FnOnce(&mut Regs) -> Step) -> Step {
    let run = std::panic::AssertUnwindSafe(|| f(&mut *regs));
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        rt::panicked(&mut (*regs).ctx);
        Step::stop(stop::EXITED)
    })
}

pub unsafe extern "C" fn collect(regs: *mut Regs, words: usize, live: usize) -> Step {
    guard(regs, |r| match rt::collect(r, words, live) {
        Ok(()) => go_on(0),
        Err(pos) => Step::go(pos),
    })
}

/// The process goes on at `pos` with `live` X registers.
pub unsafe extern "C" fn suspend(regs: *mut Regs, pos: CodePos, live: usize) -> Step {
    guard(regs, |r| {
        let Regs { x, ctx, .. } = r;
        ctx.body().ip = pos;
        ctx.body().args.save(&x[..live]);
        go_on(0)
    })
}

/// A null export slot.
pub unsafe extern "C" fn export(regs: *mut Regs, ip: CodePos, id: usize, arity: usize) -> Step {
    guard(regs, |r| {
        let t = rt::export_or_undefined(r, ip, id as u32, arity);
        Step {
            pos: t.pos,
            code: t.live,
        }
    })
}

/// What a fun leads to.
pub unsafe extern "C" fn fun(regs: *mut Regs, ip: CodePos, fun: Word, arity: usize) -> Step {
    guard(regs, |r| {
        let callable = rt::is_callable(fun, arity);
        let t = if callable {
            rt::fun_target(r, ip, fun, arity)
        } else {
            rt::late_fun(r, ip, fun, arity)
        };
        let raised = !callable && (t.pos.is_null() || r.x[0].is_none());
        Step {
            pos: t.pos,
            code: t.live | usize::from(raised) << RAISED_BIT,
        }
    })
}

pub unsafe extern "C" fn fun_entry(regs: *mut Regs, image: u32, lambda: u32) -> Step {
    guard(regs, |r| {
        go_on(rt::fun_entry(&mut r.ctx, image, lambda) as usize as u64)
    })
}

pub unsafe extern "C" fn native(
    regs: *mut Regs,
    ip: CodePos,
    entry: &'static NativeEntry,
    after: CodePos,
) -> Step {
    guard(regs, |r| {
        let Regs { x, ctx, .. } = r;
        let arity = entry.arity as usize;
        ctx.body().ip = ip;
        if rt::is_dirty(entry) {
            if !after.is_null() {
                let stack = &mut ctx.heap().stop;
                *stack = stack.sub(1);
                **stack = after as usize as u64;
            }
            ctx.body().args.save(&x[..arity]);
            return Step::stop(std::ptr::from_ref(entry) as usize);
        }
        match (entry.func)(ctx, &x[..arity]) {
            Ok(v) => {
                x[0] = v;
                match rt::settle(r, rt::polls(entry)) {
                    Ok(()) => go_on(0),
                    Err(pos) => Step::go(pos),
                }
            }
            Err(_) => rt::escape(r, ip, entry, after),
        }
    })
}

/// Where arguments of guard BIFs are: beyond what code uses.
pub const BIF_ARGS: usize = 1000;

pub unsafe extern "C" fn bif(
    regs: *mut Regs,
    ip: CodePos,
    entry: &'static NativeEntry,
    live: usize,
    fails: bool,
) -> Step {
    guard(regs, |r| {
        let Regs { x, ctx, .. } = r;
        let args = BIF_ARGS..BIF_ARGS + entry.arity as usize;
        match (entry.func)(ctx, &x[args.clone()]) {
            Ok(v) => {
                if live < BIF_ARGS && ctx.heap().gc_wanted {
                    x[live] = v;
                    if let Err(pos) = rt::collect(r, 0, live + 1) {
                        return Step::go(pos);
                    }
                    return go_on(r.x[live].bits());
                }
                go_on(v.bits())
            }
            Err(_) => {
                let pending = ctx.take_pending();
                if fails {
                    return Step {
                        pos: FAIL as CodePos,
                        code: 0,
                    };
                }
                let beamr_abi::Pending::Raise(raise) = pending else {
                    return Step::stop(stop::EXITED);
                };
                let args = x[args].to_vec();
                Step::go(rt::raise(r, ip, raise, Some(entry), Some(&args)))
            }
        }
    })
}

static ADD: NativeEntry = NativeEntry::new("erlang", "+", 2, never);
static SUB: NativeEntry = NativeEntry::new("erlang", "-", 2, never);
pub static BANG: NativeEntry =
    NativeEntry::new("erlang", "!", 2, bang).needs(beamr_abi::Capability::Spawn);

fn never(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.badarg())
}
fn bang(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match rt::send(ctx, args[0], args[1]) {
        Ok(()) => Ok(args[1]),
        Err(pending) => Err(ctx.escape(pending)),
    }
}

/// `+` or `-` of what is not small; the result may want a collection, which the next allocation makes.
pub unsafe extern "C" fn sum(regs: *mut Regs, ip: CodePos, add: bool, a: Word, b: Word) -> Step {
    guard(regs, |r| {
        let release = r.ctx.tables().release;
        let (result, entry) = if add {
            (arith::add(&mut r.ctx, release, a, b), &ADD)
        } else {
            (arith::sub(&mut r.ctx, release, a, b), &SUB)
        };
        match result {
            Ok(v) => go_on(v.bits()),
            Err(e) => {
                let reason = match e {
                    arith::ArithError::Badarith => atoms::BADARITH,
                    arith::ArithError::SystemLimit => atoms::SYSTEM_LIMIT,
                };
                let raise = Raise {
                    own_frame: true,
                    info: ErrorInfo::Default,
                    ..plain_error(reason.word())
                };
                Step::go(rt::raise(r, ip, raise, Some(entry), Some(&[a, b])))
            }
        }
    })
}

pub unsafe extern "C" fn equal(regs: *mut Regs, a: Word, b: Word) -> Step {
    guard(regs, |r| {
        go_on(u64::from(order::eq_exact(a, b, r.ctx.tables())))
    })
}

pub unsafe extern "C" fn less(regs: *mut Regs, a: Word, b: Word) -> Step {
    guard(regs, |r| {
        go_on(u64::from(order::compare(a, b, r.ctx.tables()).is_lt()))
    })
}

pub const TAGGED: [Atom; 3] = [atoms::BADMATCH, atoms::CASE_CLAUSE, atoms::TRY_CLAUSE];

pub unsafe extern "C" fn tagged(regs: *mut Regs, ip: CodePos, which: usize, value: Word) -> Step {
    guard(regs, |r| {
        let reason = r.ctx.tuple(&[TAGGED[which].word(), value]);
        Step::go(rt::raise(r, ip, plain_error(reason), None, None))
    })
}

pub unsafe extern "C" fn reraise(regs: *mut Regs, ip: CodePos, value: Word, trace: Word) -> Step {
    guard(regs, |r| Step::go(rt::reraise(r, ip, value, trace)))
}

pub unsafe extern "C" fn if_clause(regs: *mut Regs, ip: CodePos) -> Step {
    guard(regs, |r| {
        let raise = plain_error(atoms::IF_CLAUSE.word());
        Step::go(rt::raise(r, ip, raise, None, None))
    })
}

pub unsafe extern "C" fn function_clause(regs: *mut Regs, ip: CodePos, arity: usize) -> Step {
    guard(regs, |r| {
        let args = r.x[..arity].to_vec();
        let raise = plain_error(atoms::FUNCTION_CLAUSE.word());
        Step::go(rt::raise(r, ip, raise, None, Some(&args)))
    })
}

unsafe fn settled(r: &mut Regs) -> Step {
    match rt::settle(r, false) {
        Ok(()) => go_on(0),
        Err(pos) => Step::go(pos),
    }
}

pub unsafe extern "C" fn catch_value(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        r.x[0] = rt::catch_value(r);
        settled(r)
    })
}

pub unsafe extern "C" fn stacktrace(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        let raw = r.x[0];
        r.x[0] = rt::build_stacktrace(&mut r.ctx, raw);
        settled(r)
    })
}

/// The value says whether there is a message.
pub unsafe extern "C" fn loop_rec(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        if r.ctx.heap().gc_wanted
            && let Err(pos) = rt::collect(r, 0, 0)
        {
            return Step::go(pos);
        }
        match rt::loop_rec(r) {
            Ok(Some(message)) => {
                r.x[0] = message;
                go_on(1)
            }
            Ok(None) => go_on(0),
            Err(pos) => Step::go(pos),
        }
    })
}

pub unsafe extern "C" fn loop_rec_end(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        rt::loop_rec_end(&mut r.ctx);
        go_on(0)
    })
}

pub unsafe extern "C" fn remove_message(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        rt::remove_message(&mut r.ctx);
        go_on(0)
    })
}

pub unsafe extern "C" fn timeout(regs: *mut Regs) -> Step {
    guard(regs, |r| {
        rt::timeout(&mut r.ctx);
        go_on(0)
    })
}

/// The value says whether the loop starts over at once.
pub unsafe extern "C" fn wait(regs: *mut Regs, retry: CodePos) -> Step {
    guard(regs, |r| {
        r.ctx.body().ip = retry;
        r.ctx.body().args.save(&[]);
        match rt::wait(&mut r.ctx) {
            WaitOutcome::Sleep => Step::stop(stop::WAITING),
            _ => go_on(1),
        }
    })
}

/// The same; 0 when the time is over.
pub unsafe extern "C" fn wait_timeout(
    regs: *mut Regs,
    retry: CodePos,
    time: Word,
    ip: CodePos,
) -> Step {
    guard(regs, |r| {
        r.ctx.body().ip = retry;
        r.ctx.body().args.save(&[]);
        match rt::wait_timeout(&mut r.ctx, time) {
            WaitOutcome::Sleep => Step::stop(stop::WAITING),
            WaitOutcome::TimedOut => go_on(0),
            WaitOutcome::BadTimeout => {
                let raise = plain_error(atoms::TIMEOUT_VALUE.word());
                Step::go(rt::raise(r, ip, raise, None, None))
            }
            _ => go_on(1),
        }
    })
}
