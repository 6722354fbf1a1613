//! The collector: random graphs survive, garbage goes, sizes follow the sequence.

use std::collections::HashMap;

use beamr_abi::{Body, STACK_SLACK, SavedArgs};
use beamr_term::off_heap::{BinaryRef, Resource};
use beamr_term::{
    Build, Fragment, Header, LiteralArea, NodeEntry, Subtag, Tables, Word, is_literal,
};
use beamr_vm::gc::{
    self, HeapOptions, Kind, NoOwner, Owner, collect_body, free_heap, new_heap, verify,
};
use std::sync::Arc;

/// A small generator (xorshift), so that failures repeat.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
}

fn body(options: &HeapOptions) -> Body {
    let mut heap = new_heap(0, options);
    // The bottom of a stack: some code position.
    push(&mut heap, 0x1000);
    Body {
        heap,
        ip: std::ptr::null(),
        args: SavedArgs::default(),
        pid: Word::pid(1),
        group_leader: Word::pid(0),
        catches: 0,
        reductions: 0,
        over_limit: false,
        trace: Word::NIL,
    }
}

fn push(heap: &mut beamr_abi::Heap, word: u64) {
    assert!(heap.free() > 0);
    unsafe {
        heap.stop = heap.stop.sub(1);
        *heap.stop = word;
    }
}

struct Shared {
    node: Arc<NodeEntry>,
    resource: Arc<Resource>,
    bytes: BinaryRef,
    tables: Arc<Tables>,
    literal: Word,
    _area: LiteralArea,
}

fn shared() -> Shared {
    let tables = Tables::new(
        Arc::new(beamr_term::AtomTable::new(0)),
        beamr_term::Release::OTP25,
    );
    let mut b = LiteralArea::builder(64).unwrap();
    let inner = b.tuple(&[Word::fixnum(1), Word::NIL]);
    let f = b.float(1.5);
    let literal = b.list([inner, f, Word::fixnum(7)]);
    Shared {
        node: tables.node(beamr_term::atoms::NODE, 3),
        resource: Arc::new(Resource { value: Box::new(5) }),
        bytes: BinaryRef::from_bytes(&[7; 100]),
        tables,
        literal,
        _area: b.finish(),
    }
}

fn external(a: &mut impl Build, node: &Arc<NodeEntry>) -> Word {
    let p = a.alloc(5);
    unsafe {
        *p = Header::new(Subtag::External, 4).0;
        *p.add(2) = Arc::into_raw(node.clone()) as usize as u64;
        *p.add(3) = beamr_term::header::EXTERNAL_PID;
        *p.add(4) = 9;
        a.off_heap().link(p);
        Word::boxed(p)
    }
}

fn object(a: &mut impl Build, subtag: Subtag, words: &[u64]) -> Word {
    let p = a.alloc(words.len() + 1);
    unsafe {
        *p = Header::new(subtag, words.len()).0;
        for (i, w) in words.iter().enumerate() {
            *p.add(i + 1) = *w;
        }
        Word::boxed(p)
    }
}

