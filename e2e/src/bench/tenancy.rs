//! Measures how soon a logical cloud of level Standard is ready on its clusters, what that costs them and the hub in writes, and how
//! soon it is gone.

mod cloud;
mod real;
mod simulated;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::record::Entry;

/// What makes this.
const HOW: &str = "make bench-tenancy";
const PARTS: [&str; 2] = ["real", "simulated"];
/// At rest.
const REST: Duration = Duration::from_mins(1);
/// For a part, with its start: what hangs is ended and reported.
const LIMIT: Duration = Duration::from_mins(25);

/// Measures on beds of their own, one after the other; only one part if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    if let Some(only) = only.filter(|only| !PARTS.contains(only)) {
        bail!("there is no part {only}: they are {}", PARTS.join(", "));
    }
    let mut entries = Vec::new();
    for part in PARTS.into_iter().filter(|part| only.is_none_or(|only| only == *part)) {
        println!("{part}: load {}", super::user::load());
        let measured = async {
            match part {
                "real" => Box::pin(real::measure(program)).await,
                _ => Box::pin(simulated::measure(program)).await,
            }
        };
        let measured = tokio::time::timeout(LIMIT, measured).await;
        entries.extend(
            measured.with_context(|| {
                format!("part {part} did not end within {} minutes", LIMIT.as_secs() / 60)
            })??,
        );
        println!("{part}: load {}", super::user::load());
    }
    Ok(entries)
}
