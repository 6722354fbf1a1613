//! The external format against what OTP 25, 27 and 29 write (`data/terms-*.txt`, made by
//! `data/termgen.erl`), and against hostile bytes.

use std::sync::Arc;
use std::task::Poll;

use crate::bits::Rng;
use crate::copy::everything;
use crate::maps::tables;
use beamr_term::etf::{
    DecodeErrorKind, DecodeOptions, Decoder, EncodeError, EncodeOptions, Encoder, decode, encode,
    external_size,
};
use beamr_term::{
    AtomTable, Build, Fragment, OwnedTerm, Release, Subtag, Tables, Word, maps, order,
};

/// One line of a `terms` file.
pub struct Line {
    pub plain: Vec<u8>,
    pub minor0: Vec<u8>,
    pub deterministic: Vec<u8>,
    pub size: usize,
    pub phash2_32: u32,
    pub phash2: u32,
    pub phash: u32,
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap())
        .collect()
}

pub fn releases() -> [(Release, &'static str, &'static str); 3] {
    [
        (
            Release::OTP25,
            include_str!("../data/terms-25.txt"),
            include_str!("../data/order-25.txt"),
        ),
        (
            Release::OTP27,
            include_str!("../data/terms-27.txt"),
            include_str!("../data/order-27.txt"),
        ),
        (
            Release::OTP29,
            include_str!("../data/terms-29.txt"),
            include_str!("../data/order-29.txt"),
        ),
    ]
}

pub fn lines(text: &str) -> Vec<Line> {
    text.lines()
        .map(|l| {
            let mut it = l.split(' ');
            let plain = unhex(it.next().unwrap());
            let mut other = || match it.next().unwrap() {
                "-" => plain.clone(),
                h => unhex(h),
            };
            let (minor0, deterministic) = (other(), other());
            let mut number = || it.next().unwrap().parse::<u64>().unwrap();
            Line {
                size: number() as usize,
                phash2_32: number() as u32,
                phash2: number() as u32,
                phash: number() as u32,
                plain,
                minor0,
                deterministic,
            }
        })
        .collect()
}

/// The pid that the generator ran in, which its funs name.
fn creator(release: Release) -> Word {
    Word::pid(if release == Release::OTP25 { 9 } else { 10 })
}

/// Whether some map has more than 32 pairs, whose order is OTP's own.
fn has_big_map(w: Word) -> bool {
    let mut todo = vec![w];
    while let Some(t) = todo.pop() {
        if let Some((h, tl)) = t.as_cons() {
            todo.extend([h, tl]);
        } else if let Some(e) = t.as_tuple() {
            todo.extend(e);
        } else if t.is_map() {
            if maps::size(t) > 32 {
                return true;
            }
            todo.extend(maps::iter(t).flat_map(|(k, v)| [k, v]));
        }
    }
    false
}

/// Whether some flat map has several atom keys, which OTP 26 and later order by number.
fn has_atom_keys(w: Word) -> bool {
    let mut todo = vec![w];
    while let Some(t) = todo.pop() {
        if let Some((h, tl)) = t.as_cons() {
            todo.extend([h, tl]);
        } else if let Some(e) = t.as_tuple() {
            todo.extend(e);
        } else if t.is_map() {
            if maps::iter(t).filter(|(k, _)| !k.is_small()).count() > 1 {
                return true;
            }
            todo.extend(maps::iter(t).flat_map(|(k, v)| [k, v]));
        }
    }
    false
}

#[test]
fn bytes_are_those_of_otp() {
    for (release, terms, _) in releases() {
        let t = tables(release);
        let options = EncodeOptions {
            creator: creator(release),
            ..Default::default()
        };
        for (i, l) in lines(terms).iter().enumerate() {
            let at = format!("{release:?} line {}", i + 1);
            let mut f = Fragment::with_capacity(256);
            let (w, used) = decode(&l.plain, &t, DecodeOptions::default(), &mut f)
                .unwrap_or_else(|e| panic!("{at}: {e}"));
            assert_eq!(used, l.plain.len(), "{at}");
            assert_eq!(external_size(w, &t, &options), Ok(l.size), "{at}");
            let det = EncodeOptions {
                deterministic: true,
                minor_version: Some(2),
                ..options.clone()
            };
            assert_eq!(encode(w, &t, &det).unwrap(), l.deterministic, "{at}");
            if !has_big_map(w) && (release.0 < 26 || !has_atom_keys(w)) {
                assert_eq!(encode(w, &t, &options).unwrap(), l.plain, "{at}");
                let zero = EncodeOptions {
                    minor_version: Some(0),
                    ..options.clone()
                };
                assert_eq!(encode(w, &t, &zero).unwrap(), l.minor0, "{at}");
            }
            for other in [&l.minor0, &l.deterministic] {
                let (v, _) = decode(other, &t, DecodeOptions::default(), &mut f).unwrap();
                assert!(order::eq_exact(v, w, &t), "{at}");
            }
            // In the smallest steps.
            let mut d = Decoder::new(&l.plain[..]);
            let v = loop {
                let p = d.step(&t, DecodeOptions::default(), &mut f, &mut 1);
                if let Poll::Ready(r) = p {
                    break r.unwrap().0;
                }
            };
            assert!(order::eq_exact(v, w, &t), "{at}");
            let mut e = Encoder::new(w, &t, det);
            let bytes = loop {
                if let Poll::Ready(r) = e.step(&t, &mut 1) {
                    break r.unwrap();
                }
            };
            assert_eq!(bytes, l.deterministic, "{at}");
        }
    }
}