/// One random object over terms of `pool`.
fn grow(a: &mut impl Build, s: &Shared, rng: &mut Rng, pool: &[Word]) -> Word {
    let pick = |rng: &mut Rng| {
        if pool.is_empty() || rng.below(4) == 0 {
            match rng.below(4) {
                0 => Word::fixnum(rng.below(1000) as i64),
                1 => Word::NIL,
                2 => beamr_term::atoms::OK.word(),
                _ => s.literal,
            }
        } else {
            pool[rng.below(pool.len())]
        }
    };
    match rng.below(16) {
        0..=2 => {
            let (h, t) = (pick(rng), pick(rng));
            a.cons(h, t)
        }
        3 | 4 => {
            let n = rng.below(12);
            let e: Vec<Word> = (0..n).map(|_| pick(rng)).collect();
            a.tuple(&e)
        }
        5 => a.float(rng.next() as f64),
        6 => a.big(rng.below(2) == 0, &[rng.next(), rng.next() | 1 << 63]),
        7 => a.binary(&vec![rng.next() as u8; rng.below(64)]),
        8 => a.refc_binary(s.bytes.clone(), 800),
        9 => {
            let n = a.binary(&[1, 2, 3, 4, 5]);
            a.sub_bits(n, 3, 20)
        }
        10 => match rng.below(3) {
            0 => a.reference([1, 2, rng.next() as u32]),
            1 => a.alias_reference([1, 2, 3], Word::pid(77)),
            _ => a.magic_reference([4, 5, 6], s.resource.clone()),
        },
        11 => external(a, &s.node),
        12 => {
            let entry = s
                .tables
                .funs
                .entry(0, beamr_term::atoms::LISTS, 1, 2, [0; 16], 1, 2);
            let (x, y) = (pick(rng), pick(rng));
            object(a, Subtag::Fun, &[entry as usize as u64, x.bits(), y.bits()])
        }
        13 => {
            let keys = a.tuple(&[Word::fixnum(1), Word::fixnum(2)]);
            let (x, y) = (pick(rng), pick(rng));
            object(a, Subtag::FlatMap, &[keys.bits(), x.bits(), y.bits()])
        }
        14 => {
            let (k, v) = (pick(rng), pick(rng));
            let leaf = a.cons(k, v);
            let child = object(
                a,
                Subtag::HashMap,
                &[
                    Word::fixnum(1).bits(),
                    Word::fixnum(1 << 4).bits(),
                    leaf.bits(),
                ],
            );
            object(
                a,
                Subtag::HashMap,
                &[
                    Word::fixnum(2).bits(),
                    Word::fixnum(0b101).bits(),
                    leaf.bits(),
                    child.bits(),
                ],
            )
        }
        _ => a.export_fun(3, Word::NIL, Word::NIL, 2),
    }
}

/// A graph as text-free data: objects in order of first visit, words as immediates or object numbers.
/// Equal shapes mean equal terms with equal sharing.
fn shape(roots: &[Word]) -> Vec<(u8, Vec<u64>)> {
    let mut number: HashMap<u64, u64> = HashMap::new();
    let mut order: Vec<Word> = Vec::new();
    let mut out = Vec::new();
    let mut name = |w: Word, order: &mut Vec<Word>| -> u64 {
        if w.is_immediate() || w.is_none() || is_literal(w.ptr()) {
            return w.bits();
        }
        let n = number.len() as u64;
        *number.entry(w.bits()).or_insert_with(|| {
            order.push(w);
            n << 8 | 4
        })
    };
    let top: Vec<u64> = roots.iter().map(|w| name(*w, &mut order)).collect();
    out.push((255, top));
    let mut i = 0;
    while i < order.len() {
        let w = order[i];
        i += 1;
        if w.is_cons() {
            let words = vec![name(w.head(), &mut order), name(w.tail(), &mut order)];
            out.push((254, words));
        } else {
            let h = w.header();
            let mut words = vec![h.0];
            for k in 1..=h.arity() {
                if k <= h.raw_words() {
                    // The link of an off-heap list is not part of the term.
                    words.push(if h.is_off_heap() && k == 1 {
                        0
                    } else {
                        w.field(k)
                    });
                } else {
                    words.push(name(w.term_field(k), &mut order));
                }
            }
            out.push((h.subtag() as u8, words));
        }
    }
    out
}

/// Roots in a place of the process's own.
struct Extra(Vec<Word>, isize);

impl Owner for Extra {
    fn visit_roots(&mut self, _: &mut Body, visit: &mut dyn FnMut(&mut [Word])) {
        visit(&mut self.0);
    }
    fn charge(&mut self, _: &mut Body, bytes: isize) -> bool {
        self.1 += bytes;
        true
    }
}

fn all_roots(body: &Body, x: &[Word], extra: &Extra) -> Vec<Word> {
    let mut roots = x.to_vec();
    roots.extend_from_slice(body.args.as_slice());
    roots.push(body.trace);
    roots.extend_from_slice(&extra.0);
    let mut p = body.heap.stop;
    while p < body.heap.end {
        let w = unsafe { *p };
        // Positions are compared as they are.
        roots.push(if w & 3 == 0 {
            Word::fixnum(w as i64)
        } else {
            unsafe { Word::from_bits(w) }
        });
        p = unsafe { p.add(1) };
    }
    roots
}

