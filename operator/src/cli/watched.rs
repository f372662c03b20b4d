//! Waits for what one object comes to.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::anyhow;
use futures::{Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Error, watch_object};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::hub::chain;

/// Shows the object to `judge` whenever it changes, `None` once it is gone, until that answers `Ok`. The last `Err` is returned when
/// this takes longer than `limit`; `unseen`, when there was nothing to judge. A hub that does not answer for a while is asked again.
pub async fn until<K, T>(
    api: Api<K>,
    name: &str,
    limit: Duration,
    unseen: &str,
    judge: impl FnMut(Option<&K>) -> Result<T, String>,
) -> anyhow::Result<Result<T, String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow(&K::kind(&()), watch_object(api, name).default_backoff(), limit, unseen, judge).await
}

/// The same of an object of any kind, which is named.
pub async fn until_of<K, T>(
    kind: &str,
    api: Api<K>,
    name: &str,
    limit: Duration,
    unseen: &str,
    judge: impl FnMut(Option<&K>) -> Result<T, String>,
) -> anyhow::Result<Result<T, String>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow(kind, watch_object(api, name).default_backoff(), limit, unseen, judge).await
}

async fn follow<K, T>(
    kind: &str,
    seen: impl Stream<Item = Result<Option<K>, Error>>,
    limit: Duration,
    unseen: &str,
    mut judge: impl FnMut(Option<&K>) -> Result<T, String>,
) -> anyhow::Result<Result<T, String>> {
    let failed = |error: &Error| format!("the {kind} cannot be watched: {}", chain(error));
    let mut last = unseen.to_owned();
    let mut seen = std::pin::pin!(seen);
    let watch = async {
        while let Some(seen) = seen.next().await {
            match seen {
                Ok(object) => match judge(object.as_ref()) {
                    Ok(outcome) => return Ok(outcome),
                    Err(why) => last = why,
                },
                Err(error) if is_refused(&error) => return Err(anyhow!("{}", failed(&error))),
                Err(error) => last = failed(&error),
            }
        }
        Err(anyhow!("the watch of the {kind} ended"))
    };
    match tokio::time::timeout(limit, watch).await {
        Ok(outcome) => outcome.map(Ok),
        Err(_) => Ok(Err(last)),
    }
}

/// Whether asking again is of no use: the user may not look.
fn is_refused(error: &Error) -> bool {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchError(status) => matches!(status.code, 401 | 403),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::Cluster;
    use futures::stream;
    use kube::core::Status;

    use super::*;

    fn failed(code: u16) -> Error {
        Error::WatchError(Box::new(Status::failure("it is so", "Because").with_code(code)))
    }

    async fn until_gone(
        seen: Vec<Result<Option<Cluster>, Error>>,
    ) -> anyhow::Result<Result<&'static str, String>> {
        let seen = stream::iter(seen).chain(stream::pending());
        let judge = |cluster: Option<&Cluster>| {
            if cluster.is_some() { Err("it is there".to_owned()) } else { Ok("gone") }
        };
        follow("Cluster", seen, Duration::from_millis(1), "nobody looked", judge).await
    }

    #[tokio::test]
    async fn a_watch_that_fails_goes_on() {
        let there = || Ok(Some(Cluster::default()));
        let outcome =
            until_gone(vec![there(), Err(failed(410)), Err(Error::NoResourceVersion), Ok(None)]).await;
        assert_eq!(outcome.unwrap(), Ok("gone"));
        let outcome = until_gone(vec![there(), Err(failed(500))]).await.unwrap();
        assert!(outcome.is_err_and(|why| why.contains("the Cluster cannot be watched")));
        assert_eq!(until_gone(vec![]).await.unwrap(), Err("nobody looked".to_owned()));
    }

    #[tokio::test]
    async fn a_watch_that_is_refused_ends_at_once() {
        let error = until_gone(vec![Err(failed(403)), Ok(None)]).await.unwrap_err();
        assert!(error.to_string().contains("cannot be watched"), "{error}");
    }
}
