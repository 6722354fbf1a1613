//! Prints a .beam file: chunks, tables, code, and what the validator says.

use std::io::Write;
use std::process::ExitCode;

use beamr_file::{BeamFile, Module, inspect, validate};

fn main() -> ExitCode {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut result = ExitCode::SUCCESS;
    for path in std::env::args_os().skip(1) {
        let run = |out: &mut dyn Write| -> Result<(), Box<dyn std::error::Error>> {
            let mut out = out;
            let file = BeamFile::parse(&std::fs::read(&path)?)?;
            let module = Module::decode(&file)?;
            inspect(&file, &module, &|_| None, &mut out)?;
            match validate(&module) {
                Ok(v) => writeln!(out, "\nvalid, {} functions", v.functions.len())?,
                Err(e) => writeln!(out, "\nnot valid: {e}")?,
            }
            Ok(())
        };
        if let Err(e) = run(&mut out) {
            eprintln!("{}: {e}", path.display());
            result = ExitCode::FAILURE;
        }
    }
    result
}
