//! Counts what a share or a number of clusters asks for.

use emco_crds::{IntOrText, PercentOrCount};

/// How many clusters `readyClusters` asks for: a share is rounded up, a number is at most all, no word means all.
pub fn needed(share: Option<&PercentOrCount>, total: usize) -> usize {
    // What cannot be read asks for everything.
    portion(share, total, |hundredths| hundredths.div_ceil(100)).unwrap_or(total)
}

/// How many failed clusters `maxFailures` bears: a share is rounded down, no word means none.
pub fn borne(share: Option<&PercentOrCount>, total: usize) -> usize {
    portion(share, total, |hundredths| hundredths / 100).unwrap_or_default()
}

/// A share or a number of all; a share is rounded by `whole`, which gets it in hundredths.
fn portion(share: Option<&PercentOrCount>, total: usize, whole: fn(usize) -> usize) -> Option<usize> {
    let number = match &share?.0 {
        IntOrText::Int(number) => usize::try_from((*number).max(0)).ok(),
        IntOrText::Text(text) => match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.parse::<usize>().ok().filter(|percent| *percent <= 100)?;
                return Some(whole(total.saturating_mul(percent)));
            }
            None => text.parse().ok(),
        },
    };
    number.map(|number| number.min(total))
}
