//! `binary`: searching, splitting, parts, unsigned integers.
//!
//! Searching uses `memchr` (one pattern) and `aho-corasick` (several: leftmost match, longest of those that
//! start there). A compiled pattern is a magic reference in `{bm, Ref}` or `{ac, Ref}`.

use aho_corasick::{AhoCorasick, MatchKind};
use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::{self, BitsView};
use beamr_term::{BinaryRef, Build, Subtag, Word};
use beamr_vm::process::has_room;
use memchr::memmem;

use crate::erlang::binaries as erl;
use crate::resources;
use crate::support::{ListBuilder, cost, list_items};

/// A compiled pattern.
enum Pattern {
    /// Up to three single bytes; the last one stands for the missing ones. The flag: whether the pattern was a list.
    Bytes([u8; 3], bool),
    One(Box<memmem::Finder<'static>>),
    /// A few short ones, for a search that is not worth an automaton.
    Few(Box<Few>),
    Several(AhoCorasick),
}

/// Patterns that are tried one after the other, the longest first, where their first bytes are.
struct Few {
    first: [bool; 256],
    needles: Vec<Vec<u8>>,
}

/// Bytes of all patterns at most for [`Few`], whose costs are this times the length of the subject.
const FEW: usize = 64;
/// From this length of a subject on the automaton pays.
const LONG: usize = 2048;

impl Few {
    fn find(&self, hay: &[u8], at: usize) -> Option<(usize, usize)> {
        let mut at = at;
        loop {
            let skip = hay[at..].iter().position(|b| self.first[usize::from(*b)])?;
            at += skip;
            if let Some(n) = self.needles.iter().find(|n| hay[at..].starts_with(n)) {
                return Some((at, n.len()));
            }
            at += 1;
        }
    }
}

impl Pattern {
    /// What its tuple begins with.
    fn tag(&self) -> &'static str {
        match self {
            Pattern::Bytes(_, false) | Pattern::One(_) => "bm",
            Pattern::Bytes(_, true) | Pattern::Few(_) | Pattern::Several(_) => "ac",
        }
    }
    fn find(&self, hay: &[u8], at: usize) -> Option<(usize, usize)> {
        match self {
            Pattern::Bytes([a, b, c], _) => {
                let hay = &hay[at..];
                let found = if a == b {
                    memchr::memchr(*a, hay)
                } else if b == c {
                    memchr::memchr2(*a, *b, hay)
                } else {
                    memchr::memchr3(*a, *b, *c, hay)
                };
                found.map(|i| (at + i, 1))
            }
            Pattern::One(f) => f.find(&hay[at..]).map(|i| (at + i, f.needle().len())),
            Pattern::Few(f) => f.find(hay, at),
            Pattern::Several(ac) => ac
                .find(aho_corasick::Input::new(hay).range(at..))
                .map(|m| (m.start(), m.end() - m.start())),
        }
    }
    /// For several patterns that are not empty, and a subject of this length (`None`: of any).
    fn several(mut needles: Vec<Vec<u8>>, subject: Option<usize>) -> Option<Pattern> {
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        if needles.len() <= 3 && needles.iter().all(|n| n.len() == 1) {
            let byte = |i: usize| needles[i.min(needles.len() - 1)][0];
            return Some(Pattern::Bytes([byte(0), byte(1), byte(2)], true));
        }
        let bytes: usize = needles.iter().map(Vec::len).sum();
        if bytes <= FEW && subject.is_some_and(|n| n < LONG) {
            let mut first = [false; 256];
            for n in &needles {
                first[usize::from(n[0])] = true;
            }
            return Some(Pattern::Few(Box::new(Few { first, needles })));
        }
        AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(needles)
            .map(Pattern::Several)
            .ok()
    }
}

fn binary_arg(ctx: &mut Ctx, w: Word) -> Result<BitsView, Escape> {
    match BitsView::of(w) {
        Some(v) if w.is_bitstring() && v.is_binary() => Ok(v),
        _ => Err(ctx.badarg()),
    }
}

