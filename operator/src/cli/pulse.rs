//! The operator's Lease comes in, whether anybody keeps what the hub says true goes out. Statuses carry no heartbeat: what they
//! say is as old as the Lease, so under an expired one everything is unknown.

use std::time::Duration;

use http_body_util::BodyExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;
use serde::Serialize;

use emco_controllers::api::withheld;

use super::hub::{Hub, chain};

/// How long a Lease is believed that does not say it: as long as the operator's own hold.
const DURATION: Duration = Duration::from_secs(13);
/// Clocks that differ by less are the same.
const RESOLUTION: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// Whether what the hub says is kept true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pulse {
    /// In a word.
    pub operator: Life,
    /// In a sentence; empty while it is alive.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the Lease ends unless it is renewed.
    #[serde(skip)]
    pub until: Option<Timestamp>,
}

/// Whether the operator lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Life {
    /// Its Lease is renewed.
    Alive,
    /// Its Lease has expired, or was given back and nobody took it.
    Silent,
    /// The Lease cannot be read.
    Unknown,
}

impl Pulse {
    /// Whether what is shown may be taken for the present state.
    pub const fn is_trusted(&self) -> bool {
        // Who may not read the Lease is told so, and sees what is stored.
        !matches!(self.operator, Life::Silent)
    }

    /// Judges a Lease at a time of the hub.
    pub fn of(lease: Option<&Lease>, now: Timestamp, namespace: &str) -> Self {
        let silent = |message: String| Self { operator: Life::Silent, message, until: None };
        let Some(spec) = lease.and_then(|lease| lease.spec.as_ref()) else {
            return silent(format!(
                "no operator has ever run here: there is no Lease {} in namespace {namespace}",
                emco_crds::names::object::LEASE
            ));
        };
        let renewed = spec.renew_time.as_ref().map(|time| time.0);
        let since = renewed.map_or_else(|| "ever".to_owned(), |at| format!("since {at:.0}"));
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return silent(format!(
                "no operator has worked {since}: its Lease was given back and nobody took it"
            ));
        }
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let until = renewed.and_then(|at| at.checked_add(seconds.map_or(DURATION, Duration::from_secs)).ok());
        match until {
            Some(until) if until > now => {
                Self { operator: Life::Alive, message: String::new(), until: Some(until) }
            }
            _ => silent(format!("the operator has been silent {since}: its Lease has expired")),
        }
    }

    /// Who cannot read the Lease cannot know.
    pub fn unreadable(why: &str) -> Self {
        let message =
            format!("whether the operator lives is not known, and states are as it last wrote them: {why}");
        Self { operator: Life::Unknown, message, until: None }
    }
}

/// Reads the Lease, with the hub's own clock: that of this machine may be another.
pub async fn read(hub: &Hub) -> Reading {
    let namespace = &hub.operator_namespace;
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}",
        emco_crds::names::object::LEASE
    );
    match fetch(hub, &path).await {
        Ok((lease, ahead)) => {
            let now = Timestamp::now().checked_add(ahead).unwrap_or_else(|_| Timestamp::now());
            Reading { pulse: Pulse::of(lease.as_ref(), now, namespace), ahead }
        }
        Err(why) => Reading { pulse: Pulse::unreadable(&why), ahead: jiff::SignedDuration::ZERO },
    }
}

/// What was read, and when.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What it means.
    pub pulse: Pulse,
    /// How far the hub's clock is ahead of this machine's.
    pub ahead: jiff::SignedDuration,
}

async fn fetch(hub: &Hub, path: &str) -> Result<(Option<Lease>, jiff::SignedDuration), String> {
    let request = http::Request::get(path).body(Body::empty()).map_err(|error| error.to_string())?;
    let response = hub.client.send(request).await.map_err(|error| chain(&error))?;
    let (head, body) = response.into_parts();
    let date = head.headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
    let ahead = date
        .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
        .map_or_else(|| jiff::SignedDuration::ZERO, |date| date.timestamp().duration_since(Timestamp::now()));
    // Dates have whole seconds: within them the clocks agree.
    let ahead = if ahead.abs() < RESOLUTION { jiff::SignedDuration::ZERO } else { ahead };
    let body = body.collect().await.map_err(|error| chain(&error))?.to_bytes();
    if !head.status.is_success() {
        let status: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let why = status["message"].as_str().unwrap_or(head.status.as_str());
        // Another 404 does not say that nobody works.
        if withheld::is_absence(head.status.as_u16(), why, emco_crds::names::object::LEASE) {
            return Ok((None, ahead));
        }
        return Err(why.to_owned());
    }
    serde_json::from_slice(&body).map(|lease| (Some(lease), ahead)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": {}, "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 30},
        }))
        .unwrap()
    }

    #[test]
    fn an_operator_is_alive_exactly_as_long_as_its_lease() {
        let renewed = "2026-11-21T07:00:00.000000Z";
        let at =
            |text: &str| Pulse::of(Some(&lease("a", renewed)), text.parse().unwrap(), "emco-system").operator;
        assert_eq!(at("2026-11-21T07:00:29Z"), Life::Alive);
        assert_eq!(at("2026-11-21T07:00:30Z"), Life::Silent);
    }

    #[test]
    fn nobody_in_the_lease_is_nobody_at_work() {
        let now: Timestamp = "2026-11-21T07:00:01Z".parse().unwrap();
        let released = Pulse::of(Some(&lease("", "2026-11-21T07:00:00.000000Z")), now, "emco-system");
        assert!(!released.is_trusted() && released.message.contains("given back"), "{}", released.message);
        let never = Pulse::of(None, now, "emco-system");
        assert!(!never.is_trusted() && never.message.contains("namespace emco-system"), "{}", never.message);
        assert!(Pulse::unreadable("no right").is_trusted());
    }
}
