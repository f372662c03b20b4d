//! Finds deployments that depend on objects of files.

use std::collections::BTreeSet;

use emco_controllers::stores::Stores;
use emco_crds::{CompositeApp, CompositeProfile, DeploymentIntentGroup, GenericActionIntent};
use emco_engine::resolve;
use kube::ResourceExt as _;

use super::Names;
use super::overlay::Key;

/// All that depend on one of these objects.
pub fn related(stores: &Stores, touched: &BTreeSet<Key>) -> Names {
    let depends = |dig: &DeploymentIntentGroup| {
        let namespace = dig.namespace().unwrap_or_default();
        let app = stores.apps.named(&namespace, &dig.spec.composite_app_ref.name);
        let profile = dig.spec.composite_profile_ref.as_ref();
        let profile = profile.and_then(|profile| stores.profiles.named(&namespace, &profile.name));
        let listed = dig.spec.intents.iter().filter(|listed| resolve::is_generic_action(listed));
        let intents: Vec<_> =
            listed.filter_map(|listed| stores.intents.named(&namespace, &listed.name)).collect();
        depends(dig, app.as_deref(), profile.as_deref(), touched)
            || intents.iter().any(|intent| is_read(intent, touched))
    };
    let all = stores.digs.sorted();
    let related = all.iter().filter(|dig| depends(dig));
    related.map(|dig| (dig.namespace().unwrap_or_default(), dig.name_any())).collect()
}

fn depends(
    dig: &DeploymentIntentGroup,
    app: Option<&CompositeApp>,
    profile: Option<&CompositeProfile>,
    touched: &BTreeSet<Key>,
) -> bool {
    let spec = &dig.spec;
    let within = dig.namespace().unwrap_or_default();
    let is_touched =
        |kind: &str, name: &str| touched.contains(&(kind.to_owned(), within.clone(), name.to_owned()));
    // The files name the Projects of the namespaces that are looked at.
    let project = touched.iter().any(|(kind, namespace, _)| kind == "Project" && *namespace == within);
    let mut listed = spec.intents.iter().filter(|listed| resolve::is_known(listed));
    project
        || listed.any(|listed| is_touched(&listed.kind, &listed.name))
        || is_touched("CompositeApp", &spec.composite_app_ref.name)
        || is_touched("LogicalCloud", &spec.logical_cloud_ref.name)
        || spec
            .composite_profile_ref
            .as_ref()
            .is_some_and(|profile| is_touched("CompositeProfile", &profile.name))
        || app.is_some_and(|app| reads(app, touched))
        || profile.is_some_and(|profile| {
            resolve::sources(profile).iter().any(|key| is_touched(&key.kind, &key.name))
        })
}

/// Whether an intent reads one of these objects.
fn is_read(intent: &GenericActionIntent, touched: &BTreeSet<Key>) -> bool {
    let namespace = intent.namespace().unwrap_or_default();
    let mut read = resolve::intent_sources(intent).into_iter();
    read.any(|key| touched.contains(&(key.kind, namespace.clone(), key.name)))
}

/// Whether the charts of a composite application come from one of these objects, or are fetched with it.
pub fn reads(app: &CompositeApp, touched: &BTreeSet<Key>) -> bool {
    let namespace = app.namespace().unwrap_or_default();
    let is_touched =
        |kind: &str, name: &str| touched.contains(&(kind.to_owned(), namespace.clone(), name.to_owned()));
    app.spec.apps.iter().map(|app| &app.chart).any(|chart| {
        chart.config_map_ref.as_ref().is_some_and(|map| is_touched("ConfigMap", &map.name))
            || chart.secret_ref.as_ref().is_some_and(|secret| is_touched("Secret", &secret.name))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(kind: &str, spec: &Value) -> K {
        let metadata = json!({"name": "shop", "namespace": "team"});
        let object =
            json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_deployment_depends_on_what_it_names_and_on_what_that_reads() {
        let dig = object(
            "DeploymentIntentGroup",
            &json!({"compositeAppRef": {"name": "shop"}, "compositeProfileRef": {"name": "prod"},
                "intents": [{"kind": "GenericActionIntent", "name": "banner"}, {"kind": "HardwareIntent", "name": "gpu"}], "placement": {"allOf": [{"selector": {}}]}}),
        );
        let app = object(
            "CompositeApp",
            &json!({"apps": [
                {"name": "web", "chart": {"configMapRef": {"name": "charts"}}},
                {"name": "db", "chart": {"oci": {"url": "oci://r.example.com/db", "version": "1.0.0"}, "secretRef": {"name": "login"}}},
            ]}),
        );
        let profile = object(
            "CompositeProfile",
            &json!({"apps": [{"app": "web", "valuesFrom": [{"kind": "Secret", "name": "passwords"}]}]}),
        );
        let on = |kind: &str, namespace: &str, name: &str| {
            let touched = [(kind.to_owned(), namespace.to_owned(), name.to_owned())].into();
            depends(&dig, Some(&app), Some(&profile), &touched)
        };
        for (kind, name) in [
            ("CompositeApp", "shop"),
            ("CompositeProfile", "prod"),
            ("GenericActionIntent", "banner"),
            ("HardwareIntent", "gpu"),
            ("LogicalCloud", "default"),
            ("ConfigMap", "charts"),
            ("Secret", "login"),
            ("Secret", "passwords"),
            ("Project", "any"),
        ] {
            assert!(on(kind, "team", name), "{kind} {name}");
            assert!(!on(kind, "other", name), "{kind} {name} of another namespace");
        }
        for (kind, name) in [("CompositeApp", "web"), ("ConfigMap", "login"), ("Secret", "charts")] {
            assert!(!on(kind, "team", name), "{kind} {name}");
        }
    }
}
