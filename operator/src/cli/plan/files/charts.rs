//! Fetches the charts of composite applications that files change, as the operator would: what it keeps on the hub first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_controllers::reconcile::composite_app;
use emco_crds::composite_app::ChartSource;
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, Conditioned as _};
use kube::ResourceExt as _;

use super::Names;
use super::overlay::Touched;
use super::related::reads;
use super::world::World;

/// Reasons that are as true here as they are for the operator, whose network and authorities may be others.
const CERTAIN: [&str; 8] = [
    "ChartDigestChanged",
    "ChartInvalid",
    "ChartTooLarge",
    "ChartIsLibrary",
    "ChartSourceNotAllowed",
    "ConfigMapNotFound",
    "SecretNotFound",
    "DependencyCycle",
];

/// Which places the hub gets charts from with which Secrets: namespace, Secret and address.
pub type Sources = BTreeSet<(String, String, String)>;

/// Those of composite applications as the hub has them.
pub fn known(apps: &[CompositeApp]) -> Sources {
    apps.iter().flat_map(sources).map(|(_, source)| source).collect()
}

/// Apps whose charts are fetched with a Secret.
fn sources(object: &CompositeApp) -> Vec<(&str, (String, String, String))> {
    let namespace = object.namespace().unwrap_or_default();
    let apps = object.spec.apps.iter().filter_map(|app| {
        let secret = app.chart.secret_ref.as_ref()?;
        Some((app.name.as_str(), (namespace.clone(), secret.name.clone(), address(&app.chart)?)))
    });
    apps.collect()
}

fn address(chart: &ChartSource) -> Option<String> {
    let ChartSource { repository, oci, git, .. } = chart;
    let repository = repository.as_ref().map(|chart| &chart.url);
    let url = repository
        .or_else(|| oci.as_ref().map(|chart| &chart.url))
        .or_else(|| git.as_ref().map(|chart| &chart.url));
    url.cloned()
}

/// Why a login is not sent: who writes a file that nobody has reviewed yet must not choose where it goes.
fn unsent(app: &CompositeApp, known: &Sources, touched: &Touched) -> Option<String> {
    let is_own = |namespace: &str, secret: &str| {
        touched.objects.contains(&("Secret".to_owned(), namespace.to_owned(), secret.to_owned()))
    };
    let (name, (_, secret, _)) = sources(app)
        .into_iter()
        .find(|(_, source)| !known.contains(source) && !is_own(&source.0, &source.1))?;
    Some(format!(
        "app {name}: its chart would be fetched with Secret {secret}, and no CompositeApp of the hub uses that at this address: a login goes only where the hub sends it already"
    ))
}

/// Fetches what the files change, and what deployments that are planned need and the hub does not keep. What cannot be had here is said by
/// composite application; its deployments are not planned.
pub async fn fetch(
    world: &mut World,
    touched: &Touched,
    known: &Sources,
    planned: &Names,
) -> BTreeMap<(String, String), String> {
    let digs = planned.iter().filter_map(|(namespace, name)| {
        let dig = world.ctx.stores.digs.named(namespace, name)?;
        Some((namespace.clone(), dig.spec.composite_app_ref.name.clone()))
    });
    let needed: Names = digs.collect();
    let is_touched = |app: &Arc<CompositeApp>| {
        let key = ("CompositeApp".to_owned(), app.namespace().unwrap_or_default(), app.name_any());
        touched.objects.contains(&key) || reads(app, &touched.objects)
    };
    let mut unfetched = BTreeMap::new();
    for app in world.ctx.stores.apps.sorted() {
        let name = (app.namespace().unwrap_or_default(), app.name_any());
        if !(is_touched(&app) || needed.contains(&name) && lacks(world, &app).await) {
            continue;
        }
        let why = match unsent(&app, known, touched) {
            Some(why) => Some(why),
            None => match Box::pin(composite_app::foreseen(&world.ctx, &app)).await {
                Ok(found) => {
                    let why = uncertain(&found);
                    world.put(found);
                    why
                }
                Err(error) => Some(format!("its charts cannot be looked for: {error}")),
            },
        };
        if let Some(why) = why {
            let said = format!("CompositeApp {}: {why}", name.1);
            unfetched.insert(name, said);
        }
    }
    unfetched
}

/// Whether a chart that the operator has pinned is neither in a ConfigMap nor kept on the hub.
async fn lacks(world: &World, app: &CompositeApp) -> bool {
    if !composite_app::is_pinned(app) {
        return false;
    }
    for one in &app.spec.apps {
        if matches!(composite_app::chart(&world.ctx, app, one).await, Ok(None)) {
            return true;
        }
    }
    false
}

/// Why a chart is not there, where that may be another thing for the operator.
fn uncertain(found: &CompositeApp) -> Option<String> {
    let ready = found.status.as_ref()?.condition(types::READY)?;
    if ready.status == "True" || CERTAIN.contains(&ready.reason.as_str()) {
        return None;
    }
    let of = |name: &str| ready.message.starts_with(&format!("app {name}: "));
    let app = found.spec.apps.iter().find(|app| of(&app.name))?;
    // What a ConfigMap has is the same for everybody.
    if app.chart.config_map_ref.is_some() {
        return None;
    }
    Some(format!("a chart cannot be fetched from here: {}: {}", ready.reason, ready.message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn app(chart: &Value, ready: [&str; 3]) -> CompositeApp {
        let [status, reason, message] = ready;
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": "shop", "namespace": "team"},
            "spec": {"apps": [{"name": "web", "chart": chart}]},
            "status": {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-25T00:00:00Z"}]},
        }))
        .unwrap()
    }

    fn with_login(url: &str) -> CompositeApp {
        let chart = json!({"oci": {"url": url, "version": "1.0.0"}, "secretRef": {"name": "login"}});
        app(&chart, ["True", "ChartsResolved", ""])
    }

    #[test]
    fn a_login_goes_only_where_the_hub_sends_it_already() {
        let known = known(&[with_login("oci://registry.example.com/web")]);
        let mut touched = Touched::default();
        assert_eq!(unsent(&with_login("oci://registry.example.com/web"), &known, &touched), None);
        let other = with_login("oci://elsewhere.example.net/web");
        let said = unsent(&other, &known, &touched).unwrap();
        assert!(said.starts_with("app web: its chart would be fetched with Secret login, "), "{said}");
        touched.objects.insert(("Secret".to_owned(), "team".to_owned(), "login".to_owned()));
        assert_eq!(unsent(&other, &known, &touched), None, "the login is in the files");
    }

    #[test]
    fn a_source_that_is_not_reached_from_here_refuses_nothing() {
        let oci = json!({"oci": {"url": "oci://registry.example.com/web", "version": "1.0.0"}});
        let map = json!({"configMapRef": {"name": "charts"}});
        let away = ["False", "SourceUnreachable", "app web: it does not answer"];
        assert_eq!(
            uncertain(&app(&oci, away)).unwrap(),
            "a chart cannot be fetched from here: SourceUnreachable: app web: it does not answer"
        );
        assert_eq!(uncertain(&app(&oci, ["False", "ChartInvalid", "app web: no chart"])), None);
        assert_eq!(uncertain(&app(&oci, ["True", "ChartsResolved", "1 chart"])), None);
        assert_eq!(uncertain(&app(&map, ["False", "ChartNotFound", "app web: no key"])), None);
    }
}
