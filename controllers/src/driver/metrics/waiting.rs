//! Counts deployments that wait for a person, and measures for how long, at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use emco_crds::DeploymentIntentGroup;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::object::meta;
use crate::reconcile::deployment::waits;
use crate::stores::Objects;

/// The time at which this process saw a wait first of which nothing stored says since when it is one; by the UID of the deployment.
type Seen = BTreeMap<(String, String), Timestamp>;

pub(super) struct Waiting {
    store: Objects<DeploymentIntentGroup>,
    seen: Mutex<Seen>,
}

impl Waiting {
    pub fn new(store: Objects<DeploymentIntentGroup>) -> Self {
        Self { store, seen: Mutex::default() }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

/// The number of deployments that wait for a person, and the longest of these waits.
fn measure<'a>(
    all: impl Iterator<Item = &'a DeploymentIntentGroup>,
    seen: &mut Seen,
    now: Timestamp,
) -> (u32, Duration) {
    let (mut number, mut longest) = (0, Duration::ZERO);
    let before = std::mem::take(seen);
    for dig in all {
        let waits = waits::now(dig);
        number += u32::from(!waits.is_empty());
        for wait in waits {
            let since = wait.since.unwrap_or_else(|| {
                let key = (meta::uid(dig).to_owned(), wait.which);
                let since = before.get(&key).copied().unwrap_or(now);
                seen.insert(key, since);
                since
            });
            longest = longest.max(Duration::try_from(now.duration_since(since)).unwrap_or_default());
        }
    }
    (number, longest)
}

impl Collector for Waiting {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let all = self.store.state();
        let (number, longest) =
            measure(all.iter().map(AsRef::as_ref), &mut self.seen.lock(), Timestamp::now());
        let help = "Deployments that wait for a person: for an approval of a plan or a wave, or the confirmation of a deletion";
        let gauge = ConstGauge::new(f64::from(number));
        let name = "deployments_awaiting_approval";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        let help = "The longest time that one of them waits; 0: none does";
        let gauge = ConstGauge::new(f64::from(u32::try_from(longest.as_secs()).unwrap_or(u32::MAX)));
        let (name, unit) = ("approval_waiting_longest", Unit::Seconds);
        gauge.encode(encoder.encode_descriptor(name, help, Some(&unit), gauge.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::conditions::types;
    use emco_crds::deployment_intent_group::DesiredState;
    use emco_crds::deployment_intent_group::rollout::RolloutStatus;
    use emco_crds::fields::Time;
    use emco_crds::{Conditioned as _, DeploymentIntentGroupSpec};
    use emco_engine::conditions;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Its plan waits since a time.
    fn plan(name: &str, since: i64) -> DeploymentIntentGroup {
        let mut dig = DeploymentIntentGroup::new(name, DeploymentIntentGroupSpec::default());
        dig.metadata.uid = Some(name.to_owned());
        let list = dig.status.get_or_insert_default().conditions_mut();
        conditions::set(list, types::APPROVED, "False", "AwaitingApproval", "approve it", 1, second(since));
        dig
    }

    /// One of its waves waits.
    fn wave(place: i64) -> DeploymentIntentGroup {
        let mut dig = DeploymentIntentGroup::new("waves", DeploymentIntentGroupSpec::default());
        dig.metadata.uid = Some("waves".to_owned());
        let waits_for = "an approval before it begins: approve".to_owned();
        let rollout = RolloutStatus { place, waits_for, ..RolloutStatus::default() };
        dig.status.get_or_insert_default().rollout = Some(rollout);
        dig
    }

    #[test]
    fn the_longest_wait_for_a_person_is_measured() {
        let mut seen = Seen::new();
        let all = [plan("a", 1000), plan("b", 400), wave(1)];
        let of = |seconds| Duration::from_secs(seconds);
        assert_eq!(measure(all.iter(), &mut seen, second(2000)), (3, of(1600)));
        assert_eq!(
            measure(all[2..].iter(), &mut seen, second(2600)),
            (1, of(600)),
            "since it was seen first"
        );
        assert_eq!(measure([wave(2)].iter(), &mut seen, second(2700)), (1, of(0)), "another wave");
        assert_eq!(measure([].iter(), &mut seen, second(2800)), (0, of(0)));
        assert!(seen.is_empty());
    }

    #[test]
    fn what_no_approval_would_set_going_is_not_counted() {
        let mut suspended = plan("a", 0);
        suspended.spec.suspend = Some(true);
        let mut planned = plan("b", 0);
        planned.spec.desired_state = DesiredState::Planned;
        let mut ended = wave(1);
        ended.spec.desired_state = DesiredState::Terminated;
        let mut deleted = wave(1);
        deleted.metadata.deletion_timestamp = Some(Time(second(0)));
        let all = [suspended, planned, ended, deleted];
        assert_eq!(measure(all.iter(), &mut Seen::new(), second(100)), (0, Duration::ZERO));
    }
}
