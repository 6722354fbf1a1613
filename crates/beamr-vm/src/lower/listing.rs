//! Lowered code as text, for tests and `beamr inspect --lowered`.
//!
//! One op a line: its name, its operands in the order of [`Op`], then ` -> ` and what it writes, then
//! ` else L3` for a fail label. `!` behind the name marks a checked read. Constants are written as Erlang does,
//! literals by their index (`lit2`), which the head of the listing shows.

use std::fmt::{self, Display, Formatter, Write};

use beamr_term::format::{FormatLimit, format_term};
use beamr_term::{ExportId, Tables, Word};

use super::Lowered;
use super::op::*;

/// A lowered module that can be displayed.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    lowered: &'a Lowered,
    tables: &'a Tables,
}

impl<'a> Listing<'a> {
    /// The listing of a module; `tables` are those that it was lowered with.
    pub fn new(lowered: &'a Lowered, tables: &'a Tables) -> Listing<'a> {
        Listing { lowered, tables }
    }
    /// A term, cut when it is long.
    fn term(&self, w: Word) -> String {
        let limit = FormatLimit::items(100);
        String::from_utf8_lossy(&format_term(self.tables, w, limit)).into_owned()
    }
    /// One op as a line without its end.
    pub fn op(&self, op: &'a Op) -> impl Display + 'a {
        OpText { list: *self, op }
    }
}

impl Display for Listing<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let l = self.lowered;
        let text = |a| self.tables.atoms.text(a);
        writeln!(
            f,
            "module {}{}",
            text(l.module),
            if l.trusted { " trusted" } else { "" }
        )?;
        for (name, arity, label) in &l.exports {
            writeln!(f, "export {}/{arity} L{label}", text(*name))?;
        }
        for (i, x) in l.lambdas.iter().enumerate() {
            let name = text(x.function);
            writeln!(
                f,
                "lambda {i} {name}/{} L{} free {}",
                x.arity, x.entry, x.num_free
            )?;
        }
        for (i, h) in l.handlers.iter().enumerate() {
            writeln!(f, "handler {i} L{h}")?;
        }
        for (i, w) in l.literals.iter().enumerate() {
            writeln!(f, "literal {i} {}", self.term(*w))?;
        }
        for w in &l.records {
            writeln!(f, "record {}", self.term(*w))?;
        }
        if let Some(label) = l.on_load {
            writeln!(f, "on_load L{label}")?;
        }
        for op in &l.code {
            match op {
                Op::Label(_) | Op::FuncInfo { .. } => writeln!(f, "{}", self.op(op))?,
                _ => writeln!(f, "  {}", self.op(op))?,
            }
        }
        Ok(())
    }
}

struct OpText<'a> {
    list: Listing<'a>,
    op: &'a Op,
}

/// An operand.
#[derive(Clone, Copy)]
enum A<'a> {
    S(Src),
    R(Reg),
    W(Word),
    F(u16),
    N(u64),
    Size(SegSize),
    Flags(BitFlags),
    Text(&'a str),
}

