//! `erlang`: dates: civil time from and to seconds, local time through the door.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::vm_of;

const DAY: i64 = 86_400;

/// A date and time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Civil {
    date: [i64; 3],
    time: [i64; 3],
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * m + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Civil {
    fn from_seconds(t: i64) -> Civil {
        let (days, s) = (t.div_euclid(DAY), t.rem_euclid(DAY));
        let d = days + 719_468;
        let (era, of_era) = (d.div_euclid(146_097), d.rem_euclid(146_097));
        let y = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * y + y / 4 - y / 100);
        let m = (5 * of_year + 2) / 153;
        let month = if m < 10 { m + 3 } else { m - 9 };
        let year = y + era * 400 + i64::from(month <= 2);
        Civil {
            date: [year, month, of_year - (153 * m + 2) / 5 + 1],
            time: [s / 3600, s / 60 % 60, s % 60],
        }
    }
    fn seconds(self) -> i64 {
        let [y, m, d] = self.date;
        let [h, min, s] = self.time;
        days_of(y, m, d) * DAY + h * 3600 + min * 60 + s
    }
    fn valid(self, first_year: i64) -> bool {
        let [y, m, d] = self.date;
        let [h, min, s] = self.time;
        if !(first_year..i64::from(i32::MAX)).contains(&y) || !(1..=12).contains(&m) {
            return false;
        }
        let last = match m {
            2 => 28 + i64::from(leap(y)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=last).contains(&d)
            && (0..24).contains(&h)
            && (0..60).contains(&min)
            && (0..60).contains(&s)
    }
    fn of(w: Word) -> Option<Civil> {
        let triple = |w: Word| match w.as_tuple() {
            Some([a, b, c]) => Some([a.as_small()?, b.as_small()?, c.as_small()?]),
            _ => None,
        };
        match w.as_tuple() {
            Some([d, t]) => Some(Civil {
                date: triple(*d)?,
                time: triple(*t)?,
            }),
            _ => None,
        }
    }
    fn term(self, ctx: &mut Ctx) -> Word {
        let d = ctx.tuple(&self.date.map(Word::fixnum));
        let t = ctx.tuple(&self.time.map(Word::fixnum));
        ctx.tuple(&[d, t])
    }
}

fn now(ctx: &Ctx) -> i64 {
    vm_of(ctx).system_ns().div_euclid(1_000_000_000)
}

fn local(ctx: &Ctx, utc: i64) -> Civil {
    Civil::from_seconds(utc + vm_of(ctx).door.local_offset(utc).0)
}

/// `date()`.
fn date_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = now(ctx);
    let c = local(ctx, t);
    Ok(ctx.tuple(&c.date.map(Word::fixnum)))
}
/// `time()`.
fn time_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = now(ctx);
    let c = local(ctx, t);
    Ok(ctx.tuple(&c.time.map(Word::fixnum)))
}
/// `localtime()`.
fn localtime_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = now(ctx);
    Ok(local(ctx, t).term(ctx))
}
/// `universaltime()`.
fn universaltime_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Civil::from_seconds(now(ctx)).term(ctx))
}

/// The first year that conversions of local time take.
const FIRST_LOCAL_YEAR: i64 = 1902;

/// `universaltime_to_localtime(DateTime)`.
fn universaltime_to_localtime_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match Civil::of(args[0]).filter(|c| c.valid(FIRST_LOCAL_YEAR)) {
        Some(c) => Ok(local(ctx, c.seconds()).term(ctx)),
        None => Err(ctx.badarg()),
    }
}

/// `localtime_to_universaltime(DateTime, IsDst)`.
fn localtime_to_universaltime_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let wanted = match args[1].as_atom() {
        Some(atoms::TRUE) => Some(true),
        Some(atoms::FALSE) => Some(false),
        Some(atoms::UNDEFINED) => None,
        _ => return Err(ctx.badarg()),
    };
    let Some(c) = Civil::of(args[0]).filter(|c| c.valid(FIRST_LOCAL_YEAR)) else {
        return Err(ctx.badarg());
    };
    let door = &vm_of(ctx).door;
    let t = c.seconds();
    // The offsets half a day before and after include those that the time may have.
    let (before, after) = (
        door.local_offset(t - DAY / 2 - DAY / 2),
        door.local_offset(t + DAY),
    );
    let fits = |o: (i64, bool)| door.local_offset(t - o.0) == o;
    let pick = [before, after]
        .into_iter()
        .find(|o| fits(*o) && wanted.is_none_or(|w| w == o.1))
        .or_else(|| {
            // A time that the wish does not fit: as if the other kind of time were in force then.
            let any = [before, after].into_iter().find(|o| fits(*o));
            match (any, wanted) {
                (Some(o), Some(w)) if before.1 != after.1 || w != o.1 => {
                    let other = [before, after].into_iter().find(|x| x.1 == w);
                    Some(other.unwrap_or(o))
                }
                (any, _) => any,
            }
        })
        .unwrap_or(before);
    Ok(Civil::from_seconds(t - pick.0).term(ctx))
}

/// `posixtime_to_universaltime(Seconds)`.
fn posixtime_to_universaltime_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_small() {
        Some(t) if t.abs() < 1 << 53 => Ok(Civil::from_seconds(t).term(ctx)),
        _ => Err(ctx.badarg()),
    }
}

/// `universaltime_to_posixtime(DateTime)`.
fn universaltime_to_posixtime_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match Civil::of(args[0]).filter(|c| c.valid(1600)) {
        Some(c) => Ok(Word::fixnum(c.seconds())),
        None => Err(ctx.badarg()),
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("date", 0, date_0).needs(Capability::Clock),
    row("time", 0, time_0).needs(Capability::Clock),
    row("localtime", 0, localtime_0).needs(Capability::Clock),
    row("universaltime", 0, universaltime_0).needs(Capability::Clock),
    row(
        "universaltime_to_localtime",
        1,
        universaltime_to_localtime_1,
    )
    .needs(Capability::Clock),
    row(
        "localtime_to_universaltime",
        2,
        localtime_to_universaltime_2,
    )
    .needs(Capability::Clock),
    row(
        "posixtime_to_universaltime",
        1,
        posixtime_to_universaltime_1,
    ),
    row(
        "universaltime_to_posixtime",
        1,
        universaltime_to_posixtime_1,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        let c = |date, time| Civil { date, time };
        for (t, civil) in [
            (0, c([1970, 1, 1], [0, 0, 0])),
            (-1, c([1969, 12, 31], [23, 59, 59])),
            (951_782_400, c([2000, 2, 29], [0, 0, 0])),
            (1_700_000_000, c([2023, 11, 14], [22, 13, 20])),
            (-11_676_096_000, c([1600, 1, 1], [0, 0, 0])),
        ] {
            assert_eq!(Civil::from_seconds(t), civil);
            assert_eq!(civil.seconds(), t);
        }
        for day in -800_000..800_000 {
            let t = day * DAY;
            assert_eq!(Civil::from_seconds(t).seconds(), t);
        }
        assert!(!c([2023, 2, 29], [0, 0, 0]).valid(1600));
        assert!(c([2024, 2, 29], [0, 0, 0]).valid(1600));
        assert!(!c([1599, 1, 1], [0, 0, 0]).valid(1600));
    }
}
