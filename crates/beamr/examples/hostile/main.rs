//! A search for module files that harm the VM: mutants of real files, loaded untrusted, run with little memory under
//! the heap verifier. See `cargo xtask hostile`.
//!
//! The parent process starts itself as a child that does the work and tells in a small file which mutant is at hand. A panic is
//! caught by the child; a crash, an abort or a hang ends it, and the parent goes on behind the mutant that did it. Mutants
//! that do harm are kept, to become regression tests.

mod mutate;
mod stage;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mutate::{Random, Seed};
use stage::{Call, Outcome, Stage};

/// Counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// More than this at once is refused, which ends the child.
const REFUSE: usize = 3 << 30;

fn grown(by: usize) -> bool {
    let live = LIVE.fetch_add(by, Ordering::Relaxed) + by;
    if live > REFUSE {
        LIVE.fetch_sub(by, Ordering::Relaxed);
        return false;
    }
    PEAK.fetch_max(live, Ordering::Relaxed);
    true
}

// SAFETY: the system's allocator with a count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        if !grown(l.size()) {
            return std::ptr::null_mut();
        }
        System.alloc(l)
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        LIVE.fetch_sub(l.size(), Ordering::Relaxed);
        System.dealloc(p, l)
    }
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        if !grown(l.size()) {
            return std::ptr::null_mut();
        }
        System.alloc_zeroed(l)
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 {
        if n > l.size() && !grown(n - l.size()) {
            return std::ptr::null_mut();
        }
        let q = System.realloc(p, l, n);
        if n < l.size() {
            LIVE.fetch_sub(l.size() - n, Ordering::Relaxed);
        }
        q
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory that one mutant may take at its peak, beyond what was there: the budget of the tenant, the block that a
/// collection copies to, the file and its image.
const PEAK_LIMIT: usize = 4 * stage::MEMORY_BUDGET as usize;
/// A mutant that runs longer hangs.
const HANG: Duration = Duration::from_secs(60);
/// Mutants that one VM gets; in every other VM they may make processes.
const VM_LIFE: u64 = 500;
/// Panics of this process.
static PANICKED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug)]
struct Options {
    count: u64,
    seed: u64,
    from: u64,
    only: Option<u64>,
    reductions: u64,
    full_every: u64,
    brief: u64,
    beams: Vec<PathBuf>,
    max_size: u64,
    library: PathBuf,
    out: Option<PathBuf>,
    keep: PathBuf,
    state: Option<PathBuf>,
    child: Option<PathBuf>,
}

const HELP: &str = "\
hostile [--count N] [--seed S] [--from I] [--only I] [--reductions N] [--full-every K] [--brief N]
        [--beams DIR]... [--max-size BYTES] [--library LIB] [--keep DIR] [--state FILE] [--out FILE]

  --count N       mutants to make (10000)
  --seed S        the run's seed (1)
  --from I        start with mutant I
  --only I        make only mutant I, and tell of its calls
  --reductions N  reductions that a mutant runs for (100000), those of its callers not counted
  --full-every K  only every K-th mutant runs for so long (1)
  --brief N       the others run for N reductions (2000)
  --beams DIR     folders of .beam files to start from (the fixtures of the repository)
  --max-size N    files larger than this are left out (24000)
  --library LIB   the lib folder of the OTP whose stdlib and kernel mutants may call (/usr/lib/erlang/lib)
  --keep DIR      where to put mutants that do harm (faults)
  --state FILE    counts are kept there; a run with the same file goes on where the last one ended
  --out FILE      where to write the mutant of --only";

