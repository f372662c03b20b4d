//! Random text and numbers, drawn from the stream of each call.
use super::args::{Out, bytes, def, fail, int, text};
use super::{Ctx, FuncDef, Param};
use crate::gotext::runes;
use crate::random::Stream;
use crate::value::Value;

use Param::{Int, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("randAlphaNum", &[Int], |c, a| characters(c, int(a, 0), char::is_ascii_alphanumeric)),
    def("randAlpha", &[Int], |c, a| characters(c, int(a, 0), char::is_ascii_alphabetic)),
    def("randNumeric", &[Int], |c, a| characters(c, int(a, 0), char::is_ascii_digit)),
    def("randAscii", &[Int], |c, a| characters(c, int(a, 0), |_| true)),
    def("randBytes", &[Int], rand_bytes),
    def("randInt", &[Int, Int], |c, a| {
        let (low, high) = (int(a, 0), int(a, 1));
        let Some(width) =
            high.checked_sub(low).and_then(|width| u64::try_from(width).ok()).filter(|width| *width > 0)
        else {
            return fail("invalid argument to Intn");
        };
        let drawn = Stream::of_call(c)?.below(width);
        Ok(Value::int(low.wrapping_add_unsigned(drawn)))
    }),
    def("shuffle", &[Str], |c, a| {
        let mut all: Vec<char> = runes(bytes(a, 0)).map(|(_, c)| c).collect();
        c.charge(all.len().saturating_mul(8))?;
        let mut stream = Stream::of_call(c)?;
        for i in (1..all.len()).rev() {
            let other = usize::try_from(stream.below(i as u64 + 1)).unwrap_or(i);
            all.swap(i, other);
        }
        text(all.into_iter().collect::<String>())
    }),
    def("uuidv4", &[], |c, _| {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = Stream::of_call(c)?.bytes::<16>();
        // The version and variant of random UUIDs.
        let (g, i) = ((g & 0x0F) | 0x40, (i & 0x3F) | 0x80);
        text(format!(
            "{a:02x}{b:02x}{c:02x}{d:02x}-{e:02x}{f:02x}-{g:02x}{h:02x}-{i:02x}{j:02x}-{k:02x}{l:02x}{m:02x}{n:02x}{o:02x}{p:02x}"
        ))
    }),
    // Templates reach no network; Helm answers the same unless told to look names up.
    def("getHostByName", &[Str], |_, _| text("")),
];

/// So many printable characters of a kind.
fn characters(ctx: &mut Ctx<'_>, count: i64, kind: fn(&char) -> bool) -> Out {
    let count = usize::try_from(count).unwrap_or(0);
    ctx.charge(count)?;
    let alphabet: Vec<char> = (' '..='~').filter(kind).collect();
    let mut stream = Stream::of_call(ctx)?;
    let draw = |_| {
        let place = usize::try_from(stream.below(alphabet.len() as u64)).unwrap_or(0);
        alphabet.get(place).copied().unwrap_or(' ')
    };
    text((0..count).map(draw).collect::<String>())
}

fn rand_bytes(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    use base64::Engine as _;
    use rand_chacha::rand_core::RngCore as _;
    let Ok(count) = usize::try_from(int(args, 0)) else {
        return fail("runtime error: makeslice: len out of range");
    };
    ctx.charge(count.saturating_mul(3))?;
    let mut drawn = vec![0; count];
    Stream::of_call(ctx)?.rng().fill_bytes(&mut drawn);
    text(base64::engine::general_purpose::STANDARD.encode(drawn))
}
