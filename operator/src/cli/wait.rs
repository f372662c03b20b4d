//! Waits until a deployment is as asked for, or cannot come to that, and says what it came to.

use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_crds::DeploymentIntentGroup;
use emco_crds::names::object;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Serialize;
use tokio::time::Instant;

use super::args::awaited::Awaited;
use super::args::deployments::WaitArgs;
use super::hub::{self, Hub};
use super::output::{machine, printable};
use super::pulse::{self, Pulse};
use super::watched;
use super::{Outcome, print};

mod hope;
mod judge;

use hope::{Hope, Missing, look, removal_failed};
use judge::{Met, leaves};

/// What is refused stays so for this time before a wait ends on it: what cures it, such as another composite app, may have been applied right
/// before, and the operator looks at it now.
const A_MOMENT: Duration = Duration::from_secs(2);
/// Nobody waits longer: ten years.
const LONGEST: Duration = Duration::from_hours(87_600);

/// The answer, as programs read it.
#[derive(Debug, Serialize)]
struct Answer {
    deployment: String,
    #[serde(rename = "for")]
    awaited: String,
    met: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    /// What the operator says of it, or what is missing.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

/// `kubectl emco wait`.
pub async fn run(args: WaitArgs) -> anyhow::Result<Outcome> {
    let WaitArgs { named, awaited, timeout, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let until = Instant::now() + timeout.min(LONGEST);
    let wait = Wait { hub: &hub, namespace, name, awaited: awaited.clone(), until };
    let said = wait.said();
    let met = Box::pin(wait.wait()).await?;
    let answer = Answer {
        deployment: said.clone(),
        awaited: awaited.to_string(),
        met: met.is_ok(),
        revision: met.as_ref().ok().and_then(|met| met.revision),
        message: met.as_ref().map_or_else(Clone::clone, |met| met.message.clone()),
    };
    if let Some(text) = machine(output, &answer)? {
        print(&text)?;
    } else if answer.met {
        let detail = if answer.message.is_empty() { String::new() } else { format!(": {}", answer.message) };
        print(&format!("{said} is {}{detail}\n", awaited.state()))?;
    } else {
        let why = printable(&answer.message).into_owned();
        eprintln!("warning: {said} is not {} after {} s: {why}", awaited.state(), timeout.as_secs());
    }
    Ok(if answer.met { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

struct Wait<'a> {
    hub: &'a Hub,
    namespace: String,
    name: String,
    awaited: Awaited,
    until: Instant,
}

impl Wait<'_> {
    fn said(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn api(&self) -> Api<DeploymentIntentGroup> {
        Api::namespaced(self.hub.client.clone(), &self.namespace)
    }

    /// What came, or what is missing when the time is over.
    async fn wait(&self) -> anyhow::Result<Result<Met, String>> {
        if self.awaited == Awaited::Delete {
            return Box::pin(self.gone()).await;
        }
        // Also says that there is none.
        let group = self.hub.deployment(&self.namespace, &self.name).await?;
        let mut seen = look(&self.awaited, &group, Timestamp::now());
        loop {
            let (why, hope) = match seen {
                Err(Missing { why, hope: Hope::None }) if self.left().is_zero() => {
                    return Err(self.never(&why));
                }
                Err(Missing { why, hope }) => (why, hope),
                Ok(met) => match self.kept_true().await? {
                    Kept::Yes => return Ok(Ok(met)),
                    Kept::Not(why) => return Ok(Err(why)),
                    Kept::Again(why) => (why, Hope::Good),
                },
            };
            let limit = match hope {
                Hope::Good => self.left(),
                Hope::Brief(limit) => limit.min(self.left()),
                Hope::None => A_MOMENT.min(self.left()),
            };
            seen = match self.other_than(hope, &why, limit).await? {
                Ok(seen) => seen,
                Err(why) if hope.is_over(self.left()) => return Err(self.never(&why)),
                Err(why) => return Ok(Err(why)),
            };
        }
    }

    /// Waits until there is another hope than this; the inner error is what is missing when the time is over.
    async fn other_than(
        &self,
        hope: Hope,
        why: &str,
        limit: Duration,
    ) -> anyhow::Result<Result<Result<Met, Missing>, String>> {
        let seen = watched::until(self.api(), &self.name, limit, why, |group| {
            match group.map(|group| look(&self.awaited, group, Timestamp::now())) {
                Some(Err(missing)) if missing.hope == hope => Err(missing.why),
                seen => Ok(seen),
            }
        });
        match seen.await? {
            Ok(Some(seen)) => Ok(Ok(seen)),
            Ok(None) => bail!("deployment intent group {} was deleted meanwhile", self.said()),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The error of something that cannot come.
    fn never(&self, why: &str) -> anyhow::Error {
        let (said, state) = (self.said(), self.awaited.state());
        anyhow!("{said} is not {state}, and will not be before something is changed: {why}")
    }

    /// Waits until an object of the name is gone, or another one has it.
    async fn gone(&self) -> anyhow::Result<Result<Met, String>> {
        let met = || Met { revision: None, message: String::new() };
        let found = self.api().get_opt(&self.name).await;
        let found =
            found.map_err(|error| self.hub.sentence(&error, "read deployment intent group", &self.said()))?;
        let Some(first) = found else {
            // An unknown kind is 404 as well.
            let one = ListParams::default().limit(1);
            self.hub.list(self.api(), &one, "deployment intent groups", Some(&self.namespace)).await?;
            return Ok(Ok(met()));
        };
        let unseen = leaves(&first);
        let seen = watched::until(self.api(), &self.name, self.left(), &unseen, |group| match group {
            Some(group) if group.uid() == first.uid() => {
                removal_failed(group).map(Err).ok_or_else(|| leaves(group))
            }
            _ => Ok(Ok(met())),
        });
        match seen.await? {
            Ok(Ok(met)) => Ok(Ok(met)),
            Ok(Err(why)) => Err(self.never(&why)),
            Err(why) => Ok(Err(why)),
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether an operator keeps true what the hub says. Where its Lease has expired, the next renewal is waited for, after which the
    /// deployment is looked at again.
    async fn kept_true(&self) -> anyhow::Result<Kept> {
        let reading = pulse::read(self.hub).await;
        if reading.pulse.is_trusted() {
            return Ok(Kept::Yes);
        }
        let namespace = &self.hub.operator_namespace;
        let leases = Api::<Lease>::namespaced(self.hub.client.clone(), namespace);
        let alive = watched::until(leases, object::LEASE, self.left(), &reading.pulse.message, |lease| {
            let now = Timestamp::now().checked_add(reading.ahead).unwrap_or_else(|_| Timestamp::now());
            let pulse = Pulse::of(lease, now, namespace);
            if pulse.is_trusted() { Ok(()) } else { Err(pulse.message) }
        });
        Ok(match alive.await? {
            Ok(()) => Kept::Again(reading.pulse.message),
            Err(why) => Kept::Not(why),
        })
    }
}

enum Kept {
    Yes,
    /// It was not, and is again.
    Again(String),
    Not(String),
}
