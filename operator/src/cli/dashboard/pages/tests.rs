//! Whole pages, and rules that hold for every page.

use std::sync::Arc;

use emco_crds::SyncShard;
use serde_json::json;

use super::deployment::{self, Look};
use super::{clusters, deployments, failure, reasons};
use crate::cli::clusters::Shown;
use crate::cli::dashboard::ask::{Ask, List};
use crate::cli::dashboard::look::More;
use crate::cli::dashboard::outcome::Said;
use crate::cli::dashboard::parts::{Page, TOP};
use crate::cli::dashboard::view::{self, Clusters, View, doubted};
use crate::cli::pulse::{Life, Pulse};
use crate::cli::status::tree::tests::{alive, group, shard};

const BAD: &str = "<script>alert(1)</script>\"'&<img src=x>";
const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn silent() -> Pulse {
    let message = "the operator has been silent since 2026-11-21T07:00:00Z: its Lease has expired".to_owned();
    Pulse { operator: Life::Silent, message, until: None }
}

fn cluster(name: &str, ready: &str, said: &str) -> Shown {
    Shown {
        provider: "acme".to_owned(),
        name: name.to_owned(),
        ready: ready.to_owned(),
        reason: if ready == "True" { "Ready" } else { "Unreachable" }.to_owned(),
        said: said.to_owned(),
        version: "v1.36.3".to_owned(),
        nodes: "3/3".to_owned(),
        credentials_end: None,
        labels: std::collections::BTreeMap::new(),
        in_use: Some("DeploymentIntentGroup/shop/till".to_owned()),
        made: None,
    }
}

fn view(pulse: Pulse, shard: &SyncShard) -> View {
    let mut group = group();
    let status = group.status.as_mut().unwrap();
    status.pending = Some(
        serde_json::from_value(json!({
            "digest": DIGEST, "shortDigest": "0123456789ab", "revision": 3, "requires": "Approval",
            "summary": "web on 1 cluster: 1 resource changed", "clusters": {"added": 1, "changed": 1, "removed": 0},
            "resources": {"added": 2, "changed": 1, "removed": 1}, "gains": ["create pods in namespace shop"],
            "apps": [{"name": "web", "clusters": {"added": 1, "changed": 1, "removed": 0},
                "resources": {"added": 2, "changed": 1, "removed": 1}, "first": ["apps/Deployment/shop/web"],
                "gained": ["acme/d"]}],
        }))
        .unwrap(),
    );
    let deployments = view::deployments(std::iter::once(&group), std::iter::once(shard), &pulse, &[]);
    let rows = vec![cluster("a", "True", ""), cluster("c", "False", "connection refused")];
    let clusters = Arc::new(Clusters { rows: doubted(rows, &pulse), none: None });
    View {
        namespace: Some("shop".to_owned()),
        hub: "https://hub/".to_owned(),
        note: None,
        pulse,
        trouble: None,
        refused: None,
        deployments,
        clusters,
    }
}

fn more(may_not: Option<&str>) -> More {
    let (apps, notes) = (Vec::new(), vec!["every object is named in ConfigMap shop/x".to_owned()]);
    More { apps, notes, history: Ok(Vec::new()), may_not: may_not.map(str::to_owned) }
}

fn ask(list: List, query: &str) -> Ask {
    Ask::read(list, query).unwrap()
}

fn of_till(view: &View, more: &More, outcome: Option<&Said>, query: &str) -> Page {
    let one = &view.deployments[0];
    deployment::page(view, &ask(List::Places, query), &Look { one, more, outcome, stale: false }).unwrap()
}

/// A page with a line per element.
fn lines(page: &Page, view: &View) -> String {
    page.document(view).into_string().replace('>', ">\n").replace('<', "\n<").replace("\n\n", "\n")
}

