//! Asks the operator to look at an object now, waits until it has, and says how the object is then.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::bail;
use emco_crds::conditions::{Conditioned, types};
use emco_crds::names::{annotation, manager};
use emco_crds::{Cluster, CompositeApp, DeploymentIntentGroup};
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::args::deployments::ReconcileArgs;
use super::args::{Deployment, is_label};
use super::hub::{self, Hub};
use super::{Misused, Outcome, print, pulse, scheduling};

/// What is asked for.
enum Asked {
    Group(Deployment),
    App(Deployment),
    /// `provider/cluster`
    Cluster(String),
}

/// What the operator says of an object.
struct Report {
    /// The last request that it carried out.
    handled: Option<String>,
    ready: String,
    reason: String,
    message: String,
}

/// `kubectl emco reconcile`.
pub async fn run(args: ReconcileArgs) -> anyhow::Result<Outcome> {
    let asked = asked(&args.object)?;
    let hub = hub::connect(&args.hub).await?;
    let wait = Wait { hub: &hub, limit: args.timeout };
    match asked {
        Asked::Group(deployment) => {
            let (namespace, name) = hub.locate(&deployment, args.namespace.as_deref()).await?;
            hub.deployment(&namespace, &name).await?;
            let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), &namespace);
            let said = format!("{namespace}/{name}");
            wait.until_looked_at(&api, &name, "deployment intent group", &said, |group| {
                group.status.as_ref().map(|status| report(status.last_handled_request.as_ref(), status))
            })
            .await
        }
        Asked::App(app) => {
            let (namespace, name) = hub.locate(&app, args.namespace.as_deref()).await?;
            let api = Api::<CompositeApp>::namespaced(hub.client.clone(), &namespace);
            let said = format!("{namespace}/{name}");
            wait.until_looked_at(&api, &name, "composite app", &said, |app| {
                app.status.as_ref().map(|status| report(status.last_handled_request.as_ref(), status))
            })
            .await
        }
        Asked::Cluster(id) => {
            let place = scheduling::locate(&hub, &id).await?;
            wait.until_looked_at(&place.api, &place.name, "cluster", &id, |cluster: &Cluster| {
                cluster.status.as_ref().map(|status| report(status.last_handled_request.as_ref(), status))
            })
            .await
        }
    }
}

fn report(handled: Option<&String>, status: &impl Conditioned) -> Report {
    let ready = status.condition(types::READY);
    Report {
        handled: handled.cloned(),
        ready: ready.map_or_else(|| "Unknown".to_owned(), |ready| ready.status.clone()),
        reason: ready.map(|ready| ready.reason.clone()).unwrap_or_default(),
        message: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
    }
}

fn asked(words: &[String]) -> anyhow::Result<Asked> {
    let misused = |why: String| Err(Misused(why).into());
    let of = |text: &String| text.parse::<Deployment>();
    match words {
        [name] => match name.split_once('/') {
            _ if is_kind(name) => misused(format!("which {name}? Write its name, too")),
            Some((kind, rest)) if is_kind(kind) && kind != "cluster" => {
                asked(&[kind.to_owned(), rest.to_owned()])
            }
            _ => of(name).map_or_else(misused, |deployment| Ok(Asked::Group(deployment))),
        },
        [kind, name] => match kind.as_str() {
            "dig" | "deployment" | "deploymentintentgroup" => {
                of(name).map_or_else(misused, |deployment| Ok(Asked::Group(deployment)))
            }
            "capp" | "compositeapp" => of(name).map_or_else(misused, |app| Ok(Asked::App(app))),
            "cluster" | "ecl" => match name.split_once('/') {
                Some((provider, cluster)) if is_label(provider) && is_label(cluster) => {
                    Ok(Asked::Cluster(name.clone()))
                }
                _ => misused(format!("{name}: write PROVIDER/CLUSTER, such as acme/berlin")),
            },
            other => misused(format!(
                "{other} is no kind that can be asked for: there are dig (a deployment intent group), capp (a composite app) and cluster"
            )),
        },
        _ => misused("write PROJECT/NAME, or a kind and a name".to_owned()),
    }
}

