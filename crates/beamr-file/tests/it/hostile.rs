//! Bytes that mean harm: errors, never panics, never much work.

use beamr_file::{
    BeamFile, Chunk, ChunkId, ErrorKind, Fault, FileError, Limits, Module, disassemble, validate,
};

use crate::asm::assemble;
use crate::machine::walk;
use crate::{FIXTURES, fixture};

/// A generator that gives the same numbers everywhere.
pub struct Random(u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => bytes.insert(at, random.next() as u8),
            4 => drop(bytes.remove(at)),
            _ => {
                let from = random.below(bytes.len());
                bytes[at] = bytes[from];
            }
        }
    }
}

/// Everything that this crate does with a file; what is valid keeps its promises.
fn run(file: &BeamFile) -> (bool, bool) {
    let Ok(module) = Module::decode(file) else {
        return (false, false);
    };
    for id in [
        b"Code", b"AtU8", b"ImpT", b"ExpT", b"FunT", b"Type", b"Line",
    ] {
        if let (Some(old), Some(new)) = (file.chunk(id), module.encode_chunk(id)) {
            assert_eq!(
                old,
                new,
                "{} is written otherwise than read",
                id.escape_ascii()
            );
        }
    }
    disassemble(&module, &|_| None, &mut std::io::sink()).unwrap();
    let valid = validate(&module);
    if let Ok(v) = &valid {
        assert!(v.work <= (1 << 21) + 128 * module.code.instrs.len() as u64);
        walk(&module, v, &mut Random(0xfeed_beef), 500);
    }
    (true, valid.is_ok())
}

/// Mutated chunks, one at a time, so that the container does not hide the rest.
#[test]
fn mutations_of_chunks() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut decoded, mut valid) = (0, 0);
    for (_, bytes) in FIXTURES {
        let file = BeamFile::parse(bytes).unwrap();
        for id in [
            b"Code", b"Code", b"Code", b"AtU8", b"LitT", b"Line", b"Type", b"FunT", b"Recs",
        ] {
            if file.chunk(id).is_none() {
                continue;
            }
            for _ in 0..60 * rounds() {
                let mut file = file.clone();
                let chunk = file.chunks.iter_mut().find(|c| c.id.0 == *id).unwrap();
                mutate(&mut chunk.data, &mut random);
                let (d, v) = run(&file);
                decoded += d as usize;
                valid += v as usize;
            }
        }
    }
    // The test must reach the parts behind the decoder.
    assert!(
        decoded > 1000 && valid > 100,
        "{decoded} decoded, {valid} valid"
    );
}

