//! Plays the agents of all clusters: puts what the branch has for each onto it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use emco_e2e::fake_edges::{self, FakeEdges};
use emco_e2e::git_server::GitServer;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::CLUSTERS;

/// Between two looks at the tip.
const LOOK: Duration = Duration::from_millis(500);

/// Agents at work. They end when this is dropped.
pub struct Agent(JoinHandle<()>);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    /// Begins to follow the branch in a folder of its own.
    pub fn follow(server: Arc<GitServer>, fakes: Arc<FakeEdges>, folder: PathBuf) -> Self {
        Self(tokio::spawn(async move {
            let (mut done, mut known) = (String::new(), BTreeMap::new());
            loop {
                let tip = server.tip().await.unwrap_or_default();
                if !tip.is_empty() && tip != done {
                    match server
                        .check_out(&tip, &folder)
                        .await
                        .and_then(|()| put(&folder, &fakes, &mut known))
                    {
                        Ok(()) => done = tip,
                        Err(error) => eprintln!("the agents: {error:#}"),
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        }))
    }
}

/// Puts what changed onto each cluster.
fn put(tree: &Path, fakes: &FakeEdges, known: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for number in 0..CLUSTERS {
        let folder = tree.join("hub/clusters").join(fake_edges::PROVIDER).join(fake_edges::name(number));
        let mut files = Vec::new();
        below(&folder, &mut files)?;
        for file in files {
            let text =
                std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            if known.get(&file) == Some(&text) {
                continue;
            }
            for document in serde_yaml::Deserializer::from_str(&text) {
                fakes.put(number, &Value::deserialize(document)?);
            }
            known.insert(file, text);
        }
    }
    Ok(())
}

/// All files below a folder; none where it is not there yet.
fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
