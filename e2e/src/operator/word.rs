//! In: a project's name, a word. Out: a deployment on all edges whose one object says that word, as its values choose.

use anyhow::Result;

use super::objects::{chart, chart_map, deployment, project};
use super::states::deployed;
use crate::bed::Bed;
use crate::package::Package;

/// On every edge of the bed.
pub const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";

/// The chart of app `web`: one ConfigMap, `note`, which says `one` unless values have another word.
///
/// # Errors
///
/// It cannot be packed.
pub fn note() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", NOTE)])
}

/// The placement and the values of a deployment whose note says this word, for [`deployment`].
pub fn saying(word: &str) -> String {
    format!("{EVERYWHERE}\noverrideValues: [{{app: web, values: {{say: {word}}}}}]")
}

/// Makes the project, and deployment `shop` in it; waits until its note is on all edges.
///
/// # Errors
///
/// The hub refuses one of them, or it is not deployed in time.
pub async fn noted(bed: &Bed, name: &str) -> Result<()> {
    project(bed, name).await?;
    chart_map(bed, name, "charts", &[note()?]).await?;
    bed.hub().kubectl().apply(&deployment(name, "shop", &[note()?], EVERYWHERE)).await?;
    deployed(bed, name, "shop", 1).await.map(drop)
}