#[test]
fn every_kind_of_term_comes_back() {
    let t = tables(Release::OTP29);
    let mut f = Fragment::with_capacity(1 << 12);
    let all = everything(&mut f, &t);
    let whole = f.tuple(&all);
    for options in [
        EncodeOptions::default(),
        EncodeOptions {
            minor_version: Some(0),
            ..Default::default()
        },
        EncodeOptions {
            compressed: Some(6),
            ..Default::default()
        },
        EncodeOptions {
            local: Some(77),
            ..Default::default()
        },
        EncodeOptions {
            bare: true,
            ..Default::default()
        },
    ] {
        let bytes = encode(whole, &t, &options).unwrap();
        let back = DecodeOptions {
            local: options.local,
            bare: options.bare,
            ..Default::default()
        };
        let mut long = bytes.clone();
        long.extend_from_slice(b"more");
        let (w, used) = decode(&long, &t, back, &mut f).unwrap();
        assert_eq!(used, bytes.len());
        assert!(order::eq_exact(w, whole, &t));
        if options.compressed.is_none() {
            assert_eq!(external_size(whole, &t, &options), Ok(bytes.len()));
        } else {
            assert_eq!(bytes[1], 80);
        }
        let small = EncodeOptions {
            max_bytes: bytes.len() / 2,
            compressed: None,
            ..options.clone()
        };
        assert!(matches!(
            encode(whole, &t, &small),
            Err(EncodeError::TooLarge(_))
        ));
    }
    // A local term is of no use to another instance.
    let bytes = encode(
        whole,
        &t,
        &EncodeOptions {
            local: Some(1),
            ..Default::default()
        },
    )
    .unwrap();
    let other = DecodeOptions {
        local: Some(2),
        ..Default::default()
    };
    let e = decode(&bytes, &t, other, &mut f).unwrap_err();
    assert_eq!(e.kind, DecodeErrorKind::NotLocal);
    assert_eq!(
        decode(&bytes, &t, DecodeOptions::default(), &mut f)
            .unwrap_err()
            .kind,
        DecodeErrorKind::NotLocal
    );
}

#[test]
fn terms_go_to_another_vm() {
    let (t, u) = (tables(Release::OTP27), tables(Release::OTP27));
    u.atoms.intern("shifts all the numbers").unwrap();
    let mut f = Fragment::with_capacity(64);
    let a = t.atoms.intern("an atom of t").unwrap().word();
    let w = f.tuple(&[a, Word::pid(5)]);
    let there = OwnedTerm::from_word(w, &t).transfer(&u).unwrap();
    assert_eq!(
        there.root().element(0).unwrap().as_atom_text(),
        Some("an atom of t")
    );
    assert_ne!(there.word().as_tuple().unwrap()[0], a);
}

fn fails(t: &Tables, bytes: &[u8], options: DecodeOptions<'_>) -> (usize, DecodeErrorKind) {
    let mut f = Fragment::with_capacity(16);
    let e = decode(bytes, t, options, &mut f).unwrap_err();
    assert!(f.total_capacity() < 10_000);
    (e.offset, e.kind)
}

