//! Decodes arbitrary bytes: no panic, bounded memory, and what decodes encodes again to an equal
//! term with equal hashes. Run with `cargo fuzz run etf` in `crates/beamr-term`.

#![no_main]

use std::sync::{Arc, OnceLock};

use beamr_term::copy::{CopyMode, copy, size_in_words};
use beamr_term::etf::{DecodeOptions, EncodeOptions, decode, encode};
use beamr_term::{AtomTable, Fragment, Release, Tables, hash, order};
use libfuzzer_sys::fuzz_target;

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Arc<Tables>> = OnceLock::new();
    TABLES.get_or_init(|| Tables::new(Arc::new(AtomTable::new(1 << 20)), Release::OTP29))
}

fuzz_target!(|bytes: &[u8]| {
    let t = tables();
    let options = DecodeOptions {
        max_words: 1 << 16,
        max_inflated: 1 << 16,
        ..Default::default()
    };
    let mut f = Fragment::with_capacity(16);
    let Ok((w, used)) = decode(bytes, t, options, &mut f) else {
        return;
    };
    assert!(used <= bytes.len());
    let again = encode(w, t, &EncodeOptions::default()).expect("what was decoded encodes");
    let (v, _) = decode(&again, t, DecodeOptions::default(), &mut f).expect("and decodes again");
    assert!(order::eq_exact(v, w, t));
    assert!(order::compare(v, w, t).is_eq());
    assert_eq!(hash::phash2(v, t), hash::phash2(w, t));
    assert_eq!(hash::internal_hash(v, 0, t), hash::internal_hash(w, 0, t));
    let n = size_in_words(w, CopyMode::All, usize::MAX).expect("no limit");
    let mut g = Fragment::with_capacity(n.max(1));
    let c = copy(w, &mut g, CopyMode::All);
    assert_eq!(g.total_used(), n);
    assert!(order::eq_exact(c, w, t));
});
