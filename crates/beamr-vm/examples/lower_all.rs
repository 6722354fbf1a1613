//! Lowers every .beam file under the directories given and counts failures.
//!
//! `cargo run --release -p beamr-vm --example lower_all -- [--untrusted] [--natives FILE.tsv] [--list MODULE] DIR...`
//!
//! `--natives` names a table whose first three columns are module, function, arity: what counts as a native
//! (without it, guard BIFs are undefined). `--list` prints one module's listing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use beamr_abi::{Ctx, Escape, NativeEntry, NativeTable};
use beamr_file::Module;
use beamr_term::{AtomTable, Release, Tables, Word};
use beamr_vm::lower::{Listing, LowerEnv, lower};

fn stand_in(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.notsup())
}

fn natives(path: &str) -> NativeTable {
    let text = std::fs::read_to_string(path).expect("the natives table");
    let mut rows = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let mut columns = line.split('\t').map(|c| &*c.to_string().leak());
        let (m, f) = (
            columns.next().expect("module"),
            columns.next().expect("function"),
        );
        let arity = columns.next().and_then(|a| a.parse().ok()).expect("arity");
        rows.push(NativeEntry::new(m, f, arity, stand_in));
    }
    let mut table = NativeTable::default();
    table.add(Release(0), rows.leak()).expect("natives");
    table
}

fn collect(dir: &Path, out: &mut Vec<PathBuf>) {
    if dir.extension().is_some_and(|e| e == "beam") {
        out.push(dir.to_owned());
        return;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        collect(&entry.path(), out);
    }
}

fn main() {
    let (mut trusted, mut table, mut list, mut files) =
        (true, NativeTable::default(), None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match &*arg {
            "--untrusted" => trusted = false,
            "--natives" => table = natives(&args.next().expect("a file")),
            "--list" => list = args.next(),
            dir => collect(Path::new(dir), &mut files),
        }
    }
    let tables = Tables::new(Arc::new(AtomTable::new(1 << 20)), Release::OTP25);
    let env = LowerEnv {
        tables: &tables,
        natives: &table,
        trusted,
        image_id: 0,
    };
    let (mut ok, mut failed, mut instrs, mut ops) = (0, 0, 0, 0);
    let (mut decoding, mut lowering) = (Duration::ZERO, Duration::ZERO);
    let (mut checked, mut reads) = (0, 0);
    for path in &files {
        let start = Instant::now();
        let bytes = std::fs::read(path).expect("readable");
        let module = match Module::from_bytes(&bytes) {
            Ok(m) => m,
            Err(e) => {
                println!("{}: {e}", path.display());
                failed += 1;
                continue;
            }
        };
        decoding += start.elapsed();
        let start = Instant::now();
        match lower(&module, &env) {
            Ok(l) => {
                lowering += start.elapsed();
                ok += 1;
                instrs += module.code.instrs.len();
                ops += l.code.len();
                for op in &l.code {
                    if let Some(c) = op.checked() {
                        reads += 1;
                        checked += usize::from(c);
                    }
                }
                if list.as_ref() == Some(&module.name) {
                    print!("{}", Listing::new(&l, &tables));
                }
            }
            Err(e) => {
                println!("{}: {e}", path.display());
                failed += 1;
            }
        }
    }
    println!(
        "{ok} lowered, {failed} failed; {instrs} instructions, {ops} ops; {checked} of {reads} reads checked"
    );
    println!(
        "decode {decoding:?}, lower {lowering:?}: {:.2} M instructions/s lowered",
        instrs as f64 / lowering.as_secs_f64() / 1e6
    );
}
