//! The outcome of one check.
use crate::value::Text;

/// Problems that are shown for one chart; more help nobody.
pub(super) const MAX_PROBLEMS: usize = 50;

/// Problems, and how well the values fitted all the same: of several schemas that do not fit, the best one's problems are told.
#[derive(Default)]
pub(super) struct Outcome {
    /// Each counts for the render: of schemas within schemas many outcomes are alive at one time.
    texts: Vec<Text>,
    invalid: bool,
    pub score: i64,
}

impl Outcome {
    pub fn is_valid(&self) -> bool {
        !self.invalid
    }

    pub fn problems(&self) -> usize {
        self.texts.len()
    }

    pub fn add(&mut self, text: Option<String>) {
        self.texts.extend(text.map(Text::from));
        self.invalid = true;
        self.score -= 2;
    }

    pub fn merge(&mut self, other: Self) {
        let room = MAX_PROBLEMS.saturating_sub(self.texts.len());
        self.texts.extend(other.texts.into_iter().take(room));
        self.invalid |= other.invalid;
        self.score += other.score;
    }

    pub fn into_text(self) -> String {
        self.texts.iter().map(Text::lossy).collect()
    }
}

/// The better of two outcomes that do not fit; the first one where they are alike.
pub(super) fn better(best: Option<Outcome>, new: Outcome) -> Outcome {
    best.filter(|best| best.score >= new.score).unwrap_or(new)
}
