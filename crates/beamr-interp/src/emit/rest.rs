//! Guard BIFs, maps, messages, native records.

use beamr_abi::NativeEntry;
use beamr_term::{Word, atoms};
use beamr_vm::lower::op::{Label, Op, Reg, Src};

use super::code::{Constants, Emitter, by_reg, by_src};
use crate::machine::Handler;
use crate::ops::arith::NO_LIVE;
use crate::ops::{guards, maps, messages, records, tests};

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::GuardBif {
            native,
            args,
            dst,
            live,
            fail,
        } => guard(e, native, args, *dst, *live, *fail),
        Op::UndefinedBif { fail, .. } => {
            e.op(guards::undefined);
            e.halves_label(0, 0, *fail);
        }
        Op::HasMapFields {
            src,
            fail,
            keys,
            checked,
        } => {
            check_map(e, *src, *checked);
            let mut c = Constants::from(3 + keys.len().div_ceil(4));
            let s = e.src(*src, &mut c);
            let list: Vec<u16> = keys.iter().map(|k| e.src(*k, &mut c)).collect();
            let n = e.narrow(keys.len());
            e.op(maps::has_map_fields);
            e.halves_label(s, n, *fail);
            e.word(0);
            e.half_list(&list);
            e.constants(c);
            e.set_len(8);
        }
        Op::GetMapElements {
            src,
            fail,
            pairs,
            checked,
        } => {
            check_map(e, *src, *checked);
            if let [(key, dst)] = &**pairs
                && !matches!(src, Src::Const(_))
            {
                let mut c = Constants::from(3);
                let (s, k, d) = (e.src(*src, &mut c), e.src(*key, &mut c), e.reg(*dst));
                let h: Handler = match src {
                    Src::Y(_) => {
                        by_src!(*key, K => maps::get_map_element::<crate::machine::Y, K>)
                    }
                    _ => by_src!(*key, K => maps::get_map_element::<crate::machine::X, K>),
                };
                e.op(h);
                e.halves(s, k, d, 0);
                e.label_halves(*fail, 0, 0);
                e.constants(c);
                return Some(1);
            }
            let n = pairs.len();
            let mut c = Constants::from(3 + (2 * n).div_ceil(4));
            let s = e.src(*src, &mut c);
            let mut list = Vec::with_capacity(2 * n);
            for (k, d) in pairs {
                list.push(e.src(*k, &mut c));
                list.push(e.reg(*d));
            }
            let n = e.narrow(n);
            e.op(maps::get_map_elements);
            e.halves_label(s, n, *fail);
            e.word(0);
            e.half_list(&list);
            e.constants(c);
            e.set_len(8);
        }
        Op::PutMap {
            assoc,
            src,
            dst,
            live,
            pairs,
            fail,
        } => {
            let n = pairs.len();
            let mut c = Constants::from(3 + (2 * n).div_ceil(4));
            let (s, d) = (e.src(*src, &mut c), e.reg(*dst));
            let mut list = Vec::with_capacity(2 * n);
            for (k, v) in pairs {
                list.push(e.src(*k, &mut c));
                list.push(e.src(*v, &mut c));
            }
            let n = e.narrow(n);
            e.op(if n == 1 {
                maps::put_map_one
            } else {
                maps::put_map
            });
            e.halves(s, d, *live, 0);
            e.label_halves(*fail, n, u16::from(*assoc));
            e.half_list(&list);
            e.constants(c);
            e.set_len(7);
        }
        Op::LoopRec { empty } => {
            e.op(messages::loop_rec);
            e.label_halves(*empty, 0, 0);
        }
        Op::LoopRecEnd { next } => {
            e.op(messages::loop_rec_end);
            e.label_halves(*next, 0, 0);
        }
        Op::RemoveMessage => e.op(messages::remove_message),
        Op::Timeout => e.op(messages::timeout),
        Op::Wait { retry } => {
            e.op(messages::wait);
            e.label_halves(*retry, 0, 0);
        }
        Op::WaitTimeout { retry, timeout } => {
            let mut c = Constants::from(2);
            let t = e.src(*timeout, &mut c);
            e.op(messages::wait_timeout);
            e.label_halves(*retry, t, 0);
            e.constants(c);
            e.set_len(7);
        }
        Op::MarkerReserve { dst } => {
            let d = e.reg(*dst);
            e.op(messages::marker_reserve);
            e.halves(d, 0, 0, 0);
        }
        Op::MarkerBind { marker, reference } => {
            let mut c = Constants::from(2);
            let (a, b) = (e.src(*marker, &mut c), e.src(*reference, &mut c));
            e.op(messages::marker_bind);
            e.halves(a, b, 0, 0);
            e.constants(c);
            e.set_len(6);
        }
        Op::MarkerClear { reference } => marker(e, messages::marker_clear, *reference),
        Op::MarkerUse { reference } => marker(e, messages::marker_use, *reference),
        Op::PutRecord {
            id,
            src,
            dst,
            live,
            pairs,
            fail,
        } => {
            let n = pairs.len();
            let mut c = Constants::from(4 + n.div_ceil(4));
            let (s, d) = (e.src(*src, &mut c), e.reg(*dst));
            let list: Vec<u16> = pairs.iter().map(|(_, v)| e.src(*v, &mut c)).collect();
            let put = records::Put {
                definition: definition(e, *id),
                fields: pairs.iter().map(|(f, _)| *f).collect(),
            };
            let address = e.keep(put);
            e.op(records::put);
            e.halves(s, d, *live, 0);
            e.label_halves(*fail, 0, 0);
            e.word(address);
            e.half_list(&list);
            e.constants(c);
            e.set_len(7);
        }
        Op::IsNativeRecord {
            src,
            module,
            name,
            fail,
        } => {
            let mut c = Constants::from(4);
            let s = e.src(*src, &mut c);
            e.op(records::is_native_record);
            e.halves_label(s, 0, *fail);
            e.word(module.bits());
            e.word(name.bits());
            e.constants(c);
            e.set_len(5);
        }
        Op::IsRecordAccessible { src, scope, fail } => {
            let mut c = Constants::from(3);
            let s = e.src(*src, &mut c);
            let own = *scope != atoms::EXTERNAL.word();
            let module = if own {
                e.module.module.word().bits()
            } else {
                0
            };
            e.op(records::is_accessible);
            e.halves_label(s, 0, *fail);
            e.word(module);
            e.constants(c);
            e.set_len(5);
        }
        Op::GetRecordElements { src, pairs, fail } => {
            let n = pairs.len();
            let mut c = Constants::from(3 + n + n.div_ceil(4));
            let s = e.src(*src, &mut c);
            let list: Vec<u16> = pairs.iter().map(|(_, d)| e.reg(*d)).collect();
            let len = e.narrow(n);
            e.op(records::get_elements);
            e.halves_label(s, 0, *fail);
            e.halves(len, 0, 0, 0);
            for (f, _) in pairs {
                e.word(f.bits());
            }
            e.half_list(&list);
            e.constants(c);
            e.set_len(5);
        }
        Op::GetRecordField {
            src,
            id,
            field,
            dst,
            fail,
        } => {
            let mut c = Constants::from(5);
            let (s, i, d) = (e.src(*src, &mut c), e.src(*id, &mut c), e.reg(*dst));
            let module = e.module.module.word().bits();
            e.op(records::get_field);
            e.halves(s, 0, d, i);
            e.label_halves(*fail, 0, 0);
            e.word(field.bits());
            e.word(module);
            e.constants(c);
            e.set_len(5);
        }
        _ => return None,
    }
    Some(1)
}