impl OpText<'_> {
    fn word(&self, f: &mut Formatter<'_>, w: Word) -> fmt::Result {
        if let Some(i) = w.as_small() {
            return write!(f, "{i}");
        }
        if let Some(a) = w.as_atom() {
            return atom(f, self.list.tables.atoms.text(a));
        }
        if w.is_nil() {
            return f.write_str("[]");
        }
        match self.list.lowered.literals.iter().position(|l| *l == w) {
            Some(i) => write!(f, "lit{i}"),
            None => f.write_str(&self.list.term(w)),
        }
    }
    fn arg(&self, f: &mut Formatter<'_>, a: A<'_>) -> fmt::Result {
        match a {
            A::S(Src::X(n)) | A::R(Reg::X(n)) => write!(f, "x{n}"),
            A::S(Src::Y(n)) | A::R(Reg::Y(n)) => write!(f, "y{n}"),
            A::S(Src::Const(w)) | A::W(w) => self.word(f, w),
            A::F(n) => write!(f, "fr{n}"),
            A::N(n) => write!(f, "{n}"),
            A::Size(SegSize::All) => f.write_str("all"),
            A::Size(SegSize::Undefined) => f.write_str("undefined"),
            A::Size(SegSize::Term(s)) => self.arg(f, A::S(s)),
            A::Flags(b) => {
                f.write_str(if b.little { "little" } else { "big" })?;
                f.write_str(if b.signed { "/signed" } else { "" })
            }
            A::Text(t) => f.write_str(t),
        }
    }
    /// `name a b -> dst else L1`.
    fn plain(
        &self,
        f: &mut Formatter<'_>,
        name: &str,
        args: &[A<'_>],
        dst: Option<Reg>,
        fail: Label,
    ) -> fmt::Result {
        self.args(f, name, args)?;
        self.tail(f, dst, fail)
    }
    fn args(&self, f: &mut Formatter<'_>, name: &str, args: &[A<'_>]) -> fmt::Result {
        f.write_str(name)?;
        for a in args {
            f.write_char(' ')?;
            self.arg(f, *a)?;
        }
        Ok(())
    }
    fn tail(&self, f: &mut Formatter<'_>, dst: Option<Reg>, fail: Label) -> fmt::Result {
        if let Some(r) = dst {
            f.write_str(" -> ")?;
            self.arg(f, A::R(r))?;
        }
        if fail != NO_LABEL {
            write!(f, " else L{fail}")?;
        }
        Ok(())
    }
    fn list<'b>(
        &self,
        f: &mut Formatter<'_>,
        items: impl Iterator<Item = (Option<A<'b>>, A<'b>)>,
    ) -> fmt::Result {
        f.write_str(" {")?;
        for (i, (key, value)) in items.enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if let Some(k) = key {
                self.arg(f, k)?;
                f.write_str(": ")?;
            }
            self.arg(f, value)?;
        }
        f.write_char('}')
    }
    fn mfa(&self, f: &mut Formatter<'_>, id: ExportId) -> fmt::Result {
        match self.list.tables.exports.mfa(id) {
            Some((m, n, a)) => {
                atom(f, self.list.tables.atoms.text(m))?;
                f.write_char(':')?;
                atom(f, self.list.tables.atoms.text(n))?;
                write!(f, "/{a}")
            }
            None => write!(f, "export#{id}"),
        }
    }
    fn kind(&self, f: &mut Formatter<'_>, kind: CallKind) -> fmt::Result {
        match kind {
            CallKind::Body => Ok(()),
            CallKind::Last(n) => write!(f, " last {n}"),
            CallKind::Only => f.write_str(" only"),
        }
    }
}

