//! Any bytes as the code of a module whose other chunks are sound: reaches the
//! validator more often than whole files do.
#![no_main]

use beamr_file::{BeamFile, Module, validate};
use libfuzzer_sys::fuzz_target;

const BASE: &[u8] = include_bytes!("../../tests/fixtures/29/mix.beam");

fuzz_target!(|code: &[u8]| {
    let mut file = BeamFile::parse(BASE).unwrap();
    for chunk in &mut file.chunks {
        match &chunk.id.0 {
            b"Code" => chunk.data = code.to_vec(),
            // No labels of another code.
            b"ExpT" | b"FunT" => chunk.data = vec![0; 4],
            _ => {}
        }
    }
    let Ok(module) = Module::decode(&file) else { return };
    assert_eq!(module.code.encode(), code);
    if let Ok(valid) = validate(&module) {
        assert_eq!(valid.functions.len(), module.code.function_count as usize);
    }
});
