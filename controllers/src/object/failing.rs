//! Keeps which reconciles fail again and again: the condition Ready of their objects says so until one succeeds.
//!
//! Kept by this process alone. The next one finds what the status says, and either writes what is true or fails as often.

use std::collections::BTreeMap;
use std::time::Duration;

use emco_crds::Conditioned;
use emco_crds::conditions::types;
use emco_crds::reasons::RECONCILE_FAILED;
use emco_engine::conditions;
use kube::Resource;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::ApiError;
use crate::api::key_queue::Key;
use crate::object::context::{Failure, HubContext};
use crate::object::{meta, one_line};

/// Failures in a row after which what is wrong here is told: another try rarely helps.
const OWN: u32 = 2;
/// The same of what the hub answers: some seconds, which an API server that begins anew may take.
const OF_THE_HUB: u32 = 5;
/// How long words stay that change with every try, such as a port: each is a write, and each write has the object looked at.
const STAYS: Duration = Duration::from_mins(1);

/// Reconciles that failed when they ran last, by kind and object. An object that is gone has to be taken out.
#[derive(Default)]
pub struct Failing(Mutex<BTreeMap<&'static str, BTreeMap<Key, Streak>>>);

/// Failures in a row.
#[derive(Default)]
struct Streak {
    count: u32,
    /// A told fact, and since when.
    told: Option<(String, Instant)>,
}

impl Failing {
    /// How often the reconcile of an object failed in a row.
    pub fn count(&self, kind: &str, key: &Key) -> u32 {
        self.0.lock().get(kind).and_then(|all| all.get(key)).map_or(0, |streak| streak.count)
    }

    /// Counts another failure. Whether it is one that the object has to tell.
    pub fn failed(&self, kind: &'static str, key: &Key, failure: &Failure) -> bool {
        let mut all = self.0.lock();
        let streak = all.entry(kind).or_default().entry(key.clone()).or_default();
        streak.count = streak.count.saturating_add(1);
        let lasts = match failure {
            // Nothing can be written while the hub does not answer; its alert says so.
            Failure::Hub(ApiError::Unreachable { .. }) => false,
            Failure::Hub(_) => streak.count >= OF_THE_HUB,
            Failure::Stored(_) | Failure::Planning(_) => streak.count >= OWN,
        };
        let stays = streak.told.as_ref().is_some_and(|(_, since)| since.elapsed() < STAYS);
        if lasts && !stays {
            let text = format!("{}; it is tried again by itself", one_line(&failure.to_string()));
            streak.told = Some((text, Instant::now()));
        }
        lasts
    }

    /// The reconcile succeeded, or the object is gone. Whether the object tells of failures.
    pub fn ended(&self, kind: &str, key: &Key) -> bool {
        let streak = self.0.lock().get_mut(kind).and_then(|all| all.remove(key));
        streak.is_some_and(|streak| streak.told.is_some())
    }

    /// What an object has to tell.
    fn told(&self, kind: &str, namespace: &str, name: &str) -> Option<String> {
        let all = self.0.lock();
        let all = all.get(kind).filter(|all| !all.is_empty())?;
        let streak = all.get(&(namespace.to_owned(), name.to_owned()))?;
        streak.told.as_ref().map(|(text, _)| text.clone())
    }
}

/// The status with what has to be told of failures instead of its own condition Ready: what was worked out before a failure is not
/// what came of it. `None` where there is nothing to tell.
pub fn with_failure<K, S>(ctx: &HubContext, object: &K, status: &S) -> Option<S>
where
    K: Resource<DynamicType = ()>,
    S: Conditioned + Clone,
{
    let text = ctx.failing.told(&K::kind(&()), meta::namespace(object), meta::name(object))?;
    let (generation, now) = (meta::generation(object), ctx.now());
    let mut status = status.clone();
    let list = status.conditions_mut();
    conditions::set(list, types::READY, "False", RECONCILE_FAILED, &text, generation, now);
    if !conditions::is_true(list, types::STALLED) {
        conditions::set(list, types::RECONCILING, "True", RECONCILE_FAILED, &text, generation, now);
    }
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        (String::new(), "team-a".to_owned())
    }

    fn answered(code: u16, message: &str) -> Failure {
        let (reason, causes) = (String::new(), Vec::new());
        Failure::Hub(ApiError::Status {
            code,
            reason,
            message: message.to_owned(),
            retry_after: None,
            causes,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_comes_back_is_told_and_one_of_a_moment_is_not() {
        let stored = || Failure::Stored("no room".to_owned());
        let away =
            || Failure::Hub(ApiError::Unreachable { reason: "Timeout", message: "no answer".to_owned() });
        for (failure, tries) in [(stored(), Some(2)), (answered(500, "webhook"), Some(5)), (away(), None)] {
            let failing = Failing::default();
            let told = (1..20).find(|_| failing.failed("Project", &key(), &failure));
            assert_eq!(told, tries, "{failure}");
            assert_eq!(failing.ended("Project", &key()), tries.is_some());
            assert_eq!(failing.count("Project", &key()), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn words_that_change_with_every_try_are_told_once_a_minute() {
        let failing = Failing::default();
        let told = |port: u32| {
            failing.failed("Project", &key(), &answered(500, &format!("port {port}")));
            failing.told("Project", "", "team-a").unwrap_or_default()
        };
        let said: Vec<String> = (0..9).map(told).collect();
        assert!(said[3].is_empty() && said[4].contains("port 4") && said[8] == said[4], "{said:?}");
        tokio::time::advance(STAYS).await;
        assert!(told(9).contains("port 9"));
    }
}
