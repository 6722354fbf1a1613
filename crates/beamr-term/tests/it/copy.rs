//! Copies: sizes, literals, off-heap objects, depth, owned terms.

use std::sync::Arc;
use std::task::Poll;

use crate::maps::tables;
use beamr_term::bits::{self, BitsView};
use beamr_term::copy::{CopyMode, CopyWalk, SizeWalk, copy, size_in_words};
use beamr_term::off_heap::{BinaryRef, Resource};
use beamr_term::term::Kind;
use beamr_term::{
    Alloc, Build, Fragment, LiteralArea, OwnedTerm, Release, Subtag, Tables, Word, empty_tuple,
    ids, is_literal, maps, order,
};

/// One term of every kind.
pub fn everything(f: &mut Fragment, t: &Tables) -> Vec<Word> {
    let a = |s: &str| t.atoms.intern(s).unwrap().word();
    let big = f.big(true, &[1, 2, 3]);
    let float = f.float(1.5);
    let small = f.binary(b"small");
    let bytes: Vec<u8> = (0..=255).collect();
    let large = f.binary(&bytes);
    let part = bits::sub_bits(f, large, 8, 1000);
    let bent = bits::sub_bits(f, large, 3, 1001);
    let short = bits::sub_bits(f, large, 5, 13);
    let node = t.node(t.atoms.intern("other@host").unwrap(), 7);
    let list = f.list([big, float, small]);
    let improper = f.list_with_tail([large], a("tail"));
    let tuple = f.tuple(&[a("t"), list, part]);
    let flat = maps::from_pairs(f, &[(tuple, bent), (a("k"), Word::NIL)], t);
    let mut pairs: Vec<(Word, Word)> = (0..50).map(|i| (Word::fixnum(i), large)).collect();
    pairs.push((flat, improper));
    let trie = maps::from_pairs(f, &pairs, t);
    let fun = {
        let m = t.atoms.intern("m").unwrap();
        let e = t.funs.entry(0, m, 1, 2, [3; 16], 1, 1);
        let p = f.alloc(3);
        unsafe {
            *p = beamr_term::Header::new(Subtag::Fun, 2).0;
            *p.add(1) = e as usize as u64;
            *p.add(2) = large.bits();
            Word::boxed(p)
        }
    };
    let export = {
        let (m, g) = (
            t.atoms.intern("lists").unwrap(),
            t.atoms.intern("map").unwrap(),
        );
        let id = t.exports.id(m, g, 2).unwrap();
        f.export_fun(id, m.word(), g.word(), 2)
    };
    let def = f.tuple(&[a("m"), a("r"), Word::TRUE, a("f")]);
    let record = {
        let p = f.alloc(3);
        unsafe {
            *p = beamr_term::Header::new(Subtag::Record, 2).0;
            *p.add(1) = def.bits();
            *p.add(2) = large.bits();
            Word::boxed(p)
        }
    };
    let local_ref = f.reference([1, 2, 3]);
    let alias = f.alias_reference([4, 5, 6], Word::pid(9));
    let magic = f.magic_reference(
        [7, 8, 9],
        Arc::new(Resource {
            value: Box::new(String::from("resource")),
        }),
    );
    let xpid = ids::external_pid(f, node.clone(), 1, 2);
    let xport = ids::external_port(f, node.clone(), 1 << 40);
    let xref = ids::external_ref(f, node, &[1, 2, 3, 4, 5]);
    vec![
        Word::fixnum(-5),
        a("atom"),
        Word::NIL,
        Word::pid(77),
        Word::port(78),
        empty_tuple(),
        big,
        float,
        small,
        large,
        part,
        bent,
        short,
        list,
        improper,
        tuple,
        flat,
        trie,
        fun,
        export,
        record,
        local_ref,
        alias,
        magic,
        xpid,
        xport,
        xref,
    ]
}

fn block_of(w: Word) -> BinaryRef {
    unsafe { BinaryRef::share(w.field(2) as usize as *mut _) }
}

#[test]
fn sizes_and_copies_of_every_kind_agree() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 12);
    let mut all = everything(&mut f, &t);
    let whole = f.tuple(&all.clone());
    all.push(whole);
    for w in &all {
        for mode in [CopyMode::Share, CopyMode::All] {
            let n = size_in_words(*w, mode, usize::MAX).unwrap();
            let mut g = Fragment::with_capacity(n.max(1));
            let c = copy(*w, &mut g, mode);
            assert_eq!(g.total_used(), n);
            assert!(g.next.is_none(), "one block suffices");
            assert!(order::eq_exact(*w, c, &t));
            assert!(order::compare(*w, c, &t).is_eq());
            assert_eq!(w.is_immediate(), *w == c && w.is_immediate());
            // In steps of one.
            let mut s = SizeWalk::new(*w, mode);
            while s.step(&mut 1).is_pending() {}
            assert_eq!(s.words(), n);
            let mut g = Fragment::with_capacity(1);
            let mut walk = CopyWalk::new(*w, mode);
            let c = loop {
                if let Poll::Ready(c) = walk.step(&mut g, &mut 1) {
                    break c;
                }
            };
            assert_eq!(g.total_used(), n);
            assert!(order::eq_exact(*w, c, &t));
            if n > 0 {
                assert_eq!(size_in_words(*w, mode, n - 1), None);
            }
        }
    }
}