fn marker(e: &mut Emitter<'_>, h: Handler, reference: Src) {
    let mut c = Constants::from(2);
    let r = e.src(reference, &mut c);
    e.op(h);
    e.halves(r, 0, 0, 0);
    e.constants(c);
    e.set_len(6);
}

fn check_map(e: &mut Emitter<'_>, src: Src, checked: bool) {
    if checked {
        let mut c = Constants::from(2);
        let s = e.src(src, &mut c);
        e.op(maps::check_map);
        e.halves(s, 0, 0, 0);
        e.constants(c);
        e.set_len(5);
    }
}

/// The module's own definition that `id` names.
fn definition(e: &Emitter<'_>, id: Src) -> Option<records::Definition> {
    let Src::Const(id) = id else { return None };
    let name = match id.as_tuple() {
        Some([module, name]) if *module == e.module.module.word() => *name,
        Some(_) => return None,
        None => id,
    };
    let found = e.module.records.iter().find_map(|r| match r.as_tuple() {
        Some([n, exported, fields]) if *n == name => Some((*exported, *fields)),
        _ => None,
    })?;
    let mut fields = Vec::new();
    let mut list = found.1;
    while let Some((f, rest)) = list.as_cons() {
        match f.as_tuple() {
            Some([name, default]) => fields.push((*name, Some(*default))),
            Some([name]) => fields.push((*name, None)),
            _ => fields.push((f, None)),
        }
        list = rest;
    }
    Some(records::Definition {
        module: e.module.module,
        name,
        exported: found.0 == Word::TRUE,
        fields: fields.into(),
    })
}

