//! Reads and writes the fields of a Lease that the election uses.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Longest duration that is believed: an absurd one must not lock everybody out for ever.
const LONGEST: i64 = 3600;

/// One state of the Lease.
#[derive(Clone, Debug)]
pub(super) struct Record {
    object: Value,
}

impl Record {
    pub const fn new(object: Value) -> Self {
        Self { object }
    }

    /// A Lease that does not exist yet.
    pub fn fresh(namespace: &str, name: &str) -> Self {
        Self::new(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {},
        }))
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, pointer: &str) -> Option<i64> {
        self.object.pointer(pointer).and_then(Value::as_i64)
    }

    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Identity of the holder; empty where it was released.
    pub fn holder(&self) -> &str {
        self.text("/spec/holderIdentity")
    }

    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    pub fn version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }

    pub fn transitions(&self) -> i64 {
        self.number("/spec/leaseTransitions").unwrap_or_default()
    }

    /// How long the holder may go without renewing, as the holder said.
    pub fn duration(&self, default: Duration) -> Duration {
        match self.number("/spec/leaseDurationSeconds") {
            Some(seconds) if seconds > 0 => {
                Duration::from_secs(u64::try_from(seconds.min(LONGEST)).unwrap_or_default())
            }
            _ => default,
        }
    }

    /// Another state of the same election. The resourceVersion counts: what changes it is a sign of life at worst, and
    /// waiting longer is safe.
    pub fn same(&self, other: &Self) -> bool {
        self.version() == other.version() && self.uid() == other.uid()
    }

    /// The Lease with a renewal.
    pub fn renewed(&self, now_ms: i64, duration: Duration) -> Value {
        self.with(&[
            ("renewTime", json!(micro_time(now_ms))),
            ("leaseDurationSeconds", json!(duration.as_secs())),
        ])
    }

    /// The Lease held by `identity` from now on.
    pub fn taken(&self, identity: &str, transitions: i64, now_ms: i64, duration: Duration) -> Value {
        let now = micro_time(now_ms);
        self.with(&[
            ("holderIdentity", json!(identity)),
            ("leaseDurationSeconds", json!(duration.as_secs())),
            ("acquireTime", json!(now)),
            ("renewTime", json!(now)),
            ("leaseTransitions", json!(transitions)),
        ])
    }

    /// The Lease held by nobody.
    pub fn released(&self, now_ms: i64) -> Value {
        self.with(&[("holderIdentity", json!("")), ("renewTime", json!(micro_time(now_ms)))])
    }

    fn with(&self, fields: &[(&str, Value)]) -> Value {
        let mut object = self.object.clone();
        if let Some(map) = object.as_object_mut() {
            let spec = map.entry("spec").or_insert_with(|| Value::Object(Map::new()));
            if !spec.is_object() {
                *spec = Value::Object(Map::new());
            }
            if let Some(spec) = spec.as_object_mut() {
                spec.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            }
        }
        object
    }
}

/// The API server reads exactly six digits.
fn micro_time(now_ms: i64) -> String {
    Timestamp::from_millisecond(now_ms).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