fn random_run(seed: u64, steps: usize, options: &HeapOptions) {
    let s = shared();
    let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut b = body(options);
    let mut extra = Extra(vec![Word::NIL; 5], 0);
    let mut x = [Word::NIL; 10];
    for step in 0..steps {
        // Grow: terms over what is live, into heap or an adopted fragment.
        let mut pool: Vec<Word> = x.iter().chain(&extra.0).copied().collect();
        if rng.below(8) == 0 {
            let mut f = Box::new(Fragment::with_capacity(8));
            let mut own: Vec<Word> = Vec::new();
            for _ in 0..rng.below(30) {
                let w = grow(&mut *f, &s, &mut rng, &own);
                own.push(w);
            }
            b.heap.adopt(f);
            pool.extend(own);
        }
        for _ in 0..rng.below(60) {
            let w = grow(&mut b.heap, &s, &mut rng, &pool);
            pool.push(w);
        }
        for slot in x.iter_mut().chain(&mut extra.0) {
            if rng.below(3) == 0 {
                *slot = pool[rng.below(pool.len())];
            }
        }
        match rng.below(10) {
            0 => b.trace = pool[rng.below(pool.len())],
            1 => {
                let args: Vec<Word> = (0..rng.below(9))
                    .map(|_| pool[rng.below(pool.len())])
                    .collect();
                b.args.save(&args);
            }
            2 if b.heap.free() > 40 => {
                for _ in 0..rng.below(6) {
                    let w = pool[rng.below(pool.len())];
                    push(&mut b.heap, w.bits());
                    push(&mut b.heap, 0x2000 + step as u64 * 8);
                    push(&mut b.heap, Word::catch_tag(3).bits());
                }
            }
            3 => {
                // Pops all but the bottom.
                b.heap.stop = unsafe { b.heap.end.sub(1) };
            }
            _ => {}
        }
        let before = shape(&all_roots(&b, &x, &extra));
        let need = [0, 5, 300, 5000][rng.below(4)];
        let kind = if rng.below(6) == 0 {
            Kind::Full
        } else {
            Kind::Auto
        };
        let report = unsafe { collect_body(&mut b, &mut extra, &mut x, need, kind) };
        assert!(report.cost > 0);
        assert!(!report.over_limit);
        assert!(
            b.heap.free() >= need + STACK_SLACK,
            "seed {seed} step {step}"
        );
        assert!(b.heap.fragments.is_none());
        unsafe { verify(&mut b, &mut extra, &mut x) }
            .unwrap_or_else(|e| panic!("seed {seed} step {step}: {e}"));
        let after = shape(&all_roots(&b, &x, &extra));
        assert!(before == after, "seed {seed} step {step}");
    }
    unsafe { free_heap(&mut b.heap) };
    assert_eq!(s.bytes.count(), 1, "seed {seed}: binaries leak");
    assert_eq!(Arc::strong_count(&s.resource), 1);
    // The tables hold one count of the node.
    assert_eq!(Arc::strong_count(&s.node), 2);
}

#[test]
fn random_graphs() {
    for seed in 1..40 {
        random_run(seed, 60, &HeapOptions::default());
    }
}

#[test]
fn random_graphs_with_frequent_full_sweeps() {
    for seed in 100..120 {
        let options = HeapOptions {
            fullsweep_after: 1,
            min_virtual: 10,
            ..HeapOptions::default()
        };
        random_run(seed, 60, &options);
    }
}

#[test]
fn a_long_list_and_a_deep_tuple_need_no_stack() {
    let mut b = body(&HeapOptions::default());
    let mut list = Word::NIL;
    let mut deep = Word::NIL;
    for i in 0..300_000 {
        list = b.heap.cons(Word::fixnum(i), list);
        deep = b.heap.tuple(&[deep]);
    }
    let mut x = [list, deep];
    unsafe {
        collect_body(&mut b, &mut NoOwner, &mut x, 0, Kind::Auto);
        collect_body(&mut b, &mut NoOwner, &mut x, 0, Kind::Auto);
        collect_body(&mut b, &mut NoOwner, &mut x, 0, Kind::Full);
    }
    let (mut l, mut d, mut n) = (x[0], x[1], 300_000);
    while let Some((head, tail)) = l.as_cons() {
        n -= 1;
        assert_eq!(head, Word::fixnum(n));
        // The spine lies in one run.
        if tail.is_cons() {
            assert_eq!(tail.ptr() as usize, l.ptr() as usize + 16);
        }
        l = tail;
        d = d.as_tuple().unwrap()[0];
    }
    assert_eq!((n, d), (0, Word::NIL));
    unsafe { free_heap(&mut b.heap) };
}

