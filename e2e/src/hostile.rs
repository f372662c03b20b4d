//! What a project does that wants to hurt the others: one file per kind of attack, and the project that has to go on.
//!
//! The benchmark measures the victim beside each attack; the tests ask for facts alone.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, Conditioned, DeploymentIntentGroup};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bed::Bed;
use crate::https::Server;
use crate::operator;

mod archives;
mod charts;
mod connections;
mod git;
mod kubelet;
mod names;
mod repositories;
mod victim;

pub use connections::{ASKING, IDLE};
pub use kubelet::{Kubelet, Seen, answers, probe_address, public_address};
pub use names::Refused;
pub use victim::{Edits, NAME as VICTIM, Victim};

/// The provider that every project may use.
pub const PROVIDER: &str = "acme";
/// The edges that the bed has, both registered with [`PROVIDER`].
pub const EDGES: [&str; 2] = ["a", "b"];

/// What stands for an answer that is still to come.
const UNDER_WAY: [&str; 3] = ["Progressing", "ChartNotReady", "Fetching"];

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// The least that shows what it does, where that takes long.
    Least,
    /// Enough to show what it does.
    Small,
    /// As much as the operator's limits and the API server let through.
    Full,
}

impl Size {
    const fn of(self, least: usize, small: usize, full: usize) -> usize {
        match self {
            Self::Least => least,
            Self::Small => small,
            Self::Full => full,
        }
    }

    /// Clusters that a chart with keys is placed on.
    pub const fn clusters(self) -> usize {
        self.of(3, 8, 500)
    }
}

/// What one project does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attack {
    /// A chart makes values of 900 MB, one render per cluster.
    Allocate,
    /// Charts hash a large text for ever.
    Spin,
    /// A chart draws an RSA key of 4,096 bits for each of many clusters.
    Keys,
    /// A chart prints 256 MiB.
    Print,
    /// Small archives unpack to the limit of an archive.
    Archives,
    /// Repositories send a byte a second, close in the middle, redirect in a circle.
    Repositories,
    /// Git servers send packs of chains that are resolved from their far end.
    Git,
    /// Names that mean something in a URL.
    Names,
    /// Connections to the port of the metrics that stay.
    Connections,
}

/// What an attack keeps up until it is dropped, and what became of its requests.
#[derive(Default)]
pub struct Running {
    servers: Vec<Server>,
    tasks: JoinSet<()>,
    /// Objects that have to be answered with a condition.
    pub objects: Vec<Object>,
    /// Objects that the API server itself did not take.
    pub refused: Vec<Refused>,
}

/// An object of the attacking project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// As kubectl calls it: `dig` or `capp`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

