//! Native records (OTP 29).
//!
//! A record is a boxed object: its definition (the tuple `{Module, Name, IsExported, Field1, .., FieldN}`) and the field
//! values in that order. A module's own definitions come with its lowered form; each created record has its definition
//! in the heap, and updates share it.
//!
//! Records of other modules are created through the native `records:create/4`'s definition look-up, which the
//! engine does not have: such a `put_record` fails with `notsup`.

use beamr_abi::Regs;
use beamr_term::{Atom, Build, Header, Subtag, Word, atoms};

use crate::machine::{Ip, M, handlers, plain_error};
use crate::ops::arith::{ensure, store};
use crate::ops::exceptions::raise_at;
use crate::ops::natives::Step;

/// A `put_record`, beside the code.
#[derive(Debug)]
pub(crate) struct Put {
    /// The definition to create from.
    pub definition: Option<Definition>,
    /// Field names; the values are operands of the instruction.
    pub fields: Box<[Word]>,
}

/// A definition of the module.
#[derive(Debug)]
pub(crate) struct Definition {
    pub module: Atom,
    pub name: Word,
    pub exported: bool,
    /// Fields and their defaults; a field without one must be given.
    pub fields: Box<[(Word, Option<Word>)]>,
}

/// Definition and field index of a record.
unsafe fn field(record: Word, name: Word) -> Option<usize> {
    let definition = record.term_field(1).as_tuple()?;
    definition.get(3..)?.iter().position(|f| *f == name)
}

fn is_record(w: Word) -> bool {
    w.subtag() == Some(Subtag::Record)
}

handlers! {
    /// Half 4 term, 5 words, pair 3 fail; words 2 module, 3 name.
    fn is_native_record(m) {
        let w = m.any_word(m.half(4));
        if is_record(w)
            && let Some([module, name, ..]) = w.term_field(1).as_tuple()
            && module.bits() == m.word(2)
            && name.bits() == m.word(3)
        {
            return m.next(m.half(5));
        }
        m.branch(3)
    }
    /// Half 4 term, 5 words, pair 3 fail; word 2 the module that asks when its own records are accessible, else 0.
    fn is_accessible(m) {
        let w = m.any_word(m.half(4));
        if is_record(w)
            && let Some([module, _, exported, ..]) = w.term_field(1).as_tuple()
            && (*exported == Word::TRUE || module.bits() == m.word(2))
        {
            return m.next(m.half(5));
        }
        m.branch(3)
    }
    /// Half 4 record, 5 words, pair 3 fail, half 8 number; (name) words from 3, then destinations in halves.
    fn get_elements(m) {
        let w = m.any_word(m.half(4));
        let n = m.half(8);
        for i in 0..n {
            let Some(at) = field(w, Word::from_bits(m.word(3 + i))) else {
                return m.branch(3);
            };
            m.set_any(m.half(4 * (3 + n) + i), w.field(2 + at));
        }
        m.next(m.half(5))
    }
    /// Half 4 record, 5 words, 6 destination, 7 identity; pair 4 fail; word 3 field, 4 module that asks.
    fn get_field(m) {
        m.step(get_field_step)
    }
    /// Half 4 source (nil creates), 5 destination, 6 live, 7 words; pair 4 fail; word 3 the [`Put`]; values in halves from 16.
    fn put(m) {
        m.step(put_step)
    }
}

#[inline(never)]
unsafe fn get_field_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let m = M::saved(p, ip);
    let w = m.any_word(m.half(4));
    let identity = m.any_word(m.half(7));
    let asks = m.word(4);
    let name = Word::from_bits(m.word(3));
    if is_record(w)
        && let Some([module, record, exported, ..]) = w.term_field(1).as_tuple()
    {
        let own = module.bits() == asks;
        let matches = if let Some([m2, n2]) = identity.as_tuple() {
            module == m2 && record == n2 && (own || *exported == Word::TRUE)
        } else if identity == atoms::UNDERSCORE.word() {
            own || *exported == Word::TRUE
        } else {
            own && *record == identity
        };
        if matches {
            if let Some(at) = field(w, name) {
                m.set_any(m.half(6), w.field(2 + at));
                return Step::go(m.ip.add(m.half(5)));
            }
            return failed(regs, m, atoms::BADFIELD, name);
        }
    }
    failed(regs, m, atoms::BADRECORD, w)
}

unsafe fn failed(regs: &mut Regs, m: M, tag: Atom, value: Word) -> Step {
    if m.int(4) != 0 {
        return Step::go(m.target(4));
    }
    let reason = regs.ctx.tuple(&[tag.word(), value]);
    Step::go(raise_at(regs, m.ip, plain_error(reason)))
}

#[inline(never)]
unsafe fn put_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let live = m.half(6);
    let put: &Put = &*(m.word(3) as usize as *const Put);
    let creates = m.any_word(m.half(4)).is_nil();
    let size = match (&put.definition, creates) {
        (Some(d), true) => 2 * d.fields.len() + 8,
        (None, true) => return failed(regs, m, atoms::NOTSUP, m.any_word(m.half(4))),
        (_, false) => {
            let w = m.any_word(m.half(4));
            if !is_record(w) {
                return failed(regs, m, atoms::BADRECORD, w);
            }
            w.header().arity() + 1
        }
    };
    if let Err(step) = ensure(regs, &mut m, size, live) {
        return step;
    }
    let given = |name: Word| {
        put.fields
            .iter()
            .position(|f| *f == name)
            .map(|i| m.any_word(m.half(16 + i)))
    };
    let mut values;
    let definition;
    if creates && let Some(d) = &put.definition {
        let mut elements = vec![d.module.word(), d.name, Word::boolean(d.exported)];
        values = Vec::with_capacity(d.fields.len());
        for (name, default) in &d.fields {
            elements.push(*name);
            match given(*name).or(*default) {
                Some(v) => values.push(v),
                None => return failed(regs, m, atoms::NOVALUE, *name),
            }
        }
        for f in &put.fields {
            if !d.fields.iter().any(|(n, _)| n == f) {
                return failed(regs, m, atoms::BADFIELD, *f);
            }
        }
        definition = regs.ctx.tuple(&elements);
    } else {
        let w = m.any_word(m.half(4));
        definition = w.term_field(1);
        values = (0..w.header().arity() - 1)
            .map(|i| w.term_field(2 + i))
            .collect();
        for (i, f) in put.fields.iter().enumerate() {
            match field(w, *f) {
                Some(at) => values[at] = m.any_word(m.half(16 + i)),
                None => return failed(regs, m, atoms::BADFIELD, *f),
            }
        }
    }
    let p = beamr_term::Alloc::alloc(&mut regs.ctx, values.len() + 2);
    *p = Header::new(Subtag::Record, values.len() + 1).0;
    *p.add(1) = definition.bits();
    std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u64>(), p.add(2), values.len());
    let record = Word::boxed(p);
    store(regs, m, m.half(5), record, live, m.half(7))
}
