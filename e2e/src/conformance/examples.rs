//! Lists what is deployed besides single charts: the examples of the first EMCO, and everyday charts at level Standard.

use std::path::Path;

use anyhow::Result;
use emco_e2e::bed::Bed;

use super::corpus::Corpus;
use super::{acting, fitting, levels, life};

/// Their charts.
pub struct Examples {
    of_first: Option<(life::Apps, fitting::Charts)>,
    levels: levels::Charts,
}

impl Examples {
    /// Packages them; whole lives are lived, or a part, or none of the first EMCO's.
    pub fn of(corpus: &Corpus, whole: Option<bool>, operator: &Path) -> Result<Self> {
        let of_first = match whole {
            Some(whole) => Some((life::Apps::of(corpus, whole)?, fitting::Charts::of(corpus)?)),
            None => None,
        };
        Ok(Self { of_first, levels: levels::Charts::of(corpus, operator)? })
    }

    /// In the order in which they are lived.
    pub fn all(&self) -> Vec<Example<'_>> {
        let of_first = self.of_first.iter().flat_map(|(apps, fitting)| {
            [Example::Life(apps), Example::Acting(apps), Example::Fitting(fitting)]
        });
        of_first.chain([Example::Levels(&self.levels)]).collect()
    }
}

/// One of them.
pub enum Example<'a> {
    Life(&'a life::Apps),
    Acting(&'a life::Apps),
    Fitting(&'a fitting::Charts),
    Levels(&'a levels::Charts),
}

impl Example<'_> {
    /// How it is told.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Life(_) => "collectd, operator and nginx as one",
            Self::Acting(_) => "operator with the intent of test-gac",
            Self::Fitting(_) => "http-client, http-server and firewall with intents for hardware",
            Self::Levels(_) => "twenty everyday charts at level Standard",
        }
    }

    /// From clean edges to clean edges; logical clouds and definitions of everyday charts stay. Answers what was seen.
    pub async fn live(&self, bed: &Bed) -> Result<String> {
        match self {
            Self::Life(apps) => Box::pin(life::live(bed, apps)).await,
            Self::Acting(apps) => Box::pin(acting::act(bed, apps)).await,
            Self::Fitting(charts) => Box::pin(fitting::fit(bed, charts)).await,
            Self::Levels(charts) => Box::pin(levels::check(bed, charts)).await,
        }
    }
}
