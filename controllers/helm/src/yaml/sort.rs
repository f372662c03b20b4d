//! Orders keys of written YAML: letters after signs, numbers by value.
use std::cmp::Ordering;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        c.general_category_group() == GeneralCategoryGroup::Letter
    }
}

fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { c.general_category() == GeneralCategory::DecimalNumber }
}

/// A run of digits as a number that wraps as Go's `int64` does, and where it ends.
fn run(chars: &[char], from: usize, start: i64) -> (i64, usize) {
    let mut value = start;
    let mut end = from;
    for c in chars.iter().skip(from).take_while(|c| is_digit(**c)) {
        let digit = i64::from(u32::from(*c)) - i64::from(u32::from('0'));
        value = value.wrapping_mul(10).wrapping_add(digit);
        end += 1;
    }
    (value, end)
}

/// Orders two keys. `digits_first` is the younger rule, by which letters after digits come first.
pub(super) fn compare(a: &[u8], b: &[u8], digits_first: bool) -> Ordering {
    let plain = |key: &[u8]| key.iter().all(u8::is_ascii_alphabetic);
    if plain(a) && plain(b) {
        return a.cmp(b);
    }
    let chars = |key: &[u8]| String::from_utf8_lossy(key).chars().collect::<Vec<_>>();
    compare_chars(&chars(a), &chars(b), digits_first)
}

fn compare_chars(a: &[char], b: &[char], digits_first: bool) -> Ordering {
    let mut after_digit = false;
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        if x == y {
            after_digit = is_digit(*x);
            continue;
        }
        let (x_letter, y_letter) = (is_letter(*x), is_letter(*y));
        if x_letter && y_letter {
            return x.cmp(y);
        }
        if x_letter || y_letter {
            let less = if digits_first && after_digit { x_letter } else { y_letter };
            return if less { Ordering::Less } else { Ordering::Greater };
        }
        let mut start = 0;
        if *x == '0' || *y == '0' {
            // A zero inside a number does not lead it.
            let number = a.iter().take(i).rev().take_while(|c| is_digit(**c));
            if number.into_iter().any(|c| *c != '0') {
                start = 1;
            }
        }
        let (x_value, x_end) = run(a, i, start);
        let (y_value, y_end) = run(b, i, start);
        return x_value.cmp(&y_value).then(x_end.cmp(&y_end)).then(x.cmp(y));
    }
    a.len().cmp(&b.len())
}