#[test]
fn survivors_grow_old_and_garbage_goes() {
    let mut b = body(&HeapOptions::default());
    let keep = b.heap.tuple(&[Word::fixnum(1); 20]);
    let mut x = [keep];
    let run =
        |b: &mut Body, x: &mut [Word]| unsafe { collect_body(b, &mut NoOwner, x, 0, Kind::Auto) };
    b.heap.tuple(&[Word::NIL; 50]);
    let r = run(&mut b, &mut x);
    assert_eq!((r.full, r.reclaimed), (false, 51));
    assert_eq!((b.heap.used(), b.heap.old_used()), (21, 0));
    run(&mut b, &mut x);
    assert_eq!((b.heap.used(), b.heap.old_used()), (0, 21));
    let r = unsafe { collect_body(&mut b, &mut NoOwner, &mut [], 0, Kind::Full) };
    assert_eq!((r.full, r.reclaimed), (true, 21));
    assert_eq!(
        (b.heap.used(), b.heap.old_used(), b.heap.size()),
        (0, 0, 233)
    );
    unsafe { free_heap(&mut b.heap) };
}

#[test]
fn sizes_follow_the_sequence_and_shrink_again() {
    let mut b = body(&HeapOptions::default());
    // The first block is smaller than it counts, and is outgrown without a collection.
    assert_eq!(b.heap.size(), gc::sizes::FIRST_SIZE);
    let r = unsafe { collect_body(&mut b, &mut NoOwner, &mut [], 2, Kind::Auto) };
    assert_eq!((b.heap.size(), b.heap.minor_count, r.full), (233, 0, false));
    let mut list = Word::NIL;
    for i in 0..10_000 {
        if b.heap.free() < 2 + STACK_SLACK {
            let mut x = [list];
            unsafe { collect_body(&mut b, &mut NoOwner, &mut x, 2, Kind::Auto) };
            list = x[0];
            assert_eq!(gc::sizes::next_size(b.heap.size()), b.heap.size());
        }
        list = b.heap.cons(Word::fixnum(i), list);
    }
    let grown = b.heap.size() + b.heap.old_size();
    assert!(grown >= 20_000);
    unsafe { collect_body(&mut b, &mut NoOwner, &mut [], 0, Kind::Full) };
    assert!(b.heap.size() <= 610, "{}", b.heap.size());
    unsafe { free_heap(&mut b.heap) };
}

#[test]
fn old_binaries_make_a_full_sweep_due() {
    let options = HeapOptions {
        min_virtual: 100,
        ..HeapOptions::default()
    };
    let mut b = body(&options);
    let bytes = BinaryRef::from_bytes(&[1; 4000]);
    let w = b.heap.refc_binary(bytes.clone(), 32_000);
    let mut x = [w];
    let run =
        |b: &mut Body, x: &mut [Word]| unsafe { collect_body(b, &mut NoOwner, x, 0, Kind::Auto) };
    run(&mut b, &mut x);
    assert!(b.heap.virtual_limit > 500, "grows over what is live");
    run(&mut b, &mut x);
    assert_eq!((b.heap.off_heap.overhead, b.heap.old_overhead), (0, 501));
    x[0] = Word::NIL;
    assert_eq!(bytes.count(), 2);
    let r = run(&mut b, &mut x);
    assert!(r.full, "old binaries are above the limit");
    assert_eq!(bytes.count(), 1);
    unsafe { free_heap(&mut b.heap) };
}

