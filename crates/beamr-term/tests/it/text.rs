//! Lists and nested data as bytes and strings.

use beamr_term::text::{self, ChardataError, WalkLimit};
use beamr_term::{Build, Fragment, Word};

fn small(v: i64) -> Word {
    Word::fixnum(v)
}

#[test]
fn lists() {
    let mut heap = Fragment::with_capacity(64);
    let items = [small(1), small(2), small(3)];
    let proper = text::list_of_words(&mut heap, &items, Word::NIL);
    assert_eq!(text::list_to_vec(proper), Some(items.to_vec()));
    assert_eq!(text::list_length(proper), Some(3));
    let improper = text::list_of_words(&mut heap, &items, small(4));
    assert_eq!(text::list_to_vec(improper), None);
    assert_eq!(text::list_length(improper), None);
    let mut iter = text::list_iter(improper);
    assert_eq!(iter.by_ref().count(), 3);
    assert_eq!(iter.rest, small(4));
    assert_eq!(text::list_to_vec(Word::NIL), Some(vec![]));
    assert_eq!(text::list_to_vec(small(1)), None);
    assert_eq!(text::list_of_bytes(&mut heap, b"", small(7)), small(7));
}

#[test]
fn strings() {
    let mut heap = Fragment::with_capacity(64);
    let l = text::list_of_chars(&mut heap, "aé", Word::NIL);
    assert_eq!(text::latin1_from_list(l), Some(vec![0x61, 0xe9]));
    assert_eq!(text::string_from_list(l), Some("aé".into()));
    let l = text::list_of_chars(&mut heap, "a→", Word::NIL);
    assert_eq!(text::latin1_from_list(l), None);
    assert_eq!(text::string_from_list(l), Some("a→".into()));
    let surrogate = heap.list([small(0xd800)]);
    assert_eq!(text::string_from_list(surrogate), None);
    let negative = heap.list([small(-1)]);
    assert_eq!(text::latin1_from_list(negative), None);
    assert_eq!(text::string_from_list(small(5)), None);
}

#[test]
fn iolists() {
    let mut heap = Fragment::with_capacity(64);
    let b = heap.binary(b"bin");
    let tail = heap.binary(b"tail");
    let inner = heap.list_with_tail([small(65), b], tail);
    let data = heap.list_with_tail([inner, Word::NIL, small(66), inner], b);
    let none = WalkLimit::NONE;
    let want = b"AbintailBAbintailbin".to_vec();
    assert_eq!(text::iolist_to_bytes(data, none), Ok(want.clone()));
    assert_eq!(text::iolist_size(data, none), Ok(want.len() as u64));
    assert_eq!(text::iolist_to_bytes(b, none), Ok(b"bin".to_vec()));
    assert_eq!(text::iolist_to_bytes(Word::NIL, none), Ok(vec![]));
    let exact = WalkLimit {
        bytes: want.len(),
        ..none
    };
    assert_eq!(text::iolist_to_bytes(data, exact), Ok(want.clone()));
    let short = WalkLimit {
        bytes: want.len() - 1,
        ..none
    };
    assert_eq!(
        text::iolist_to_bytes(data, short),
        Err(ChardataError::Limit)
    );
    let (bits, _) = heap.heap_bits(3);
    for bad in [small(256), small(-1), Word::TRUE, bits] {
        let l = heap.list([small(1), bad]);
        assert_eq!(text::iolist_to_bytes(l, none), Err(ChardataError::Bad(bad)));
        assert_eq!(text::iolist_size(l, none), Err(ChardataError::Bad(bad)));
    }
    let improper = heap.cons(small(1), small(2));
    assert_eq!(
        text::iolist_to_bytes(improper, none),
        Err(ChardataError::Bad(small(2)))
    );
}

#[test]
fn chardata() {
    let mut heap = Fragment::with_capacity(64);
    let none = WalkLimit::NONE;
    let b = heap.binary("é→".as_bytes());
    let data = heap.list([small(0x2192), b]);
    assert_eq!(text::chardata_to_string(data, none), Ok("→é→".into()));
    let bad = heap.binary(&[0xff]);
    let data = heap.list([bad]);
    assert_eq!(
        text::chardata_to_string(data, none),
        Err(ChardataError::Bad(bad))
    );
}

#[test]
fn deep_and_shared_data() {
    let mut heap = Fragment::with_capacity(1 << 16);
    let mut deep = heap.list([small(1)]);
    for _ in 0..3_000_000 {
        deep = heap.list([deep, small(2)]);
    }
    let none = WalkLimit::NONE;
    assert_eq!(text::iolist_size(deep, none), Ok(3_000_001));
    // 2^60 cells that say nothing.
    let mut shared = Word::NIL;
    for _ in 0..60 {
        shared = heap.list([shared, shared]);
    }
    let limit = WalkLimit {
        bytes: 100,
        cells: 10_000,
    };
    assert_eq!(
        text::iolist_to_bytes(shared, limit),
        Err(ChardataError::Limit)
    );
}
