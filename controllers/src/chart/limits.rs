//! Bounds what fetching and keeping charts takes.

use std::time::Duration;

use crate::git::GitLimits;

/// Bounds on fetching and keeping charts.
#[derive(Clone, Debug)]
pub struct ChartLimits {
    /// Bytes of a repository's index.
    pub index_bytes: usize,
    /// Bytes of a packed archive.
    pub archive_bytes: usize,
    /// What is fetched of a Git repository.
    pub git: GitLimits,
    /// One download from the first byte sent to the last received.
    pub time: Duration,
    /// Until an answer begins.
    pub answer_begins: Duration,
    /// Redirects followed, each judged anew.
    pub redirects: usize,
    /// Bytes a second that an answer brings once it began, over ten seconds.
    pub slowest: usize,
    /// Downloads at once.
    pub fetches: usize,
    /// Of them, those of one project.
    pub fetches_of_project: usize,
    /// Bytes of archives on disk.
    pub disk_bytes: u64,
    /// Compiled charts in memory.
    pub compiled: usize,
    /// Bytes that compiled charts in memory take, unpacked and parsed.
    pub compiled_bytes: usize,
    /// Archives, indexes and Git packs that are unpacked or compiled at once, one of a project: each may hold what `load` allows,
    /// some times over.
    pub works: usize,
    /// What one chart may unpack to.
    pub load: emco_helm::Limits,
}

impl Default for ChartLimits {
    fn default() -> Self {
        Self {
            index_bytes: 64 << 20,
            archive_bytes: 32 << 20,
            git: GitLimits::default(),
            time: Duration::from_secs(120),
            answer_begins: Duration::from_secs(15),
            redirects: 5,
            slowest: 4 << 10,
            fetches: 4,
            fetches_of_project: 2,
            disk_bytes: 1 << 30,
            compiled: 64,
            compiled_bytes: 128 << 20,
            works: 2,
            load: emco_helm::Limits::default(),
        }
    }
}
