//! Code: images, instances, module tables, loading.

/// The code of a VM.
#[derive(Debug)]
pub struct CodeServer {}

/// The modules of a namespace.
#[derive(Debug)]
pub struct ModuleTable {}

impl ModuleTable {
    /// Code positions by export id.
    pub fn exports_ptr(&self) -> *const std::sync::atomic::AtomicPtr<u64> {
        std::ptr::null()
    }
    /// Instances by image number.
    pub fn instances_ptr(&self) -> *const std::sync::atomic::AtomicPtr<()> {
        std::ptr::null()
    }
}
