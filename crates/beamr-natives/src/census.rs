//! Which natives OTP 25, 27 and 29 have, how much they are used there, and which of them exist here.
//!
//! `natives.tsv` is the table; `cargo xtask natives` prints what follows from it.

use std::collections::BTreeMap;

use beamr_term::Release;

const TABLE: &str = include_str!("../natives.tsv");

/// The releases of the table.
pub const RELEASES: [Release; 3] = [Release::OTP25, Release::OTP27, Release::OTP29];

/// One native of OTP.
#[derive(Clone, Debug)]
pub struct Row {
    /// Module.
    pub module: &'static str,
    /// Function.
    pub function: &'static str,
    /// Arity.
    pub arity: u8,
    /// `bif`, `guard-bif`, `bif-heavy` or `static-nif`.
    pub kind: &'static str,
    /// Call sites and fun references by release; `None` where it does not exist.
    pub sites: [Option<u32>; 3],
    /// The table says that it is missing here.
    pub missing: bool,
}

/// The table; lines that are not well formed are left out (a test finds them).
pub fn rows() -> Vec<Row> {
    TABLE
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(row)
        .collect()
}

fn row(line: &'static str) -> Option<Row> {
    let f: Vec<&'static str> = line.split('\t').collect();
    let [module, function, arity, kind, a, b, c, state] = f.as_slice() else {
        return None;
    };
    let sites = |s: &str| (s != "-").then(|| s.parse().unwrap_or(0));
    Some(Row {
        module,
        function,
        arity: arity.parse().ok()?,
        kind,
        sites: [sites(a), sites(b), sites(c)],
        missing: *state == "missing",
    })
}

/// Natives and uses, of which so many are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Natives that exist in OTP.
    pub natives: usize,
    /// Of those, built here.
    pub built: usize,
    /// Their call sites.
    pub sites: u64,
    /// Call sites of those built here.
    pub covered: u64,
}

impl Share {
    fn add(&mut self, sites: u32, built: bool) {
        self.natives += 1;
        self.sites += u64::from(sites);
        if built {
            self.built += 1;
            self.covered += u64::from(sites);
        }
    }
    /// Percent of the call sites; of the natives when none is called.
    pub fn percent(&self) -> f64 {
        let (part, all) = if self.sites > 0 {
            (self.covered as f64, self.sites as f64)
        } else {
            (self.built as f64, self.natives.max(1) as f64)
        };
        100.0 * part / all
    }
}

/// The coverage of one release: in all, and by module.
pub fn coverage(release: usize) -> (Share, BTreeMap<&'static str, Share>) {
    let mut all = Share::default();
    let mut modules: BTreeMap<&'static str, Share> = BTreeMap::new();
    for r in rows() {
        if let Some(sites) = r.sites[release] {
            all.add(sites, !r.missing);
            modules.entry(r.module).or_default().add(sites, !r.missing);
        }
    }
    (all, modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_row() {
        let lines = TABLE.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(rows().len(), lines);
        assert!(lines > 700);
    }

    /// What OTP has as instructions, or under another name.
    const OURS: &[(&str, &str, u8)] = &[
        ("erlang", "apply", 2),
        ("erlang", "yield", 0),
        ("erts_internal", "release_literal_area_switch", 0),
    ];

    /// The marks of the table are those of the registered natives, in both directions.
    #[test]
    fn the_table_says_what_is_registered() {
        let tables = RELEASES.map(|r| crate::table(r).unwrap());
        let mut wrong = String::new();
        let mut known = std::collections::HashSet::new();
        for r in rows() {
            known.insert((r.module, r.function, r.arity));
            for (i, t) in tables.iter().enumerate() {
                let here = t.get(r.module, r.function, r.arity).is_some();
                let there = r.sites[i].is_some();
                if here != (there && !r.missing) {
                    let state = if here { "is" } else { "is not" };
                    wrong += &format!(
                        "{}:{}/{} {state} registered for {:?}\n",
                        r.module, r.function, r.arity, RELEASES[i]
                    );
                }
            }
        }
        for t in &tables {
            for e in t.iter() {
                let name = (e.module, e.function, e.arity);
                if !known.contains(&name) && !OURS.contains(&name) {
                    wrong += &format!("{}:{}/{} is none of OTP's\n", e.module, e.function, e.arity);
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn shares_count() {
        let mut s = Share::default();
        s.add(3, true);
        s.add(1, false);
        assert_eq!(s.percent(), 75.0);
        assert_eq!((s.natives, s.built), (2, 1));
    }
}
