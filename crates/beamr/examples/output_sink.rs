//! What programs print goes to the embedding program.
//!
//! `cargo run -p beamr --example output_sink`

use std::sync::{Arc, Mutex};

use beamr::{IoSink, IoStream, ModuleRegistry, Scheduler};

const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

/// Keeps lines with the stream that they came from.
#[derive(Default)]
struct Lines(Mutex<Vec<(bool, String)>>);

impl IoSink for Lines {
    fn write(&self, bytes: &[u8]) {
        self.write_stream(IoStream::Out, bytes);
    }
    fn write_stream(&self, stream: IoStream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = self.0.lock().unwrap_or_else(|e| e.into_inner());
        lines.extend(
            text.lines()
                .map(|l| (stream == IoStream::Err, l.to_owned())),
        );
    }
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let modules = ModuleRegistry::new();
    modules.insert(MODULE)?;
    let lines = Arc::new(Lines::default());
    let vm = Scheduler::builder()
        .threads(1)
        .modules(modules)
        .output(lines.clone())
        .build()?;
    vm.call::<bool>("face_cases", "print", ("a line",))?;
    // A process that dies of an error is reported on the other stream.
    let pid = vm.spawn("face_cases", "crash", (1,))?;
    vm.run_until_exit(pid);

    let lines = lines.0.lock().unwrap_or_else(|e| e.into_inner());
    for (is_error, line) in lines.iter() {
        println!("{} | {line}", if *is_error { "err" } else { "out" });
    }
    assert_eq!(lines[0], (false, "<<\"a line\">>".to_owned()));
    assert!(lines.iter().any(|(e, l)| *e && l.contains("badmatch")));
    Ok(())
}