/// An atom as Erlang writes it, as far as a listing needs it.
fn atom(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let bare = text.chars().next().is_some_and(|c| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@');
    if bare {
        f.write_str(text)
    } else {
        write!(f, "'{}'", text.escape_debug())
    }
}

fn name(base: &str, checked: bool) -> String {
    format!("{base}{}", if checked { "!" } else { "" })
}

fn snake(debug: &str) -> String {
    let mut out = String::new();
    for c in debug.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

impl Display for OpText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let l = self.list.lowered;
        match self.op {
            Op::Label(n) => write!(f, "L{n}:"),
            Op::FuncInfo { function } => match l.functions.get(*function as usize) {
                Some(x) => {
                    f.write_str("func_info ")?;
                    atom(f, self.list.tables.atoms.text(x.name))?;
                    write!(f, "/{}", x.arity)
                }
                None => write!(f, "func_info #{function}"),
            },
            Op::Line(n) => match l.locations.get(*n as usize) {
                Some(at) if *n != 0 && at.file == 0 => write!(f, "line {}", at.line),
                Some(at) if *n != 0 => {
                    let file = l.files.get(at.file as usize).map_or("?", |s| s);
                    write!(f, "line {file}:{}", at.line)
                }
                _ => f.write_str("line -"),
            },
            Op::Jump(n) => write!(f, "jump L{n}"),
            Op::Call {
                target,
                arity,
                kind,
            } => {
                write!(f, "call L{target}/{arity}")?;
                self.kind(f, *kind)
            }
            Op::CallExt { export, kind, .. } => {
                f.write_str("call_ext ")?;
                self.mfa(f, *export)?;
                self.kind(f, *kind)
            }
            Op::CallNative { export, kind, .. } => {
                f.write_str("call_native ")?;
                self.mfa(f, *export)?;
                self.kind(f, *kind)
            }
            Op::CallFun { arity, kind } => {
                write!(f, "call_fun /{arity}")?;
                self.kind(f, *kind)
            }
            Op::CallFun2 {
                arity,
                fun,
                safe,
                kind,
            } => {
                let safe = if *safe { " safe" } else { "" };
                self.args(f, "call_fun2", &[A::S(*fun)])?;
                write!(f, "/{arity}{safe}")?;
                self.kind(f, *kind)
            }
            Op::Apply { arity, kind } => {
                write!(f, "apply /{arity}")?;
                self.kind(f, *kind)
            }
            Op::Return => f.write_str("return"),
            Op::Allocate { slots, heap, live } => {
                write!(f, "allocate {slots} heap {heap} live {live}")
            }
            Op::Deallocate { slots } => write!(f, "deallocate {slots}"),
            Op::Trim { words, remaining } => write!(f, "trim {words} remaining {remaining}"),
            Op::TestHeap { words, live } => write!(f, "test_heap {words} live {live}"),
            Op::InitY(slots) => {
                f.write_str("init")?;
                slots.iter().try_for_each(|y| write!(f, " y{y}"))
            }
            Op::Move { src, dst } => self.plain(f, "move", &[A::S(*src)], Some(*dst), NO_LABEL),
            Op::Swap { a, b } => self.plain(f, "swap", &[A::R(*a), A::R(*b)], None, NO_LABEL),
            Op::GetHd { src, dst, checked } => self.plain(
                f,
                &name("get_hd", *checked),
                &[A::R(*src)],
                Some(*dst),
                NO_LABEL,
            ),
            Op::GetTl { src, dst, checked } => self.plain(
                f,
                &name("get_tl", *checked),
                &[A::R(*src)],
                Some(*dst),
                NO_LABEL,
            ),
            Op::GetList {
                src,
                head,
                tail,
                checked,
            } => {
                self.args(
                    f,
                    &name("get_list", *checked),
                    &[A::R(*src), A::Text("->"), A::R(*head)],
                )?;
                self.args(f, "", &[A::R(*tail)])
            }
            Op::PutList { head, tail, dst } => self.plain(
                f,
                "put_list",
                &[A::S(*head), A::S(*tail)],
                Some(*dst),
                NO_LABEL,
            ),
            Op::GetTupleElement {
                src,
                index,
                dst,
                checked,
            } => self.plain(
                f,
                &name("get_tuple_element", *checked),
                &[A::R(*src), A::N(u64::from(*index))],
                Some(*dst),
                NO_LABEL,
            ),
            Op::PutTuple { elements, dst } => {
                f.write_str("put_tuple")?;
                self.list(f, elements.iter().map(|e| (None, A::S(*e))))?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            Op::SetTupleElement {
                value,
                tuple,
                index,
                checked,
            } => self.plain(
                f,
                &name("set_tuple_element", *checked),
                &[A::S(*value), A::R(*tuple), A::N(u64::from(*index))],
                None,
                NO_LABEL,
            ),
            Op::UpdateRecord {
                hint,
                size,
                src,
                dst,
                updates,
                checked,
            } => {
                let hint = snake(&format!("{hint:?}"));
                self.args(
                    f,
                    &name("update_record", *checked),
                    &[A::Text(&hint), A::S(*src), A::N(u64::from(*size))],
                )?;
                self.list(
                    f,
                    updates
                        .iter()
                        .map(|(i, s)| (Some(A::N(u64::from(*i))), A::S(*s))),
                )?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            Op::MakeFun { lambda, dst, env } => {
                write!(f, "make_fun {lambda}")?;
                self.list(f, env.iter().map(|e| (None, A::S(*e))))?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            Op::Test { test, src, fail } => {
                let test = format!("is_{}", snake(&format!("{test:?}")));
                self.plain(f, &test, &[A::S(*src)], None, *fail)
            }
            Op::TestArity {
                src,
                arity,
                fail,
                checked,
            } => self.plain(
                f,
                &name("test_arity", *checked),
                &[A::S(*src), A::N(u64::from(*arity))],
                None,
                *fail,
            ),
            Op::IsTaggedTuple {
                src,
                arity,
                tag,
                fail,
            } => self.plain(
                f,
                "is_tagged_tuple",
                &[A::S(*src), A::N(u64::from(*arity)), A::W(*tag)],
                None,
                *fail,
            ),
            Op::IsFunction2 { src, arity, fail } => {
                self.plain(f, "is_function2", &[A::S(*src), A::S(*arity)], None, *fail)
            }
            Op::Compare { op, a, b, fail } => {
                let op = format!("is_{}", snake(&format!("{op:?}")));
                self.plain(f, &op, &[A::S(*a), A::S(*b)], None, *fail)
            }
            Op::SelectVal { src, fail, pairs } | Op::SelectTerm { src, fail, pairs } => {
                let term = matches!(self.op, Op::SelectTerm { .. });
                self.args(
                    f,
                    if term { "select_term" } else { "select_val" },
                    &[A::S(*src)],
                )?;
                let labels: Vec<String> = pairs.iter().map(|p| format!("L{}", p.1)).collect();
                self.list(
                    f,
                    pairs
                        .iter()
                        .zip(&labels)
                        .map(|(p, l)| (Some(A::W(p.0)), A::Text(l))),
                )?;
                self.tail(f, None, *fail)
            }
            Op::SelectArity {
                src,
                fail,
                pairs,
                checked,
            } => {
                self.args(f, &name("select_arity", *checked), &[A::S(*src)])?;
                let labels: Vec<String> = pairs.iter().map(|p| format!("L{}", p.1)).collect();
                self.list(
                    f,
                    pairs
                        .iter()
                        .zip(&labels)
                        .map(|(p, l)| (Some(A::N(u64::from(p.0))), A::Text(l))),
                )?;
                self.tail(f, None, *fail)
            }
            Op::HasMapFields {
                src,
                fail,
                keys,
                checked,
            } => {
                self.args(f, &name("has_map_fields", *checked), &[A::S(*src)])?;
                self.list(f, keys.iter().map(|k| (None, A::S(*k))))?;
                self.tail(f, None, *fail)
            }
            Op::GetMapElements {
                src,
                fail,
                pairs,
                checked,
            } => {
                self.args(f, &name("get_map_elements", *checked), &[A::S(*src)])?;
                self.list(f, pairs.iter().map(|(k, r)| (Some(A::S(*k)), A::R(*r))))?;
                self.tail(f, None, *fail)
            }
            Op::Arith {
                op,
                a,
                b,
                dst,
                live,
                fail,
                hints,
            } => {
                let base = snake(&format!("{op:?}"));
                let mut known = String::new();
                if hints.a_small {
                    known.push('a');
                }
                if hints.b_small {
                    known.push('b');
                }
                if hints.no_overflow {
                    known.push('o');
                }
                if !known.is_empty() {
                    known.insert(0, ':');
                }
                self.args(f, &format!("{base}{known}"), &[A::S(*a), A::S(*b)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::Negate {
                src,
                dst,
                live,
                fail,
            } => {
                self.args(f, "negate", &[A::S(*src)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::Bnot {
                src,
                dst,
                live,
                fail,
            } => {
                self.args(f, "bnot", &[A::S(*src)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::GuardBif {
                native,
                args,
                dst,
                live,
                fail,
            } => {
                write!(f, "bif {}:{}", native.module, native.function)?;
                args.iter().try_for_each(|a| {
                    f.write_char(' ')?;
                    self.arg(f, A::S(*a))
                })?;
                if let Some(live) = live {
                    write!(f, " live {live}")?;
                }
                self.tail(f, Some(*dst), *fail)
            }
            Op::UndefinedBif { export, args, fail } => {
                f.write_str("undefined_bif ")?;
                self.mfa(f, *export)?;
                args.iter().try_for_each(|a| {
                    f.write_char(' ')?;
                    self.arg(f, A::S(*a))
                })?;
                self.tail(f, None, *fail)
            }
            Op::FloatLoad { src, dst, checked } => self.plain(
                f,
                &name("float_load", *checked),
                &[A::S(*src), A::Text("->"), A::F(*dst)],
                None,
                NO_LABEL,
            ),
            Op::FloatConvert { src, dst } => self.plain(
                f,
                "float_convert",
                &[A::S(*src), A::Text("->"), A::F(*dst)],
                None,
                NO_LABEL,
            ),
            Op::FloatStore { src, dst } => {
                self.plain(f, "float_store", &[A::F(*src)], Some(*dst), NO_LABEL)
            }
            Op::FloatArith {
                op,
                a,
                b,
                dst,
                fail,
            } => self.plain(
                f,
                &format!("float_{}", snake(&format!("{op:?}"))),
                &[A::F(*a), A::F(*b), A::Text("->"), A::F(*dst)],
                None,
                *fail,
            ),
            Op::FloatNegate { a, dst, fail } => self.plain(
                f,
                "float_negate",
                &[A::F(*a), A::Text("->"), A::F(*dst)],
                None,
                *fail,
            ),
            Op::Catch { y, handler } => write!(f, "catch y{y} L{handler}"),
            Op::Try { y, handler } => write!(f, "try y{y} L{handler}"),
            Op::CatchEnd { y } => write!(f, "catch_end y{y}"),
            Op::TryEnd { y } => write!(f, "try_end y{y}"),
            Op::TryCase { y } => write!(f, "try_case y{y}"),
            Op::TryCaseEnd { src } => self.args(f, "try_case_end", &[A::S(*src)]),
            Op::RaiseOld { trace, value } => self.args(f, "raise", &[A::S(*trace), A::S(*value)]),
            Op::RawRaise => f.write_str("raw_raise"),
            Op::BuildStacktrace => f.write_str("build_stacktrace"),
            Op::Badmatch { src } => self.args(f, "badmatch", &[A::S(*src)]),
            Op::IfEnd => f.write_str("if_end"),
            Op::CaseEnd { src } => self.args(f, "case_end", &[A::S(*src)]),
            Op::BadRecord { src } => self.args(f, "badrecord", &[A::S(*src)]),
            Op::Send => f.write_str("send"),
            Op::LoopRec { empty } => write!(f, "loop_rec empty L{empty}"),
            Op::LoopRecEnd { next } => write!(f, "loop_rec_end L{next}"),
            Op::RemoveMessage => f.write_str("remove_message"),
            Op::Timeout => f.write_str("timeout"),
            Op::Wait { retry } => write!(f, "wait L{retry}"),
            Op::WaitTimeout { retry, timeout } => {
                self.args(f, "wait_timeout", &[A::S(*timeout)])?;
                write!(f, " L{retry}")
            }
            Op::MarkerReserve { dst } => self.plain(f, "marker_reserve", &[], Some(*dst), NO_LABEL),
            Op::MarkerBind { marker, reference } => {
                self.args(f, "marker_bind", &[A::S(*marker), A::S(*reference)])
            }
            Op::MarkerClear { reference } => self.args(f, "marker_clear", &[A::S(*reference)]),
            Op::MarkerUse { reference } => self.args(f, "marker_use", &[A::S(*reference)]),
            Op::PutMap {
                assoc,
                src,
                dst,
                live,
                pairs,
                fail,
            } => {
                let name = if *assoc {
                    "put_map_assoc"
                } else {
                    "put_map_exact"
                };
                self.args(f, name, &[A::S(*src)])?;
                self.list(f, pairs.iter().map(|(k, v)| (Some(A::S(*k)), A::S(*v))))?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsStartMatch {
                src,
                dst,
                live,
                fail,
            } => {
                self.args(f, "bs_start_match", &[A::S(*src)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsMatch {
                ctx,
                fail,
                commands,
                checked,
            } => {
                self.args(f, &name("bs_match", *checked), &[A::R(*ctx)])?;
                f.write_str(" {")?;
                for (i, c) in commands.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    self.command(f, c)?;
                }
                f.write_char('}')?;
                self.tail(f, None, *fail)
            }
            Op::BsGetInteger {
                ctx,
                live,
                size,
                unit,
                flags,
                dst,
                fail,
                checked,
            } => {
                let unit = A::N(u64::from(*unit));
                let args = [A::R(*ctx), A::Size(*size), unit, A::Flags(*flags)];
                self.args(f, &name("bs_get_integer", *checked), &args)?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsGetFloat {
                ctx,
                live,
                size,
                unit,
                flags,
                dst,
                fail,
                checked,
            } => {
                let unit = A::N(u64::from(*unit));
                let args = [A::R(*ctx), A::Size(*size), unit, A::Flags(*flags)];
                self.args(f, &name("bs_get_float", *checked), &args)?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsGetBinary {
                ctx,
                live,
                size,
                unit,
                dst,
                fail,
                checked,
            } => {
                let args = [A::R(*ctx), A::Size(*size), A::N(u64::from(*unit))];
                self.args(f, &name("bs_get_binary", *checked), &args)?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsSkipBits {
                ctx,
                size,
                unit,
                fail,
                checked,
            } => self.plain(
                f,
                &name("bs_skip_bits", *checked),
                &[A::R(*ctx), A::Size(*size), A::N(u64::from(*unit))],
                None,
                *fail,
            ),
            Op::BsTestTail {
                ctx,
                bits,
                fail,
                checked,
            } => self.plain(
                f,
                &name("bs_test_tail", *checked),
                &[A::R(*ctx), A::N(*bits)],
                None,
                *fail,
            ),
            Op::BsTestUnit {
                ctx,
                unit,
                fail,
                checked,
            } => self.plain(
                f,
                &name("bs_test_unit", *checked),
                &[A::R(*ctx), A::N(u64::from(*unit))],
                None,
                *fail,
            ),
            Op::BsMatchString {
                ctx,
                bits,
                bytes,
                fail,
                checked,
            } => {
                let text = format!("\"{}\"", bytes.escape_ascii());
                self.plain(
                    f,
                    &name("bs_match_string", *checked),
                    &[A::R(*ctx), A::N(*bits), A::Text(&text)],
                    None,
                    *fail,
                )
            }
            Op::BsGetUtf {
                kind,
                flags,
                ctx,
                dst,
                fail,
                checked,
            } => {
                let kind = snake(&format!("{kind:?}"));
                self.plain(
                    f,
                    &name("bs_get_utf", *checked),
                    &[A::Text(&kind), A::Flags(*flags), A::R(*ctx)],
                    *dst,
                    *fail,
                )
            }
            Op::BsGetPosition { ctx, dst, checked } => self.plain(
                f,
                &name("bs_get_position", *checked),
                &[A::R(*ctx)],
                Some(*dst),
                NO_LABEL,
            ),
            Op::BsSetPosition {
                ctx,
                position,
                checked,
            } => self.args(
                f,
                &name("bs_set_position", *checked),
                &[A::R(*ctx), A::S(*position)],
            ),
            Op::BsGetTail {
                ctx,
                dst,
                live,
                checked,
            } => {
                self.args(f, &name("bs_get_tail", *checked), &[A::R(*ctx)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            Op::BsCreateBin {
                heap,
                live,
                unit,
                dst,
                segments,
                fail,
            } => {
                write!(f, "bs_create_bin unit {unit} heap {heap} live {live} {{")?;
                for (i, s) in segments.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    let kind = snake(&format!("{:?}", s.kind));
                    if s.kind == SegKind::String {
                        write!(f, "{kind} \"{}\"", s.bytes.escape_ascii())?;
                    } else {
                        let unit = A::N(u64::from(s.unit));
                        let args = [A::S(s.src), A::Size(s.size), unit, A::Flags(s.flags)];
                        self.args(f, &kind, &args)?;
                    }
                }
                f.write_char('}')?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::BsInitWritable => f.write_str("bs_init_writable"),
            Op::BsUtfSize {
                kind,
                src,
                dst,
                fail,
            } => {
                let kind = snake(&format!("{kind:?}"));
                self.plain(
                    f,
                    "bs_utf_size",
                    &[A::Text(&kind), A::S(*src)],
                    Some(*dst),
                    *fail,
                )
            }
            Op::BsAdd {
                a,
                b,
                unit,
                dst,
                fail,
            } => self.plain(
                f,
                "bs_add",
                &[A::S(*a), A::S(*b), A::N(u64::from(*unit))],
                Some(*dst),
                *fail,
            ),
            Op::PutRecord {
                id,
                src,
                dst,
                live,
                pairs,
                fail,
            } => {
                self.args(f, "put_record", &[A::S(*id), A::S(*src)])?;
                self.list(f, pairs.iter().map(|(k, v)| (Some(A::W(*k)), A::S(*v))))?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), *fail)
            }
            Op::IsNativeRecord {
                src,
                module,
                name,
                fail,
            } => self.plain(
                f,
                "is_native_record",
                &[A::S(*src), A::W(*module), A::W(*name)],
                None,
                *fail,
            ),
            Op::IsRecordAccessible { src, scope, fail } => self.plain(
                f,
                "is_record_accessible",
                &[A::S(*src), A::W(*scope)],
                None,
                *fail,
            ),
            Op::GetRecordElements { src, pairs, fail } => {
                self.args(f, "get_record_elements", &[A::S(*src)])?;
                self.list(f, pairs.iter().map(|(k, r)| (Some(A::W(*k)), A::R(*r))))?;
                self.tail(f, None, *fail)
            }
            Op::GetRecordField {
                src,
                id,
                field,
                dst,
                fail,
            } => self.plain(
                f,
                "get_record_field",
                &[A::S(*src), A::S(*id), A::W(*field)],
                Some(*dst),
                *fail,
            ),
            Op::End => f.write_str("end"),
            Op::NifStart => f.write_str("nif_start"),
            Op::Enter => f.write_str("enter"),
            Op::OnLoad => f.write_str("on_load"),
        }
    }
}

impl OpText<'_> {
    fn command(&self, f: &mut Formatter<'_>, c: &MatchCommand) -> fmt::Result {
        match c {
            MatchCommand::EnsureAtLeast { bits, unit } => {
                write!(f, "ensure_at_least {bits} unit {unit}")
            }
            MatchCommand::EnsureExactly { bits } => write!(f, "ensure_exactly {bits}"),
            MatchCommand::Integer {
                live,
                flags,
                bits,
                dst,
            } => {
                self.args(f, "integer", &[A::N(*bits), A::Flags(*flags)])?;
                write!(f, " live {live}")?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            MatchCommand::Binary { live, bits, dst } => {
                write!(f, "binary {bits} live {live}")?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            MatchCommand::Skip { bits } => write!(f, "skip {bits}"),
            MatchCommand::GetTail { live, dst } => {
                write!(f, "get_tail live {live}")?;
                self.tail(f, Some(*dst), NO_LABEL)
            }
            MatchCommand::Equal { bits, value } => write!(f, "equal {bits} {value:#x}"),
        }
    }
}
