//! Streams the main part of a page to a browser whenever it differs from what that shows, at most twice a second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use http::{Response, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::ask::Ask;
use super::serve::{Place, Site, respond};
use super::view::View;

/// Least time between two parts.
const PACE: Duration = Duration::from_millis(500);
/// Time between two signs of life, after which a page also looks at rights and history again.
const BEAT: Duration = Duration::from_secs(5);

/// The stream of one browser.
struct Live {
    site: Arc<Site>,
    views: watch::Receiver<Arc<View>>,
    place: Place,
    ask: Ask,
    /// Digest of the part that it shows.
    seen: String,
    /// Digest of the plan that it first showed.
    plan: Option<String>,
    /// The earliest time of the next part.
    next: Instant,
    beat: Instant,
}

/// The stream of a page from what the browser shows on.
pub fn stream(site: Arc<Site>, place: Place, ask: Ask) -> Response<Body> {
    let (now, views) = (Instant::now(), site.views.clone());
    let seen = ask.live.clone().unwrap_or_default();
    let live = Live { site, views, place, seen, plan: ask.plan.clone(), ask, next: now, beat: now };
    let events = stream::unfold(live, |mut live| async move {
        let event = live.event().await;
        Some((Ok::<_, Infallible>(event), live))
    });
    respond(StatusCode::OK, "text/event-stream", Body::from_stream(events))
}

impl Live {
    async fn event(&mut self) -> Bytes {
        loop {
            if self.beat <= Instant::now() {
                self.beat = Instant::now() + BEAT;
                return event("beat", "");
            }
            sleep_until(self.next).await;
            let view = Arc::clone(&self.views.borrow_and_update());
            let (_, page) = self.site.page(&self.place, &view, &self.ask, self.plan.as_deref()).await;
            if self.plan.is_none() {
                self.plan.clone_from(&page.plan);
            }
            let seen = page.seen();
            if seen != self.seen {
                self.seen = seen;
                self.next = Instant::now() + PACE;
                return event("main", &page.main().into_string());
            }
            tokio::select! {
                changed = self.views.changed() => if changed.is_err() {
                    // Nothing comes any more: the program ends.
                    std::future::pending::<()>().await;
                },
                () = sleep_until(self.beat) => {}
            }
        }
    }
}

/// An event whose data is a text as JSON has it: no line of it can be taken for another field.
fn event(name: &str, data: &str) -> Bytes {
    let data = serde_json::Value::from(data);
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_lines_is_one_field_of_an_event() {
        let sent = event("main", "a\n\nevent: other\r\ndata: b");
        assert_eq!(sent, "event: main\ndata: \"a\\n\\nevent: other\\r\\ndata: b\"\n\n");
    }
}