#[test]
fn limits_are_reported() {
    let options = HeapOptions {
        max_size: 1000,
        ..HeapOptions::default()
    };
    let mut b = body(&options);
    let r = unsafe { collect_body(&mut b, &mut NoOwner, &mut [], 10, Kind::Auto) };
    assert!(!r.over_limit && !b.over_limit);
    let r = unsafe { collect_body(&mut b, &mut NoOwner, &mut [], 2000, Kind::Auto) };
    assert!(r.over_limit && b.over_limit);
    unsafe { free_heap(&mut b.heap) };

    struct Poor;
    impl Owner for Poor {
        fn visit_roots(&mut self, _: &mut Body, _: &mut dyn FnMut(&mut [Word])) {}
        fn charge(&mut self, _: &mut Body, bytes: isize) -> bool {
            bytes <= 0
        }
    }
    let mut b = body(&HeapOptions::default());
    let r = unsafe { collect_body(&mut b, &mut Poor, &mut [], 2000, Kind::Auto) };
    assert!(r.over_limit && b.over_limit);
    unsafe { free_heap(&mut b.heap) };
}

#[test]
fn leaving_literals_are_copied_once() {
    let bytes = BinaryRef::from_bytes(&[9; 80]);
    let mut a = LiteralArea::builder(64).unwrap();
    let bin = a.refc_binary(bytes.clone(), 640);
    let inner = a.tuple(&[bin, Word::fixnum(4)]);
    let list = a.list([inner, inner]);
    let area = a.finish();
    let mut b = body(&HeapOptions::default());
    let own = b.heap.tuple(&[list, inner]);
    let mut x = [own];
    push(&mut b.heap, bin.bits());
    area.leave();
    let areas = beamr_term::Leaving::now().unwrap();
    assert!(unsafe { gc::refers_to_literals(&mut b, &mut NoOwner, &mut x, areas) });
    unsafe { gc::collect_literals(&mut b, &mut NoOwner, &mut x, areas) };
    assert!(!unsafe { gc::refers_to_literals(&mut b, &mut NoOwner, &mut x, areas) });
    assert_eq!(bytes.count(), 3);
    drop(area);
    assert_eq!(bytes.count(), 2);
    let t = x[0].as_tuple().unwrap();
    assert_eq!(t[0].head(), t[1]);
    assert_eq!(t[0].tail().head(), t[1]);
    let on_stack = unsafe { *b.heap.stop };
    assert_eq!(t[1].as_tuple().unwrap()[0].bits(), on_stack);
    assert!(!is_literal(t[1].ptr()));
    unsafe { verify(&mut b, &mut NoOwner, &mut x) }.unwrap();
    unsafe { free_heap(&mut b.heap) };
    assert_eq!(bytes.count(), 1);
}

#[test]
fn the_verifier_sees_what_is_wrong() {
    let mut b = body(&HeapOptions::default());
    let outside = [Word::NIL.bits(), Word::NIL.bits()];
    let mut x = [unsafe { Word::list(outside.as_ptr()) }];
    let e = unsafe { verify(&mut b, &mut NoOwner, &mut x) }.unwrap_err();
    assert!(matches!(e, gc::VerifyError::Dangling { .. }), "{e}");
    let t = b.heap.tuple(&[Word::NIL]);
    unsafe { *t.ptr().add(1) = Header::new(Subtag::Float, 1).0 };
    let e = unsafe { verify(&mut b, &mut NoOwner, &mut [t]) }.unwrap_err();
    assert!(matches!(e, gc::VerifyError::NotATerm { .. }), "{e}");
    unsafe { *t.ptr() = Header::new(Subtag::Tuple, 1 << 30).0 };
    let e = unsafe { verify(&mut b, &mut NoOwner, &mut [t]) }.unwrap_err();
    assert!(matches!(e, gc::VerifyError::Malformed { .. }), "{e}");
    unsafe { free_heap(&mut b.heap) };

    let mut b = body(&HeapOptions {
        min_size: 376,
        ..HeapOptions::default()
    });
    let t = b.heap.tuple(&[Word::NIL]);
    let mut x = [t];
    unsafe {
        collect_body(&mut b, &mut NoOwner, &mut x, 0, Kind::Auto);
        collect_body(&mut b, &mut NoOwner, &mut x, 0, Kind::Auto);
    }
    let young = b.heap.cons(Word::NIL, Word::NIL);
    unsafe { *x[0].ptr().add(1) = young.bits() };
    let e = unsafe { verify(&mut b, &mut NoOwner, &mut x) }.unwrap_err();
    assert!(matches!(e, gc::VerifyError::OldToYoung { .. }), "{e}");
    unsafe { free_heap(&mut b.heap) };
}
