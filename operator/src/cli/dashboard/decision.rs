//! Takes a form that approves or rejects: exactly the digest that the page showed, or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use emco_crds::deployment_approval::Decision;
use http::{HeaderMap, Request, Response, StatusCode, header};
use tokio::time::timeout;

use super::ask::decoded;
use super::outcome::Said;
use super::serve::{Site, plain, see_other};
use crate::cli::decide::{approval, decidable, exactly, said};

/// Bytes of a form.
const MOST: usize = 16 * 1024;
/// Longest time until a form has come.
const COMES: Duration = Duration::from_secs(5);
/// Longest wait for what the hub says to it.
const ANSWERS: Duration = Duration::from_secs(20);
/// Characters of a comment.
const COMMENT: usize = 1024;

/// Fields of a form.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    digest: String,
    decision: Decision,
    wave: Option<String>,
    comment: Option<String>,
}

/// Carries out what a form says, and leads back to the page, which tells what came of it.
pub async fn take(site: &Arc<Site>, of: (String, String), request: Request<Body>) -> Response<Body> {
    if !is_form(request.headers()) {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "only a form is taken");
    }
    let body = match timeout(COMES, to_bytes(request.into_body(), MOST)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too large"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the form did not come"),
    };
    if site.view().deployment(&of.0, &of.1).is_none() {
        // The page says why: it is gone, or may not be seen any more.
        return see_other("?said=0");
    }
    let decided = match std::str::from_utf8(&body).map_err(|_| "it is no text".to_owned()).and_then(read) {
        Ok(form) => match timeout(ANSWERS, Box::pin(decide(site, &of, form))).await {
            Ok(decided) => decided.map_err(|error| format!("{error:#}")),
            Err(_) => Err("the hub did not answer: it may be decided all the same, so look again".to_owned()),
        },
        Err(why) => Err(format!("the form cannot be read: {why}")),
    };
    site.looks.forget(&of.0, &of.1);
    let (done, text) = match decided {
        Ok(text) => (true, text),
        Err(text) => (false, text),
    };
    let number = site.outcomes.keep(Said { of, done, text });
    see_other(&format!("?said={number}"))
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

fn read(text: &str) -> Result<Form, String> {
    let mut fields = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        if fields.insert(name.clone(), decoded(value)?).is_some() {
            return Err(format!("it has two fields {name}"));
        }
    }
    let decision = match fields.remove("decision").as_deref() {
        Some("Approved") => Decision::Approved,
        Some("Rejected") => Decision::Rejected,
        _ => return Err("its field decision is neither Approved nor Rejected".to_owned()),
    };
    let digest = fields.remove("digest").ok_or("it names no digest")?;
    // Browsers send two characters for the end of a line, and count one.
    let text = |field: String| field.trim().replace("\r\n", "\n");
    let full = |field: Option<String>| field.map(text).filter(|field| !field.is_empty());
    let (wave, comment) = (full(fields.remove("wave")), full(fields.remove("comment")));
    if let Some(name) = fields.keys().next() {
        return Err(format!("it has a field {name}, which means nothing"));
    }
    if comment.as_ref().is_some_and(|comment| comment.chars().count() > COMMENT) {
        return Err(format!("its comment is longer than {COMMENT} characters"));
    }
    Ok(Form { digest, decision, wave, comment })
}

/// Reads the deployment as it is now: what the page shows may be old.
async fn decide(site: &Site, (namespace, name): &(String, String), form: Form) -> anyhow::Result<String> {
    let Form { digest, decision, wave, comment } = form;
    let group = site.hub.deployment(namespace, name).await?;
    let digest = exactly(&group, wave.as_deref(), decision, &digest)
        .map_err(|why| anyhow::anyhow!("{namespace}/{name}: {why}"))?;
    let done = approval::give(&site.hub, &group, (digest, wave), decision, comment).await?;
    Ok(said(&done, decidable(&group)).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_a_browser_sends_it() {
        let form = read("digest=sha256%3Aab&comment=looks%0D%0Agood%0D%0A&decision=Approved").unwrap();
        let wanted = Form {
            digest: "sha256:ab".to_owned(),
            decision: Decision::Approved,
            wave: None,
            comment: Some("looks\ngood".to_owned()),
        };
        assert_eq!(form, wanted);
        let form = read("digest=d&wave=canary&comment=&decision=Rejected").unwrap();
        assert_eq!((form.wave.as_deref(), form.comment), (Some("canary"), None));
    }

    #[test]
    fn a_form_that_says_something_else_is_refused() {
        let long = format!("digest=d&decision=Approved&comment={}", "a".repeat(1025));
        for (bad, says) in [
            ("", "decision"),
            ("digest=d&decision=Maybe", "neither Approved nor Rejected"),
            ("decision=Approved", "no digest"),
            ("digest=a&digest=b&decision=Approved", "two fields digest"),
            ("digest=d&decision=Approved&approvedBy=root", "field approvedBy"),
            ("digest=%zz&decision=Approved", "character"),
            (long.as_str(), "longer than 1024"),
        ] {
            let why = read(bad).unwrap_err();
            assert!(why.contains(says), "{bad}: {why}");
        }
    }
}
