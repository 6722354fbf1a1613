//! `beamr inspect`: everything a .beam file holds, with its terms printed.

use std::io::{self, Write};
use std::sync::Arc;

use beamr_file::{BeamFile, Module};
use beamr_term::etf::{self, DecodeOptions};
use beamr_term::format::{FormatLimit, format_term};
use beamr_term::{AtomTable, Fragment, Release, Tables};

/// Words that one printed literal may have.
const MAX_WORDS: usize = 1 << 20;
/// Bytes that one printed literal may take.
const MAX_TEXT: usize = 1 << 16;

/// Writes the listing of a module.
pub fn write(file: &BeamFile, module: &Module, out: &mut impl Write) -> io::Result<()> {
    let tables = Tables::new(
        Arc::new(AtomTable::new(AtomTable::DEFAULT_LIMIT)),
        Release::OTP29,
    );
    let print = |bytes: &[u8]| -> Option<String> {
        let mut heap = Fragment::with_capacity(64);
        let options = DecodeOptions {
            max_words: MAX_WORDS,
            max_inflated: MAX_WORDS * 8,
            ..DecodeOptions::default()
        };
        let (term, _) = etf::decode(bytes, &tables, options, &mut heap).ok()?;
        let limit = FormatLimit {
            bytes: MAX_TEXT,
            ..FormatLimit::NONE
        };
        Some(String::from_utf8_lossy(&format_term(&tables, term, limit)).into_owned())
    };
    beamr_file::inspect(file, module, &print, out)
}
