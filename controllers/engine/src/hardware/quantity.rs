//! Reads, compares, sums and writes Kubernetes quantities.

/// Whether two texts are the same quantity in other words, such as `0.5` and `500m`.
pub fn same_quantity(left: &str, right: &str) -> bool {
    parse(left).zip(parse(right)).is_some_and(|((left, _), (right, _))| left == right)
}

/// A sum of quantities, exact in thousandths of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    milli: i128,
    /// Only binary suffixes were seen: the sum is shown with one too.
    binary: Option<bool>,
}

const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const DECIMAL: [(&str, u32); 6] = [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

impl Sum {
    /// Adds a quantity such as `3920m`, `32873512Ki` or `1e3`; `false` where the text is none, which adds nothing.
    pub fn add(&mut self, text: &str) -> bool {
        let Some((milli, binary)) = parse(text.trim()) else { return false };
        self.milli = self.milli.saturating_add(milli);
        self.binary = Some(self.binary.unwrap_or(true) && binary);
        true
    }

    /// The sum with the largest suffix that keeps it exact.
    pub fn text(&self) -> String {
        text(self.milli, self.binary == Some(true))
    }
}

/// An amount in thousandths of a unit; `None` where the text is no quantity.
pub fn thousandths(text: &str) -> Option<i128> {
    parse(text.trim()).map(|(milli, _)| milli)
}

/// Thousandths of a unit as people write them, with the largest suffix that keeps them exact.
pub fn text(milli: i128, binary: bool) -> String {
    if milli % 1000 != 0 {
        return format!("{milli}m");
    }
    let units = milli / 1000;
    if binary && units != 0 {
        let fits = BINARY.iter().rev().find(|(_, bits)| units % (1_i128 << bits) == 0);
        if let Some((suffix, bits)) = fits {
            return format!("{}{suffix}", units >> bits);
        }
    }
    units.to_string()
}

fn parse(text: &str) -> Option<(i128, bool)> {
    if text.len() > 40 {
        return None;
    }
    let split =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let (number, suffix) = (text.get(..split)?, text.get(split..)?);
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((digits(number)?.checked_mul(1_i128 << bits)?, true));
    }
    let exponent = match suffix {
        "" => 0,
        "m" => return Some((digits(number)? / 1000, false)),
        "u" => return Some((digits(number)? / 1_000_000, false)),
        "n" => return Some((digits(number)? / 1_000_000_000, false)),
        _ => match DECIMAL.iter().find(|(name, _)| *name == suffix) {
            Some((_, exponent)) => *exponent,
            None => suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|e| *e <= 18)?,
        },
    };
    Some((digits(number)?.checked_mul(10_i128.pow(exponent))?, false))
}

/// `1.5` to 1500; digits beyond the third are dropped.
fn digits(number: &str) -> Option<i128> {
    let (sign, written) = match number.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    if whole.is_empty() && fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole.checked_mul(1000)?.checked_add(padded.parse().ok()?)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::{Sum, same_quantity, text, thousandths};

    fn sum(texts: &[&str]) -> String {
        let mut sum = Sum::default();
        for text in texts {
            assert!(sum.add(text), "{text}");
        }
        sum.text()
    }

    #[test]
    fn quantities_of_nodes_add_up_exactly() {
        assert_eq!(sum(&["3920m", "80m"]), "4");
        assert_eq!(sum(&["3920m", "4"]), "7920m");
        assert_eq!(sum(&["32Gi", "64Gi"]), "96Gi");
        assert_eq!(sum(&["32873512Ki", "4Ki"]), "32873516Ki");
        assert_eq!(sum(&["1e3", "2k", "0.5"]), "3000500m");
        assert_eq!(sum(&["47093746742", "1Ki"]), "47093747766");
    }

    #[test]
    fn an_amount_is_read_and_written_as_people_mean_it() {
        assert_eq!(thousandths("1500m"), Some(1500));
        assert_eq!(thousandths("2Gi"), Some(2 * 1024 * 1024 * 1024 * 1000));
        assert_eq!(thousandths("no"), None);
        assert_eq!((text(500, false), text(2_147_483_648_000, true)), ("500m".to_owned(), "2Gi".to_owned()));
        assert!(same_quantity("0.5", "500m") && !same_quantity("1", "1k"));
    }

    #[test]
    fn what_is_no_quantity_adds_nothing() {
        let mut sum = Sum::default();
        for text in ["", "Gi", "1GiB", "1e99", "-", "1.2.3", "ten"] {
            assert!(!sum.add(text), "{text}");
        }
        assert_eq!(sum, Sum::default());
    }
}
