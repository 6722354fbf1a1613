//! Decodes every .beam file below the given directories, encodes its chunks
//! again and compares; prints counts. Exits with 1 when a file differs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamr_file::{BeamFile, Module};

const CHUNKS: [&[u8; 4]; 12] = [
    b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"LocT", b"FunT", b"LitT", b"Line", b"Type",
    b"Recs", b"DbgB",
];

fn main() -> ExitCode {
    let mut files = Vec::new();
    for dir in std::env::args_os().skip(1) {
        collect(Path::new(&dir), &mut files);
    }
    files.sort();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut bad = 0;
    for path in &files {
        match check(path, &mut counts) {
            Ok(()) => *counts.entry("files".into()).or_default() += 1,
            Err(e) => {
                bad += 1;
                println!("{}: {e}", path.display());
            }
        }
    }
    for (what, n) in counts {
        println!("{what}\t{n}");
    }
    println!("bad\t{bad}");
    if bad == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn collect(path: &Path, out: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if !entry.path().is_symlink() {
                collect(&entry.path(), out);
            }
        }
    } else if path.extension().is_some_and(|e| e == "beam") {
        out.push(path.to_owned());
    }
}

fn check(path: &Path, counts: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let file = BeamFile::parse(&bytes).map_err(|e| e.to_string())?;
    if !file.compressed && file.to_bytes() != bytes {
        return Err("the container differs".into());
    }
    let module = Module::decode(&file).map_err(|e| e.to_string())?;
    *counts.entry("instructions".into()).or_default() += module.code.instrs.len();
    let valid = beamr_file::validate(&module).map_err(|e| e.to_string())?;
    *counts.entry("functions".into()).or_default() += valid.functions.len();
    *counts
        .entry("funs that reserve no heap".into())
        .or_default() += valid.unreserved_funs.len();
    *counts
        .entry("functions with cleared frames".into())
        .or_default() += valid.functions.iter().filter(|f| f.clear_frames).count();
    *counts.entry("traps".into()).or_default() += valid.traps.len();
    *counts
        .entry("calls with a peeked message".into())
        .or_default() += valid.peeked_calls.len();
    *counts.entry("validation steps".into()).or_default() += valid.work as usize;
    for id in CHUNKS {
        let name = id.escape_ascii();
        match (file.chunk(id), module.encode_chunk(id)) {
            (None, _) => {}
            (Some(_), None) => return Err(format!("{name}: not encoded")),
            (Some(old), Some(new)) => {
                if id == b"LitT" && module.literals.compressed {
                    let again = BeamFile {
                        chunks: file
                            .chunks
                            .iter()
                            .cloned()
                            .map(|mut c| {
                                if c.id.0 == *id {
                                    c.data = new.clone();
                                }
                                c
                            })
                            .collect(),
                        compressed: false,
                    };
                    let again = Module::decode(&again).map_err(|e| e.to_string())?;
                    if !again.literals.iter().eq(module.literals.iter()) {
                        return Err("LitT: other literals".into());
                    }
                } else if old != new {
                    let at = old.iter().zip(&new).position(|(a, b)| a != b);
                    return Err(format!("{name}: differs at {at:?} of {}", old.len()));
                }
                *counts.entry(format!("chunk {name}")).or_default() += 1;
            }
        }
    }
    Ok(())
}
