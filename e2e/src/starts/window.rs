//! Starts an API server, and looks at what it says meanwhile: bare, and through the operator's own connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_controllers::api::world::system::{SystemClock, SystemRandom};
use emco_controllers::remote::dialer::{Dialer, DialerSettings, SystemResolver};
use emco_controllers::remote::{Connections as _, Pool, PoolSettings, Target, kubeconfig};
use emco_engine::identity::ClusterId;
use futures::StreamExt as _;
use kube::Client;
use serde_json::Value;

use super::kinds::DOMAIN;
use crate::bed::Plane;

/// For one start.
const LIMIT: Duration = Duration::from_mins(3);
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers of API servers that started.
#[derive(Debug, Default)]
pub struct Windows {
    /// Answers with status 200 that lacked kinds, of servers that answered a probe.
    pub incomplete: usize,
    /// All answers.
    pub answers: usize,
}

impl Windows {
    /// Adds those of another start.
    pub fn add(&mut self, other: &Self) {
        self.incomplete += other.incomplete;
        self.answers += other.answers;
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} answers of discovery were incomplete", self.incomplete, self.answers)
    }
}

/// Starts the API server of an edge, and returns when it shows all kinds.
///
/// # Errors
/// The operator's connection counted a list that lacks kinds.
pub async fn watch(edge: &Plane, kinds: usize) -> Result<Windows> {
    let client = edge.client().await?;
    edge.begin().await?;
    let (windows, counted) = tokio::try_join!(
        tokio::time::timeout(LIMIT, bare(&client, kinds)).in_time(),
        connected(edge, kinds)
    )?;
    ensure!(counted == kinds, "a list of {counted} kinds counted, where there are {kinds}");
    edge.wait_until_ready().await?;
    Ok(windows)
}

trait InTime<T> {
    async fn in_time(self) -> Result<T>;
}

impl<T, F: Future<Output = Result<Result<T>, tokio::time::error::Elapsed>>> InTime<T> for F {
    async fn in_time(self) -> Result<T> {
        self.await.context("the API server did not come in time")?
    }
}

/// Asks for discovery until it is complete and the server is ready.
async fn bare(client: &Client, kinds: usize) -> Result<Windows> {
    let mut windows = Windows::default();
    loop {
        let discovery =
            http::Request::get("/apis").header(http::header::ACCEPT, DISCOVERY).body(Vec::new())?;
        let Ok(answer) = client.request::<Value>(discovery).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        windows.answers += 1;
        let groups = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |group: &Value| group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let custom = groups.iter().filter(|group| is_ours(&name(group))).count();
        windows.incomplete += usize::from(custom < kinds);
        let ready = http::Request::get("/readyz").body(Vec::new())?;
        if custom == kinds && client.request_text(ready).await.is_ok() {
            return Ok(windows);
        }
    }
}

fn is_ours(group: &str) -> bool {
    group.ends_with(DOMAIN) && !group.starts_with("down.")
}

/// How many kinds the first list has that a new connection of the operator's counts. It asks much more often than an operator does.
async fn connected(edge: &Plane, kinds: usize) -> Result<usize> {
    let allow_edge_addresses = vec!["127.0.0.0/8".parse()?];
    let settings = DialerSettings { allow_edge_addresses, ..DialerSettings::default() };
    let dialer = Dialer::new(settings, Arc::new(SystemResolver::new().map_err(anyhow::Error::msg)?));
    let settings = PoolSettings {
        backoff_first: Duration::from_millis(20),
        backoff_last: Duration::from_millis(20),
        round_gap: Duration::from_millis(5),
        ..PoolSettings::default()
    };
    let pool = Pool::new(settings, dialer, Arc::new(SystemClock), Arc::new(SystemRandom::new()));
    let id = ClusterId::new("acme", edge.name());
    let mut changes = pool.changes();
    pool.set_target(
        id.clone(),
        Target {
            credentials: kubeconfig::read(edge.tester_kubeconfig()?.as_bytes())?,
            version: "1".to_owned(),
            identity: None,
            installation: "nobody".to_owned(),
            hub_version: 0,
            by_git: false,
            registered: None,
        },
    );
    let first = async {
        loop {
            let seen = pool.observation(&id).context("the connection was forgotten")?;
            if let Some(apis) = &seen.apis {
                let counted = apis.resources.iter().filter(|resource| is_ours(&resource.group)).count();
                return Ok(counted.min(kinds));
            }
            changes.next().await.context("the connection ended")?;
        }
    };
    tokio::time::timeout(LIMIT, first).in_time().await
}