/// Compiles a binary or a list of binaries; none may be empty. `subject` is the length of what is searched, when that is known.
fn compile(ctx: &mut Ctx, w: Word, subject: Option<usize>) -> Result<Pattern, Escape> {
    if w.is_bitstring() {
        let v = binary_arg(ctx, w)?;
        return match &*v.to_bytes() {
            [] => Err(ctx.badarg()),
            [b] => Ok(Pattern::Bytes([*b; 3], false)),
            one => Ok(Pattern::One(Box::new(
                memmem::Finder::new(one).into_owned(),
            ))),
        };
    }
    let mut needles = Vec::new();
    for item in list_items(ctx, w)? {
        let v = binary_arg(ctx, item)?;
        if v.bit_size == 0 {
            return Err(ctx.badarg());
        }
        needles.push(v.to_bytes().into_owned());
    }
    match needles.as_slice() {
        [] => Err(ctx.badarg()),
        [one] if one.len() == 1 => Ok(Pattern::Bytes([one[0]; 3], false)),
        [one] => Ok(Pattern::One(Box::new(
            memmem::Finder::new(one).into_owned(),
        ))),
        _ => Pattern::several(needles, subject).ok_or_else(|| ctx.system_limit()),
    }
}

/// The compiled pattern behind `{bm, Ref}` or `{ac, Ref}`.
fn compiled<'a>(ctx: &Ctx, w: Word) -> Option<&'a Pattern> {
    let [tag, r] = w.as_tuple()? else { return None };
    let pattern: &Pattern = resources::get(*r)?;
    let tag = ctx.tables().atoms.text(tag.as_atom()?);
    (tag == pattern.tag()).then_some(pattern)
}

/// Runs `f` with the pattern that `w` is or denotes.
fn with_pattern<T>(
    ctx: &mut Ctx,
    w: Word,
    subject: &BitsView,
    f: impl FnOnce(&mut Ctx, &Pattern) -> Result<T, Escape>,
) -> Result<T, Escape> {
    if w.is_tuple() {
        match compiled(ctx, w) {
            Some(p) => f(ctx, p),
            None => Err(ctx.badarg()),
        }
    } else {
        let p = compile(ctx, w, Some(subject.byte_len()))?;
        f(ctx, &p)
    }
}

/// `binary:compile_pattern(Pattern)`.
fn compile_pattern_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let p = compile(ctx, args[0], None)?;
    let tag = ctx.atom(p.tag())?;
    let r = resources::new(ctx, p);
    Ok(ctx.tuple(&[tag, r]))
}

/// Options of match, matches and split.
#[derive(Default)]
struct Options {
    scope: Option<(i64, i64)>,
    global: bool,
    trim: bool,
    trim_all: bool,
}

fn options(ctx: &mut Ctx, list: Word, split: bool) -> Result<Options, Escape> {
    let mut o = Options::default();
    for item in list_items(ctx, list)? {
        if let Some([key, value]) = item.as_tuple()
            && key
                .as_atom()
                .is_some_and(|a| ctx.tables().atoms.text(a) == "scope")
            && let Some([s, l]) = value.as_tuple()
            && let (Some(s), Some(l)) = (s.as_small(), l.as_small())
        {
            o.scope = Some((s, l));
            continue;
        }
        let name = item.as_atom().map(|a| ctx.tables().atoms.text(a));
        match name {
            Some("global") if split => o.global = true,
            Some("trim") if split => o.trim = true,
            Some("trim_all") if split => o.trim_all = true,
            _ => return Err(ctx.badarg()),
        }
    }
    Ok(o)
}