#[test]
fn errors_say_what_and_where() {
    use DecodeErrorKind::*;
    let t = tables(Release::OTP27);
    let d = DecodeOptions::default();
    let safe = DecodeOptions { safe: true, ..d };
    assert_eq!(fails(&t, &[], d), (0, NotVersioned));
    assert_eq!(fails(&t, &[130, 106], d), (0, NotVersioned));
    assert_eq!(fails(&t, &[131], d), (1, Truncated));
    assert_eq!(fails(&t, &[131, 1], d), (2, UnknownTag(1)));
    assert_eq!(fails(&t, &[131, 117, 0, 0, 0, 0], d).1, UnknownTag(117));
    assert_eq!(fails(&t, &[131, 82, 3], d).1, AtomCache(3));
    assert_eq!(fails(&t, &[131, 119, 1, 0xFF], d).1, InvalidAtom);
    assert_eq!(
        fails(&t, &[131, 119, 6, b'u', b'n', b'k', b'n', b'o', b'w'], safe).1,
        UnknownAtom
    );
    assert_eq!(
        fails(
            &t,
            &[131, 113, 119, 2, b'o', b'k', 119, 2, b'o', b'k', 97, 7],
            safe
        )
        .1,
        UnknownExport
    );
    assert_eq!(
        fails(
            &t,
            &[
                131, 113, 119, 2, b'o', b'k', 119, 2, b'o', b'k', 98, 0, 0, 1, 0
            ],
            d
        )
        .1,
        InvalidFun
    );
    // Counts beyond the bytes.
    for tag in [105, 108, 109, 111, 116] {
        assert_eq!(
            fails(&t, &[131, tag, 255, 255, 255, 255, 97, 1], d).1,
            Truncated
        );
    }
    assert_eq!(
        fails(&t, &[131, 70, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0], d).1,
        InvalidFloat
    );
    let mut text = vec![131, 99];
    text.extend_from_slice(b"1.5e+999\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    assert_eq!(fails(&t, &text, d).1, InvalidFloat);
    text[3] = b',';
    assert_eq!(fails(&t, &text, d).1, InvalidFloat);
    assert_eq!(
        fails(&t, &[131, 116, 0, 0, 0, 2, 97, 1, 97, 1, 97, 1, 97, 2], d).1,
        DuplicateKey
    );
    assert_eq!(fails(&t, &[131, 77, 0, 0, 0, 1, 9, 1], d).1, InvalidBits);
    assert_eq!(fails(&t, &[131, 77, 0, 0, 0, 1, 0, 1], d).1, InvalidBits);
    assert_eq!(
        fails(&t, &[131, 67, 0, 0, 0, 0, 0, 119, 0, 119, 0], d).1,
        UnknownTag(67)
    );
    assert_eq!(
        fails(&t, &[131, 80, 0, 0, 0, 4, 1, 2, 3], d).1,
        InvalidCompression
    );
    let few = DecodeOptions { max_words: 10, ..d };
    assert_eq!(
        fails(&t, &[131, 107, 0, 6, 1, 2, 3, 4, 5, 6], few).1,
        TooLarge
    );
    let big = encode(Word::NIL, &t, &EncodeOptions::default()).unwrap();
    assert!(decode(&big, &t, few, &mut Fragment::with_capacity(4)).is_ok());
}

#[test]
fn compressed_terms_must_inflate_to_their_size() {
    use DecodeErrorKind::*;
    let t = tables(Release::OTP27);
    let d = DecodeOptions::default();
    let mut f = Fragment::with_capacity(64);
    let zeros = f.binary(&vec![0; 1 << 20]);
    let o = EncodeOptions {
        compressed: Some(9),
        ..Default::default()
    };
    let mut bytes = encode(zeros, &t, &o).unwrap();
    assert!(bytes.len() < 5000);
    let (w, used) = decode(&bytes, &t, d, &mut f).unwrap();
    assert_eq!(used, bytes.len());
    assert!(order::eq_exact(w, zeros, &t));
    let bounded = DecodeOptions {
        max_inflated: 1 << 19,
        ..d
    };
    assert_eq!(fails(&t, &bytes, bounded), (2, TooLarge));
    let cut = &bytes[..bytes.len() - 10];
    assert_eq!(fails(&t, cut, d).1, InvalidCompression);
    bytes[5] ^= 1;
    assert_eq!(fails(&t, &bytes, d).1, InvalidCompression);
    // What would not get shorter stays as it is.
    let short = encode(Word::TRUE, &t, &o).unwrap();
    assert_eq!(short[1], 119);
}

#[test]
fn deep_terms_need_no_stack() {
    let t = tables(Release::OTP27);
    const N: usize = 10_000_000;
    let mut f = Fragment::with_capacity(1 << 20);
    let mut w = Word::NIL;
    for i in 0..N {
        w = if i % 2 == 0 {
            f.tuple(&[w])
        } else {
            f.list_with_tail([w], Word::fixnum(1))
        };
    }
    let bytes = encode(w, &t, &EncodeOptions::default()).unwrap();
    let (v, used) = decode(&bytes, &t, DecodeOptions::default(), &mut f).unwrap();
    assert_eq!(used, bytes.len());
    assert!(order::eq_exact(v, w, &t));
    drop(f);
    // One byte a level.
    let mut nested = vec![131u8];
    nested.extend(std::iter::repeat_n([104, 1], 1_000_000).flatten());
    assert_eq!(fails_deep(&t, &nested), DecodeErrorKind::Truncated);
    let mut f = Fragment::with_capacity(64);
    let mut shared = Word::NIL;
    for _ in 0..100 {
        shared = f.tuple(&[shared, shared]);
    }
    let o = EncodeOptions {
        max_bytes: 1 << 20,
        ..Default::default()
    };
    assert_eq!(encode(shared, &t, &o), Err(EncodeError::TooLarge(1 << 20)));
    let mut e = Encoder::new(shared, &t, EncodeOptions::default());
    assert!(e.step(&t, &mut 10_000).is_pending());
}

fn fails_deep(t: &Tables, bytes: &[u8]) -> DecodeErrorKind {
    let mut f = Fragment::with_capacity(16);
    decode(bytes, t, DecodeOptions::default(), &mut f)
        .unwrap_err()
        .kind
}

#[test]
fn long_strings_and_lists() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 10);
    for (n, tag) in [(65535, 107), (65536, 108)] {
        let w = f.list((0..n).map(|_| Word::fixnum(1)));
        let b = encode(w, &t, &EncodeOptions::default()).unwrap();
        assert_eq!(b[1], tag);
        let (v, _) = decode(&b, &t, DecodeOptions::default(), &mut f).unwrap();
        assert!(order::eq_exact(v, w, &t));
    }
    // A list of no elements is its tail.
    let (v, n) = decode(
        &[131, 108, 0, 0, 0, 0, 97, 5],
        &t,
        DecodeOptions::default(),
        &mut f,
    )
    .unwrap();
    assert_eq!((v, n), (Word::fixnum(5), 8));
}

