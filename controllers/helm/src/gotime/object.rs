//! Times, durations, months and weekdays as templates see them, with Go's methods.
use std::any::Any;

use super::format::{month_name, weekday_name};
use super::{Civil, Time, Zone, format, format_duration};
use crate::funcs::{Ctx, FuncError, Param};
use crate::value::{Int, IntKind, Kind, List, ListType, Method, Object, Value};

/// A `time.Time`.
#[derive(Clone, Debug)]
pub(crate) struct TimeObject(pub Time);

/// A `time.Duration` in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DurationObject(pub i64);

#[derive(Clone, Copy, Debug)]
struct MonthObject(u32);

#[derive(Clone, Copy, Debug)]
struct WeekdayObject(u32);

const TIME: &str = "time.Time";
const DURATION: &str = "time.Duration";

#[allow(clippy::unnecessary_wraps)] // The form of `Object::method`.
const fn takes(params: &'static [Param]) -> Option<Method> {
    Some(Method { params, variadic: None })
}

/// The time a value is.
fn time_of(value: Option<&Value>) -> Result<&Time, FuncError> {
    let object = value.and_then(Value::as_object);
    let time = object.and_then(|object| object.as_any().downcast_ref::<TimeObject>());
    time.map(|time| &time.0).ok_or_else(|| FuncError::new("a time.Time is expected"))
}

fn duration_of(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Object(object)) => object.as_any().downcast_ref::<DurationObject>().map_or(0, |d| d.0),
        Some(Value::Int(int)) => int.wrapping_i64(),
        _ => 0,
    }
}

fn int_of(value: Option<&Value>) -> i64 {
    if let Some(Value::Int(int)) = value { int.wrapping_i64() } else { 0 }
}

impl TimeObject {
    pub fn value(time: Time) -> Value {
        Value::object(Self(time))
    }
}

impl Object for TimeObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_unexported(&self, name: &str) -> bool {
        matches!(name, "wall" | "ext" | "loc")
    }

    fn equals(&self, other: &dyn Object) -> Option<bool> {
        other.as_any().downcast_ref::<Self>().map(|other| self.0 == other.0)
    }

    fn type_name(&self) -> &'static str {
        TIME
    }

    fn method(&self, name: &str) -> Option<Method> {
        match name {
            "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "Year" | "Month" | "Day" | "Hour"
            | "Minute" | "Second" | "Nanosecond" | "Weekday" | "YearDay" | "UTC" | "Local" | "String"
            | "IsZero" | "GoString" | "MarshalText" | "MarshalJSON" => Some(Method::GETTER),
            "Format" => takes(&[Param::String]),
            "Add" | "Round" | "Truncate" => takes(&[Param::Object(DURATION)]),
            "AddDate" => takes(&[Param::Int, Param::Int, Param::Int]),
            "Sub" | "Before" | "After" | "Equal" | "Compare" => takes(&[Param::Object(TIME)]),
            _ => None,
        }
    }

    fn call(&self, _ctx: &mut Ctx<'_>, name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let time = &self.0;
        let civil = Civil::of(time);
        let first = args.first();
        let int = |value: u32| Ok(Value::int(i64::from(value)));
        let unix = |per_second: i64, unit: u32| {
            let whole = time.seconds.wrapping_mul(per_second);
            Ok(Value::int64(whole.wrapping_add(i64::from(time.nanos / unit))))
        };
        match name {
            "Unix" => Ok(Value::int64(time.seconds)),
            "UnixMilli" => unix(1_000, 1_000_000),
            "UnixMicro" => unix(1_000_000, 1_000),
            "UnixNano" => unix(1_000_000_000, 1),
            "Year" => Ok(Value::int(civil.year)),
            "Month" => Ok(Value::object(MonthObject(civil.month))),
            "Day" => int(civil.day),
            "Hour" => int(civil.hour),
            "Minute" => int(civil.minute),
            "Second" => int(civil.second),
            "Nanosecond" => int(civil.nanos),
            "Weekday" => Ok(Value::object(WeekdayObject(civil.weekday))),
            "YearDay" => int(civil.year_day),
            "UTC" | "Local" => Ok(Self::value(Time { zone: Zone::Utc, ..time.clone() })),
            "String" | "GoString" => Ok(Value::text(shown(time))),
            "MarshalText" => Ok(bytes(&rfc3339(time))),
            "MarshalJSON" => Ok(bytes(&[b"\"".as_slice(), &rfc3339(time), b"\""].concat())),
            "IsZero" => Ok(time.is_zero().into()),
            "Format" => {
                let layout = first.and_then(Value::as_text).map(crate::value::Text::as_bytes);
                Ok(Value::text(format(time, layout.unwrap_or_default())))
            }
            "Add" => Ok(Self::value(time.add(duration_of(first)))),
            "Round" | "Truncate" => Ok(Self::value(multiple(time, duration_of(first), name == "Round"))),
            "AddDate" => Ok(Self::value(add_date(time, &civil, args))),
            "Sub" => Ok(Value::object(DurationObject(time.since(time_of(first)?)))),
            _ => {
                let other = time_of(first)?;
                let order = (time.seconds, time.nanos).cmp(&(other.seconds, other.nanos));
                Ok(match name {
                    "Before" => order.is_lt().into(),
                    "After" => order.is_gt().into(),
                    "Equal" => order.is_eq().into(),
                    _ => Value::int(order as i64),
                })
            }
        }
    }

    fn display(&self) -> Option<Vec<u8>> {
        Some(shown(&self.0))
    }

    fn plain(&self) -> Value {
        Value::text(rfc3339(&self.0))
    }
}