fn is_kind(word: &str) -> bool {
    ["dig", "deployment", "deploymentintentgroup", "capp", "compositeapp", "cluster", "ecl"].contains(&word)
}

struct Wait<'a> {
    hub: &'a Hub,
    limit: Duration,
}

impl Wait<'_> {
    /// Asks, and waits for the echo.
    async fn until_looked_at<K>(
        &self,
        api: &Api<K>,
        name: &str,
        kind: &str,
        said: &str,
        read: impl Fn(&K) -> Option<Report>,
    ) -> anyhow::Result<Outcome>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let request = Timestamp::now().to_string();
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation::REQUESTED_AT: request}}}));
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        match api.patch(name, &params, &patch).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                bail!("there is no {kind} {said} on the hub {}", self.hub.url)
            }
            Err(error) => return Err(self.hub.sentence(&error, &format!("change {kind}"), said)),
            Ok(_) => {}
        }
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut events = watcher(api.clone(), config).default_backoff().boxed();
        let deadline = tokio::time::sleep(self.limit);
        let mut deadline = std::pin::pin!(deadline);
        let mut there = true;
        loop {
            let event = tokio::select! {
                event = events.try_next() => event,
                () = &mut deadline => return self.too_late(said).await,
            };
            match event {
                Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if status.code == 403 => {
                    bail!("{said} was asked for, and you may not watch it: {}", status.message)
                }
                // It begins anew by itself, until the deadline.
                Err(_) => {}
                Ok(Some(watcher::Event::Init)) => there = false,
                Ok(Some(watcher::Event::InitDone)) if there => {}
                Ok(None | Some(watcher::Event::Delete(_) | watcher::Event::InitDone)) => {
                    bail!("{kind} {said} was deleted meanwhile")
                }
                Ok(Some(watcher::Event::Apply(object) | watcher::Event::InitApply(object))) => {
                    there = true;
                    if let Some(report) = read(&object).filter(|one| one.handled.as_ref() == Some(&request)) {
                        return say(said, &report);
                    }
                }
            }
        }
    }

    async fn too_late(&self, said: &str) -> anyhow::Result<Outcome> {
        let pulse = pulse::read(self.hub).await.pulse;
        let why =
            if pulse.message.is_empty() { "it may be busy with others".to_owned() } else { pulse.message };
        let seconds = self.limit.as_secs();
        eprintln!(
            "warning: the operator has not looked at {said} within {seconds} s, and will: {}",
            super::output::printable(&why)
        );
        Ok(Outcome::NotAsWanted)
    }
}

fn say(said: &str, report: &Report) -> anyhow::Result<Outcome> {
    let Report { ready, reason, message, .. } = report;
    let detail = if message.is_empty() { String::new() } else { format!(": {message}") };
    print(&format!("{said} was looked at; ready: {ready} ({reason}){detail}\n"))?;
    Ok(if ready == "True" { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        match asked(&words) {
            Ok(Asked::Group(one)) => Ok(format!("dig {:?} {}", one.project, one.name)),
            Ok(Asked::App(one)) => Ok(format!("capp {:?} {}", one.project, one.name)),
            Ok(Asked::Cluster(id)) => Ok(format!("cluster {id}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_kind_stands_before_the_name_or_is_left_out() {
        assert_eq!(read(&["shop/till"]).unwrap(), "dig Some(\"shop\") till");
        assert_eq!(read(&["dig/till"]).unwrap(), "dig None till");
        assert_eq!(read(&["dig", "shop/till"]).unwrap(), "dig Some(\"shop\") till");
        assert_eq!(read(&["capp/till"]).unwrap(), "capp None till");
        assert_eq!(read(&["capp", "shop/till"]).unwrap(), "capp Some(\"shop\") till");
        assert_eq!(read(&["cluster", "acme/berlin"]).unwrap(), "cluster acme/berlin");
        for (bad, says) in [
            (&["cluster"][..], "which cluster?"),
            (&["cluster", "berlin"], "PROVIDER/CLUSTER"),
            (&["pod", "till"], "no kind that can be asked for"),
            (&["a/b/c"], "PROJECT/NAME"),
        ] {
            assert!(read(bad).is_err_and(|why| why.contains(says)), "{bad:?}");
        }
    }
}