/// The byte range of the scope.
fn scope(ctx: &mut Ctx, o: &Options, len: usize) -> Result<(usize, usize), Escape> {
    let Some((mut start, mut n)) = o.scope else {
        return Ok((0, len));
    };
    if n < 0 {
        start = start.wrapping_add(n);
        n = -n;
    }
    match start.checked_add(n) {
        Some(end) if start >= 0 && end as u64 <= len as u64 => Ok((start as usize, end as usize)),
        _ => Err(ctx.badarg()),
    }
}

fn found(ctx: &mut Ctx, (at, len): (usize, usize)) -> Word {
    ctx.tuple(&[Word::fixnum(at as i64), Word::fixnum(len as i64)])
}

fn do_match(ctx: &mut Ctx, subject: Word, pattern: Word, o: &Options) -> Result<Word, Escape> {
    let v = binary_arg(ctx, subject)?;
    with_pattern(ctx, pattern, &v, |ctx, p| {
        let bytes = v.to_bytes();
        let (start, end) = scope(ctx, o, bytes.len())?;
        ctx.bump(cost(end - start));
        match p.find(&bytes[..end], start) {
            Some(m) => Ok(found(ctx, m)),
            None => ctx.atom("nomatch"),
        }
    })
}

/// `binary:match(Subject, Pattern)`.
fn match_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    do_match(ctx, args[0], args[1], &Options::default())
}

/// `binary:match(Subject, Pattern, Options)`.
fn match_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let o = options(ctx, args[2], false)?;
    do_match(ctx, args[0], args[1], &o)
}

fn do_matches(ctx: &mut Ctx, subject: Word, pattern: Word, o: &Options) -> Result<Word, Escape> {
    let v = binary_arg(ctx, subject)?;
    with_pattern(ctx, pattern, &v, |ctx, p| {
        let bytes = v.to_bytes();
        let (mut at, end) = scope(ctx, o, bytes.len())?;
        ctx.bump(cost(end - at));
        let mut out = ListBuilder::new();
        while let Some(m) = p.find(&bytes[..end], at) {
            let w = found(ctx, m);
            out.push(ctx, w);
            at = m.0 + m.1;
        }
        Ok(out.finish(Word::NIL))
    })
}

/// `binary:matches(Subject, Pattern)`.
fn matches_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    do_matches(ctx, args[0], args[1], &Options::default())
}

/// `binary:matches(Subject, Pattern, Options)`.
fn matches_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let o = options(ctx, args[2], false)?;
    do_matches(ctx, args[0], args[1], &o)
}

fn do_split(ctx: &mut Ctx, subject: Word, pattern: Word, o: &Options) -> Result<Word, Escape> {
    let v = binary_arg(ctx, subject)?;
    with_pattern(ctx, pattern, &v, |ctx, p| {
        let bytes = v.to_bytes();
        let (start, end) = scope(ctx, o, bytes.len())?;
        ctx.bump(cost(end - start));
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let (mut from, mut at) = (0, start);
        while let Some((m, len)) = p.find(&bytes[..end], at) {
            parts.push((from, m));
            from = m + len;
            at = from;
            if !o.global {
                break;
            }
        }
        parts.push((from, bytes.len()));
        if o.trim_all {
            parts.retain(|(a, b)| a < b);
        } else if o.trim {
            while parts.last().is_some_and(|(a, b)| a == b) {
                parts.pop();
            }
        }
        let mut out = ListBuilder::new();
        for (a, b) in parts {
            let w = if a == 0 && b == bytes.len() {
                subject
            } else {
                bits::sub_bits(ctx, subject, a as u64 * 8, (b - a) as u64 * 8)
            };
            out.push(ctx, w);
        }
        Ok(out.finish(Word::NIL))
    })
}

/// `binary:split(Subject, Pattern)`.
fn split_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    do_split(ctx, args[0], args[1], &Options::default())
}

/// `binary:split(Subject, Pattern, Options)`.
fn split_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let o = options(ctx, args[2], true)?;
    do_split(ctx, args[0], args[1], &o)
}

