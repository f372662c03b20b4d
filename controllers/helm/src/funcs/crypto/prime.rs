//! Searches random primes for keys. The search looks at the clock before every costly step, so that a chart which makes
//! many large keys ends at its time limit.
use num_bigint_dig::BigUint;
use num_bigint_dig::prime::probably_prime;
use num_traits::{One as _, ToPrimitive as _};

use crate::limits::{LimitError, Meter};
use crate::random::Stream;

/// Miller-Rabin rounds, besides a Lucas test.
const ROUNDS: usize = 20;

/// Numbers with a divisor below this are discarded without a costly test.
const SMALL: u32 = 2000;

/// How far from a random number its prime is looked for.
const REACH: u32 = 1 << 16;

/// A random prime of exactly so many bits, whose highest two are set: the product of two has twice as many bits.
pub(super) fn prime(bits: usize, stream: &mut Stream, meter: &Meter) -> Result<BigUint, LimitError> {
    let divisors = small_primes();
    loop {
        let mut start = random(bits, stream);
        for bit in [bits - 2, 0] {
            start |= BigUint::one() << bit;
        }
        let remainders: Vec<(u32, u32)> =
            divisors.iter().map(|&prime| (prime, (&start % prime).to_u32().unwrap_or(0))).collect();
        for offset in (0..REACH).step_by(2) {
            if remainders.iter().any(|(prime, rest)| (rest + offset).is_multiple_of(*prime)) {
                continue;
            }
            let candidate = &start + offset;
            if candidate.bits() == bits && is_prime(&candidate, meter)? {
                return Ok(candidate);
            }
        }
    }
}

/// Two primes such that the second, of `bits`, is one more than a multiple of the first, of `small_bits`, and a
/// generator of the group of that order.
pub(super) fn group(
    bits: usize,
    small_bits: usize,
    stream: &mut Stream,
    meter: &Meter,
) -> Result<[BigUint; 3], LimitError> {
    let one = BigUint::one();
    let divisors = small_primes();
    let q = prime(small_bits, stream, meter)?;
    let p = loop {
        let m = random(bits, stream);
        let p = &m - &m % (&q << 1) + &one;
        let has_divisor = divisors.iter().any(|&prime| (&p % prime).to_u32() == Some(0));
        if !has_divisor && p.bits() == bits && is_prime(&p, meter)? {
            break p;
        }
    };
    let exponent = (&p - &one) / &q;
    let mut base = one.clone();
    let g = loop {
        base += &one;
        let g = base.modpow(&exponent, &p);
        if g != one {
            break g;
        }
    };
    Ok([p, q, g])
}

fn is_prime(candidate: &BigUint, meter: &Meter) -> Result<bool, LimitError> {
    meter.check_time()?;
    Ok(probably_prime(candidate, ROUNDS))
}

/// A random number whose highest bit is set.
fn random(bits: usize, stream: &mut Stream) -> BigUint {
    use rand_chacha::rand_core::RngCore as _;
    let mut bytes = vec![0; bits.div_ceil(8)];
    stream.rng().fill_bytes(&mut bytes);
    let top = BigUint::one() << (bits - 1);
    (BigUint::from_bytes_be(&bytes) % &top) | top
}

/// The odd primes below `SMALL`.
fn small_primes() -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for number in (3..SMALL).step_by(2) {
        if found.iter().take_while(|prime| *prime * *prime <= number).all(|prime| number % prime != 0) {
            found.push(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::Limits;

    fn meter(time: Duration) -> Meter {
        Meter::start(&Limits { time, ..Limits::default() })
    }

    #[test]
    fn primes_have_their_size_and_are_prime() {
        let meter = meter(Duration::from_secs(60));
        for bits in [16, 100, 256] {
            let prime = prime(bits, &mut Stream::of_seed(bits), &meter).unwrap();
            assert_eq!(prime.bits(), bits);
            assert!(probably_prime(&prime, 1), "{prime}");
            assert_eq!((&prime * &prime).bits(), 2 * bits);
        }
        assert_eq!(small_primes().len(), 302);
    }

    #[test]
    fn a_group_has_the_order_of_its_smaller_prime() {
        let [p, q, g] = group(256, 100, &mut Stream::of_seed(1), &meter(Duration::from_secs(60))).unwrap();
        assert_eq!((p.bits(), q.bits()), (256, 100));
        assert!(probably_prime(&p, 1) && probably_prime(&q, 1));
        assert!(g > BigUint::one() && g.modpow(&q, &p) == BigUint::one());
    }

    #[test]
    fn the_search_ends_at_the_time_limit() {
        let meter = meter(Duration::ZERO);
        let expected = LimitError::Time(Duration::ZERO);
        assert_eq!(prime(2048, &mut Stream::of_seed(1), &meter), Err(expected));
        assert_eq!(group(2048, 256, &mut Stream::of_seed(1), &meter), Err(expected));
    }
}
