//! What a VM says of itself: versions and names of the OTP whose libraries it runs.

use std::sync::Arc;

use beamr_term::Release;
use beamr_vm::vm::Vm;

/// See the module. The facade sets it from the OTP root ([`Identity::set`]); otherwise it follows from the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `system_info(version)`: that of `erts`.
    pub erts: String,
    /// `system_info(system_architecture)`.
    pub architecture: String,
}

impl Identity {
    /// What a release's first public builds say.
    pub fn of_release(release: Release) -> Identity {
        let erts = match release.0 {
            ..=24 => "12.3.2".to_owned(),
            25 => "13.1.5".to_owned(),
            26 => "14.2.5".to_owned(),
            27 => "15.2.7".to_owned(),
            28 => "16.1".to_owned(),
            29 => "17.1.1".to_owned(),
            n => format!("{}.0", n - 12),
        };
        let os = match std::env::consts::OS {
            "linux" => "pc-linux-gnu",
            "macos" => "apple-darwin",
            other => other,
        };
        Identity {
            erts,
            architecture: format!("{}-{os}", std::env::consts::ARCH),
        }
    }
    /// Sets it; what was set (or asked for) first stays.
    pub fn set(vm: &Vm, identity: Identity) {
        vm.extensions.get_or_init(|| identity);
    }
    /// That of a VM.
    pub fn get(vm: &Vm) -> Arc<Identity> {
        let release = vm.tables.release;
        vm.extensions.get_or_init(|| Identity::of_release(release))
    }
}
