//! Waits by a watch until a condition on objects holds, else says what was missing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use futures::{StreamExt as _, pin_mut};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Objects by `namespace/name`, or by name where they have no namespace.
pub type Objects<K> = BTreeMap<String, K>;

/// Waits until `check` accepts all objects of `api`, and answers what it answered. `check` says what is missing as `Err`;
/// the last such text is in the error after `limit`.
pub async fn wait_for<K, T>(
    api: Api<K>,
    limit: Duration,
    what: &str,
    check: impl FnMut(&Objects<K>) -> Result<T, String>,
) -> Result<T>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    wait_for_some(api, watcher::Config::default(), limit, what, check).await
}

/// As [`wait_for`], only for the objects that `config` selects.
pub async fn wait_for_some<K, T>(
    api: Api<K>,
    config: watcher::Config,
    limit: Duration,
    what: &str,
    mut check: impl FnMut(&Objects<K>) -> Result<T, String>,
) -> Result<T>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut missing = "the API server has not answered".to_owned();
    let watching = async {
        let events = watcher(api, config).default_backoff();
        pin_mut!(events);
        let (mut objects, mut fresh) = (Objects::new(), Objects::new());
        // While a list comes in, what is not there may only not have come yet.
        let mut listing = true;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => {
                    fresh.clear();
                    listing = true;
                }
                Ok(watcher::Event::InitApply(object)) => drop(fresh.insert(key(&object), object)),
                Ok(watcher::Event::InitDone) => {
                    objects = std::mem::take(&mut fresh);
                    listing = false;
                }
                Ok(watcher::Event::Apply(object)) => drop(objects.insert(key(&object), object)),
                Ok(watcher::Event::Delete(object)) => drop(objects.remove(&key(&object))),
                Err(error) => {
                    missing = format!("the watch failed: {error}");
                    continue;
                }
            }
            if listing {
                continue;
            }
            match check(&objects) {
                Ok(result) => return Ok(result),
                Err(text) => missing = text,
            }
        }
        Err(anyhow!("the watch for {what} ended"))
    };
    match tokio::time::timeout(limit, watching).await {
        Ok(result) => result,
        Err(_) => bail!("waited {} s for {what}: {missing}", limit.as_secs()),
    }
}

/// Waits until the object `name` is there and `check` holds for it, and answers it.
pub async fn wait_for_object<K>(
    api: Api<K>,
    name: &str,
    limit: Duration,
    check: impl Fn(&K) -> bool,
) -> Result<K>
where
    K: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("{} {name}", K::kind(&K::DynamicType::default()));
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_for_some(api, config, limit, &what, |objects| match objects.values().next() {
        None => Err("it does not exist".to_owned()),
        Some(object) if check(object) => Ok(object.clone()),
        Some(object) => Err(format!("it is not as wanted: {}", shortened(&format!("{object:?}")))),
    })
    .await
}

/// Waits until there is no object `name`.
pub async fn wait_until_gone<K>(api: Api<K>, name: &str, limit: Duration) -> Result<()>
where
    K: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("the end of {} {name}", K::kind(&K::DynamicType::default()));
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_for_some(api, config, limit, &what, |objects| match objects.values().next() {
        None => Ok(()),
        Some(object) => Err(format!("it is still there, finalizers {:?}", object.finalizers())),
    })
    .await
}

fn key<K: Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

/// Enough of an object for a message.
fn shortened(text: &str) -> String {
    const MOST: usize = 4000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
