//! The arrows between crates: who may depend on whom. The test fails on any arrow that ARCHITECTURE.md
//! does not draw.

use std::path::Path;

use crate::setup::root;

/// Crate and what it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("beamr-file", &[]),
    ("beamr-term", &[]),
    ("beamr-sync", &[]),
    ("beamr-abi", &["beamr-term"]),
    (
        "beamr-vm",
        &["beamr-file", "beamr-term", "beamr-sync", "beamr-abi"],
    ),
    ("beamr-interp", &["beamr-term", "beamr-abi", "beamr-vm"]),
    (
        "beamr-natives",
        &["beamr-file", "beamr-term", "beamr-abi", "beamr-vm"],
    ),
    ("beamr-io", &["beamr-vm"]),
    (
        "beamr",
        &[
            "beamr-file",
            "beamr-term",
            "beamr-abi",
            "beamr-vm",
            "beamr-interp",
            "beamr-io",
            "beamr-natives",
        ],
    ),
    ("beamr-cli", &["beamr"]),
];

/// The crates that the `[dependencies]` of a manifest names (also target-specific ones).
fn arrows(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut out = Vec::new();
    for line in manifest.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-");
        } else if inside && line.starts_with("beamr") {
            let name: String = line
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '-' || *c == '_')
                .collect();
            out.push(name);
        }
    }
    out
}

fn check_in(crates: &Path) -> Result<usize, String> {
    let mut n = 0;
    let entries = std::fs::read_dir(crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else {
            continue;
        };
        let Some((_, allowed)) = ALLOWED.iter().find(|(c, _)| *c == name) else {
            return Err(format!(
                "crate {name} is not on the map; see xtask/src/layers.rs"
            ));
        };
        for to in arrows(&manifest) {
            if !allowed.contains(&to.as_str()) {
                return Err(format!("{name} must not depend on {to}"));
            }
            n += 1;
        }
    }
    Ok(n)
}

/// Checks every crate; gives the number of arrows.
pub fn check() -> Result<usize, String> {
    check_in(&root().join("crates"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrows_hold() {
        assert!(check().unwrap() >= 10);
    }

    #[test]
    fn a_forbidden_arrow_is_found() {
        let dir = std::env::temp_dir().join(format!("beamr-layers-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("beamr-term")).unwrap();
        std::fs::write(
            dir.join("beamr-term/Cargo.toml"),
            "[dependencies]\nbeamr-vm.workspace = true\n",
        )
        .unwrap();
        let e = check_in(&dir).unwrap_err();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(e, "beamr-term must not depend on beamr-vm");
    }
}
