//! Integers and floats as text against what OTP 25, 27 and 29 answer (`data/number_text.tsv`:
//! operation, base or digits, operand, result of 25, result of 27 when it differs, result of 29
//! when that differs from 27). Integers are hexadecimal, floats `f` and their IEEE bits.

use beamr_term::number_text::{
    self, FloatFormat, FloatPrefixError, IntegerListError, ParseIntegerError,
};
use beamr_term::text::{latin1_from_list, list_of_bytes};
use beamr_term::{Build, Fragment, Release, Word, atoms};

fn float(text: &str) -> f64 {
    f64::from_bits(u64::from_str_radix(&text[1..], 16).unwrap())
}

fn show_float(f: Option<f64>) -> String {
    match f {
        Some(f) => format!("f{:016X}", f.to_bits()),
        None => "error:badarg".into(),
    }
}

fn show_integer(w: Word) -> String {
    let mut out = Vec::new();
    assert!(number_text::push_integer(&mut out, w, 16));
    String::from_utf8(out).unwrap()
}

fn formatted(f: &str, format: FloatFormat) -> String {
    number_text::float_text(float(f), format).unwrap_or("error:badarg".into())
}

fn rest(list: Word) -> String {
    String::from_utf8(latin1_from_list(list).unwrap()).unwrap()
}

fn run(release: Release, op: &str, n: i64, a: &str) -> String {
    let mut heap = Fragment::with_capacity(64);
    let base = n as u32;
    let list = list_of_bytes(&mut heap, a.as_bytes(), Word::NIL);
    match op {
        "short" => formatted(a, FloatFormat::Short),
        "deflt" => formatted(a, FloatFormat::DEFAULT),
        "sci" => formatted(a, FloatFormat::Scientific { digits: n }),
        "dec" => formatted(
            a,
            FloatFormat::Decimals {
                digits: n,
                compact: false,
            },
        ),
        "cdec" => formatted(
            a,
            FloatFormat::Decimals {
                digits: n,
                compact: true,
            },
        ),
        "i2l" => {
            let w = number_text::parse_integer(&mut heap, release, a.as_bytes(), 16).unwrap();
            let list = number_text::integer_to_list(&mut heap, w, base).unwrap();
            rest(list)
        }
        "b2i" => match number_text::parse_integer(&mut heap, release, a.as_bytes(), base) {
            Ok(w) => show_integer(w),
            Err(ParseIntegerError::NotAnInteger) => "error:badarg".into(),
            Err(ParseIntegerError::SystemLimit) => "error:system_limit".into(),
        },
        "l2i" => match number_text::integer_from_list(&mut heap, release, list, base) {
            Ok((w, tail)) if tail.is_nil() => show_integer(w),
            Err(IntegerListError::SystemLimit) => "error:system_limit".into(),
            _ => "error:badarg".into(),
        },
        "s2i" => match number_text::integer_from_list(&mut heap, release, list, base) {
            Ok((w, tail)) => format!("{} {}", show_integer(w), rest(tail)),
            Err(IntegerListError::NotAList) => "not_a_list".into(),
            Err(IntegerListError::NoInteger) => "no_integer".into(),
            Err(IntegerListError::SystemLimit) => "error:system_limit".into(),
        },
        "l2f" | "b2f" => show_float(number_text::parse_float(a.as_bytes())),
        "s2f" => match number_text::string_to_float(list) {
            Ok((f, tail)) => format!("{} {}", show_float(Some(f)), rest(tail)),
            Err(FloatPrefixError::NotAList) => "not_a_list".into(),
            Err(FloatPrefixError::NoFloat) => "no_float".into(),
        },
        other => panic!("unknown operation {other}"),
    }
}

#[test]
fn agrees_with_otp() {
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in include_str!("../data/number_text.tsv").lines() {
        let column: Vec<&str> = line.split('\t').collect();
        let [op, n, a, r25, r27, r29] = column[..] else {
            panic!("{line}")
        };
        let r27 = if r27.is_empty() { r25 } else { r27 };
        let r29 = if r29.is_empty() { r27 } else { r29 };
        for (release, want) in [
            (Release::OTP25, r25),
            (Release::OTP27, r27),
            (Release::OTP29, r29),
        ] {
            let got = run(release, op, n.parse().unwrap(), a);
            if got != want {
                wrong.push(format!(
                    "{op} {n} {a} of {release:?}: got {got}, want {want}"
                ));
            }
        }
        lines += 1;
    }
    assert!(lines > 400);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn size_limits() {
    let mut heap = Fragment::with_capacity(64);
    let mut parse = |release, digits: usize| {
        let mut text = b"1".to_vec();
        text.resize(digits, b'0');
        number_text::parse_integer(&mut heap, release, &text, 16).is_ok()
    };
    assert!(parse(Release::OTP29, 4_194_240 / 4));
    assert!(!parse(Release::OTP29, 4_194_240 / 4 + 1));
    assert!(parse(Release::OTP25, 4_194_240 / 4 + 1));
    assert!(!parse(Release::OTP25, 33_554_368 / 4 + 1));
    let zeros = vec![b'0'; 2_000_000];
    assert_eq!(
        number_text::parse_integer(&mut heap, Release::OTP29, &zeros, 10),
        Ok(Word::fixnum(0))
    );
}

#[test]
fn options_of_float_to_list() {
    let mut heap = Fragment::with_capacity(64);
    let mut option = |name: Word, n: i64| heap.tuple(&[name, Word::fixnum(n)]);
    let decimals = option(atoms::DECIMALS.word(), 3);
    let scientific = option(atoms::SCIENTIFIC.word(), 2);
    let unknown = option(atoms::OK.word(), 2);
    let short = atoms::SHORT.word();
    let compact = atoms::COMPACT.word();
    let mut check = |options: &[Word], want| {
        let list = heap.list(options.iter().copied());
        assert_eq!(FloatFormat::from_options(list), want);
    };
    let fixed = |compact| Some(FloatFormat::Decimals { digits: 3, compact });
    check(&[], Some(FloatFormat::DEFAULT));
    check(&[scientific, decimals], fixed(false));
    check(
        &[decimals, scientific],
        Some(FloatFormat::Scientific { digits: 2 }),
    );
    check(&[compact, decimals], fixed(true));
    check(&[decimals, compact], fixed(true));
    check(&[decimals, short], Some(FloatFormat::Short));
    check(&[unknown], None);
    check(&[Word::fixnum(1)], None);
    assert_eq!(FloatFormat::from_options(short), None);
    let improper = heap.cons(decimals, short);
    assert_eq!(FloatFormat::from_options(improper), None);
}
