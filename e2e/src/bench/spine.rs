//! In: the operator's program. Out: how soon a deployment is ready, what it costs the hub, what the operator needs, and whether
//! it writes when nothing happens.

mod fleet;
mod quiet;
mod sample;

use std::path::Path;

use anyhow::Result;

use super::record::Entry;

/// What makes this.
const HOW: &str = "make bench-spine";

/// Measures on two beds, one after the other.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let mut entries = sample::measure(program).await?;
    entries.extend(fleet::measure(program).await?);
    Ok(entries)
}