#[test]
fn aliases_and_cache_references() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(64);
    let a = f.alias_reference([1, 2, 3], Word::pid(1283));
    let b = encode(a, &t, &EncodeOptions::default()).unwrap();
    // As OTP 27 writes `alias()`: five numbers, the last two the pid's.
    assert_eq!(&b[1..4], &[90, 0, 5]);
    assert_eq!(&b[b.len() - 8..], &[0, 0, 5, 3, 0, 0, 0, 0]);
    let (v, _) = decode(&b, &t, DecodeOptions::default(), &mut f).unwrap();
    assert_eq!(v.subtag(), Some(Subtag::Ref));
    assert_eq!(v.term_field(3), Word::pid(1283));
    let cache = [t.atoms.intern("cached").unwrap()];
    let o = DecodeOptions {
        atom_cache: &cache,
        bare: true,
        ..Default::default()
    };
    assert_eq!(decode(&[82, 0], &t, o, &mut f).unwrap().0, cache[0].word());
    let look = |n: [u32; 3]| {
        assert_eq!(n, [1, 2, 3]);
        beamr_term::etf::LocalRef::Plain
    };
    let o = DecodeOptions {
        local_ref: Some(&look),
        ..Default::default()
    };
    let (v, _) = decode(&b, &t, o, &mut f).unwrap();
    assert_eq!(v.header().arity(), 2);
}

/// Changes bytes of real terms: whatever happens, no panic, bounded memory, and what decodes
/// encodes again to an equal term.
#[test]
fn changed_bytes_are_refused_or_are_terms() {
    let mut r = Rng(99);
    let (mut good, mut bad) = (0, 0);
    for (release, terms, _) in releases() {
        let t = Tables::new(Arc::new(AtomTable::new(200_000)), release);
        for l in lines(terms) {
            if l.plain.len() > 1500 {
                continue;
            }
            for _ in 0..12 {
                let mut b = l.plain.clone();
                for _ in 0..=r.below(3) {
                    let i = 1 + r.below(b.len() as u64 - 1) as usize;
                    match r.below(5) {
                        0 => b[i] = r.next() as u8,
                        1 => b[i] ^= 1 << r.below(8),
                        2 => b.truncate(i.max(2)),
                        3 => b.insert(i, 97 + r.below(24) as u8),
                        _ => b[i] = [0, 1, 127, 128, 255][r.below(5) as usize],
                    }
                }
                let mut f = Fragment::with_capacity(16);
                let o = DecodeOptions {
                    max_words: 1 << 16,
                    max_inflated: 1 << 16,
                    ..Default::default()
                };
                match decode(&b, &t, o, &mut f) {
                    Ok((w, _)) => {
                        good += 1;
                        let again = encode(w, &t, &EncodeOptions::default()).unwrap();
                        let (v, _) = decode(&again, &t, o, &mut f).unwrap();
                        assert!(order::eq_exact(v, w, &t));
                        assert!(order::compare(v, w, &t).is_eq());
                    }
                    Err(_) => bad += 1,
                }
                assert!(f.total_capacity() < 1 << 20);
            }
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}
