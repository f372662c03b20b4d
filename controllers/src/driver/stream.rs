//! One watch of one kind: pruned, kept in the store, told to others, filtered for the kind's own controller. Built here and
//! nowhere else.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use kube::Resource;
use kube::api::Api;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_events};
use serde::de::DeserializeOwned;

use crate::stores::{Feed, Listed};
use crate::triggers::Change;

/// Objects of a kind that their own controller has to look at, `trimmed` of what nobody here reads. `tell` hears of every change, after the
/// store has it.
pub fn watch<K>(
    api: Api<K>,
    feed: Feed<K>,
    listed_kinds: Arc<Listed>,
    trimmed: fn(&mut K),
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let all_listed = move || listed_kinds.done(&K::kind(&()));
    watch_those(api, watcher::Config::default(), feed, all_listed, trimmed, tell)
}

/// The same of those of one name, in all namespaces: whoever may not see the others may watch these. Nobody waits until they are listed.
pub fn watch_named<K>(
    api: Api<K>,
    name: &str,
    feed: Feed<K>,
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watch_those(api, named, feed, || {}, |_| {}, tell)
}

fn watch_those<K>(
    api: Api<K>,
    which: watcher::Config,
    feed: Feed<K>,
    all_listed: impl Fn() + Send + 'static,
    trimmed: fn(&mut K),
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let (mut tell, mut feed) = (tell, feed);
    let reader = feed.as_reader();
    let mut before: Vec<Arc<K>> = Vec::new();
    let mut listed: BTreeSet<Key> = BTreeSet::new();
    watch_events(api, which)
        .modify(move |object| {
            object.meta_mut().managed_fields = None;
            trimmed(object);
        })
        .default_backoff()
        .inspect_ok(move |event| feed.apply_watcher_event(event))
        .inspect_err(|error| {
            let kind = K::kind(&());
            if let Some(words) = busy(error) {
                tracing::debug!(%kind, words, "the hub asks to wait before a watch begins");
            } else {
                tracing::warn!(%kind, error = brief(error), "a watch of the hub was interrupted");
            }
        })
        .inspect_ok(move |event| match event {
            Event::Apply(object) => tell(Change { object, gone: false }),
            Event::Delete(object) => tell(Change { object, gone: true }),
            Event::Init => {
                before = reader.state();
                listed.clear();
            }
            Event::InitApply(object) => {
                listed.insert(key(object));
            }
            // The store has the new list now, and not before.
            Event::InitDone => {
                for object in reader.state() {
                    tell(Change { object: object.as_ref(), gone: false });
                }
                for object in std::mem::take(&mut before) {
                    if !listed.contains(&key(object.as_ref())) {
                        tell(Change { object: object.as_ref(), gone: true });
                    }
                }
                listed.clear();
                // Who waits for all kinds finds the indexes complete, which `tell` keeps.
                all_listed();
            }
        })
        .touched_objects()
}

/// What the hub says where it only asks to come again soon: right after the kinds were defined, for one, its caches begin.
fn busy(error: &watcher::Error) -> Option<&str> {
    status(error).filter(|status| status.code == 429).map(|status| status.message.as_str())
}

/// The hub's own sentence, where there is one: the error's text would repeat it with all its parts.
pub(super) fn brief(error: &watcher::Error) -> String {
    status(error).map_or_else(|| error.to_string(), |status| format!("{} ({})", status.message, status.code))
}

fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::WatchError(status)
        | watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

type Key = (Option<String>, Option<String>);

fn key<K: Resource>(object: &K) -> Key {
    (object.meta().namespace.clone(), object.meta().name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_begins_is_busy_and_all_else_is_told_in_its_own_words() {
        let of = |code, message: &str| {
            let status = Status::failure(message, "TooManyRequests").with_code(code);
            watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
        };
        assert_eq!(busy(&of(429, "storage is (re)initializing")), Some("storage is (re)initializing"));
        assert_eq!(busy(&of(403, "no")), None);
        assert_eq!(brief(&of(403, "clusters.emco.io is forbidden")), "clusters.emco.io is forbidden (403)");
        assert_eq!(busy(&watcher::Error::NoResourceVersion), None);
    }
}