fn options() -> Result<Options, String> {
    let mut o = Options {
        count: 10_000,
        seed: 1,
        from: 0,
        only: None,
        reductions: 100_000,
        full_every: 1,
        brief: 2000,
        beams: Vec::new(),
        max_size: 24_000,
        library: "/usr/lib/erlang/lib".into(),
        out: None,
        keep: "faults".into(),
        state: None,
        child: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut value = || args.next().ok_or(format!("{a} needs a value"));
        let number = |v: String| v.parse::<u64>().map_err(|e| format!("{v}: {e}"));
        match a.as_str() {
            "--count" => o.count = number(value()?)?,
            "--seed" => o.seed = number(value()?)?,
            "--from" => o.from = number(value()?)?,
            "--reductions" => o.reductions = number(value()?)?,
            "--full-every" => o.full_every = number(value()?)?.max(1),
            "--brief" => o.brief = number(value()?)?,
            "--only" => o.only = Some(number(value()?)?),
            "--beams" => o.beams.push(value()?.into()),
            "--max-size" => o.max_size = number(value()?)?,
            "--library" => o.library = value()?.into(),
            "--out" => o.out = Some(value()?.into()),
            "--keep" => o.keep = value()?.into(),
            "--state" => o.state = Some(value()?.into()),
            "--child" => o.child = Some(value()?.into()),
            _ => return Err(HELP.to_owned()),
        }
    }
    if o.beams.is_empty() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for release in ["25", "27", "29"] {
            o.beams
                .push(crates.join("beamr-file/tests/fixtures").join(release));
        }
        o.beams.push(crates.join("beamr/tests/it/data"));
    }
    if let Some(i) = o.only {
        (o.from, o.count) = (i, 1);
    }
    Ok(o)
}

fn beams(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|d| d.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    found.retain(|p| p.extension().is_some_and(|e| e == "beam"));
    found.sort();
    found
}

/// The files of stdlib, kernel and compiler by module.
fn library(lib: &Path) -> HashMap<String, PathBuf> {
    let mut out = HashMap::new();
    let apps = std::fs::read_dir(lib).map(|d| d.flatten().map(|e| e.path()).collect());
    let apps: Vec<PathBuf> = apps.unwrap_or_default();
    for app in apps {
        let name = app.file_name().unwrap_or_default().to_string_lossy();
        if ["stdlib-", "kernel-", "compiler-"]
            .iter()
            .any(|p| name.starts_with(p))
        {
            for b in beams(&app.join("ebin")) {
                let module = b.file_stem().unwrap_or_default().to_string_lossy();
                out.insert(module.into_owned(), b.clone());
            }
        }
    }
    out
}

/// A file to start from.
struct Source {
    bytes: Vec<u8>,
    seed: Seed,
    /// Calls that the file answers, when they were looked for.
    known: Option<Vec<Call>>,
}

fn sources(o: &Options) -> Vec<Source> {
    let files = o.beams.iter().flat_map(|d| beams(d));
    files
        .filter(|p| std::fs::metadata(p).is_ok_and(|m| m.len() <= o.max_size))
        .filter_map(|p| {
            let bytes = std::fs::read(&p).ok()?;
            let seed = Seed::new(&bytes)?;
            Some(Source {
                bytes,
                seed,
                known: None,
            })
        })
        .collect()
}

/// The mutant of an index, the file that it was made of, and the random numbers that its run takes.
fn mutant(sources: &[Source], o: &Options, index: u64) -> (Vec<u8>, usize, Random) {
    let mut r = Random::new(o.seed, index);
    let i = r.below(sources.len());
    (sources[i].seed.mutant(&mut r), i, r)
}

/// What the child tells: 8-byte numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Progress([u64; 16]);

const INDEX: usize = 0;
const MADE: usize = 1;
const DECODED: usize = 2;
const VALID: usize = 3;
const LOADED: usize = 4;
const CALLS: usize = 5;
const RETURNED: usize = 6;
const REDUCTIONS: usize = 7;
const FULL: usize = 8;
const PANICS: usize = 9;
const FAT: usize = 10;
const PEAK_MAX: usize = 11;
const TIME_MAX: usize = 12;
const LIVE_END: usize = 13;
const RAN: usize = 14;
const CRASHES: usize = 15;

impl Progress {
    fn read(path: &Path) -> Progress {
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut p = Progress::default();
        for (n, b) in p.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *n = u64::from_le_bytes(*b);
        }
        p
    }
    fn write(&self, file: &std::fs::File) {
        let bytes: Vec<u8> = self.0.iter().flat_map(|n| n.to_le_bytes()).collect();
        // A progress that is not told only makes the report of a crash worse.
        let _ = file.write_all_at(&bytes, 0);
    }
    fn note(&mut self, o: &Outcome, full: u64) {
        self.0[DECODED] += u64::from(o.decoded);
        self.0[VALID] += u64::from(o.valid);
        self.0[LOADED] += u64::from(o.loaded);
        self.0[RAN] += u64::from(o.reductions > 0);
        self.0[CALLS] += o.calls;
        self.0[RETURNED] += o.returned;
        self.0[REDUCTIONS] += o.reductions;
        self.0[FULL] += u64::from(o.reductions >= full);
    }
}

