//! The process registered as `init` in a bare start: answers what library code asks of OTP's `init` (its
//! arguments, its status, to stop). A process written in Rust; OTP's own `init` runs in an OTP boot.

use std::sync::{Arc, Weak};

use beamr_abi::Ctx;
use beamr_term::{Build, Word, atoms, text};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::rt;
use beamr_vm::vm::{Halt, Vm};

/// A flag with its values.
pub type Flag = (String, Vec<String>);

/// See the module.
pub struct InitServer {
    vm: Weak<Vm>,
    flags: Vec<Flag>,
    plain: Vec<String>,
}

impl InitServer {
    /// A server that tells these flags and plain arguments.
    pub fn new(vm: &Arc<Vm>, flags: Vec<Flag>, plain: Vec<String>) -> InitServer {
        InitServer {
            vm: Arc::downgrade(vm),
            flags,
            plain,
        }
    }
    fn strings(ctx: &mut Ctx, list: &[String]) -> Word {
        let items: Vec<Word> = list.iter().map(|s| ctx.string(s)).collect();
        ctx.list(items)
    }
    fn atom(ctx: &mut Ctx, text: &str) -> Word {
        ctx.tables()
            .atoms
            .intern(text)
            .map_or(atoms::ERROR.word(), |a| a.word())
    }
    /// The answer to a request, or `None` for what needs none.
    fn answer(&self, ctx: &mut Ctx, request: Word) -> Option<Word> {
        let name = |ctx: &Ctx, w: Word| w.as_atom().map(|a| ctx.tables().atoms.text(a).to_owned());
        if let Some(r) = name(ctx, request) {
            return Some(match r.as_str() {
                "get_arguments" => {
                    let mut items = Vec::new();
                    for (flag, values) in &self.flags {
                        let (f, v) = (Self::atom(ctx, flag), Self::strings(ctx, values));
                        items.push(ctx.tuple(&[f, v]));
                    }
                    ctx.list(items)
                }
                "get_plain_arguments" => Self::strings(ctx, &self.plain),
                "get_status" => {
                    let started = Self::atom(ctx, "started");
                    ctx.tuple(&[started, started])
                }
                "script_id" => {
                    let (a, b) = (ctx.string("beamr"), ctx.string(env!("CARGO_PKG_VERSION")));
                    ctx.tuple(&[a, b])
                }
                "fetch_loaded" => Word::NIL,
                _ => atoms::ERROR.word(),
            });
        }
        let Some([kind, value]) = request.as_tuple() else {
            return Some(atoms::ERROR.word());
        };
        match name(ctx, *kind).as_deref() {
            Some("get_argument") => {
                let wanted = name(ctx, *value)?;
                let mut found = Vec::new();
                for (flag, values) in &self.flags {
                    if *flag == wanted {
                        found.push(Self::strings(ctx, values));
                    }
                }
                if found.is_empty() {
                    return Some(atoms::ERROR.word());
                }
                let l = ctx.list(found);
                Some(ctx.tuple(&[atoms::OK.word(), l]))
            }
            _ => Some(atoms::ERROR.word()),
        }
    }
    fn message(&self, ctx: &mut Ctx, m: Word) {
        match m.as_tuple() {
            Some([kind, reason])
                if kind
                    .as_atom()
                    .is_some_and(|a| ctx.tables().atoms.text(a) == "stop") =>
            {
                let status = match text::list_to_vec(*reason) {
                    _ if reason.as_small().is_some() => reason.small_value() as i32,
                    Some(_) => 1,
                    None => 0,
                };
                if let Some(vm) = self.vm.upgrade() {
                    vm.halt(Halt::Status(status), true);
                }
            }
            Some([from, request]) if from.is_pid() => {
                if let Some(a) = self.answer(ctx, *request) {
                    let reply = ctx.tuple(&[atoms::INIT.word(), a]);
                    // The asker may be gone.
                    let _ = rt::send(ctx, *from, reply);
                }
            }
            _ => {}
        }
    }
}

impl NativeProcess for InitServer {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        loop {
            match rt::next_message(ctx) {
                Err(_) => return NativeStep::Continue,
                Ok(None) => return NativeStep::Wait,
                Ok(Some(m)) => {
                    rt::remove_message(ctx);
                    self.message(ctx, m);
                }
            }
            if ctx.fcalls <= 0 || ctx.heap().gc_wanted {
                return NativeStep::Continue;
            }
        }
    }
}
