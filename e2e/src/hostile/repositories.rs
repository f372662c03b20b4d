//! Helm repositories that send a byte a second, close in the middle, or redirect in a circle.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, LOCATION};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::{StreamExt as _, stream};
use serde_json::json;

use super::{Running, Size, allow, deploy};
use crate::bed::Bed;
use crate::https::Server;

const EVERY: Duration = Duration::from_secs(1);

/// More slow ones than the operator fetches charts at once, and looks at apps at once.
pub(super) async fn begin(bed: &Bed, project: &str, size: Size) -> Result<Running> {
    let router = Router::new().route("/slow/{number}/index.yaml", get(slow));
    let router = router.route("/cut/{number}/index.yaml", get(cut));
    let router = router.route("/circle/{number}/{*rest}", get(circle));
    let server = Server::plain(router).await?;
    allow(bed, project, &[format!("{}/", server.url())]).await?;
    let mut running = Running::default();
    for (kind, count) in
        [("slow", size.of(4, 4, 12)), ("cut", size.of(1, 1, 2)), ("circle", size.of(1, 1, 2))]
    {
        for number in 0..count {
            let name = format!("{kind}-{number}");
            let url = format!("{}/{kind}/{number}", server.url());
            let source = json!({"repository": {"url": url, "name": name, "version": "1.0.0"}});
            running.objects.extend(deploy(bed, project, &name, &source, &[]).await?.objects);
        }
    }
    running.servers.push(server);
    Ok(running)
}

/// An index that would be complete after a day.
async fn slow() -> Response {
    let bytes = stream::unfold((), |()| async {
        tokio::time::sleep(EVERY).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b"#")), ()))
    });
    ([(CONTENT_LENGTH, "86400")], Body::from_stream(bytes)).into_response()
}

/// A hundred bytes of a thousand, and the end of the connection.
async fn cut() -> Response {
    let begun = stream::iter([Ok(Bytes::from(vec![b'#'; 100]))]);
    let end = stream::iter([Err(std::io::Error::other("the connection ends here"))]);
    ([(CONTENT_LENGTH, "1000")], Body::from_stream(begun.chain(end))).into_response()
}

async fn circle(Path((number, rest)): Path<(String, String)>) -> Response {
    let next = if rest == "index.yaml" { "again/index.yaml" } else { "index.yaml" };
    (StatusCode::FOUND, [(LOCATION, format!("/circle/{number}/{next}"))]).into_response()
}
