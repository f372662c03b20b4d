//! Says of a row that makes no progress what it waits for.

use std::time::Duration;

use emco_crds::sync_shard::status::RowError;
use emco_engine::text::counted;

use super::super::super::errors::cut;
use super::super::{depends, first};
use super::Facts;

/// The error of a row after this time without progress.
pub(super) fn error(facts: &Facts, deadline: Duration) -> RowError {
    match &facts.error {
        None => no_progress(facts, deadline),
        Some(waits) if waits.reason == depends::WAITS => waits_too_long(waits, facts, deadline),
        Some(leaves) if leaves.reason == first::LEAVES => leaves_too_long(leaves, deadline),
        Some(error) => error.clone(),
    }
}

/// How long nothing went forward.
fn waited(deadline: Duration) -> String {
    let seconds = usize::try_from(deadline.as_secs()).unwrap_or(usize::MAX);
    format!("no progress for {}", counted(seconds, "second"))
}

/// Nothing is wrong, and nothing goes on either.
fn no_progress(facts: &Facts, deadline: Duration) -> RowError {
    let waited = waited(deadline);
    let first = facts.unready.first();
    let named = facts.named.iter().flatten().next();
    let why = named.map(|named| &named.message).or_else(|| first.map(|unready| &unready.why));
    let message = match why {
        Some(why) => format!("{waited}: {why}; work goes on"),
        None => format!("{waited}; work goes on"),
    };
    RowError {
        app: first.map(|unready| unready.app.clone()),
        resource: first.map(|unready| unready.id.to_string()),
        reason: "ProgressDeadlineExceeded".to_owned(),
        message: cut(&message),
        attempts: 0,
    }
}

/// An object is on its way out, and does not get there.
fn leaves_too_long(leaves: &RowError, deadline: Duration) -> RowError {
    let message = format!("{}: {}; work goes on", waited(deadline), leaves.message);
    RowError {
        reason: "ProgressDeadlineExceeded".to_owned(),
        message: cut(&message),
        attempts: 0,
        ..leaves.clone()
    }
}

/// An app waits for another one, and nothing else goes on.
fn waits_too_long(waits: &RowError, facts: &Facts, deadline: Duration) -> RowError {
    let error = no_progress(facts, deadline);
    let cause =
        error.resource.as_ref().map(|resource| format!("; {resource} is not ready")).unwrap_or_default();
    let message = format!("{}: {}{cause}; work goes on", waited(deadline), waits.message);
    RowError { app: waits.app.clone(), resource: None, message: cut(&message), ..error }
}