macro_rules! type_tests {
    ($name:expr, $src:expr, $dst:expr; $($text:literal => $T:ident),* $(,)?) => {
        match $name {
            $($text => Some(by_src!($src, S => by_reg!($dst, D => guards::type_test::<S, D, tests::$T>)) as Handler),)*
            _ => None,
        }
    };
}

fn guard(
    e: &mut Emitter<'_>,
    native: &'static NativeEntry,
    args: &[Src],
    dst: Reg,
    live: Option<u16>,
    fail: Label,
) {
    let h = own_handler(native, args, dst).unwrap_or(guards::native);
    let mut c = Constants::from(4);
    let mut operands = [0u16; 3];
    for (o, a) in operands.iter_mut().zip(args) {
        *o = e.src(*a, &mut c);
    }
    let d = e.reg(dst);
    e.op(h);
    e.halves(operands[0], operands[1], operands[2], d);
    e.label_halves(fail, live.unwrap_or(NO_LIVE as u16), 0);
    e.word(std::ptr::from_ref(native) as usize as u64);
    e.constants(c);
    e.set_len(11);
}

/// The handler of a BIF that has one.
fn own_handler(native: &NativeEntry, args: &[Src], dst: Reg) -> Option<Handler> {
    if native.module != "erlang" {
        return None;
    }
    macro_rules! unary {
        ($h:ident) => {
            by_src!(args[0], S => by_reg!(dst, D => guards::$h::<S, D>)) as Handler
        };
    }
    macro_rules! binary {
        ($h:ident) => {
            by_src!(args[0], A => by_src!(args[1], B => by_reg!(dst, D => guards::$h::<A, B, D>))) as Handler
        };
    }
    Some(match (native.function, args.len()) {
        ("self", 0) => by_reg!(dst, D => guards::self_pid::<D>),
        ("hd", 1) => unary!(hd),
        ("tl", 1) => unary!(tl),
        ("tuple_size", 1) => unary!(tuple_size),
        ("byte_size", 1) => unary!(byte_size),
        ("bit_size", 1) => unary!(bit_size_of),
        ("map_size", 1) => unary!(map_size),
        ("length", 1) => unary!(length),
        ("not", 1) => guards::not,
        ("element", 2) => binary!(element),
        ("map_get", 2) => guards::map_get,
        ("is_map_key", 2) => guards::is_map_key,
        ("and", 2) => guards::and,
        ("or", 2) => guards::or,
        ("is_function", 2) => guards::is_function2,
        ("is_record", 3) => guards::is_record3,
        ("=:=", 2) => guards::exact::<false>,
        ("=/=", 2) => guards::exact::<true>,
        ("==", 2) => guards::relation::<tests::Eq>,
        ("/=", 2) => guards::relation::<tests::Ne>,
        ("<", 2) => guards::relation::<tests::Lt>,
        (">=", 2) => guards::relation::<tests::Ge>,
        (">", 2) => guards::relation::<tests::Gt>,
        ("=<", 2) => guards::relation::<tests::Le>,
        (name, 1) => {
            return type_tests!(name, args[0], dst;
                "is_integer" => IsInteger, "is_float" => IsFloat, "is_number" => IsNumber, "is_atom" => IsAtom,
                "is_pid" => IsPid, "is_reference" => IsReference, "is_port" => IsPort, "is_binary" => IsBinary,
                "is_bitstring" => IsBitstring, "is_list" => IsList, "is_tuple" => IsTuple, "is_boolean" => IsBoolean,
                "is_function" => IsFunction, "is_map" => IsMap, "is_record" => IsAnyNativeRecord);
        }
        _ => return None,
    })
}