#[test]
fn big_binaries_stay_shared_and_counts_return() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 10);
    let large = f.binary(&[7; 500]);
    let block = block_of(large);
    let base = block.count();
    let part = bits::sub_bits(&mut f, large, 16, 2000);
    let bent = bits::sub_bits(&mut f, large, 17, 2000);
    let l = f.list([large, part, bent]);
    {
        let owned = OwnedTerm::from_word(l, &t);
        assert_eq!(block.count(), base + 3);
        let c = owned.word();
        let p = c.tail().head();
        assert_eq!(p.subtag(), Some(Subtag::RefcBits));
        assert_eq!(
            BitsView::of(p).unwrap().as_bytes().unwrap().as_ptr(),
            BitsView::of(part).unwrap().as_bytes().unwrap().as_ptr()
        );
        let again = owned.clone();
        assert_eq!(block.count(), base + 6);
        assert!(again == owned);
        let moved = std::thread::spawn(move || again.words()).join().unwrap();
        assert_eq!(moved, owned.words());
    }
    assert_eq!(block.count(), base);
}

#[test]
fn literals_are_kept_or_copied() {
    let t = tables(Release::OTP27);
    let mut b = LiteralArea::builder(100).unwrap();
    let inner = b.tuple(&[Word::fixnum(1)]);
    let lit = b.cons(inner, Word::NIL);
    let area = b.finish();
    let mut b = LiteralArea::builder(100).unwrap();
    let other = b.tuple(&[Word::fixnum(2)]);
    let _other_area = b.finish();
    let mut f = Fragment::with_capacity(64);
    let w = f.tuple(&[lit, other]);
    let c = copy(w, &mut f, CopyMode::Share).as_tuple().unwrap();
    assert_eq!((c[0], c[1]), (lit, other));
    assert_eq!(size_in_words(w, CopyMode::Share, 100), Some(3));
    area.leave();
    let c = copy(w, &mut f, CopyMode::Share).as_tuple().unwrap();
    assert!(!is_literal(c[0].ptr()) && !is_literal(c[0].head().ptr()));
    assert_eq!(c[1], other);
    assert_eq!(size_in_words(w, CopyMode::Share, 100), Some(7));
    let c = copy(w, &mut f, CopyMode::All).as_tuple().unwrap();
    assert!(!is_literal(c[0].ptr()) && !is_literal(c[1].ptr()));
    assert!(order::eq_exact(c[0], lit, &t));
}

#[test]
fn deep_and_shared_terms() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 20);
    let mut w = Word::NIL;
    for i in 0..10_000_000 {
        w = match i % 3 {
            0 => f.cons(w, Word::NIL),
            1 => f.tuple(&[w, Word::NIL]),
            _ => f.cons(Word::NIL, w),
        };
    }
    let n = size_in_words(w, CopyMode::All, usize::MAX).unwrap();
    let mut g = Fragment::with_capacity(n);
    let c = copy(w, &mut g, CopyMode::All);
    assert!(order::eq_exact(w, c, &t));
    let mut shared = Word::NIL;
    for _ in 0..100 {
        shared = f.cons(shared, shared);
    }
    assert_eq!(size_in_words(shared, CopyMode::All, 1_000_000), None);
    assert!(OwnedTerm::try_from_word(shared, &t, 1_000_000).is_err());
    let mut walk = CopyWalk::new(shared, CopyMode::All);
    let mut g = Fragment::with_capacity(1024);
    assert!(walk.step(&mut g, &mut 100_000).is_pending());
    assert!(g.total_used() < 300_000);
}

#[test]
fn borrowed_terms_read_safely() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 10);
    let a = |s: &str| t.atoms.intern(s).unwrap().word();
    let text = f.binary("grün".as_bytes());
    let m = maps::from_pairs(&mut f, &[(a("name"), text), (a("n"), Word::fixnum(3))], &t);
    let big = f.integer(i64::MIN);
    let l = f.list([m, big]);
    let w = f.tuple(&[a("ok"), l]);
    let owned = OwnedTerm::from_word(w, &t);
    drop(f);
    let r = owned.root();
    assert_eq!((r.kind(), r.tuple_len()), (Kind::Tuple, Some(2)));
    assert_eq!(r.element(0).unwrap().as_atom_text(), Some("ok"));
    assert!(r.element(2).is_none());
    let mut items = r.element(1).unwrap().list().unwrap();
    let m = items.next().unwrap();
    assert_eq!(m.get_atom("name").unwrap().as_str().unwrap(), "grün");
    assert_eq!(m.get_atom("n").unwrap().as_i64(), Some(3));
    assert!(m.get_atom("absent").is_none());
    assert_eq!(m.pairs().unwrap().len(), 2);
    assert_eq!(items.next().unwrap().as_i64(), Some(i64::MIN));
    assert!(items.next().is_none());
    assert_eq!(items.tail().kind(), Kind::Nil);
    assert!(m > r.element(0).unwrap());
    assert!(owned.to_string().starts_with("{ok,[#{"), "{owned}");
}
