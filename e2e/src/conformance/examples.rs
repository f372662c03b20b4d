//! Lists the examples of the first EMCO that are lived.

use anyhow::Result;
use emco_e2e::bed::Bed;

use super::corpus::Corpus;
use super::{acting, fitting, life};

/// Their charts.
pub struct Examples {
    apps: life::Apps,
    fitting: fitting::Charts,
}

impl Examples {
    /// Packages them; whole lives are lived, or a part.
    pub fn of(corpus: &Corpus, whole: bool) -> Result<Self> {
        Ok(Self { apps: life::Apps::of(corpus, whole)?, fitting: fitting::Charts::of(corpus)? })
    }

    /// In the order in which they are lived.
    pub const fn all(&self) -> [Example<'_>; 3] {
        [Example::Life(&self.apps), Example::Acting(&self.apps), Example::Fitting(&self.fitting)]
    }
}

/// One of them.
pub enum Example<'a> {
    Life(&'a life::Apps),
    Acting(&'a life::Apps),
    Fitting(&'a fitting::Charts),
}

impl Example<'_> {
    /// How it is told.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Life(_) => "collectd, operator and nginx as one",
            Self::Acting(_) => "operator with the intent of test-gac",
            Self::Fitting(_) => "http-client, http-server and firewall with intents for hardware",
        }
    }

    /// From clean edges to clean edges. Answers what was seen.
    pub async fn live(&self, bed: &Bed) -> Result<String> {
        match self {
            Self::Life(apps) => Box::pin(life::live(bed, apps)).await,
            Self::Acting(apps) => Box::pin(acting::act(bed, apps)).await,
            Self::Fitting(charts) => Box::pin(fitting::fit(bed, charts)).await,
        }
    }
}
