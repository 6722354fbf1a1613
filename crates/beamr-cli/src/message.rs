//! What the program says of itself, on standard error: one line each, in colour only on a terminal.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::USAGE;

/// Whether standard error may have colours: a terminal, and `NO_COLOR` is not set.
fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// `beamr: TEXT`.
pub fn complain(text: &str) {
    if colours() {
        eprintln!("\x1b[1;31mbeamr:\x1b[0m {text}");
    } else {
        eprintln!("beamr: {text}");
    }
}

/// Help is printed as it is; an error becomes one line. Gives the exit status.
pub fn usage(e: &clap::Error) -> ExitCode {
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed stream changes nothing.
            let _ = e.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            ExitCode::from(USAGE)
        }
        _ => {
            complain(&one_line(e));
            ExitCode::from(USAGE)
        }
    }
}

/// The first line of the error, the nearest thing that exists, and where help is.
fn one_line(e: &clap::Error) -> String {
    let text = e.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if line.ends_with(':') {
        // What is missing stands in the lines below.
        let missing: Vec<&str> = text
            .lines()
            .skip(1)
            .take_while(|l| l.starts_with("  "))
            .map(str::trim)
            .collect();
        line.push(' ');
        line.push_str(&missing.join(" "));
    }
    for kind in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ] {
        let near = match e.get(kind) {
            Some(ContextValue::String(s)) => s,
            Some(ContextValue::Strings(all)) if !all.is_empty() => &all[0],
            _ => continue,
        };
        line.push_str(&format!(", did you mean `{near}`?"));
    }
    let run = std::env::args()
        .nth(1)
        .filter(|c| c == "run" || c == "inspect");
    let command = run.map_or(String::new(), |c| format!("{c} "));
    format!("{line} (see `beamr {command}--help`)")
}