/// Puts a mutant aside that did harm.
fn keep(o: &Options, index: u64, bytes: &[u8]) {
    let path = o.keep.join(format!("mutant-{}-{index}.beam", o.seed));
    let written = std::fs::create_dir_all(&o.keep).and_then(|()| std::fs::write(&path, bytes));
    if let Err(e) = written {
        eprintln!("{}: {e}", path.display());
    }
}

/// What the main thread has run, where the system tells (a machine that is busy or stopped makes nothing hang), else the time
/// since the start.
fn spent(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ran = text.split(' ').next().and_then(|n| n.parse().ok());
    ran.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn child(o: &Options, path: &Path) -> Result<(), String> {
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .map_err(|e| e.to_string())?;
    let mut progress = Progress::read(path);
    let mut sources = sources(o);
    if sources.is_empty() {
        return Err("no module files to start from".into());
    }
    let library = library(&o.library);
    static AT: AtomicU64 = AtomicU64::new(0);
    static SINCE: AtomicU64 = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let since = Duration::from_millis(SINCE.load(Ordering::Relaxed));
            if spent(start) > since + HANG {
                eprintln!("HANG at {}", AT.load(Ordering::Relaxed));
                std::process::abort();
            }
        }
    });
    std::panic::set_hook(Box::new(|info| {
        let at = AT.load(Ordering::Relaxed);
        PANICKED.fetch_add(1, Ordering::Relaxed);
        let trace = std::backtrace::Backtrace::force_capture().to_string();
        let frames: Vec<&str> = trace
            .lines()
            .filter(|l| l.contains("beamr"))
            .take(10)
            .collect();
        eprintln!("PANIC at {at}: {info}\n{}", frames.join("\n"));
    }));
    let mut stage: Option<Stage> = None;
    let mut refused: HashMap<String, u64> = HashMap::new();
    for index in o.from..o.from + o.count {
        AT.store(index, Ordering::Relaxed);
        let now = spent(start);
        SINCE.store(now.as_millis() as u64, Ordering::Relaxed);
        progress.0[INDEX] = index;
        progress.write(&file);
        let spawns = (index / VM_LIFE) % 2 == 1;
        if index % VM_LIFE == 0 {
            stage = None;
        }
        let s = stage.get_or_insert_with(|| Stage::new(library.clone(), spawns));
        let (bytes, source, mut r) = mutant(&sources, o, index);
        let Source {
            bytes: whole,
            known,
            ..
        } = &mut sources[source];
        let known = known.get_or_insert_with(|| {
            let mut r = Random::new(o.seed, source as u64);
            s.rehearse(whole, &mut r)
        });
        let live = LIVE.load(Ordering::Relaxed);
        PEAK.store(live, Ordering::Relaxed);
        if let Some(out) = &o.out {
            std::fs::write(out, &bytes).map_err(|e| e.to_string())?;
        }
        s.loud = o.only.is_some();
        let reductions = if index.is_multiple_of(o.full_every) {
            o.reductions
        } else {
            o.brief
        };
        let mut faulty = false;
        let panics = PANICKED.load(Ordering::Relaxed);
        let run = std::panic::AssertUnwindSafe(|| s.run(&bytes, reductions, known, &mut r));
        match std::panic::catch_unwind(run) {
            Ok(outcome) if PANICKED.load(Ordering::Relaxed) == panics => {
                progress.note(&outcome, o.reductions);
                if let Some(why) = s.refused.take() {
                    // The place of an error comes first.
                    let why = why.rsplit(": ").next().unwrap_or_default().to_owned();
                    *refused.entry(why).or_default() += 1;
                }
                if o.only.is_some() {
                    println!("{outcome:?}");
                }
                if s.charged() != 0 {
                    eprintln!("CHARGED at {index}: {} bytes of nobody", s.charged());
                    progress.0[FAT] += 1;
                    faulty = true;
                    stage = None;
                }
            }
            _ => {
                progress.0[PANICS] += 1;
                faulty = true;
                // What the panic left half done is not used, not even to be freed.
                std::mem::forget(stage.take());
            }
        }
        progress.0[MADE] += 1;
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(live);
        if peak > PEAK_LIMIT {
            eprintln!("MEMORY at {index}: {} MB", peak >> 20);
            progress.0[FAT] += 1;
            faulty = true;
        }
        if faulty {
            keep(o, index, &bytes);
        }
        progress.0[PEAK_MAX] = progress.0[PEAK_MAX].max(peak as u64);
        let took = spent(start).saturating_sub(now).as_millis() as u64;
        if took > 2000 {
            eprintln!("SLOW at {index}: {took} ms");
        }
        progress.0[TIME_MAX] = progress.0[TIME_MAX].max(took);
    }
    drop(stage);
    let mut refused: Vec<(String, u64)> = refused.into_iter().collect();
    refused.sort_by_key(|r| std::cmp::Reverse(r.1));
    for (why, n) in refused.iter().take(12) {
        println!("{n} valid, not loaded: {why}");
    }
    progress.0[LIVE_END] = LIVE.load(Ordering::Relaxed) as u64;
    progress.0[INDEX] = o.from + o.count;
    progress.write(&file);
    Ok(())
}

