//! Times: `now` is given by the caller of the render, and `Local` is UTC, so that renders do not depend on a machine.
use super::args::{Out, any, bytes, def, fail, lossy, text};
use super::cast::parse_int_saturating;
use super::{Ctx, FuncDef, Param};
use crate::gotime::{Time, TimeObject, Zone, format, format_duration, parse, parse_duration, round_duration};
use crate::value::{IntKind, Value};

use Param::{Any, String as Str};

const TIME: Param = Param::Object("time.Time");

pub(super) const FUNCS: &[FuncDef] = &[
    def("now", &[], |c, _| {
        c.shared.drawn.set(true);
        Ok(TimeObject::value(now(c)))
    }),
    def("date", &[Str, Any], |c, a| in_zone(c, bytes(a, 0), any(a, 1), "Local")),
    def("dateInZone", &[Str, Any, Str], |c, a| in_zone(c, bytes(a, 0), any(a, 1), &lossy(a, 2))),
    def("date_in_zone", &[Str, Any, Str], |c, a| in_zone(c, bytes(a, 0), any(a, 1), &lossy(a, 2))),
    def("htmlDate", &[Any], |c, a| in_zone(c, b"2006-01-02", any(a, 0), "Local")),
    def("htmlDateInZone", &[Any, Str], |c, a| in_zone(c, b"2006-01-02", any(a, 0), &lossy(a, 1))),
    def("dateModify", &[Str, TIME], |_, a| modify(a, false)),
    def("date_modify", &[Str, TIME], |_, a| modify(a, false)),
    def("mustDateModify", &[Str, TIME], |_, a| modify(a, true)),
    def("must_date_modify", &[Str, TIME], |_, a| modify(a, true)),
    def("toDate", &[Str, Str], |_, a| {
        Ok(TimeObject::value(parse(bytes(a, 0), bytes(a, 1)).unwrap_or_else(|_| Time::zero())))
    }),
    def("mustToDate", &[Str, Str], |_, a| {
        parse(bytes(a, 0), bytes(a, 1)).map_or_else(fail, |time| Ok(TimeObject::value(time)))
    }),
    def("unixEpoch", &[TIME], |_, a| text(time_of(any(a, 0)).map_or(0, |time| time.seconds).to_string())),
    def("ago", &[Any], ago),
    def("duration", &[Any], |_, a| {
        let seconds = match any(a, 0) {
            Value::Text(text) => text.as_str().map_or(0, parse_int_saturating),
            Value::Int(int) if int.kind() == IntKind::Int64 => int.wrapping_i64(),
            _ => 0,
        };
        text(format_duration(seconds.wrapping_mul(1_000_000_000)))
    }),
    def("durationRound", &[Any], duration_round),
];

fn now(ctx: &Ctx<'_>) -> Time {
    let (seconds, nanos) = ctx.shared.now;
    Time::utc(seconds, nanos)
}

fn time_of(value: &Value) -> Option<Time> {
    let object = value.as_object()?;
    object.as_any().downcast_ref::<TimeObject>().map(|time| time.0.clone())
}

/// The time a value names: a time, or whole seconds since 1970; anything else is now.
fn moment(ctx: &Ctx<'_>, value: &Value, kinds: &[IntKind]) -> Time {
    match value {
        Value::Int(int) if kinds.contains(&int.kind()) => Time::utc(int.wrapping_i64(), 0),
        other => time_of(other).unwrap_or_else(|| {
            ctx.shared.drawn.set(true);
            now(ctx)
        }),
    }
}

fn in_zone(ctx: &mut Ctx<'_>, layout: &[u8], value: &Value, zone: &str) -> Out {
    let mut time = moment(ctx, value, &[IntKind::Int, IntKind::Int64, IntKind::Int32]);
    time.zone = Zone::load(zone).unwrap_or(Zone::Utc);
    ctx.charge(layout.len().saturating_mul(4))?;
    text(format(&time, layout))
}

fn modify(args: &[Value], must: bool) -> Out {
    let time = time_of(any(args, 1)).unwrap_or_else(Time::zero);
    match parse_duration(&lossy(args, 0)) {
        Ok(nanos) => Ok(TimeObject::value(time.add(nanos))),
        Err(error) if must => fail(error),
        Err(_) => Ok(TimeObject::value(time)),
    }
}

fn ago(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    ctx.shared.drawn.set(true);
    let since = now(ctx).since(&moment(ctx, any(args, 0), &[IntKind::Int, IntKind::Int64]));
    text(format_duration(round_duration(since, 1_000_000_000, true)))
}

const HOUR: u64 = 3_600_000_000_000;

/// The largest unit a duration has more than one of.
fn duration_round(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let nanos = match any(args, 0) {
        Value::Text(text) => text.as_str().and_then(|text| parse_duration(text).ok()).unwrap_or(0),
        Value::Int(int) if int.kind() == IntKind::Int64 => int.wrapping_i64(),
        other => match time_of(other) {
            Some(time) => {
                ctx.shared.drawn.set(true);
                now(ctx).since(&time)
            }
            None => 0,
        },
    };
    let size = nanos.unsigned_abs();
    let units = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (HOUR / 3600, "s"),
    ];
    match units.into_iter().find(|(unit, _)| size > *unit) {
        Some((unit, name)) => text(format!("{}{name}", size / unit)),
        None => text("0s"),
    }
}
