//! Measures requests to API servers by target, verb and code.

use std::fmt;
use std::time::Instant;

use http::Method;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Whose API server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The hub's.
    Hub,
    /// Any cluster's.
    Edge,
}

impl EncodeLabelValue for Target {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        EncodeLabelValue::encode(&if *self == Self::Hub { "hub" } else { "edge" }, encoder)
    }
}

/// HTTP code of an answer; 0 where none came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Code(u16);

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        match self.0 {
            0 => EncodeLabelValue::encode(&"none", encoder),
            code => EncodeLabelValue::encode(&u32::from(code), encoder),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    target: Target,
    verb: &'static str,
    code: Code,
}

/// Times of requests, from sending one to the begin of its answer.
#[derive(Debug)]
pub struct Requests(Family<Labels, Histogram, fn() -> Histogram>);

impl Default for Requests {
    fn default() -> Self {
        // From a millisecond to the longest wait for an answer.
        Self(Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 8))))
    }
}

impl Requests {
    /// Shows them as `api_request_duration_seconds`.
    pub fn register(&self, registry: &mut Registry) {
        let help =
            "Time from a request to the begin of its answer, by target, verb and code; code none: no answer";
        registry.register_with_unit("api_request_duration", help, Unit::Seconds, self.0.clone());
    }

    /// Notes a request that began at `begun`. Without a code no answer came.
    pub fn ended(&self, target: Target, verb: &'static str, code: Option<u16>, begun: Instant) {
        let code = Code(code.unwrap_or(0));
        self.0.get_or_create(&Labels { target, verb, code }).observe(begun.elapsed().as_secs_f64());
    }
}

/// The verb of a request, in Kubernetes' words; a list is a `get`.
pub fn verb(method: &Method, watch: bool) -> &'static str {
    match *method {
        Method::GET if watch => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_target_verb_and_code() {
        let requests = Requests::default();
        let mut registry = Registry::default();
        requests.register(&mut registry);
        let begun = Instant::now();
        requests.ended(Target::Hub, verb(&Method::PATCH, false), Some(429), begun);
        requests.ended(Target::Edge, verb(&Method::GET, true), None, begun);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for labels in [r#"target="hub",verb="patch",code="429""#, r#"target="edge",verb="watch",code="none""#]
        {
            let line = format!("api_request_duration_seconds_count{{{labels}}} 1");
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
