//! Exact decimals: floats come in by their shortest digits, are added, multiplied and divided, and go out again.
use num_bigint::BigInt;
use num_traits::{Signed as _, Zero as _};

use super::FuncError;
use super::args::fail;

/// Digits after the point that a quotient keeps.
const PRECISION: i32 = 16;

/// `value` times ten to the `exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    value: BigInt,
    exponent: i32,
}

fn power(exponent: i32) -> BigInt {
    BigInt::from(10).pow(exponent.unsigned_abs())
}

impl Decimal {
    pub fn from_float(float: f64) -> Result<Self, FuncError> {
        if !float.is_finite() {
            return fail(format!("Cannot create a Decimal from {}", crate::gofloat::shortest_g(float)));
        }
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
        let exponent = exponent.parse::<i32>().unwrap_or(0) - i32::try_from(fraction).unwrap_or(0);
        Ok(Self { value: digits.parse().unwrap_or_default(), exponent })
    }

    pub fn to_float(&self) -> f64 {
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }

    /// Both values at the smaller exponent.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i32) {
        let exponent = self.exponent.min(other.exponent);
        let at = |decimal: &Self| &decimal.value * power(decimal.exponent - exponent);
        (at(self), at(other), exponent)
    }

    pub fn add(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self { value: a + b, exponent }
    }

    pub fn sub(&self, other: &Self) -> Self {
        let (a, b, exponent) = self.aligned(other);
        Self { value: a - b, exponent }
    }

    pub fn mul(&self, other: &Self) -> Self {
        Self { value: &self.value * &other.value, exponent: self.exponent.saturating_add(other.exponent) }
    }

    /// A quotient with 16 digits after the point, rounded half away from zero.
    pub fn div(&self, other: &Self) -> Result<Self, FuncError> {
        if other.value.is_zero() {
            return fail("decimal division by 0");
        }
        let shift = self.exponent - other.exponent + PRECISION;
        let (a, b) = if shift < 0 {
            (self.value.clone(), &other.value * power(shift))
        } else {
            (&self.value * power(shift), other.value.clone())
        };
        let (mut quotient, rest) = (&a / &b, &a % &b);
        if rest.abs() * 2 >= b.abs() {
            quotient += if a.is_negative() == b.is_negative() { 1 } else { -1 };
        }
        Ok(Self { value: quotient, exponent: -PRECISION })
    }
}
