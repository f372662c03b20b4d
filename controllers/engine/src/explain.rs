//! Packs why each cluster was chosen or not, for every app of a plan, into the bytes that are stored beside a revision,
//! and reads them back. For people alone: nothing is decided by it, and what is lost is harmless. The only file that
//! knows the format.
//!
//! One part is a zstd frame of JSON: `{"format": 1, "part": 1, "parts": 2, "leftOut": 0, "apps": [{"app", "clusters":
//! [{"cluster", "verdict", "reason", "needs"}]}]}`. Readers pass over fields they do not know, so that numbers of a later
//! ranking can join a row; a later `format` is refused.

use serde::{Deserialize, Serialize};
use zstd::bulk::Decompressor;

use crate::conditions::truncate;

/// Key of a part in the `binaryData` of its ConfigMap.
pub const KEY: &str = "explain.json.zst";
/// The format written now.
const FORMAT: u32 = 1;
/// Largest part, in bytes: what one ConfigMap carries beside its metadata.
const LARGEST: usize = 700 * 1024;
/// Rows tried in one part.
const ROWS: usize = 25_000;
/// Most parts. What goes beyond is counted, and not written.
pub const MOST_PARTS: usize = 8;
/// Longest `needs` of a row, in bytes.
const LONGEST_NEEDS: usize = 256;
/// Most bytes that a part may unpack to.
const LARGEST_CONTENT: usize = 64 * 1024 * 1024;
/// Compression level: rows are alike, higher ones gain nothing.
const LEVEL: i32 = 3;

/// Whether a cluster gets an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It does.
    Chosen,
    /// It does not.
    Rejected,
}

/// One cluster that was considered for an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Considered {
    /// `provider/cluster`.
    pub cluster: String,
    /// What was decided.
    pub verdict: Verdict,
    /// The part of the rule that took it, or the reason why none did.
    pub reason: String,
    /// The smallest change that would admit it; empty for a chosen one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub needs: String,
}

/// Everything that was considered for one app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// The app.
    pub app: String,
    /// Clusters, in the order of their names.
    pub clusters: Vec<Considered>,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// By app.
    pub apps: Vec<Explained>,
    /// Rows that did not fit and were not written.
    pub left_out: usize,
    /// Parts that were not given: they were lost, or deleted by somebody.
    pub missing: usize,
}

