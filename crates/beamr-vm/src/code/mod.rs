//! Code: images, instances, module tables, loading.

/// The code of a VM.
#[derive(Debug)]
pub struct CodeServer {}

/// The modules of a namespace.
#[derive(Debug)]
pub struct ModuleTable {}
