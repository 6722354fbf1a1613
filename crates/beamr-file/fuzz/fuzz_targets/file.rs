//! Any bytes as a file: no panic, and what is decoded is written as it was read.
#![no_main]

use beamr_file::{BeamFile, Limits, Module, inspect, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { file: 1 << 20, literals: 1 << 20 };
    let Ok(file) = BeamFile::parse_with(bytes, &limits) else { return };
    let Ok(module) = Module::decode_with(&file, &limits) else { return };
    for id in [b"Code", b"AtU8", b"ImpT", b"ExpT", b"LocT", b"FunT", b"Type", b"Line"] {
        if let (Some(old), Some(new)) = (file.chunk(id), module.encode_chunk(id)) {
            assert_eq!(old, new);
        }
    }
    inspect(&file, &module, &|_| None, &mut std::io::sink()).unwrap();
    let _ = validate(&module);
});
