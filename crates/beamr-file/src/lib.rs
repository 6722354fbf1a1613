//! The .beam container: decoding, encoding, validation, disassembly.