fn parent(o: &Options) -> Result<bool, String> {
    let named = std::env::temp_dir().join(format!("beamr-hostile-{}", std::process::id()));
    let path = o.state.clone().unwrap_or(named);
    let (end, start) = (o.from + o.count, Instant::now());
    let mut from = o.from;
    if path.exists() {
        from = from.max(Progress::read(&path).0[INDEX]);
    } else {
        Progress::default().write(&std::fs::File::create(&path).map_err(|e| e.to_string())?);
    }
    while from < end {
        let me = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut c = Command::new(me);
        c.args(std::env::args().skip(1))
            .arg("--child")
            .arg(&path)
            .args(["--from", &from.to_string()])
            .args(["--count", &(end - from).to_string()]);
        let status = c.status().map_err(|e| e.to_string())?;
        let mut p = Progress::read(&path);
        if status.success() {
            break;
        }
        if let Some(code) = status.code() {
            return Err(format!("the child ended with {code}"));
        }
        let (index, signal) = (p.0[INDEX], status.signal().unwrap_or(0));
        println!("CRASH at {index} (seed {}): signal {signal}", o.seed);
        keep(o, index, &mutant(&sources(o), o, index).0);
        from = index + 1;
        p.0[CRASHES] += 1;
        p.0[INDEX] = from;
        p.write(
            &std::fs::File::options()
                .write(true)
                .open(&path)
                .map_err(|e| e.to_string())?,
        );
    }
    let p = Progress::read(&path);
    if o.state.is_none() {
        let _ = std::fs::remove_file(&path);
    }
    let crashes = p.0[CRASHES];
    let faults = crashes + p.0[PANICS] + p.0[FAT];
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "seed {}, mutants {}..{end}: {} made, {} decoded, {} valid, {} loaded, {} ran ({} for {} reductions or more); \
         {} calls, {} returned, {} reductions; {:.0} s\n\
         {crashes} crashes or hangs, {} panics, {} over memory; peak {} MB, slowest {} ms, {} KB left at the end",
        o.seed,
        o.from,
        p.0[MADE],
        p.0[DECODED],
        p.0[VALID],
        p.0[LOADED],
        p.0[RAN],
        p.0[FULL],
        o.reductions,
        p.0[CALLS],
        p.0[RETURNED],
        p.0[REDUCTIONS],
        start.elapsed().as_secs_f64(),
        p.0[PANICS],
        p.0[FAT],
        p.0[PEAK_MAX] >> 20,
        p.0[TIME_MAX],
        p.0[LIVE_END] >> 10,
    );
    Ok(faults == 0)
}

fn main() -> ExitCode {
    let result = options().and_then(|o| match &o.child {
        Some(path) => child(&o, path).map(|()| true),
        None => parent(&o),
    });
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