fn byte_at(
    ctx: &mut Ctx,
    w: Word,
    pick: impl FnOnce(usize) -> Option<usize>,
) -> Result<Word, Escape> {
    let v = binary_arg(ctx, w)?;
    match pick(v.byte_len()) {
        Some(i) if i < v.byte_len() => Ok(Word::fixnum(i64::from(v.byte(i)))),
        _ => Err(ctx.badarg()),
    }
}

/// `binary:at(Subject, Pos)`.
fn at_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let i = args[1].as_small().and_then(|i| usize::try_from(i).ok());
    byte_at(ctx, args[0], |_| i)
}

/// `binary:first(Subject)`.
fn first_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    byte_at(ctx, args[0], |_| Some(0))
}

/// `binary:last(Subject)`.
fn last_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    byte_at(ctx, args[0], |n| n.checked_sub(1))
}

/// `binary:copy(Subject)`.
fn copy_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = binary_arg(ctx, args[0])?;
    ctx.bump(cost(v.byte_len()));
    Ok(ctx.binary(&v.to_bytes()))
}

/// `binary:copy(Subject, N)`.
fn copy_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = binary_arg(ctx, args[0])?;
    let n = match args[1].as_small() {
        Some(n) if n >= 0 => n as usize,
        _ => return Err(ctx.badarg()),
    };
    let bytes = v.to_bytes();
    match bytes.len().checked_mul(n) {
        Some(total) if total < 1 << 40 && has_room(ctx, total) => {
            let mut all = Vec::new();
            if all.try_reserve_exact(total).is_err() {
                return Err(ctx.system_limit());
            }
            for _ in 0..n {
                all.extend_from_slice(&bytes);
            }
            ctx.bump(cost(total));
            Ok(ctx.binary(&all))
        }
        _ => Err(ctx.system_limit()),
    }
}

fn little_option(ctx: &mut Ctx, w: Word) -> Result<bool, Escape> {
    match w.as_atom() {
        Some(beamr_term::atoms::BIG) => Ok(false),
        Some(beamr_term::atoms::LITTLE) => Ok(true),
        _ => Err(ctx.badarg()),
    }
}

fn decode_unsigned(ctx: &mut Ctx, w: Word, little: bool) -> Result<Word, Escape> {
    let v = binary_arg(ctx, w)?;
    let limbs = v.limbs(0, v.bit_size, little);
    Ok(ctx.big(false, &limbs))
}

/// `binary:decode_unsigned(Subject)`.
fn decode_unsigned_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    decode_unsigned(ctx, args[0], false)
}

/// `binary:decode_unsigned(Subject, Endianness)`.
fn decode_unsigned_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let little = little_option(ctx, args[1])?;
    decode_unsigned(ctx, args[0], little)
}

fn encode_unsigned(ctx: &mut Ctx, w: Word, little: bool) -> Result<Word, Escape> {
    let mut bytes: Vec<u8> = match w.as_small() {
        Some(n) if n >= 0 => n.to_le_bytes().to_vec(),
        None if w.subtag() == Some(Subtag::PosBig) => (1..=w.header().arity())
            .flat_map(|i| w.field(i).to_le_bytes())
            .collect(),
        _ => return Err(ctx.badarg()),
    };
    while bytes.len() > 1 && bytes.last() == Some(&0) {
        bytes.pop();
    }
    if !little {
        bytes.reverse();
    }
    Ok(ctx.binary(&bytes))
}

/// `binary:encode_unsigned(Unsigned)`.
fn encode_unsigned_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    encode_unsigned(ctx, args[0], false)
}

/// `binary:encode_unsigned(Unsigned, Endianness)`.
fn encode_unsigned_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let little = little_option(ctx, args[1])?;
    encode_unsigned(ctx, args[0], little)
}

