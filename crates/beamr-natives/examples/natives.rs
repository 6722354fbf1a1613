//! Prints the coverage of OTP's natives, weighted by their call sites. `cargo xtask natives` runs it.

use beamr_natives::census::{self, RELEASES, Share};

fn line(name: &str, s: &Share) {
    println!(
        "  {name:<28} {:>4} of {:>4} natives  {:>6} of {:>6} call sites  {:>6.2} %",
        s.built,
        s.natives,
        s.covered,
        s.sites,
        s.percent()
    );
}

fn main() {
    for (i, release) in RELEASES.iter().enumerate() {
        let (all, modules) = census::coverage(i);
        println!("OTP {}", release.0);
        line("all", &all);
        for (module, share) in &modules {
            line(module, share);
        }
        println!();
    }
    let mut missing: Vec<census::Row> = census::rows().into_iter().filter(|r| r.missing).collect();
    let weight = |r: &census::Row| r.sites.iter().flatten().sum::<u32>();
    missing.sort_by_key(|r| std::cmp::Reverse(weight(r)));
    println!("missing, by use ({})", missing.len());
    for r in &missing {
        let sites = r.sites.map(|s| s.map_or("-".to_owned(), |n| n.to_string()));
        println!(
            "  {:<50} {:>5} {:>5} {:>5}",
            format!("{}:{}/{}", r.module, r.function, r.arity),
            sites[0],
            sites[1],
            sites[2]
        );
    }
}
