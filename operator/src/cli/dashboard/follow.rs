//! Keeps the view up to date from what the hub tells.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::Cluster;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::rights;
use super::view::{Clusters, View, deployments, doubted};
use crate::cli::clusters::granted::{self, Written};
use crate::cli::clusters::{Shown, of_cluster};
use crate::cli::hub::Hub;
use crate::cli::pulse::{self, Pulse};
use crate::cli::status::Scope;
use crate::cli::status::feed::{Feed, Watched};

/// Least time between two views.
const PACE: Duration = Duration::from_millis(400);
/// Time after which rights are asked again, and clusters that cannot be watched are read again.
const ROUND: Duration = Duration::from_secs(5);
/// The same while the hub does not answer.
const SOON: Duration = Duration::from_secs(1);

/// Longest wait for whole lists where a right is there again.
const WHOLE: Duration = Duration::from_mins(1);

/// Source of the clusters.
enum Source {
    /// The user may list them.
    Watched(Box<Watched<Cluster>>),
    /// The operator writes them down for members of a project.
    Written(Clusters),
}

/// Follows the hub.
pub struct Follower {
    hub: Arc<Hub>,
    scope: Scope,
    note: Option<String>,
    feed: Feed,
    clusters: Source,
    /// True where clusters changed since the last view.
    changed: bool,
}

impl Follower {
    /// Begins, and waits until the first view is whole.
    pub async fn new(hub: Arc<Hub>, scope: Scope, note: Option<String>) -> anyhow::Result<Self> {
        let mut feed = Feed::new(&hub, &scope, pulse::read(&hub).await);
        while !feed.is_complete() {
            feed.changed().await?;
            if let Some(broken) = feed.broken() {
                anyhow::bail!("the hub {} cannot be followed: {broken}", hub.url);
            }
        }
        let clusters = Source::of(&hub, &scope).await;
        let mut follower = Self { hub, scope, note, feed, clusters, changed: true };
        if let Source::Watched(watched) = &mut follower.clusters {
            while !watched.complete && watched.broken.is_none() {
                watched.changed().await?;
            }
        }
        Ok(follower)
    }

    /// The newest view.
    pub fn view(&mut self, before: Option<&View>) -> View {
        // A Lease that was renewed changes nothing that is shown.
        let pulse = Pulse { until: None, ..self.feed.pulse() };
        let known = before.map(|view| view.deployments.as_slice()).unwrap_or_default();
        let groups = self.feed.groups.seen.values();
        let deployments = deployments(groups, self.feed.rows(), &pulse, known);
        let same = before.filter(|view| !self.changed && view.pulse.is_trusted() == pulse.is_trusted());
        let clusters = same.map(|view| Arc::clone(&view.clusters));
        let clusters = clusters.unwrap_or_else(|| Arc::new(self.clusters.read(&pulse)));
        self.changed = false;
        let broken = self.feed.broken().map(|why| format!("The hub does not answer: {why}"));
        View {
            namespace: self.scope.namespace.clone(),
            hub: self.hub.url.clone(),
            note: self.note.clone(),
            pulse,
            trouble: broken,
            refused: None,
            deployments,
            clusters,
        }
    }

    /// Follows until dropped.
    pub async fn run(mut self, views: watch::Sender<Arc<View>>) {
        let mut round = Instant::now() + ROUND;
        loop {
            let built = Instant::now();
            let before = Arc::clone(&views.borrow());
            let view = self.view(Some(&before));
            if view.trouble.is_some() {
                round = round.min(built + SOON);
            }
            if view != *before {
                let _ = views.send_replace(Arc::new(view));
            }
            let refused = tokio::select! {
                changed = self.changed() => changed.err().map(|error| format!("{error:#}")),
                () = sleep_until(round) => {
                    let refused = self.look_again().await;
                    round = Instant::now() + ROUND;
                    refused
                }
            };
            if let Some(why) = refused {
                self.begin_again(why, &views).await;
                continue;
            }
            // Changes in short order are shown together.
            while let Ok(changed) = timeout_at(built + PACE, self.changed()).await {
                if let Err(error) = changed {
                    self.begin_again(format!("{error:#}"), &views).await;
                    break;
                }
            }
        }
    }

    async fn changed(&mut self) -> anyhow::Result<()> {
        match &mut self.clusters {
            Source::Watched(watched) => {
                let lost = tokio::select! {
                    changed = self.feed.changed() => return changed,
                    changed = watched.changed() => changed.err(),
                };
                self.changed = true;
                if let Some(error) = lost {
                    let none = Some(format!("{error:#}"));
                    self.clusters = Source::Written(Clusters { rows: Vec::new(), none });
                }
                Ok(())
            }
            Source::Written(_) => self.feed.changed().await,
        }
    }

