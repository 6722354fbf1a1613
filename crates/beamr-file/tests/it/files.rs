//! Real files: what is decoded is what was compiled, and is written again as it was.

use beamr_file::{Arg, AtomFormat, BeamFile, Module, Op, inspect, type_bits, validate};

use crate::{FIXTURES, fixture};

fn module(name: &str) -> Module {
    Module::from_bytes(fixture(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The chunks that a module writes.
const WRITTEN: [&[u8; 4]; 12] = [
    b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"LocT", b"FunT", b"LitT", b"Line", b"Type",
    b"Recs", b"DbgB",
];

#[test]
fn every_chunk_is_written_as_it_was() {
    for (name, bytes) in FIXTURES {
        let file = BeamFile::parse(bytes).unwrap();
        let module = Module::decode(&file).unwrap();
        if !file.compressed {
            assert_eq!(file.to_bytes(), bytes, "{name}");
        }
        for id in WRITTEN {
            let id_text = String::from_utf8_lossy(id);
            let (Some(old), new) = (file.chunk(id), module.encode_chunk(id)) else {
                continue;
            };
            let new = new.unwrap_or_else(|| panic!("{name}: {id_text} is not written"));
            if id == b"LitT" && module.literals.compressed {
                // Compared by content: another compressor gives other bytes.
                let mut again = file.clone();
                again
                    .chunks
                    .iter_mut()
                    .filter(|c| c.id.0 == *id)
                    .for_each(|c| c.data = new.clone());
                let again = Module::decode(&again).unwrap();
                assert!(again.literals.iter().eq(module.literals.iter()), "{name}");
            } else {
                assert_eq!(new, old, "{name}: {id_text}");
            }
        }
    }
}

#[test]
fn every_fixture_is_valid() {
    for (name, bytes) in FIXTURES {
        let module = Module::from_bytes(bytes).unwrap();
        let valid = validate(&module).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(valid.functions.len(), module.code.function_count as usize);
        for f in &valid.functions {
            assert!(
                valid.is_reachable(f.entry),
                "{name}: {}/{}",
                module.atom(f.name),
                f.arity
            );
            assert_eq!(valid.function_of_label(f.label), Some(f));
        }
        assert_eq!(valid.peeked_calls, [0u32; 0]);
    }
}

/// As `beam_lib:md5/1` of the release gives them.
#[test]
fn md5_is_that_of_otp() {
    for (name, md5) in [
        ("25/small", "d0183a672fd50d015a489b2aa600edec"),
        ("25/mix", "d4ab3d2961f2e2222d8ed9172aa5a5d2"),
        ("29/mix_debug", "f2652ce94d85126253770ed978321b6e"),
        ("29/records", "4ce4ffd4b3c1c7793bf5e77c48633988"),
    ] {
        let text: String = module(name)
            .md5
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(text, md5, "{name}");
    }
    // Compression of the whole file does not count.
    assert_eq!(module("25/small").md5, module("25/small_gz").md5);
}

#[test]
fn formats_of_the_releases() {
    for (name, atoms, types, compressed) in [
        ("25/mix", AtomFormat::Short, 1, true),
        ("27/mix", AtomFormat::Short, 3, true),
        ("29/mix", AtomFormat::Long, 4, false),
    ] {
        let m = module(name);
        assert_eq!(m.name, "mix");
        assert_eq!(m.atoms.format, atoms, "{name}");
        assert_eq!(m.types.version, types, "{name}");
        assert_eq!(m.literals.compressed, compressed, "{name}");
        assert!(m.atoms.find("näme").is_some(), "{name}");
        assert!(
            m.exports
                .iter()
                .any(|e| m.atom(e.function) == "pick" && e.arity == 1)
        );
        assert_eq!(
            m.types.get(0).unwrap().bits | type_bits::RECORD,
            type_bits::ANY
        );
        assert!(m.literals.iter().all(|l| l[0] == 131), "{name}");
        assert_eq!(m.lambdas.len(), 2, "{name}");
        assert_eq!(m.lambdas.iter().map(|l| l.num_free).max(), Some(1));
        // All files of a compiler's line table are the module itself here.
        assert!(
            m.lines.entries.len() > 10 && m.lines.files.is_empty(),
            "{name}"
        );
        assert_eq!(m.lines.entries[1].line, 7, "{name}");
    }
}

/// A type with bounds says the same in each version of the format.
#[test]
fn bounds_of_types() {
    for (name, expected) in [
        ("27/mix", (Some(0), Some(255))),
        ("29/mix", (Some(0), Some(255))),
    ] {
        let m = module(name);
        let found =
            m.types.entries.iter().any(|t| {
                t.bits == type_bits::INTEGER && (t.lower, t.upper) == expected && t.unit == 1
            });
        assert!(found, "{name}: {:?}", m.types.entries);
    }
}

#[test]
fn large_integers() {
    let m = module("25/mix");
    let bigs: Vec<_> = m
        .code
        .instrs
        .iter()
        .flat_map(|i| m.code.args(i))
        .flat_map(|&a| {
            m.code
                .list_of(a)
                .iter()
                .chain([&a])
                .copied()
                .collect::<Vec<_>>()
        })
        .filter_map(|a| {
            if let Arg::Big(n) = a {
                Some(m.code.big(n).clone())
            } else {
                None
            }
        })
        .collect();
    // A case of pick/1.
    assert_eq!(bigs.len(), 1);
    assert!(!bigs[0].negative);
    assert_eq!(bigs[0].limbs, [0x4567_89ab_cdef_0123, 0x123]);
}

#[test]
fn coverage_and_on_load() {
    let m = module("27/small_cover");
    assert_eq!(m.lines.flags & 1, 1);
    assert!(m.code.instrs.iter().any(|i| i.op == Op::ExecutableLine));
    for release in ["25", "27", "29"] {
        let m = module(&format!("{release}/onload"));
        assert_eq!(
            m.code.instrs.iter().filter(|i| i.op == Op::OnLoad).count(),
            1
        );
    }
}

#[test]
fn native_records() {
    let m = module("29/records");
    let text: Vec<_> = m
        .records
        .records
        .iter()
        .map(|r| {
            let fields: Vec<_> = m
                .records
                .fields(r)
                .map(|f| format!("{}={:?}", m.atom(f.name), f.default))
                .collect();
            format!(
                "{} {} {}",
                m.atom(r.name),
                m.atom(r.exported),
                fields.join(" ")
            )
        })
        .collect();
    assert_eq!(
        text,
        [
            "point true x=Some(I(1)) y=None z=Some(Literal(0))",
            "empty false "
        ]
    );
}

#[test]
fn debug_info() {
    let m = module("29/mix_debug");
    let debug = m.debug.as_ref().expect("the chunk is there");
    assert_eq!(debug.version, 1);
    let stops = m
        .code
        .instrs
        .iter()
        .filter(|i| i.op == Op::DebugLine)
        .count();
    assert!(stops > 10);
    assert_eq!(
        debug.items.iter().filter(|i| i.kind == 0).count(),
        debug.stop_count as usize
    );
    let elements: usize = debug
        .items
        .iter()
        .map(|i| {
            if let Arg::List(span) = i.value {
                span.len as usize
            } else {
                0
            }
        })
        .sum();
    assert_eq!(elements, debug.term_count as usize);
}

#[test]
fn listing() {
    for name in ["25/small", "29/small"] {
        let file = BeamFile::parse(fixture(name)).unwrap();
        let module = Module::decode(&file).unwrap();
        let mut text = Vec::new();
        inspect(&file, &module, &|_| Some("TERM".into()), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let path = format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, expected, "{name}; UPDATE_EXPECT=1 writes it anew");
    }
}
