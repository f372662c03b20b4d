//! A deployment that names another CompositeApp: what both have stays, the rest comes and goes, and the way back is a pin.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::deaths;
use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, charts, composite_app, deployment, objects, packed, values};
use crate::api::Method;

const CACHE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: cache}
";
const WEB: &str = "/apis/apps/v1/namespaces/team-a/deployments/web";

/// The shop, and beside it a CompositeApp with the next `web`, under this name, and with `cache` instead of `db`.
async fn installed(web: &str) -> Life {
    let mut life = Life::with(&objects());
    let mut charts = charts();
    charts["binaryData"]["cache-1.0.0.tgz"] =
        json!(packed("cache", "1.0.0", &[("templates/cache.yaml", CACHE)]));
    life.put(&charts);
    let chart = |key: &str| json!({"configMapRef": {"name": "charts", "key": key}});
    let apps = json!({"apps": [
        {"name": web, "chart": chart("web-1.1.0.tgz")}, {"name": "cache", "chart": chart("cache-1.0.0.tgz")},
    ]});
    life.put(&emco("CompositeApp", Some("team-a"), "next", &apps));
    let of_web = json!({"app": web, "valuesFrom": [{"kind": "ConfigMap", "name": "values"}], "values": {"replicas": 2}});
    life.put(&emco("CompositeProfile", Some("team-a"), "next", &json!({"apps": [of_web]})));
    life.settle().await;
    assert_eq!((life.says("Ready").0, &life.dig()["status"]["revision"]), ("True".into(), &json!(1)));
    life
}

/// The deployment of the other CompositeApp.
fn moved() -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["compositeAppRef"]["name"] = json!("next");
    dig["spec"]["compositeProfileRef"]["name"] = json!("next");
    dig["spec"]["placement"].as_object_mut().unwrap().remove("apps");
    dig
}

fn migrate(life: &Life) {
    life.put(&moved());
    life.put(&values("blue"));
}

/// Ours on both edges, without hooks, of which any event may have been the last.
fn there(life: &Life) -> BTreeMap<String, Value> {
    let of = |edge: &'static str| {
        life.on(edge).into_iter().map(move |(key, object)| (format!("{edge}/{key}"), object))
    };
    EDGES.into_iter().flat_map(of).filter(|(key, _)| !key.contains("/jobs.")).collect()
}

/// Names of the shop's objects on an edge, without hooks.
fn names_of(life: &Life, edge: &str) -> Vec<String> {
    let all = life
        .names_on(edge)
        .into_iter()
        .filter(|key| !key.starts_with("jobs.") && !key.starts_with("namespaces."));
    all.map(|key| key.rsplit('/').next().unwrap().to_owned()).collect()
}

/// How often each object of the shop was applied on an edge since the last look.
fn applied(life: &Life, edge: &str) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for seen in life.edges[edge].writes() {
        if seen.path.contains("/namespaces/team-a/") && seen.method == Method::Patch {
            *all.entry(seen.path.rsplit('/').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn another_composite_app_removes_adds_and_keeps_what_both_have() {
    // An object stays also where the other CompositeApp has it in an app of another name.
    for web in ["web", "front"] {
        let mut life = installed(web).await;
        let uids =
            |life: &Life| EDGES.map(|edge| life.edges[edge].object(WEB).unwrap()["metadata"]["uid"].clone());
        let before = uids(&life);
        for edge in life.edges.values() {
            edge.take_seen();
        }
        migrate(&life);
        for _ in 0..6 {
            life.next().await;
        }
        let status = life.dig()["status"].clone();
        assert_eq!((life.says("Ready").0, &status["revision"]), ("True".into(), &json!(2)), "{status:#}");
        for edge in EDGES {
            assert_eq!(names_of(&life, edge), ["cache", "page", "web"], "{web} on {edge}");
            let mut applied = applied(&life, edge);
            applied.remove("prepare");
            let of_web = applied.remove("web").unwrap_or_default();
            assert!(of_web <= usize::from(web != "web"), "{web} on {edge}: {of_web}");
            assert_eq!(applied, [("cache".to_owned(), 1), ("page".to_owned(), 1)].into(), "{web} on {edge}");
            assert_eq!(life.on(edge)["configmaps./team-a/page"]["data"]["text"], "blue");
        }
        assert_eq!(uids(&life), before, "it was not made again");
        let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-2")).unwrap();
        assert_eq!(context["spec"]["cause"], "Migrate", "{:#}", context["spec"]);
        assert_eq!(
            (&status["history"][0]["revision"], &status["history"][0]["cause"]),
            (&json!(2), &json!("Migrate"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_pin_goes_back_to_the_composite_app_before_and_its_end_forth_again() {
    let mut life = installed("web").await;
    let before = there(&life);
    migrate(&life);
    life.settle().await;
    let after = there(&life);
    assert_ne!(before, after);
    // What it was made of can be had no more.
    life.put(&composite_app("9.9.9"));
    let mut pinned = moved();
    pinned["spec"]["revision"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    assert_eq!((life.says("Ready").1, &life.dig()["status"]["revision"]), ("Pinned".into(), &json!(1)));
    assert!(there(&life) == before, "{}", difference(&there(&life), &before));
    life.put(&moved());
    life.settle().await;
    assert_eq!((life.says("Ready").1, &life.dig()["status"]["revision"]), ("Ready".into(), &json!(2)));
    assert!(there(&life) == after, "{}", difference(&there(&life), &after));
}

#[tokio::test(start_paused = true)]
async fn a_composite_app_that_is_not_there_is_refused_and_what_runs_stays() {
    let mut life = installed("web").await;
    let before = there(&life);
    let mut nowhere = moved();
    nowhere["spec"]["compositeAppRef"]["name"] = json!("nowhere");
    life.put(&nowhere);
    life.settle().await;
    assert_eq!((life.says("Ready").0, &life.dig()["status"]["revision"]), ("False".into(), &json!(1)));
    assert!(there(&life) == before, "{}", difference(&there(&life), &before));
    migrate(&life);
    life.settle().await;
    assert_eq!(
        (life.says("Ready").0, names_of(&life, "b")),
        ("True".into(), vec!["cache".into(), "page".into(), "web".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_migration_changes_nothing_in_the_end() {
    let first = async || installed("front").await;
    let check = async |life: &mut Life| assert_eq!(names_of(life, "b"), ["cache", "page", "web"]);
    Box::pin(deaths::at_every_write(first, migrate, check, 15)).await;
}
