//! Finds what an app has on a cluster, for the lookups of its chart: once for all clusters with one set.

use std::sync::Arc;

use super::Builder;
use crate::identity::SetDigest;
use crate::plan::lookup::{Completeness, Holdings};
use crate::plan::work::Item;
use crate::set::{Assigned, ManifestSet};

/// The set, the one that it was edited from, what is known of it, and whether it was an upgrade.
pub(super) type HoldingsKey = (Option<SetDigest>, Option<SetDigest>, Completeness, bool);

/// A set, or the part of it that can be read, and what it was edited from.
#[derive(Clone, Copy, Default)]
struct Content<'s> {
    digest: Option<&'s SetDigest>,
    set: Option<&'s Arc<ManifestSet>>,
    base: Option<&'s Arc<ManifestSet>>,
}

impl<'a> Builder<'a> {
    /// What the app has on the cluster. A revision that was stored and not applied yet counts: what it drew may be there.
    pub(super) fn holdings(&mut self, item: &Item<'a>) -> Arc<Holdings> {
        let snapshot = self.resolved.snapshot;
        let Some(previous) = item.previous else {
            let place = (item.id().clone(), self.app(item).to_owned());
            return match snapshot.leaving.get(&place) {
                None => self.held(Content::default(), Completeness::All, false),
                Some(None) => self.held(Content::default(), Completeness::Part, false),
                // Whether hooks of upgrades ran was not kept: they are the fewest.
                Some(Some(left)) => {
                    let (set, base) = (Some(&left.set), left.base.as_ref());
                    let digest = Some(&left.set.digest);
                    self.held(Content { digest, set, base }, Completeness::All, true)
                }
            };
        };
        let content = self.content(previous);
        let upgraded = previous.release_revision > 1;
        let running = snapshot.running.as_ref();
        let whole = running.is_some_and(|running| running.sets.contains_key(&previous.set));
        self.held(content, if whole { Completeness::All } else { Completeness::Part }, upgraded)
    }

    /// What can still be read of a set that is made again, taken for all of it.
    pub(super) fn assumed(&mut self, assigned: &'a Assigned) -> Arc<Holdings> {
        self.held(self.content(assigned), Completeness::Assumed, assigned.rendered_revision() > 1)
    }

    /// The readable part of a stored cell.
    fn content(&self, assigned: &'a Assigned) -> Content<'a> {
        let running = self.resolved.snapshot.running.as_ref();
        let read = |digest| {
            let running = running?;
            running.sets.get(digest).or_else(|| running.parts.get(digest))
        };
        let base = assigned.edits.as_ref().and_then(|edits| read(&edits.base));
        Content { digest: Some(&assigned.set), set: read(&assigned.set), base }
    }

    fn held(&mut self, content: Content<'_>, known: Completeness, upgraded: bool) -> Arc<Holdings> {
        let Content { digest, set, base } = content;
        let key = (digest.cloned(), base.map(|base| base.digest.clone()), known, upgraded);
        let fresh = || {
            let holdings = Holdings::new(set.cloned(), known, upgraded);
            Arc::new(match base {
                Some(base) => holdings.edited_from(Arc::clone(base)),
                None => holdings,
            })
        };
        Arc::clone(self.holdings.entry(key).or_insert_with(fresh))
    }
}