    /// Looks at what no watch tells: rights that were withdrawn, and what is written down for members. The answer says what the user
    /// may not see any more.
    async fn look_again(&mut self) -> Option<String> {
        if let Ok(refused) = timeout(ROUND, Box::pin(self.asked_again())).await {
            return refused;
        }
        self.feed.unheard(&format!("there was no answer within {} s", ROUND.as_secs()));
        None
    }

    async fn asked_again(&mut self) -> Option<String> {
        let namespace = self.scope.namespace.clone();
        let namespace = namespace.as_deref();
        for resource in ["deploymentintentgroups", "syncshards"] {
            match rights::lacking(&self.hub, "list", resource, namespace).await {
                Ok(None) => self.feed.heard(),
                Ok(Some(why)) => return Some(why),
                // A hub that does not answer has withdrawn nothing.
                Err(error) => {
                    self.feed.unheard(&format!("{error:#}"));
                    return None;
                }
            }
        }
        let watches = matches!(self.clusters, Source::Watched(_));
        if !watches || matches!(rights::lacking(&self.hub, "list", "clusters", namespace).await, Ok(Some(_)))
        {
            self.clusters = Source::of(&self.hub, &self.scope).await;
            self.changed = true;
        }
        None
    }

    /// Shows nothing but why, until the right is there again.
    async fn begin_again(&mut self, why: String, views: &watch::Sender<Arc<View>>) {
        let before = Arc::clone(&views.borrow());
        let refused = Some(format!("You may not see this any more: {why}"));
        let clusters = Arc::new(Clusters { rows: Vec::new(), none: Some(why) });
        let view = View { refused, deployments: Vec::new(), clusters, trouble: None, ..(*before).clone() };
        let _ = views.send_replace(Arc::new(view));
        loop {
            sleep(ROUND).await;
            let namespace = self.scope.namespace.as_deref();
            let lacking = rights::lacking(&self.hub, "list", "deploymentintentgroups", namespace);
            if !matches!(timeout(ROUND, lacking).await, Ok(Ok(None))) {
                continue;
            }
            let scope = Scope { namespace: self.scope.namespace.clone(), name: None };
            let begun = Box::pin(Self::new(Arc::clone(&self.hub), scope, self.note.clone()));
            if let Ok(Ok(new)) = timeout(WHOLE, begun).await {
                *self = new;
                return;
            }
        }
    }
}

impl Source {
    /// The clusters as they are known now.
    fn read(&self, pulse: &Pulse) -> Clusters {
        let Clusters { rows, none } = match self {
            Self::Watched(watched) => {
                let mut rows: Vec<Shown> = watched.seen.values().map(of_cluster).collect();
                rows.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
                Clusters { rows, none: None }
            }
            Self::Written(clusters) => clusters.clone(),
        };
        Clusters { rows: doubted(rows, pulse), none }
    }

    /// The source that the user may read.
    async fn of(hub: &Hub, scope: &Scope) -> Self {
        let api: Api<Cluster> = scope.namespace.as_ref().map_or_else(
            || Api::all(hub.client.clone()),
            |namespace| Api::namespaced(hub.client.clone(), namespace),
        );
        let refused = match api.list(&ListParams::default().limit(1)).await {
            // A project's namespace has none.
            Ok(list) if scope.namespace.is_some() && list.items.is_empty() => None,
            Ok(_) => {
                let watched = Watched::new(api, watcher::Config::default(), "clusters");
                return Self::Watched(Box::new(watched));
            }
            Err(error) => Some(hub.sentence(&error, "list", "clusters").to_string()),
        };
        let namespace = scope.namespace.clone().unwrap_or_else(|| hub.namespace.clone());
        Self::Written(match granted::read(hub, &namespace).await {
            Ok(Written::Down(found)) => {
                Clusters { rows: found.rows().iter().map(of_member).collect(), none: None }
            }
            Ok(Written::Nothing) => Clusters {
                rows: Vec::new(),
                none: Some(format!(
                    "no cluster is in namespace {namespace}, and none is written down there for a project"
                )),
            },
            Ok(Written::Forbidden) => Clusters { rows: Vec::new(), none: refused },
            Err(error) => Clusters { rows: Vec::new(), none: Some(format!("{error:#}")) },
        })
    }
}

/// A cluster as members of a project are told of it.
fn of_member(row: &emco_engine::cluster_maps::Row) -> Shown {
    use emco_crds::cluster::Scheduling;

    Shown {
        provider: row.provider.clone(),
        name: row.name.clone(),
        ready: row.reachable.clone(),
        reason: match row.reachable.as_str() {
            "True" => "Reachable",
            "False" => "Unreachable",
            _ => "NotLookedAt",
        }
        .to_owned(),
        said: match row.scheduling {
            Scheduling::Enabled => String::new(),
            Scheduling::Cordoned => "takes nothing new: it is cordoned".to_owned(),
            Scheduling::Drained => "takes nothing new: it is drained".to_owned(),
        },
        version: String::new(),
        nodes: String::new(),
        credentials_end: None,
        labels: row.labels.clone(),
        in_use: None,
        made: None,
    }
}
