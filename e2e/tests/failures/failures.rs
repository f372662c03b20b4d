//! The rows of the page of failures, by their first column, and the tests that show what the row says: chapter by chapter.

mod cluster;
mod git;
mod hub;
mod way;
mod written;

/// First column, names of tests.
pub type Row = (&'static str, &'static [&'static str]);

/// In the order of the page.
pub fn shown_by() -> Vec<Row> {
    [way::WAY, git::GIT, cluster::CLUSTER, written::WRITTEN, hub::HUB].concat()
}
