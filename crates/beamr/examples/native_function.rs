//! Rust functions called from Erlang: a plain one, one that may fail, one that blocks on a pool of its own, one that answers later.
//!
//! `cargo run -p beamr --example native_function`

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use beamr::{
    Completion, DirtySchedulerKind, ModuleRegistry, NativeError, NativeOptions, NativeRegistry,
    Scheduler, atom,
};

const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store: Arc<Mutex<HashMap<String, i64>>> = Arc::default();
    let mut natives = NativeRegistry::new();

    // Called by face_cases:greet/1.
    natives.function("host", "greet", |name: String| format!("hello, {name}"))?;

    // A Result with NativeError raises; state is what the closure holds.
    let reads = store.clone();
    natives.function(
        "host",
        "get",
        move |key: String| -> Result<i64, NativeError> {
            let store = reads
                .lock()
                .map_err(|_| NativeError::error(atom("poisoned")))?;
            store
                .get(&key)
                .copied()
                .ok_or_else(|| NativeError::error((atom("no_key"), key)))
        },
    )?;

    // What blocks runs on a thread of its own pool.
    let blocking = NativeOptions::default().dirty(DirtySchedulerKind::Io);
    natives.function_with("host", "put", blocking, move |key: String, value: i64| {
        store
            .lock()
            .map(|mut s| s.insert(key, value))
            .ok()
            .flatten()
    })?;

    // The process sleeps until the answer comes; no thread waits for it.
    let awaiting = NativeOptions::default();
    natives.awaiting(
        "host",
        "later",
        awaiting,
        |done: Completion, text: String| {
            std::thread::spawn(move || done.complete(text.to_uppercase()));
        },
    )?;

    let modules = ModuleRegistry::new();
    modules.insert(MODULE)?;
    let vm = Scheduler::builder()
        .threads(2)
        .modules(modules)
        .natives(natives)
        .build()?;

    let greeting: Result<String, String> = vm.call("face_cases", "greet", ("world",))?;
    println!("{greeting:?}");
    assert_eq!(greeting, Ok("hello, world".into()));
    let before: Option<i64> = vm.call("host", "put", ("answer", 42))?;
    assert_eq!(before, None);
    assert_eq!(vm.call::<i64>("host", "get", ("answer",))?, 42);
    let missing = vm.call::<i64>("host", "get", ("question",));
    println!("{}", missing.as_ref().err().ok_or("there is no question")?);
    assert!(missing.is_err());
    assert_eq!(vm.call::<String>("host", "later", ("text",))?, "TEXT");
    Ok(())
}
