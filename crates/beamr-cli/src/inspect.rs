//! `beamr inspect FILE`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use beamr::file::{BeamFile, Module, validate};
use clap::ArgMatches;

use crate::USAGE;

/// Prints the file, or says what is wrong with it.
pub fn inspect(m: &ArgMatches) -> ExitCode {
    let Some(path) = m.get_one::<PathBuf>("file") else {
        return ExitCode::from(USAGE);
    };
    let shown = path.display();
    let bytes = match std::fs::read(path) {
        Ok(b) => b,
        Err(e) => {
            crate::message::complain(&format!("{shown}: {e}"));
            return ExitCode::from(USAGE);
        }
    };
    let decoded = BeamFile::parse(&bytes).and_then(|f| Module::decode(&f).map(|m| (f, m)));
    let (file, module) = match decoded {
        Ok(d) => d,
        Err(e) => {
            crate::message::complain(&format!("{shown}: {e}"));
            return ExitCode::FAILURE;
        }
    };
    if m.get_flag("validate") {
        return match validate(&module) {
            Ok(_) => {
                println!("{shown}: valid");
                ExitCode::SUCCESS
            }
            Err(e) => {
                crate::message::complain(&format!("{shown}: {e}"));
                ExitCode::FAILURE
            }
        };
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match beamr::inspect::write(&file, &module, &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            crate::message::complain(&format!("{e}"));
            ExitCode::FAILURE
        }
    }
}
