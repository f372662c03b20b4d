use std::convert::Infallible;

use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::json;

use super::*;

/// Events of a body that arrives in pieces of `size` bytes.
async fn piecewise(text: &str, size: usize) -> Vec<ApiResult<WatchEvent>> {
    let pieces: Vec<Result<Frame<Bytes>, Infallible>> =
        text.as_bytes().chunks(size).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
    events("the server", StreamBody::new(futures::stream::iter(pieces))).collect().await
}

fn line(kind: &str, name: &str) -> String {
    json!({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": name}}}).to_string() + "\n"
}

#[tokio::test]
async fn events_are_the_same_however_the_network_cuts_them() {
    let text = line("ADDED", "ä") + "\n" + &line("BOOKMARK", "9") + &line("DELETED", "b") + "{\"type\":\"ADD";
    for size in [1, 2, 3, 7, 64, 4096] {
        let all = piecewise(&text, size).await;
        assert_eq!(all.len(), 3, "an event cut off at the end is none");
        assert!(matches!(&all[0], Ok(WatchEvent::Applied(o)) if o["metadata"]["name"] == "ä"));
        assert!(matches!(&all[1], Ok(WatchEvent::Bookmark(version)) if version == "9"));
        assert!(matches!(&all[2], Ok(WatchEvent::Deleted(_))));
    }
}

#[tokio::test]
async fn a_watch_ends_at_the_first_error() {
    for broken in
        ["<html>\n", "{}\n", "{\"type\":\"NEW\",\"object\":{}}\n", "{\"type\":\"BOOKMARK\",\"object\":{}}\n"]
    {
        let all = piecewise(&(line("ADDED", "a") + broken + &line("ADDED", "b")), 16).await;
        assert_eq!(all.len(), 2, "{broken}");
        assert!(matches!(&all[1], Err(ApiError::Protocol(_))));
    }
}

#[tokio::test]
async fn an_endless_line_is_given_up() {
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, Infallible>(Frame::data(piece.clone())));
    let all: Vec<_> = events("the server", StreamBody::new(endless)).collect().await;
    assert!(matches!(all.as_slice(), [Err(ApiError::Protocol(_))]));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_says_nothing_for_long_is_taken_for_dead() {
    let silent = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    let all: Vec<_> = events("the server", StreamBody::new(silent)).collect().await;
    assert!(matches!(all.as_slice(), [Err(ApiError::Unreachable { reason: "ConnectionLost", .. })]));
}

#[test]
fn a_long_refusal_keeps_who_is_refused_and_the_last_right() {
    let message = |rules: usize| {
        let rules = "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}\n".repeat(rules);
        format!(
            "roles \"own\" is forbidden: user \"x\" is attempting to grant RBAC permissions not currently held:\n{rules}the last"
        )
    };
    let said = |rules: usize| {
        let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message(rules)});
        match status_error(403, &HeaderMap::new(), &status) {
            ApiError::Status { message, .. } => message,
            error => panic!("{error}"),
        }
    };
    assert_eq!(said(40), message(40), "it fits");
    let cut = said(400);
    assert!(cut.len() <= REFUSAL_BYTES, "{cut}");
    assert!(cut.starts_with("roles \"own\"") && cut.ends_with("the last"), "{cut}");
}

#[test]
fn texts_are_cut_between_characters() {
    assert_eq!(cut("abc", 3), "abc");
    assert_eq!(cut("äääää", 8), "ää...");
    assert_eq!(cut("abcd", 3), "...");
    assert!(unreachable("Timeout", &"x".repeat(900)).to_string().len() <= 256);
}