/// Why a part cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// A later version wrote it.
    #[error(
        "the explanation has format {0}, which is later than this version's: read it with the version that wrote it"
    )]
    Newer(u32),
    /// It is something else, or damaged.
    #[error("this is no explanation: {0}")]
    Corrupt(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<A> {
    format: u32,
    part: usize,
    parts: usize,
    #[serde(default)]
    left_out: usize,
    apps: A,
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The parts to store, each at most 700 KiB and eight at most.
pub fn write(explained: &[Explained]) -> Vec<Vec<u8>> {
    write_within(explained, ROWS, LARGEST)
}

fn write_within(explained: &[Explained], most_rows: usize, most_bytes: usize) -> Vec<Vec<u8>> {
    let rows: Vec<(&str, &Considered)> = explained
        .iter()
        .flat_map(|app| app.clusters.iter().map(move |row| (app.app.as_str(), row)))
        .collect();
    let mut chunks: Vec<&[(&str, &Considered)]> = Vec::new();
    let mut rest = rows.as_slice();
    while !rest.is_empty() && chunks.len() < MOST_PARTS {
        let mut length = rest.len().min(most_rows);
        // Counters of the header change its length by a few bytes: the limit is far below that of a ConfigMap.
        while length > 1 && rest.get(..length).is_some_and(|chunk| encode(chunk, 1, 1, 0).len() > most_bytes)
        {
            length /= 2;
        }
        let (chunk, after) = rest.split_at(length);
        chunks.push(chunk);
        rest = after;
    }
    let parts = chunks.len();
    chunks
        .iter()
        .enumerate()
        .map(|(at, chunk)| encode(chunk, at + 1, parts, if at + 1 == parts { rest.len() } else { 0 }))
        .collect()
}

fn encode(rows: &[(&str, &Considered)], part: usize, parts: usize, left_out: usize) -> Vec<u8> {
    let mut apps: Vec<Explained> = Vec::new();
    for (app, row) in rows {
        let row = Considered { needs: truncate(&row.needs, LONGEST_NEEDS), ..(*row).clone() };
        match apps.last_mut().filter(|last| last.app == *app) {
            Some(last) => last.clusters.push(row),
            None => apps.push(Explained { app: (*app).to_owned(), clusters: vec![row] }),
        }
    }
    let part = Stored { format: FORMAT, part, parts, left_out, apps };
    // Neither fails on memory: texts and numbers are always JSON, and a frame of them is always written.
    let json = serde_json::to_vec(&part).unwrap_or_default();
    zstd::bulk::compress(&json, LEVEL).unwrap_or_default()
}

/// Reads parts, in any order.
pub fn read(parts: &[&[u8]]) -> Result<Explanation, ExplainError> {
    let mut read = Vec::new();
    for bytes in parts {
        read.push(decode(bytes)?);
    }
    read.sort_by_key(|part| part.part);
    read.dedup_by_key(|part| part.part);
    let all = read.iter().map(|part| part.parts).max().unwrap_or_default();
    let mut explanation = Explanation { missing: all.saturating_sub(read.len()), ..Explanation::default() };
    for part in read {
        explanation.left_out += part.left_out;
        for app in part.apps {
            match explanation.apps.last_mut().filter(|last| last.app == app.app) {
                Some(last) => last.clusters.extend(app.clusters),
                None => explanation.apps.push(app),
            }
        }
    }
    Ok(explanation)
}

fn decode(bytes: &[u8]) -> Result<Stored<Vec<Explained>>, ExplainError> {
    let corrupt = |error: &dyn std::fmt::Display| ExplainError::Corrupt(error.to_string());
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= LARGEST_CONTENT);
    let size = size.ok_or_else(|| corrupt(&"it does not say how long it is, or is too long"))?;
    let json = Decompressor::new().and_then(|mut d| d.decompress(bytes, size)).map_err(|e| corrupt(&e))?;
    let Format { format } = serde_json::from_slice(&json).map_err(|e| corrupt(&e))?;
    if format > FORMAT {
        return Err(ExplainError::Newer(format));
    }
    serde_json::from_slice(&json).map_err(|e| corrupt(&e))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn explained(app: &str, clusters: usize, needs: impl Fn(usize) -> String) -> Explained {
        let row = |n| Considered {
            cluster: format!("acme/edge-{n:06}"),
            verdict: Verdict::Rejected,
            reason: "LabelMissing".to_owned(),
            needs: needs(n),
        };
        Explained { app: app.to_owned(), clusters: (0..clusters).map(row).collect() }
    }

    fn back(parts: &[Vec<u8>]) -> Explanation {
        read(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn ten_thousand_clusters_and_ten_apps_fit_into_few_hundred_kib() {
        let apps: Vec<Explained> = (0..10)
            .map(|n| explained(&format!("app-{n}"), 10_000, |_| "label tier=edge".to_owned()))
            .collect();
        let parts = write(&apps);
        let bytes: usize = parts.iter().map(Vec::len).sum();
        assert!(parts.len() <= 5 && bytes < 600 * 1024, "{} parts, {bytes} bytes", parts.len());
        assert_eq!(back(&parts), Explanation { apps, left_out: 0, missing: 0 });
    }

    #[test]
    fn what_does_not_fit_is_counted_and_no_part_is_too_large() {
        // Texts that hardly compress: parts are cut by their size.
        let needs = |n: usize| hex::encode(Sha256::digest(n.to_be_bytes())).repeat(5);
        let parts = write_within(&[explained("web", 3_000, needs)], 500, 8 * 1024);
        assert_eq!(parts.len(), MOST_PARTS);
        assert!(parts.iter().all(|part| part.len() <= 8 * 1024 + 64));
        let read = back(&parts);
        assert!(read.left_out > 0);
        assert_eq!(read.apps[0].clusters.len() + read.left_out, 3_000);
        assert!(read.apps[0].clusters.iter().all(|row| row.needs.len() <= LONGEST_NEEDS));
    }

    #[test]
    fn lost_parts_are_counted_and_strange_bytes_refused() {
        let parts = write_within(&[explained("web", 600, |_| String::new())], 250, LARGEST);
        assert_eq!(parts.len(), 3);
        let read = back(&parts[1..2]);
        assert_eq!((read.missing, read.apps[0].clusters.len()), (2, 250));
        assert!(matches!(super::read(&[b"nonsense"]), Err(ExplainError::Corrupt(_))));
        let newer = zstd::bulk::compress(br#"{"format": 2, "rows": "elsewhere"}"#, 1).unwrap();
        assert_eq!(super::read(&[&newer]), Err(ExplainError::Newer(2)));
        assert_eq!(write(&[]), Vec::<Vec<u8>>::new());
    }
}
