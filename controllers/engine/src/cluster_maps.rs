//! Writes down which clusters a project may use, in ConfigMaps of its namespace, for members, who may not read Clusters.
//!
//! Nothing is decided by them, and what is lost is harmless. The only file that knows the format: JSON with one line per cluster,
//! `{"format": 1, "leftOut": 0, "clusters": [{"provider", "name", "level", "scheduling", "reachable", "version", "labels"}]}`. Readers pass over
//! fields they do not know; a later `format` is refused.

use std::collections::BTreeMap;

use emco_crds::cluster::Scheduling;
use emco_crds::fields::Level;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

/// ConfigMaps of one project. The chart's roles name each of them.
pub const SLOTS: usize = 16;
/// How their names begin.
const PREFIX: &str = "emco-clusters-";
/// Key of the text in `data`.
pub const KEY: &str = "clusters.json";
/// The format written now.
const FORMAT: u32 = 1;
/// Largest text, in bytes: what one ConfigMap carries beside its metadata.
const LARGEST: usize = 700 * 1024;
/// Most bytes of one cluster's labels, as JSON.
const LARGEST_LABELS: usize = 16 * 1024;
/// What is around the rows, and between two of them, at most.
const AROUND: usize = 128;
const BETWEEN: usize = 2;

/// A cluster that a project may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Name of the provider.
    pub provider: String,
    /// Name of the Cluster.
    pub name: String,
    /// Highest level that grants allow there.
    pub level: Level,
    /// Whether it takes new work.
    pub scheduling: Scheduling,
    /// Status of its condition Reachable: True, False or Unknown.
    pub reachable: String,
    /// Version of Kubernetes, such as `v1.36.3`; empty while it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Labels of the Cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// There are more labels than are written down: none is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub labels_left_out: bool,
}

/// What one ConfigMap says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Clusters for which there was no room.
    #[serde(default)]
    pub left_out: usize,
    /// Clusters, in the order of provider and name.
    pub clusters: Vec<Row>,
}

/// Number of the ConfigMap that has a Cluster, by its namespace and name on the hub.
pub fn slot(namespace: &str, name: &str) -> usize {
    let digest = Sha256::digest(format!("{namespace}/{name}"));
    usize::from(digest.first().copied().unwrap_or_default()) % SLOTS
}

/// Name of the ConfigMap with this number.
pub fn name(slot: usize) -> String {
    format!("{PREFIX}{slot}")
}

/// Number of the ConfigMap with this name; `None` for all others.
pub fn slot_of(map: &str) -> Option<usize> {
    let slot = map.strip_prefix(PREFIX)?.parse().ok()?;
    (slot < SLOTS && name(slot) == map).then_some(slot)
}

/// The text of a ConfigMap; `None` where no cluster is to be in it. It does not depend on the order of the rows.
pub fn text(rows: impl IntoIterator<Item = Row>) -> Option<String> {
    let rows: BTreeMap<(String, String), Row> =
        rows.into_iter().map(|row| ((row.provider.clone(), row.name.clone()), bounded(row))).collect();
    let (mut lines, mut bytes, mut left_out) = (Vec::new(), AROUND, 0_usize);
    for row in rows.values() {
        let line = json!(row).to_string();
        // The first that finds no room ends it: which ones are there is to depend on names alone.
        if left_out > 0 || bytes + line.len() + BETWEEN > LARGEST {
            left_out += 1;
        } else {
            bytes += line.len() + BETWEEN;
            lines.push(line);
        }
    }
    let lines = (!lines.is_empty()).then(|| lines.join(",\n"))?;
    Some(format!("{{\"format\":{FORMAT},\"leftOut\":{left_out},\"clusters\":[\n{lines}\n]}}\n"))
}

/// Labels that take too much room would leave none to other clusters.
fn bounded(mut row: Row) -> Row {
    if json!(row.labels).to_string().len() > LARGEST_LABELS {
        row.labels.clear();
        row.labels_left_out = true;
    }
    row
}

/// Reads a text; the error says what is wrong with it.
pub fn read(text: &str) -> Result<Document, String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if format != FORMAT {
        return Err(format!(
            "it has format {format}, and this program reads format {FORMAT}: use a later one"
        ));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