fn longest_common(ctx: &mut Ctx, list: Word, suffix: bool) -> Result<Word, Escape> {
    let mut all = Vec::new();
    for item in list_items(ctx, list)? {
        let mut b = binary_arg(ctx, item)?.to_bytes().into_owned();
        if suffix {
            b.reverse();
        }
        all.push(b);
    }
    let Some((first, rest)) = all.split_first() else {
        return Err(ctx.badarg());
    };
    let mut n = first.len();
    for b in rest {
        n = first
            .iter()
            .zip(b)
            .take(n)
            .take_while(|(x, y)| x == y)
            .count();
    }
    Ok(Word::fixnum(n as i64))
}

/// `binary:longest_common_prefix(Binaries)`.
fn longest_common_prefix_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    longest_common(ctx, args[0], false)
}

/// `binary:longest_common_suffix(Binaries)`.
fn longest_common_suffix_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    longest_common(ctx, args[0], true)
}

/// `binary:referenced_byte_size(Binary)`.
fn referenced_byte_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_bitstring() {
        return Err(ctx.badarg());
    }
    let under = if args[0].subtag() == Some(Subtag::SubBits) {
        args[0].term_field(1)
    } else {
        args[0]
    };
    let bits = if under.subtag() == Some(Subtag::HeapBits) {
        under.field(1)
    } else {
        // A growing binary may use more of its block than the term says.
        // SAFETY: a `RefcBits` holds a count of the block in its second word.
        let block = unsafe { BinaryRef::share(under.field(2) as usize as *mut _) };
        let end = BitsView::of(args[0]).map_or(0, |v| v.bit_offset + v.bit_size);
        if end > under.field(4) {
            block.used_bits()
        } else {
            under.field(4)
        }
    };
    Ok(Word::fixnum(bits.div_ceil(8) as i64))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("binary", function, arity, func)
}

/// The natives of `binary`.
pub const TABLE: &[NativeEntry] = &[
    row("at", 2, at_2),
    row("compile_pattern", 1, compile_pattern_1),
    row("copy", 1, copy_1),
    row("copy", 2, copy_2),
    row("decode_unsigned", 1, decode_unsigned_1),
    row("decode_unsigned", 2, decode_unsigned_2),
    row("encode_unsigned", 1, encode_unsigned_1),
    row("encode_unsigned", 2, encode_unsigned_2),
    row("first", 1, first_1),
    row("last", 1, last_1),
    row("list_to_bin", 1, erl::list_to_binary_1),
    row("longest_common_prefix", 1, longest_common_prefix_1),
    row("longest_common_suffix", 1, longest_common_suffix_1),
    row("match", 2, match_2),
    row("match", 3, match_3),
    row("matches", 2, matches_2),
    row("matches", 3, matches_3),
    row("part", 2, erl::binary_part_2),
    row("part", 3, erl::binary_part_3),
    row("referenced_byte_size", 1, referenced_byte_size_1),
    row("split", 2, split_2),
    row("split", 3, split_3),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all(p: &Pattern, hay: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((m, len)) = p.find(hay, at) {
            found.push((m, len));
            at = m + len;
        }
        found
    }

    #[test]
    fn every_way_to_search_finds_the_same() {
        let hay = b"abcabxabcdx aab  bca\0\xffabab";
        let sets: &[&[&[u8]]] = &[
            &[b"a", b"b"],
            &[b"a", b"b", b"\xff"],
            &[b"a", b"b", b"c", b"x"],
            &[b"ab", b"abc", b"abcd"],
            &[b"bca", b"ab", b"ab", b"b"],
            &[b"zz", b"y"],
        ];
        for set in sets {
            let needles = || set.iter().map(|n| n.to_vec()).collect::<Vec<_>>();
            let few = Pattern::several(needles(), Some(hay.len())).unwrap();
            let automaton = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(needles())
                .map(Pattern::Several)
                .unwrap();
            assert_eq!(all(&few, hay), all(&automaton, hay), "{set:?}");
        }
        let single = matches!(
            Pattern::several(vec![vec![1], vec![2]], None),
            Some(Pattern::Bytes([1, 2, 2], true))
        );
        assert!(single);
    }
}
