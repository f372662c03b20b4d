//! Arithmetic: integers wrap as Go's do, floats go through decimals so that 0.1 and 0.2 make 0.3.
use super::args::{Out, any, def, fail, float, int, rest, text, variadic};
use super::cast::{parse_int, parse_int_saturating, to_float64, to_int64};
use super::decimal::Decimal;
use super::{Ctx, FuncDef, FuncError, Param};
use crate::gofmt;
use crate::value::{List, ListType, Text, Value};

use Param::{Any, Float64, Int};

pub(super) const FUNCS: &[FuncDef] = &[
    variadic("add", &[], Any, |_, a| Ok(Value::int64(a.iter().map(to_int64).fold(0, i64::wrapping_add)))),
    def("add1", &[Any], |_, a| Ok(Value::int64(to_int64(any(a, 0)).wrapping_add(1)))),
    def("sub", &[Any, Any], |_, a| Ok(Value::int64(to_int64(any(a, 0)).wrapping_sub(to_int64(any(a, 1)))))),
    def("div", &[Any, Any], |_, a| divided(a, i64::wrapping_div)),
    def("mod", &[Any, Any], |_, a| divided(a, i64::wrapping_rem)),
    variadic("mul", &[Any], Any, |_, a| Ok(Value::int64(a.iter().map(to_int64).fold(1, i64::wrapping_mul)))),
    def("add1f", &[Any], |_, a| decimal(to_float64(any(a, 0)), &[Value::int(1)], |a, b| Ok(a.add(b)))),
    variadic("addf", &[], Any, |_, a| decimal(0.0, a, |a, b| Ok(a.add(b)))),
    variadic("subf", &[Any], Any, |_, a| decimal(to_float64(any(a, 0)), rest(a, 1), |a, b| Ok(a.sub(b)))),
    variadic("mulf", &[Any], Any, |_, a| decimal(to_float64(any(a, 0)), rest(a, 1), |a, b| Ok(a.mul(b)))),
    variadic("divf", &[Any], Any, |_, a| decimal(to_float64(any(a, 0)), rest(a, 1), Decimal::div)),
    variadic("max", &[Any], Any, |_, a| Ok(Value::int64(a.iter().map(to_int64).max().unwrap_or(0)))),
    variadic("biggest", &[Any], Any, |_, a| Ok(Value::int64(a.iter().map(to_int64).max().unwrap_or(0)))),
    variadic("min", &[Any], Any, |_, a| Ok(Value::int64(a.iter().map(to_int64).min().unwrap_or(0)))),
    variadic("maxf", &[Any], Any, |_, a| Ok(extreme(a, true))),
    variadic("minf", &[Any], Any, |_, a| Ok(extreme(a, false))),
    def("ceil", &[Any], |_, a| Ok(to_float64(any(a, 0)).ceil().into())),
    def("floor", &[Any], |_, a| Ok(to_float64(any(a, 0)).floor().into())),
    variadic("round", &[Any, Int], Float64, round),
    def("int", &[Any], |_, a| Ok(Value::int(to_int64(any(a, 0))))),
    def("int64", &[Any], |_, a| Ok(Value::int64(to_int64(any(a, 0))))),
    def("float64", &[Any], |_, a| Ok(to_float64(any(a, 0)).into())),
    def("atoi", &[Param::String], |_, a| {
        Ok(Value::int(parse_int_saturating(any(a, 0).as_text().and_then(Text::as_str).unwrap_or(""))))
    }),
    def("toDecimal", &[Any], |_, a| {
        let shown = gofmt::sprint(std::slice::from_ref(any(a, 0)));
        Ok(Value::int64(std::str::from_utf8(&shown).ok().and_then(|text| parse_int(text, 8)).unwrap_or(0)))
    }),
    def("until", &[Int], |c, a| {
        let count = int(a, 0);
        ints(c, 0, count, if count < 0 { -1 } else { 1 })
    }),
    def("untilStep", &[Int, Int, Int], |c, a| ints(c, int(a, 0), int(a, 1), int(a, 2))),
    variadic("seq", &[], Int, seq),
];

fn divided(args: &[Value], operation: fn(i64, i64) -> i64) -> Out {
    match to_int64(any(args, 1)) {
        0 => fail("runtime error: integer divide by zero"),
        divisor => Ok(Value::int64(operation(to_int64(any(args, 0)), divisor))),
    }
}

fn decimal(
    start: f64,
    values: &[Value],
    operation: impl Fn(&Decimal, &Decimal) -> Result<Decimal, FuncError>,
) -> Out {
    let mut result = Decimal::from_float(start)?;
    for value in values {
        result = operation(&result, &Decimal::from_float(to_float64(value))?)?;
    }
    Ok(result.to_float().into())
}

/// The largest or smallest; NaN unless an infinity decides.
fn extreme(args: &[Value], largest: bool) -> Value {
    let pick = |a: f64, b: f64| {
        let end = if largest { f64::INFINITY } else { f64::NEG_INFINITY };
        #[allow(clippy::float_cmp)]
        if a == end || b == end {
            end
        } else if a.is_nan() || b.is_nan() {
            f64::NAN
        } else if largest {
            a.max(b)
        } else {
            a.min(b)
        }
    };
    args.iter().map(to_float64).reduce(pick).unwrap_or(0.0).into()
}

#[allow(clippy::unnecessary_wraps)] // The form of every function body.
fn round(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let on = if args.len() > 2 { float(args, 2) } else { 0.5 };
    let places = i32::try_from(int(args, 1).clamp(-1000, 1000)).unwrap_or(0);
    let power = if places < 0 { 1.0 / 10_f64.powi(-places) } else { 10_f64.powi(places) };
    let digit = power * to_float64(any(args, 0));
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    Ok((rounded / power).into())
}

/// Numbers from a start up or down to before an end.
fn numbers(ctx: &Ctx<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, FuncError> {
    if (stop < start && step >= 0) || (stop >= start && step <= 0) {
        return Ok(Vec::new());
    }
    let distance = (i128::from(stop) - i128::from(start)).unsigned_abs();
    let count = distance.div_ceil(i128::from(step).unsigned_abs());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    ctx.charge(count.saturating_mul(size_of::<Value>()))?;
    Ok((0..count).scan(start, |next, _| Some(std::mem::replace(next, next.wrapping_add(step)))).collect())
}

fn ints(ctx: &mut Ctx<'_>, start: i64, stop: i64, step: i64) -> Out {
    let items = numbers(ctx, start, stop, step)?.into_iter().map(Value::int).collect();
    Ok(Value::List(List::new(ListType::Int, items)))
}

fn seq(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let (start, stop, step) = match args.len() {
        1 => (1, int(args, 0), if int(args, 0) < 1 { -1 } else { 1 }),
        2 => (int(args, 0), int(args, 1), if int(args, 1) < int(args, 0) { -1 } else { 1 }),
        3 if int(args, 2) < int(args, 0) && int(args, 1) > 0 => return text(""),
        3 => (int(args, 0), int(args, 2), int(args, 1)),
        _ => return text(""),
    };
    // The last number is included.
    let end = stop.wrapping_add(if stop < start { -1 } else { 1 });
    let numbers = numbers(ctx, start, end, step)?;
    let shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    text(shown.join(" "))
}
