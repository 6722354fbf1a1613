//! Integration tests of the crate: real files of three releases, hand-written
//! code for the validator, hostile bytes.

mod asm;
mod files;
mod hostile;
mod machine;
mod valid;

/// Every compiled fixture: its path below `tests/fixtures`, and its bytes. The
/// sources beside them were compiled with `erlc +deterministic` of the release
/// that the folder names (`_gz`: `+compressed`, `_cover`: `+line_coverage`,
/// `_debug`: `+beam_debug_info`).
pub const FIXTURES: [(&str, &[u8]); 14] = [
    ("25/mix", include_bytes!("../fixtures/25/mix.beam")),
    ("25/onload", include_bytes!("../fixtures/25/onload.beam")),
    ("25/small", include_bytes!("../fixtures/25/small.beam")),
    (
        "25/small_gz",
        include_bytes!("../fixtures/25/small_gz.beam"),
    ),
    ("27/mix", include_bytes!("../fixtures/27/mix.beam")),
    ("27/onload", include_bytes!("../fixtures/27/onload.beam")),
    ("27/small", include_bytes!("../fixtures/27/small.beam")),
    (
        "27/small_cover",
        include_bytes!("../fixtures/27/small_cover.beam"),
    ),
    ("29/mix", include_bytes!("../fixtures/29/mix.beam")),
    (
        "29/mix_debug",
        include_bytes!("../fixtures/29/mix_debug.beam"),
    ),
    ("29/onload", include_bytes!("../fixtures/29/onload.beam")),
    ("29/records", include_bytes!("../fixtures/29/records.beam")),
    ("29/small", include_bytes!("../fixtures/29/small.beam")),
    (
        "29/small_cover",
        include_bytes!("../fixtures/29/small_cover.beam"),
    ),
];

/// The bytes of a fixture.
pub fn fixture(name: &str) -> &'static [u8] {
    FIXTURES
        .iter()
        .find(|f| f.0 == name)
        .unwrap_or_else(|| panic!("no fixture {name}"))
        .1
}
