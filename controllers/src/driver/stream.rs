//! One watch of one kind: pruned, kept in the store, told to others, filtered for the kind's own controller. Built here and
//! nowhere else.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube::Resource;
use kube::api::Api;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_events};
use serde::de::DeserializeOwned;

use crate::api::pulse::Pulse;
use crate::stores::{Feed, Listed, Objects};
use crate::triggers::Change;

/// Objects of a kind that their own controller has to look at, `trimmed` of what nobody here reads. `tell` hears of every change, after the
/// store has it.
pub fn watch<K>(
    api: Api<K>,
    feed: Feed<K>,
    (listed_kinds, pulse): (Arc<Listed>, Arc<Pulse>),
    trimmed: fn(&mut K),
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let all_listed = move || listed_kinds.done(&K::kind(&()));
    watch_those(api, watcher::Config::default(), feed, (pulse, all_listed), trimmed, tell)
}

/// The same of those of one name, in all namespaces: whoever may not see the others may watch these. Nobody waits until they are listed.
pub fn watch_named<K>(
    api: Api<K>,
    name: &str,
    feed: Feed<K>,
    pulse: Arc<Pulse>,
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watch_those(api, named, feed, (pulse, || {}), |_| {}, tell)
}

fn watch_those<K>(
    api: Api<K>,
    which: watcher::Config,
    feed: Feed<K>,
    (pulse, all_listed): (Arc<Pulse>, impl Fn() + Send + 'static),
    trimmed: fn(&mut K),
    tell: impl FnMut(Change<'_, K>) + Send + 'static,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let events = watch_events(api, which)
        .modify(move |object| {
            object.meta_mut().managed_fields = None;
            trimmed(object);
        })
        .default_backoff()
        .inspect_err(|error| {
            let kind = K::kind(&());
            if let Some(words) = busy(error) {
                tracing::debug!(%kind, words, "the hub asks to wait before a watch begins");
            } else {
                tracing::warn!(%kind, error = brief(error), "a watch of the hub was interrupted");
            }
        });
    let reader = feed.as_reader();
    let teller =
        Teller { feed, reader, before: Vec::new(), listed: BTreeSet::new(), pulse, all_listed, tell };
    told(events.boxed(), teller).touched_objects()
}

/// Events, each after the store has it and others were told.
fn told<K, A, T>(
    events: BoxStream<'static, Result<Event<K>, watcher::Error>>,
    teller: Teller<K, A, T>,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    A: Fn() + Send + 'static,
    T: FnMut(Change<'_, K>) + Send + 'static,
{
    futures::stream::unfold((events, teller), |(mut events, mut teller)| async move {
        let event = events.next().await?;
        if let Ok(event) = &event {
            teller.hear(event).await;
        }
        Some((event, (events, teller)))
    })
}

/// Keeps a store, and tells what changed in it.
struct Teller<K: kube::runtime::reflector::Lookup<DynamicType = ()> + Clone + 'static, A, T> {
    feed: Feed<K>,
    reader: Objects<K>,
    /// Objects of the store when a list began.
    before: Vec<Arc<K>>,
    /// Keys that the list has so far.
    listed: BTreeSet<Key>,
    pulse: Arc<Pulse>,
    all_listed: A,
    tell: T,
}

impl<K, A, T> Teller<K, A, T>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
    A: Fn(),
    T: FnMut(Change<'_, K>),
{
    async fn hear(&mut self, event: &Event<K>) {
        self.feed.apply_watcher_event(event);
        match event {
            Event::Apply(object) => (self.tell)(Change { object, gone: false }),
            Event::Delete(object) => (self.tell)(Change { object, gone: true }),
            Event::Init => {
                self.before = self.reader.state();
                self.listed.clear();
            }
            Event::InitApply(object) => {
                self.listed.insert(key(object));
            }
            // The store has the new list now, and not before.
            Event::InitDone => {
                for (number, object) in self.reader.state().into_iter().enumerate() {
                    (self.tell)(Change { object: object.as_ref(), gone: false });
                    self.pulse.breathe(number).await;
                }
                let listed = std::mem::take(&mut self.listed);
                let gone = std::mem::take(&mut self.before);
                let gone = gone.into_iter().filter(|object| !listed.contains(&key(object.as_ref())));
                for (number, object) in gone.enumerate() {
                    (self.tell)(Change { object: object.as_ref(), gone: true });
                    self.pulse.breathe(number).await;
                }
                // Who waits for all kinds finds the indexes complete, which `tell` keeps.
                (self.all_listed)();
            }
        }
    }
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
    use emco_crds::Project;
    use parking_lot::Mutex;

    use super::*;

    type Heard = Arc<Mutex<Vec<String>>>;

    fn project(name: &str) -> Project {
        Project::new(name, emco_crds::project::ProjectSpec::default())
    }

    fn list(names: &[String]) -> Vec<Event<Project>> {
        let listed = names.iter().map(|name| Event::InitApply(project(name)));
        std::iter::once(Event::Init).chain(listed).chain([Event::InitDone]).collect()
    }

    /// All that is heard of these events, and `seen` says of each moment.
    async fn heard(events: Vec<Event<Project>>, seen: impl Fn() -> bool + Send + 'static) -> Vec<String> {
        let heard = Heard::default();
        let (told_of, done) = (Arc::clone(&heard), Arc::clone(&heard));
        let feed = Feed::default();
        let reader = feed.as_reader();
        let teller = Teller {
            feed,
            reader,
            before: Vec::new(),
            listed: BTreeSet::new(),
            pulse: Arc::default(),
            all_listed: move || done.lock().push("all".to_owned()),
            tell: move |change: Change<'_, Project>| {
                let name = change.object.metadata.name.clone().unwrap_or_default();
                let gone = if change.gone { " is gone" } else { "" };
                told_of.lock().push(format!("{name}{gone}, {}", seen()));
            },
        };
        let events = futures::stream::iter(events.into_iter().map(Ok)).boxed();
        told(events, teller).for_each(|_| futures::future::ready(())).await;
        std::mem::take(&mut *heard.lock())
    }

    #[tokio::test]
    async fn a_long_list_is_told_once_and_lets_others_run_meanwhile() {
        let names: Vec<String> = (0..1000).map(|number| format!("p{number:04}")).collect();
        let other = tokio::spawn(async {});
        let mut said = heard(list(&names), move || other.is_finished()).await;
        assert_eq!(said.pop().as_deref(), Some("all"));
        assert_eq!(said.len(), 1000, "each once");
        assert!(said.first().is_some_and(|first| first.ends_with("false")));
        assert!(said.last().is_some_and(|last| last.ends_with("true")));
    }

    #[tokio::test]
    async fn a_list_that_is_read_anew_tells_what_went_meanwhile() {
        let [a, b, c] = ["a", "b", "c"].map(str::to_owned);
        let mut events = list(&[a.clone(), b]);
        events.extend(list(&[a, c]));
        let mut said = heard(events, || true).await.split_off(3);
        said.sort();
        assert_eq!(said, ["a, true", "all", "b is gone, true", "c, true"]);
    }

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