fn bytes(text: &[u8]) -> Value {
    let items = text.iter().map(|byte| Value::Int(Int::unsigned(IntKind::Uint8, u64::from(*byte))));
    Value::List(List::new(ListType::Bytes, items.collect()))
}

fn shown(time: &Time) -> Vec<u8> {
    format(time, b"2006-01-02 15:04:05.999999999 -0700 MST")
}

fn rfc3339(time: &Time) -> Vec<u8> {
    format(time, b"2006-01-02T15:04:05.999999999Z07:00")
}

/// A date some years, months and days later; overlong months flow over.
fn add_date(time: &Time, civil: &Civil, args: &[Value]) -> Time {
    let plus = |i: usize, value: i64| int_of(args.get(i)).clamp(-10_000_000, 10_000_000) + value;
    let local = Civil::seconds(
        plus(0, civil.year),
        plus(1, i64::from(civil.month)),
        plus(2, i64::from(civil.day)),
        i64::from(civil.hour),
        i64::from(civil.minute),
        i64::from(civil.second),
    );
    // The offset may differ on the new day; two steps find it.
    let guess = local - i64::from(time.zone.at(local).0);
    let seconds = local - i64::from(time.zone.at(guess).0);
    Time { seconds, ..time.clone() }
}

/// The time down, or to the nearest, multiple of a duration since the zero time.
fn multiple(time: &Time, unit: i64, nearest: bool) -> Time {
    if unit <= 0 {
        return time.clone();
    }
    let since =
        (i128::from(time.seconds) - i128::from(super::ZERO_SECONDS)) * 1_000_000_000 + i128::from(time.nanos);
    let rest = i64::try_from(since.rem_euclid(i128::from(unit))).unwrap_or(0);
    let up = nearest && rest.saturating_add(rest) >= unit;
    time.add(if up { unit - rest } else { -rest })
}

impl Object for DurationObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        DURATION
    }

    fn kind(&self) -> Kind {
        Kind::Int(IntKind::Int64)
    }

    fn truth(&self) -> bool {
        self.0 != 0
    }

    fn method(&self, name: &str) -> Option<Method> {
        match name {
            "String" | "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Microseconds" | "Nanoseconds"
            | "Abs" => Some(Method::GETTER),
            "Round" | "Truncate" => takes(&[Param::Object(DURATION)]),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn call(&self, _ctx: &mut Ctx<'_>, name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let split = |unit: i64| Value::Float((self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64);
        Ok(match name {
            "String" => Value::from(format_duration(self.0)),
            "Hours" => split(3_600_000_000_000),
            "Minutes" => split(60_000_000_000),
            "Seconds" => split(1_000_000_000),
            "Milliseconds" => Value::int64(self.0 / 1_000_000),
            "Microseconds" => Value::int64(self.0 / 1_000),
            "Nanoseconds" => Value::int64(self.0),
            "Abs" => Value::object(Self(self.0.saturating_abs())),
            _ => Value::object(Self(round_duration(self.0, duration_of(args.first()), name == "Round"))),
        })
    }

    fn display(&self) -> Option<Vec<u8>> {
        Some(format_duration(self.0).into_bytes())
    }

    fn plain(&self) -> Value {
        Value::int64(self.0)
    }
}

/// A duration towards zero, or to the nearest, multiple of a unit; halves go away from zero.
pub(crate) fn round_duration(nanos: i64, unit: i64, nearest: bool) -> i64 {
    if unit <= 0 {
        return nanos;
    }
    let rest = nanos % unit;
    let down = nanos - rest;
    if !nearest || rest.unsigned_abs().saturating_mul(2) < unit.unsigned_abs() {
        return down;
    }
    down.saturating_add(if nanos < 0 { -unit } else { unit })
}

macro_rules! named_number {
    ($object:ident, $type_name:literal, $name:ident) => {
        impl Object for $object {
            fn as_any(&self) -> &dyn Any {
                self
            }

            fn type_name(&self) -> &'static str {
                $type_name
            }

            fn kind(&self) -> Kind {
                Kind::Int(IntKind::Int)
            }

            fn truth(&self) -> bool {
                self.0 != 0
            }

            fn method(&self, name: &str) -> Option<Method> {
                (name == "String").then_some(Method::GETTER)
            }

            fn call(&self, _ctx: &mut Ctx<'_>, _name: &str, _args: &[Value]) -> Result<Value, FuncError> {
                Ok(Value::from($name(self.0)))
            }

            fn display(&self) -> Option<Vec<u8>> {
                Some($name(self.0).as_bytes().to_vec())
            }

            fn plain(&self) -> Value {
                Value::int(i64::from(self.0))
            }
        }
    };
}

named_number!(MonthObject, "time.Month", month_name);
named_number!(WeekdayObject, "time.Weekday", weekday_name);
