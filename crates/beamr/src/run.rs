//! `beamr run`: a target with arguments in a bare system.

use std::process::ExitCode;

use beamr_term::{Build, Fragment, Word};

use crate::system::System;

/// Runs `M` (main/1, or main/0 without arguments) or `M:F`; the exit status.
pub fn main(system: &System, target: &str, args: &[String]) -> ExitCode {
    let vm = &system.vm;
    let (m, f) = match target.split_once(':') {
        Some((m, f)) => (m, f),
        None => (target, "main"),
    };
    let (Ok(module), Ok(function)) = (vm.tables.atoms.intern(m), vm.tables.atoms.intern(f)) else {
        return ExitCode::from(2);
    };
    let modules = vm.default_namespace().modules.clone();
    if let Err(e) = modules.ensure_loaded(module) {
        eprintln!("beamr: {e}");
        return ExitCode::from(2);
    }
    let has1 = !modules.find(module, function, 1).is_null();
    let mut fragment = Fragment::with_capacity(64);
    let list = if has1 {
        let items: Vec<Word> = args.iter().map(|a| fragment.string(a)).collect();
        let strings = fragment.list(items);
        fragment.list([strings])
    } else {
        Word::NIL
    };
    let pid = match system.spawn(module.word(), function.word(), list) {
        Ok(p) => p,
        Err(e) => {
            eprintln!("beamr: {e}");
            return ExitCode::from(1);
        }
    };
    match vm.run_until_exit(pid, None) {
        Ok(record) if record.result.is_some() => ExitCode::SUCCESS,
        Ok(record) => {
            let text = beamr_term::format::format_term(
                &vm.tables,
                record.reason.term,
                beamr_term::format::FormatLimit::NONE,
            );
            eprintln!("{}", String::from_utf8_lossy(&text));
            ExitCode::from(1)
        }
        Err(e) => {
            eprintln!("beamr: {e}");
            ExitCode::from(1)
        }
    }
}
