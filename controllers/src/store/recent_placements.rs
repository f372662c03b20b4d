//! Finds which clusters had which app within a time, from the times of stored revisions. A content is read for it at
//! most once; what is remembered is who had what.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::AppContext;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::cache::PlacementSummary;
use super::context::StoreContext;
use super::load::{contexts, load};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;

/// Footprints of revisions that ran at any time within `window`: those made in it, and the one that it began with; each
/// different one once. With them, when the oldest of them is no longer in it. Nothing where only the newest ran: then
/// nothing was removed. `since` is the oldest revision that counts.
pub async fn recent_placements(
    ctx: &StoreContext,
    owner: &Owner,
    window: SignedDuration,
    since: Option<i64>,
) -> Result<(Vec<PlacementSummary>, Option<Timestamp>), Failure> {
    let mut all = contexts(ctx, owner);
    all.retain(|context| since.is_none_or(|since| context.spec.revision >= since));
    let (mut within, until) = within(&all, ctx.now(), window);
    if within.len() < 2 {
        within.clear();
    }
    let uids: BTreeSet<&str> = within.iter().map(|context| meta::uid(context.as_ref())).collect();
    ctx.revisions.placements.lock().keep(&owner.hash, &uids);
    let mut ran: Vec<PlacementSummary> = Vec::new();
    for context in within {
        let uid = meta::uid(context.as_ref());
        let known = ctx.revisions.placements.lock().get(&owner.hash, uid);
        let footprint = match known {
            Some(known) => known,
            None => match load(ctx, context).await? {
                Ok(running) => ctx.revisions.placements.lock().put(&owner.hash, uid, &running.assignment),
                // Where it was is not known any more. What runs is known from its own content.
                Err(_) => continue,
            },
        };
        if !ran.iter().any(|other| Arc::ptr_eq(other, &footprint)) {
            ran.push(footprint);
        }
    }
    Ok((ran, until))
}

/// Of revisions, newest first, those that ran within the window; and when that changes by itself.
fn within(
    all: &[Arc<AppContext>],
    now: Timestamp,
    window: SignedDuration,
) -> (Vec<&Arc<AppContext>>, Option<Timestamp>) {
    let mut found = Vec::new();
    let mut until = None;
    for (at, context) in all.iter().enumerate() {
        // One that was never targeted, because the process died while it was written, put nothing anywhere.
        let stored = context.status.as_ref().is_some_and(|status| status.stored == Some(true));
        if at > 0 && !stored {
            continue;
        }
        found.push(context);
        let made = context.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let leaves = made.checked_add(window).unwrap_or(now);
        if leaves <= now {
            break;
        }
        // The one before it counts until this one is old.
        if at + 1 < all.len() {
            until = Some(leaves);
        }
    }
    (found, until)
}

#[cfg(test)]
mod tests {
    use emco_crds::app_context::AppContextStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    /// Revisions made so many hours ago, newest first; those in brackets were never targeted.
    fn made(hours: &[(i64, bool)], now: Timestamp) -> Vec<Arc<AppContext>> {
        let count = i64::try_from(hours.len()).unwrap();
        let of = |(at, (ago, stored)): (i64, &(i64, bool))| {
            let mut context = AppContext::default();
            context.spec.revision = count - at;
            context.metadata.creation_timestamp = Some(Time(now - SignedDuration::from_hours(*ago)));
            context.status = Some(AppContextStatus { stored: Some(*stored), ..AppContextStatus::default() });
            Arc::new(context)
        };
        (0..).zip(hours).map(of).collect()
    }

    #[test]
    fn what_ran_within_a_day_is_what_was_made_in_it_and_what_it_began_with() {
        let now = Timestamp::new(1_795_000_000, 0).unwrap();
        let day = SignedDuration::from_hours(24);
        let case = |hours: &[(i64, bool)]| {
            let all = made(hours, now);
            let (found, until) = within(&all, now, day);
            let numbers: Vec<i64> = found.iter().map(|context| context.spec.revision).collect();
            (numbers, until.map(|until| until.duration_since(now).as_hours()))
        };
        assert_eq!(case(&[]), (vec![], None));
        assert_eq!(case(&[(1, true)]), (vec![1], None));
        assert_eq!(case(&[(30, true), (40, true)]), (vec![2], None), "it ran all day");
        assert_eq!(case(&[(1, true), (5, true), (30, true), (40, true)]), (vec![4, 3, 2], Some(19)));
        assert_eq!(case(&[(1, false), (5, false), (30, true)]), (vec![3, 1], Some(23)), "never targeted");
    }
    #[test]
    fn a_clock_that_is_set_by_an_hour_moves_the_day_by_that_hour_and_no_more() {
        let made_at = Timestamp::new(1_795_000_000, 0).unwrap();
        let (hour, day) = (SignedDuration::from_hours(1), SignedDuration::from_hours(24));
        let all = made(&[(0, true), (5, true), (30, true)], made_at);
        let case = |now: Timestamp| {
            let (found, until) = within(&all, now, day);
            (found.len(), until.map(|until| until.duration_since(now)))
        };
        // Revision 2, of five hours ago, counts for nineteen more hours; what it replaced counts as long.
        assert_eq!(case(made_at), (3, Some(hour * 19)));
        assert_eq!(case(made_at + hour), (3, Some(hour * 18)));
        assert_eq!(case(made_at - hour), (3, Some(hour * 20)), "the newest is of the future, and counts");
        assert_eq!(case(made_at + hour * 19), (2, Some(hour * 5)));
        assert_eq!(case(made_at + hour * 18), (3, Some(hour)), "back by an hour, it counts for that hour");
        for far in [Timestamp::MIN, Timestamp::MAX] {
            let (_, until) = within(&all, far, day);
            assert_eq!(until.is_some(), far == Timestamp::MIN);
        }
    }
}