/// What an object says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing but that something is under way, in all the time that was given.
    Nothing,
    /// It works: what it wants is within all limits.
    Ready,
    /// Ready is not True.
    Not {
        /// Of the condition.
        reason: String,
        /// Of the condition.
        message: String,
    },
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Allocate,
        Self::Spin,
        Self::Keys,
        Self::Print,
        Self::Archives,
        Self::Repositories,
        Self::Git,
        Self::Names,
        Self::Connections,
    ];

    /// As entries and projects are called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Spin => "spin",
            Self::Keys => "keys",
            Self::Print => "print",
            Self::Archives => "archives",
            Self::Repositories => "repositories",
            Self::Git => "git",
            Self::Names => "names",
            Self::Connections => "connections",
        }
    }

    /// The project that does it. Each has its own, so that what is left of one attack is not in the way of the next.
    pub fn project(self) -> String {
        format!("hostile-{}", self.name())
    }

    /// Makes the project, which may do what every project may.
    pub async fn prepare(self, bed: &Bed) -> Result<()> {
        operator::project(bed, &self.project()).await
    }

    /// Begins. `public` is where the operator serves metrics.
    pub async fn begin(self, bed: &Bed, public: SocketAddr, size: Size) -> Result<Running> {
        let project = self.project();
        let begun = match self {
            Self::Allocate => charts::allocate(bed, &project).await,
            Self::Spin => charts::spin(bed, &project, size).await,
            Self::Keys => charts::keys(bed, &project).await,
            Self::Print => charts::print(bed, &project).await,
            Self::Archives => archives::begin(bed, &project).await,
            Self::Repositories => repositories::begin(bed, &project, size).await,
            Self::Git => git::begin(bed, &project, size).await,
            Self::Names => names::begin(bed, &project, size).await,
            Self::Connections => Ok(connections::begin(public)),
        };
        begun.with_context(|| format!("the attack {} cannot be begun", self.name()))
    }

    /// Takes all objects of the project away, and waits for nothing.
    pub async fn clear(self, bed: &Bed) -> Result<()> {
        let project = self.project();
        let args = ["delete", "dig,capp,cprof", "--all", "-n", &project, "--wait=false"];
        bed.hub().kubectl().at_low_priority().run(&args).await.map(drop)
    }

    /// How many objects of the project are still there.
    pub async fn left(self, bed: &Bed) -> Result<usize> {
        let args = ["get", "dig,capp,cprof", "-n", &self.project(), "-o", "name"];
        Ok(bed.hub().kubectl().at_low_priority().run(&args).await?.lines().count())
    }

    /// Waits until one of its objects is answered, at most this time.
    pub async fn said(self, bed: &Bed, object: &Object, patience: Duration) -> Result<Said> {
        let project = self.project();
        let answer = async {
            match object.kind {
                "dig" => {
                    operator::wait(bed, &project, &object.name, |dig: &DeploymentIntentGroup| {
                        judge(dig.status.as_ref(), dig.metadata.generation)
                    })
                    .await
                }
                _ => {
                    operator::wait(bed, &project, &object.name, |app: &CompositeApp| {
                        judge(app.status.as_ref(), app.metadata.generation)
                    })
                    .await
                }
            }
        };
        match tokio::time::timeout(patience, answer).await {
            Ok(said) => said,
            Err(_) => Ok(Said::Nothing),
        }
    }
}

fn judge<S: Conditioned>(status: Option<&S>, generation: Option<i64>) -> Result<Said, String> {
    let status = status.filter(|status| status.observed_generation() == generation);
    let ready = status.and_then(|status| status.condition(types::READY)).ok_or("it says nothing yet")?;
    if ready.status == "True" {
        return Ok(Said::Ready);
    }
    if UNDER_WAY.contains(&ready.reason.as_str()) {
        return Err(format!("{}: {}", ready.reason, ready.message));
    }
    Ok(Said::Not { reason: ready.reason.clone(), message: ready.message.clone() })
}

/// Makes an app of one chart, and a deployment of it for each placement, all called after the app.
async fn deploy(
    bed: &Bed,
    project: &str,
    app: &str,
    source: &Value,
    placements: &[Value],
) -> Result<Running> {
    let composite = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": app, "namespace": project},
        "spec": {"apps": [{"name": app, "chart": source}]},
    });
    let mut running = Running::default();
    let mut items = vec![composite];
    for (at, placement) in placements.iter().enumerate() {
        let name = format!("{app}-{at}");
        items.push(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": name, "namespace": project},
            "spec": {"compositeAppRef": {"name": app}, "release": name, "placement": placement},
        }));
        running.objects.push(Object { kind: "dig", name });
    }
    if placements.is_empty() {
        running.objects.push(Object { kind: "capp", name: app.to_owned() });
    }
    bed.hub()
        .kubectl()
        .apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
        .await?;
    Ok(running)
}

/// Where the attacking project may place, as everybody.
fn on(cluster: &str) -> Value {
    json!({"allOf": [{"provider": PROVIDER, "cluster": cluster}]})
}

/// Lets a project take charts from these addresses, as its administrator would.
async fn allow(bed: &Bed, project: &str, sources: &[String]) -> Result<()> {
    let patch = json!({"spec": {"chartSources": sources}}).to_string();
    bed.hub().kubectl().run(&["patch", "eproj", project, "--type=merge", "-p", &patch]).await.map(drop)
}