/// Rules that hold for every page.
fn judge(page: &Page, view: &View) {
    let text = page.document(view).into_string();
    assert_eq!(text.matches("<h1").count(), 1, "one h1");
    assert_eq!(text.matches("<main").count(), 1, "one main");
    assert!(text.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    assert!(!text.contains("<img") && !text.contains("<style") && !text.contains("javascript:"));
    assert_eq!(text.matches("<script").count(), 1, "the script alone");
    let levels: Vec<u32> = text.split("<h").filter_map(|part| part.chars().next()?.to_digit(10)).collect();
    assert!(levels.windows(2).all(|two| two[1] <= two[0] + 1), "no level is skipped: {levels:?}");
    let mut ids: Vec<&str> = text.split(" id=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are there once: {ids:?}");
    for label in text.split("<label for=\"").skip(1).filter_map(|part| part.split('"').next()) {
        assert!(ids.contains(&label), "{label} labels a field");
    }
}

#[test]
fn all_pages_keep_to_what_pages_need() {
    for pulse in [alive(), silent()] {
        let view = view(pulse, &shard());
        judge(&deployments::page(&view, &ask(List::Deployments, "")).unwrap(), &view);
        judge(&clusters::page(&view, &ask(List::Clusters, "")).unwrap(), &view);
        judge(&of_till(&view, &more(None), None, ""), &view);
        judge(&of_till(&view, &more(Some("no")), None, "state=Ready"), &view);
        judge(&failure::page(&view, TOP, "there is no page 9", None), &view);
        judge(&reasons::page("DeploymentIntentGroup").unwrap(), &view);
    }
    assert!(reasons::page("Nonsense").is_none());
}

#[test]
fn the_page_of_deployments() {
    let view = view(alive(), &shard());
    let page = deployments::page(&view, &ask(List::Deployments, "state=NotReady")).unwrap();
    insta::assert_snapshot!(lines(&page, &view));
}

#[test]
fn the_page_of_clusters() {
    let view = view(alive(), &shard());
    insta::assert_snapshot!(lines(&clusters::page(&view, &ask(List::Clusters, "")).unwrap(), &view));
}

#[test]
fn the_page_of_a_deployment() {
    let view = view(alive(), &shard());
    insta::assert_snapshot!(lines(&of_till(&view, &more(None), None, ""), &view));
}

#[test]
fn under_a_stale_lease_everything_is_unknown() {
    let view = view(silent(), &shard());
    let text = of_till(&view, &more(None), None, "").body.into_string();
    assert!(text.contains("id=\"pulse\"") && text.contains("its Lease has expired"));
    for known in
        ["data-state=\"Ready\"", "data-state=\"Failed\"", "data-status=\"False\"", "data-tone=\"good\""]
    {
        assert!(!text.contains(known), "{known}");
    }
    let text = clusters::page(&view, &ask(List::Clusters, "")).unwrap().body.into_string();
    assert!(!text.contains("data-ready=\"True\"") && text.contains("last reported True"), "{text}");
}

#[test]
fn markup_that_tenants_and_edges_write_stays_text() {
    let mut shard = shard();
    for row in &mut shard.status.as_mut().unwrap().clusters {
        if let Some(error) = &mut row.error {
            error.message = BAD.to_owned();
            error.reason = BAD.to_owned();
            error.resource = Some(BAD.to_owned());
        }
    }
    let mut view = view(alive(), &shard);
    let bad = || Some(BAD.to_owned());
    (view.note, view.trouble) = (bad(), bad());
    view.pulse.message = BAD.to_owned();
    view.clusters = Arc::new(Clusters {
        rows: vec![Shown { version: BAD.to_owned(), in_use: bad(), ..cluster(BAD, BAD, BAD) }],
        none: None,
    });
    let outcome = Said { of: (String::new(), String::new()), done: false, text: BAD.to_owned() };
    let pages = [
        deployments::page(&view, &ask(List::Deployments, "name=%3Cscript")).unwrap(),
        deployments::page(&view, &ask(List::Deployments, "")).unwrap(),
        clusters::page(&view, &ask(List::Clusters, "")).unwrap(),
        of_till(&view, &more(Some(BAD)), Some(&outcome), ""),
        failure::page(&view, TOP, BAD, None),
    ];
    for page in &pages {
        judge(page, &view);
        let text = page.document(&view).into_string();
        assert!(!text.contains("<script>") && !text.contains("alert(1)</script>\"'"), "{text}");
    }
    assert!(pages.iter().filter(|page| page.body.0.contains("&lt;script&gt;")).count() >= 4);
}

#[test]
fn only_who_may_decide_has_the_buttons() {
    let view = view(alive(), &shard());
    let may = of_till(&view, &more(None), None, "").body.into_string();
    assert!(may.contains(&format!("name=\"digest\" value=\"{DIGEST}\"")) && may.contains(">Reject</button>"));
    let page = of_till(&view, &more(Some("the hub does not let you")), None, "");
    let may_not = page.body.0.clone();
    assert!(
        may_not.contains("You may not approve or reject") && !may_not.contains("<button class=\"approve")
    );
    assert_eq!(page.plan.as_deref(), Some(DIGEST));
}

#[test]
fn a_filter_shows_only_what_it_asks_for() {
    let view = view(alive(), &shard());
    let rows = |query: &str| {
        let page = deployments::page(&view, &ask(List::Deployments, query)).unwrap();
        page.body.0.matches("<tr data-deployment").count()
    };
    for found in
        ["", "name=till", "state=NotReady", "state=Waiting", "cluster=acme/b", "app=db&cluster=acme/c"]
    {
        assert_eq!(rows(found), 1, "{found}");
    }
    for none in ["name=web", "state=Ready", "state=Unknown", "cluster=acme/z", "app=web&cluster=acme/z"] {
        assert_eq!(rows(none), 0, "{none}");
    }
}

#[test]
fn what_may_not_be_seen_any_more_is_not_shown() {
    let mut view = view(alive(), &shard());
    view.refused = Some("You may not see this any more: the hub does not let you".to_owned());
    let text = deployments::page(&view, &ask(List::Deployments, "")).unwrap().body.into_string();
    assert!(text.contains("You may not see this any more") && !text.contains("shop/till"), "{text}");
}
