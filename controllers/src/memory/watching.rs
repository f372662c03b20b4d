//! Serves watches as refusing, silent and hostile servers and proxies do.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::json;

use super::status;
use crate::api::{ApiResult, WatchEvent};

/// More watches than this are not answered: a client that asks without a pause would stop the virtual time of a test.
const MOST: u64 = 5_000;
/// How much later than an answer an event comes.
const LATE: Duration = Duration::from_millis(500);
/// How long a proxy that buffers keeps a request open.
const PROXY: Duration = Duration::from_mins(1);

/// How a server answers watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    /// As it should.
    #[default]
    Works,
    /// As it should, and each event a while after the answer to the request that made it.
    Late,
    /// 403: the verb `watch` is not granted.
    Refused,
    /// 200, and nothing follows.
    Silent,
    /// 200, and nothing follows until the proxy between gives up after a minute.
    Buffered,
    /// 200, and the end at once.
    Empty,
    /// One event, and the end at once.
    OneEvent,
    /// 410 whatever version is named.
    Gone,
    /// 200, and 410 as the first event.
    GoneLater,
}

pub(super) fn serve(
    watching: Watching,
    asked: u64,
    events: BoxStream<'static, WatchEvent>,
) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
    let gone = || status(410, "Expired", "too old resource version");
    let object =
        json!({"metadata": {"name": "one", "namespace": "shop", "uid": "one", "resourceVersion": "1"}});
    Ok(match watching {
        Watching::Works => events.map(Ok).boxed(),
        Watching::Late => events
            .then(async |event| {
                tokio::time::sleep(LATE).await;
                Ok(event)
            })
            .boxed(),
        _ if asked > MOST => stream::pending().boxed(),
        Watching::Refused => return Err(status(403, "Forbidden", "cannot watch this resource")),
        Watching::Silent => stream::pending().boxed(),
        Watching::Buffered => stream::once(tokio::time::sleep(PROXY)).filter_map(|()| async { None }).boxed(),
        Watching::Empty => stream::empty().boxed(),
        Watching::OneEvent => stream::iter([Ok(WatchEvent::Applied(object))]).boxed(),
        Watching::Gone => return Err(gone()),
        Watching::GoneLater => stream::iter([Err(gone())]).boxed(),
    })
}
