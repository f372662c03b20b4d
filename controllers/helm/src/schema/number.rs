//! Divides numbers of JSON exactly, as decimals.

/// A number is a whole multiple of another one, which is above zero.
pub(super) fn is_multiple(value: f64, of: f64) -> bool {
    let ((value, value_power), (of, of_power)) = (decimal(value), decimal(of));
    if value == 0 {
        return true;
    }
    if of == 0 {
        return false;
    }
    // Both have at most 17 digits: products of two fit.
    let power = value_power - of_power;
    if power >= 0 {
        let mut rest = value % of;
        for _ in 0..power {
            rest = rest * 10 % of;
        }
        return rest == 0;
    }
    let ten = 10_u128.checked_pow(power.unsigned_abs());
    ten.and_then(|ten| ten.checked_mul(of)).is_some_and(|of| value % of == 0)
}

/// The digits of a number without its sign, and the power of ten they are multiplied with.
fn decimal(number: f64) -> (u128, i32) {
    let text = format!("{:e}", number.abs());
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let whole = digits.replace('.', "").parse().unwrap_or(0);
    (whole, power.parse::<i32>().unwrap_or(0) - i32::try_from(behind).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_exact() {
        let multiples = [(0.3, 0.1), (1e300, 7e299 / 7.0), (0.0, 3.0), (4.5, 1.5), (1e22, 1e-5), (-9.0, 3.0)];
        for (value, of) in multiples {
            assert!(is_multiple(value, of), "{value} {of}");
        }
        for (value, of) in [(0.35, 0.1), (1.0, 1e22), (1e-30, 1.0), (10.0, 3.0), (1e300, 7.0)] {
            assert!(!is_multiple(value, of), "{value} {of}");
        }
    }
}