/// How many times more than usual: `BEAMR_FILE_ROUNDS=100` for a long search.
fn rounds() -> usize {
    std::env::var("BEAMR_FILE_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1)
}

/// Whole instructions removed, repeated, exchanged, and operands changed: most of it
/// decodes, and much of it is almost valid.
#[test]
fn mutations_of_instructions() {
    let mut random = Random(0x5151_0000_dead_0001);
    let (mut valid, mut all) = (0, 0);
    for _ in 0..rounds() {
        for (_, bytes) in FIXTURES {
            let file = BeamFile::parse(bytes).unwrap();
            let module = Module::decode(&file).unwrap();
            let mut at: Vec<usize> = module
                .code
                .instrs
                .iter()
                .map(|i| i.offset as usize)
                .collect();
            let data = file.chunk(b"Code").unwrap();
            at.push(data.len());
            let parts: Vec<&[u8]> = at.windows(2).map(|w| &data[w[0]..w[1]]).collect();
            for _ in 0..150 {
                let mut parts: Vec<Vec<u8>> = parts.iter().map(|p| p.to_vec()).collect();
                for _ in 0..1 + random.below(3) {
                    let n = random.below(parts.len());
                    let m = random.below(parts.len());
                    match random.below(5) {
                        0 => drop(parts.remove(n)),
                        1 => parts.insert(m, parts[n].clone()),
                        2 => parts.swap(n, m),
                        3 => parts.swap(n, (n + 1).min(m)),
                        _ => {
                            let byte = 1 + random.below(parts[n].len());
                            if let Some(byte) = parts[n].get_mut(byte) {
                                // The value of a short operand.
                                *byte = *byte & 0x0f | (random.next() as u8 & 0x70);
                            }
                        }
                    }
                }
                let code = [&data[..at[0]], &parts.concat()].concat();
                let mut file = file.clone();
                file.chunks
                    .iter_mut()
                    .find(|c| c.id.0 == *b"Code")
                    .unwrap()
                    .data = code;
                all += 1;
                valid += run(&file).1 as usize;
            }
        }
    }
    assert!(valid * 20 > all, "{valid} of {all}");
}

/// Long walks through what compilers wrote.
#[test]
fn fixtures_keep_their_promises() {
    let mut random = Random(0x0dd_ba11);
    for (name, bytes) in FIXTURES {
        let module = Module::from_bytes(bytes).unwrap();
        let valid = validate(&module).unwrap();
        let done = walk(&module, &valid, &mut random, 50_000);
        assert!(done >= 25_000, "{name}: {done}");
    }
}

#[test]
fn mutations_of_files() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for (_, bytes) in FIXTURES {
        for _ in 0..100 {
            let mut bytes = bytes.to_vec();
            mutate(&mut bytes, &mut random);
            if let Ok(file) = BeamFile::parse(&bytes) {
                run(&file);
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = fixture("29/mix");
    for len in 0..bytes.len() {
        assert!(BeamFile::parse(&bytes[..len]).is_err(), "{len}");
    }
    for (_, bytes) in FIXTURES {
        let file = BeamFile::parse(bytes).unwrap();
        for (n, chunk) in file.chunks.iter().enumerate() {
            for len in 0..chunk.data.len() {
                let mut cut = file.clone();
                cut.chunks[n].data.truncate(len);
                run(&cut);
            }
        }
    }
}

fn with_chunk(id: &[u8; 4], data: Vec<u8>) -> Result<Module, FileError> {
    let mut file = BeamFile::parse(fixture("25/mix")).unwrap();
    file.chunks.retain(|c| c.id.0 != *id);
    file.chunks.push(Chunk {
        id: ChunkId(*id),
        data,
    });
    Module::decode(&file)
}

fn zlib(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    z.write_all(data).unwrap();
    z.finish().unwrap()
}

#[test]
fn compression_bombs() {
    // Declares little, inflates to much.
    let mut data = 100u32.to_be_bytes().to_vec();
    data.extend(zlib(&vec![0; 4 << 20]));
    let e = with_chunk(b"LitT", data).unwrap_err();
    assert_eq!(
        e.kind,
        ErrorKind::Limit {
            what: "literal size",
            limit: 100
        }
    );
    // Declares too much.
    let mut data = u32::MAX.to_be_bytes().to_vec();
    data.extend(zlib(&[0; 4]));
    let e = with_chunk(b"LitT", data).unwrap_err();
    assert!(matches!(e.kind, ErrorKind::Limit { .. }), "{e}");
    // Declares more than there is.
    let mut data = 5u32.to_be_bytes().to_vec();
    data.extend(zlib(&[0; 4]));
    assert_eq!(
        with_chunk(b"LitT", data).unwrap_err().kind,
        ErrorKind::WrongSize(5)
    );
    // A file that inflates to too much.
    let limits = Limits {
        file: 500,
        ..Limits::default()
    };
    let e = BeamFile::parse_with(fixture("25/small_gz"), &limits).unwrap_err();
    assert_eq!(
        e.kind,
        ErrorKind::Limit {
            what: "file size",
            limit: 500
        }
    );
}

/// Counts that promise more than the chunk can hold are refused before anything
/// is allocated for them.
#[test]
fn giant_counts() {
    let huge = u32::MAX.to_be_bytes();
    for id in [b"ImpT", b"ExpT", b"LocT", b"FunT"] {
        let e = with_chunk(id, huge.to_vec()).unwrap_err();
        assert_eq!((e.chunk, e.kind), (ChunkId(*id), ErrorKind::Truncated));
    }
    for count in [i32::MAX, i32::MIN, -1] {
        assert!(with_chunk(b"AtU8", count.to_be_bytes().to_vec()).is_err());
    }
    let types = [1u32.to_be_bytes(), huge].concat();
    assert!(with_chunk(b"Type", types).is_err());
    let lines = [[0; 4], [0; 4], [0; 4], huge, huge].concat();
    assert!(with_chunk(b"Line", lines).is_err());
    // A list operand of 2^31 elements.
    let mut code = Vec::new();
    for v in [16u32, 0, 180, 1, 0] {
        code.extend(v.to_be_bytes());
    }
    code.extend([172, 0x17, 0x58, 0, 0x7f, 0xff, 0xff, 0xff]);
    let e = with_chunk(b"Code", code).unwrap_err();
    assert!(e.chunk == ChunkId(*b"Code"), "{e}");
}

/// Code that makes the analysis visit blocks again and again is refused in
/// bounded time: long chains of jumps, each with a register less.
#[test]
fn work_is_bounded() {
    let n = 900;
    let mut text = String::from("fn f/0\n");
    for x in 0..n {
        text += &format!("move a x{x}\n");
    }
    // Every block jumps to all later ones with one more register dead.
    for b in 0..3000 {
        text += &format!(
            "is_atom L:b{} a\ntest_heap 0 {}\n",
            (b * 7 + 13) % 3000,
            900 - b % 900
        );
        text += &format!("b{b}:\n");
    }
    text += "jump L:b0\n";
    let module = Module::from_bytes(&assemble(&text)).unwrap();
    match validate(&module) {
        Ok(v) => assert!(v.work <= (1 << 20) + 64 * module.code.instrs.len() as u64),
        Err(e) => assert!(matches!(e.what, Fault::Budget | Fault::X(..)), "{e}"),
    }
}

#[test]
fn places_of_errors() {
    let e = with_chunk(b"ImpT", [1u32, 99, 1, 0].map(u32::to_be_bytes).concat()).unwrap_err();
    assert_eq!((e.chunk, e.offset), (ChunkId(*b"ImpT"), 4));
    assert!(
        matches!(
            e.kind,
            ErrorKind::BadIndex {
                what: "atom",
                index: 99,
                ..
            }
        ),
        "{e}"
    );
    let mut code = Vec::new();
    for v in [16u32, 0, 180, 1, 0] {
        code.extend(v.to_be_bytes());
    }
    code.extend([19, 250]);
    let e = with_chunk(b"Code", code).unwrap_err();
    assert_eq!((e.offset, e.kind), (21, ErrorKind::UnknownOp(250)));
    assert_eq!(
        BeamFile::parse(b"hello").unwrap_err().kind,
        ErrorKind::NotBeam
    );
}
