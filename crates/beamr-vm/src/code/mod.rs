//! Code: images, instances, the modules of a namespace, loading.
//!
//! * [`image`]: what an engine made of one module file, immutable, counted, shared by namespaces.
//! * [`server`]: the images of a VM by content, position look-up, the load pipeline.
//! * [`table`]: the modules of one namespace: exports, current and old instances, `on_load`.
//! * [`loader`]: where modules come from on first call.
//! * [`on_load`]: the code that runs an `on_load` function before a first call.
//! * [`old_code`]: whether a process still uses an image.
//!
//! Files are opened elsewhere: this module takes bytes.

pub mod array;
pub mod image;
pub mod loader;
pub mod old_code;
pub mod on_load;
pub mod server;
pub mod table;

pub use image::{Image, Instance, Trust};
pub use loader::{ModuleFile, ModuleLoader, NoLoader};
pub use server::{CodeServer, LoadError};
pub use table::{FinishError, Finished, ModuleTable, PendingOnLoad};

/// The modules that an emulator of a release holds from the start (`erlang:pre_loaded/0`), in its order.
pub fn preloaded(release: beamr_term::Release) -> impl Iterator<Item = &'static str> {
    const NAMES: [&str; 22] = [
        "persistent_term",
        "counters",
        "atomics",
        "erts_dirty_process_signal_handler",
        "erts_trace_cleaner",
        "erts_literal_area_collector",
        "erl_tracer",
        "erts_internal",
        "erlang",
        "erl_prim_loader",
        "prim_zip",
        "prim_net",
        "prim_socket",
        "socket_registry",
        "zlib",
        "prim_file",
        "prim_inet",
        "prim_eval",
        "prim_buffer",
        "init",
        "erl_init",
        "erts_code_purger",
    ];
    NAMES
        .into_iter()
        .filter(move |n| *n != "erts_trace_cleaner" || release.0 >= 27)
}
