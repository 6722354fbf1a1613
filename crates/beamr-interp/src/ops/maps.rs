//! Maps.
//!
//! Keys that are immediates are found in a flat map by their words: its keys are distinct exact terms. (A small
//! integer and a float are never the same key.)

use beamr_abi::Regs;
use beamr_term::header::MAX_FLAT_MAP;
use beamr_term::{Build, Subtag, Word, atoms, maps};

use crate::machine::{Ip, Kind, M, handlers, plain_error};
use crate::ops::arith::{ensure, store};
use crate::ops::data::field_of;
use crate::ops::exceptions::{badarg, raise_at};
use crate::ops::natives::Step;
use crate::ops::tests::{Check, IsMap};

/// The value under `key`, or 0. `map` is a map.
#[inline(always)]
pub(crate) unsafe fn lookup(p: *mut Regs, map: u64, key: u64) -> u64 {
    let object = field_of(map, 0);
    if key & 3 == 3 && *object & 0x3C == (Subtag::FlatMap as u64) << 2 {
        let n = (*object >> 6) as usize - 1;
        let keys = field_of(*object.add(1), 1);
        for i in 0..n {
            if *keys.add(i) == key {
                return *object.add(2 + i);
            }
        }
        return 0;
    }
    lookup_any(p, map, key)
}

#[inline(never)]
unsafe fn lookup_any(p: *mut Regs, map: u64, key: u64) -> u64 {
    let tables = (*p).ctx.tables();
    maps::get(Word::from_bits(map), Word::from_bits(key), tables).map_or(0, Word::bits)
}

handlers! {
    /// Half 4 map, 5 key, 6 destination; pair 4 fail; constant key in word 3.
    fn get_map_element[S: Kind, K: Kind](m) {
        let map = S::get(&m, 4, 0);
        let key = K::get(&m, 5, 3);
        let v = lookup(m.p, map, key);
        if v == 0 {
            return m.branch(4);
        }
        m.set_any(m.half(6), v);
        m.next(3 + K::WORDS)
    }
    /// Half 4 map, 5 number, pair 3 fail; half 8 words; (key, destination) halves from 12.
    fn get_map_elements(m) {
        let map = m.any(m.half(4));
        for i in 0..m.half(5) {
            let v = lookup(m.p, map, m.any(m.half(12 + 2 * i)));
            if v == 0 {
                return m.branch(3);
            }
            m.set_any(m.half(13 + 2 * i), v);
        }
        m.next(m.half(8))
    }
    /// Half 4 map, 5 number, pair 3 fail; half 8 words; key halves from 12.
    fn has_map_fields(m) {
        let map = m.any(m.half(4));
        for i in 0..m.half(5) {
            if lookup(m.p, map, m.any(m.half(12 + i))) == 0 {
                return m.branch(3);
            }
        }
        m.next(m.half(8))
    }
    /// Half 4: must be a map. Half 5 words.
    fn check_map(m) {
        if IsMap::check(m.any(m.half(4))) {
            return m.next(m.half(5));
        }
        m.slow(badarg)
    }
    /// Half 4 map, 5 destination, 6 live, 7 words; pair 4 fail, half 10 pairs, 11 whether keys may be new;
    /// (key, value) halves from 12.
    fn put_map(m) {
        m.step(put_map_step)
    }
    /// One pair into a flat map that has the key, an immediate: the keys are shared.
    fn put_map_one(m) {
        let map = m.any(m.half(4));
        let key = m.any(m.half(12));
        if map & 3 == 2 && key & 3 == 3 {
            let object = field_of(map, 0);
            if *object & 0x3C == (Subtag::FlatMap as u64) << 2 {
                let n = (*object >> 6) as usize - 1;
                let keys = field_of(*object.add(1), 1);
                for i in 0..n {
                    if *keys.add(i) == key {
                        let bytes = super::data::bytes_for(n + 2);
                        if m.free() < bytes {
                            return m.collect(bytes, m.half(6));
                        }
                        let v = m.any(m.half(13));
                        let t = m.take(n + 2);
                        std::ptr::copy_nonoverlapping(object, t, n + 2);
                        *t.add(2 + i) = v;
                        m.set_any(m.half(5), t as u64 + 2);
                        return m.next(m.half(7));
                    }
                }
            }
        }
        m.slow(put_map)
    }
}

#[inline(never)]
unsafe fn put_map_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let live = m.half(6);
    let n = m.half(10);
    let assoc = m.half(11) != 0;
    let map = m.any_word(m.half(4));
    if !map.is_map() {
        return failed(regs, m, atoms::BADMAP, map);
    }
    // Most results fit what a collection frees; a fragment takes the rest.
    let size = maps::size(map);
    let words = if size + n <= MAX_FLAT_MAP {
        2 * (size + n) + 4
    } else {
        40 * n
    };
    if let Err(step) = ensure(regs, &mut m, words, live) {
        return step;
    }
    let map = m.any_word(m.half(4));
    let pairs: Vec<(Word, Word)> = (0..n)
        .map(|i| {
            (
                m.any_word(m.half(12 + 2 * i)),
                m.any_word(m.half(13 + 2 * i)),
            )
        })
        .collect();
    let tables = regs.ctx.tables();
    let result = if assoc {
        Ok(maps::put_all(&mut regs.ctx, map, &pairs, tables))
    } else {
        maps::update_all_exact(&mut regs.ctx, map, &pairs, tables)
    };
    match result {
        Ok(v) => store(regs, m, m.half(5), v, live, m.half(7)),
        Err(key) => failed(regs, m, atoms::BADKEY, key),
    }
}

unsafe fn failed(regs: &mut Regs, m: M, tag: beamr_term::Atom, value: Word) -> Step {
    if m.int(4) != 0 {
        return Step::go(m.target(4));
    }
    let reason = regs.ctx.tuple(&[tag.word(), value]);
    Step::go(raise_at(regs, m.ip, plain_error(reason)))
}
