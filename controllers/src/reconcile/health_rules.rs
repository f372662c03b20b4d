//! Follows the `ConfigMap` with the users' health rules, and tells what is wrong with it in Events on it and in the log.
//!
//! A watch of this one name: the operator has no right to watch others in its namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::names::object::HEALTH_RULES;
use emco_engine::health::rules::{Fault, Rules};
use emco_engine::path::ApiPath;
use emco_engine::selector::FieldSelector;
use emco_engine::text::counted;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::api::{ApiError, ApiResult, Method, Request, WatchEvent};
use crate::object::events::warn_once;
use crate::reconcile::context::Context;
use crate::sync::health_rules::HealthRules;

/// Reason of the Events.
pub const REASON: &str = "HealthRuleInvalid";
/// Faults of one version of the `ConfigMap` that get an Event each.
const MOST: usize = 20;
/// Between two tries, doubled up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A watch that was open for so long worked.
const LIVED: Duration = Duration::from_secs(20);

/// Keeps the rules as the hub has them, for ever.
pub async fn follow(ctx: Arc<Context>, rules: Arc<HealthRules>) {
    let (told, tells) = watch::channel(None);
    let follower = Follower { ctx: Arc::clone(&ctx), rules: Arc::clone(&rules), map: Value::Null, told };
    // What is told never keeps waiting what is read: a correction is there as soon as the hub says it.
    tokio::select! {
        () = follower.run() => {}
        () = tell(&ctx, &rules, tells) => {}
    }
}

/// What is wrong with one version of the `ConfigMap`.
#[derive(Clone)]
struct Told {
    /// What Events are about.
    map: ConfigMap,
    faults: Vec<String>,
}

struct Follower {
    ctx: Arc<Context>,
    rules: Arc<HealthRules>,
    /// As it was last read; null while it is not there.
    map: Value,
    told: watch::Sender<Option<Told>>,
}

impl Follower {
    async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            let begun = Instant::now();
            if let Err(error) = self.round().await {
                // What was read stays in force: an answer that does not come says nothing about the rules.
                tracing::warn!(%error, name = HEALTH_RULES, "the health rules cannot be read; trying again");
            }
            // A watch that ends at once is no better than one that is refused.
            pause = if begun.elapsed() > LIVED { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            sleep(pause).await;
        }
    }

    /// Lists and watches until the watch ends.
    async fn round(&mut self) -> ApiResult<()> {
        let request = || {
            let maps = ApiPath::core(&self.ctx.namespace, "configmaps");
            Request::new(Method::Get, maps).fields(&FieldSelector::name(HEALTH_RULES))
        };
        let list = self.ctx.hub().send(request()).await?;
        let version = list.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        let request = request()
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("resourceVersion", version);
        let Some(items) = list.get("items").and_then(Value::as_array) else {
            return Err(ApiError::Protocol("a list of ConfigMaps without items".to_owned()));
        };
        self.take(items.first().cloned().unwrap_or_default()).await;
        let mut events = self.ctx.hub().watch(request).await?;
        while let Some(event) = events.next().await {
            match event {
                Ok(WatchEvent::Applied(map)) => self.take(map).await,
                Ok(WatchEvent::Deleted(_)) => self.take(Value::Null).await,
                Ok(WatchEvent::Bookmark(_)) => {}
                Err(error) if error.code() == 410 => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The `ConfigMap` as it is now; without one there are no rules. The same content again is no news.
    async fn take(&mut self, map: Value) {
        let same = |field: &str| map.get(field) == self.map.get(field);
        if self.rules.is_known() && map.is_null() == self.map.is_null() && same("data") && same("binaryData")
        {
            return;
        }
        let fresh = map.clone();
        // Compiling takes a while; threads that serve others do not.
        let read = match tokio::task::spawn_blocking(move || read(&fresh)).await {
            Ok(read) => read,
            Err(error) => {
                tracing::error!(%error, name = HEALTH_RULES, "the health rules made their reader fail: all are Unknown");
                // They are not taken for read: the next list tries them again.
                self.map = Value::Null;
                self.rules.set(Rules::unread("the health rules made their reader fail"));
                return;
            }
        };
        let sentence = |fault: &Fault| format!("{fault}. {}", fault.consequence());
        let faults: Vec<String> = read.faults().iter().map(sentence).collect();
        tracing::info!(
            kinds = read.usable(),
            faults = faults.len(),
            "the health rules were read: kinds whose rule changed are judged afresh"
        );
        let metadata = map.get("metadata").cloned();
        let metadata = metadata.and_then(|metadata| serde_json::from_value::<ObjectMeta>(metadata).ok());
        self.told.send_replace(
            metadata.map(|metadata| Told { map: ConfigMap { metadata, ..ConfigMap::default() }, faults }),
        );
        // What Events are about is known before the first object fails.
        self.rules.set(read);
        self.map = map;
    }
}

/// Says what is wrong with the rules as they are written, and on objects.
async fn tell(ctx: &Context, rules: &HealthRules, mut tells: watch::Receiver<Option<Told>>) {
    let mut map: Option<ConfigMap> = None;
    loop {
        let said = tokio::select! {
            biased;
            changed = tells.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = tells.borrow_and_update().clone();
                let (fresh, mut faults) = now.map_or((None, Vec::new()), |told| (Some(told.map), told.faults));
                map = fresh;
                let more = faults.len().saturating_sub(MOST);
                faults.truncate(MOST);
                if more > 0 {
                    faults.push(format!("{}: correct these first", counted(more, "more fault")));
                }
                faults
            }
            failures = rules.failures() => failures,
        };
        for what in said {
            tracing::warn!(name = HEALTH_RULES, what, "a health rule cannot be used");
            if let Some(map) = &map {
                warn_once(ctx, map, REASON, &what).await;
            }
        }
    }
}

/// The rules of a `ConfigMap`.
pub fn read(map: &Value) -> Rules {
    let keys = |field: &str| map.get(field).and_then(Value::as_object).into_iter().flatten();
    let texts = keys("data").map(|(key, text)| (key.as_str(), text.as_str()));
    let binary = keys("binaryData").map(|(key, _)| (key.as_str(), None));
    let data: BTreeMap<&str, Option<&str>> = texts.chain(binary).collect();
    Rules::read(data)
}
