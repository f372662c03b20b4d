//! Shows deployments in a table: how each is, what fails first, and what waits.

use std::sync::Arc;

use emco_engine::text::counted;
use maud::{Markup, html};

use super::super::ask::{Ask, List, Missing};
use super::super::book;
use super::super::lists::{filter, pages};
use super::super::parts::{Page, TOP, Tone, banners, chip, number, reason, said, short};
use super::super::view::{Deployment, Failure, View};

/// Characters of a message.
const SHORT: usize = 160;

/// The first page.
pub fn page(view: &View, ask: &Ask) -> Result<Page, Missing> {
    let chosen: Vec<&Arc<Deployment>> = view.deployments.iter().filter(|one| takes(ask, one)).collect();
    let rows = ask.of(List::Deployments, &chosen)?;
    let ready = view.deployments.iter().filter(|one| one.group.ready == "True").count();
    let news = format!("{} of {} ready", number(ready), counted(view.deployments.len(), "deployment"));
    let mut filters = vec![("name", "Name")];
    if view.namespace.is_none() {
        filters.push(("namespace", "Namespace"));
    }
    filters.extend([("state", "State"), ("app", "App"), ("cluster", "Cluster")]);
    let body = html! {
        (banners(view))
        h1 { "Deployments" }
        @if view.refused.is_none() {
            (summary(view))
            (filter(List::Deployments, ask, &filters))
            @if rows.is_empty() { p #none { (nothing(view, ask)) } } @else { (table(rows)) }
            (pages(List::Deployments, ask, chosen.len(), ""))
        }
    };
    Ok(Page { kind: "deployments", title: "Deployments".to_owned(), root: TOP, news, plan: None, body })
}

fn takes(ask: &Ask, one: &Deployment) -> bool {
    let group = &one.group;
    let here = |app: &str, cluster: &str| {
        ask.get("app").is_none_or(|wanted| wanted == app)
            && ask.get("cluster").is_none_or(|wanted| wanted == cluster)
    };
    let somewhere = ask.get("app").is_none() && ask.get("cluster").is_none()
        || group.apps.iter().any(|app| app.clusters.iter().any(|there| here(&app.name, &there.cluster)));
    somewhere
        && ask.get("name").is_none_or(|part| format!("{}/{}", group.namespace, group.name).contains(part))
        && ask.get("namespace").is_none_or(|namespace| namespace == group.namespace)
        && ask.get("state").is_none_or(|state| is_in(one, state))
}

fn is_in(one: &Deployment, state: &str) -> bool {
    match state {
        "Ready" => one.group.ready == "True",
        "NotReady" => one.group.ready == "False",
        "Waiting" => one.waits(),
        _ => !matches!(one.group.ready.as_str(), "True" | "False"),
    }
}

/// Number of deployments in each state, as links to them.
fn summary(view: &View) -> Markup {
    let count = |state: &str| view.deployments.iter().filter(|one| is_in(one, state)).count();
    let clusters = &view.clusters.rows;
    let reached = clusters.iter().filter(|cluster| cluster.ready == "True").count();
    html! {
        ul #summary {
            @for (state, words) in
                [("Ready", "ready"), ("NotReady", "not ready"), ("Unknown", "unknown"), ("Waiting", "waiting")] {
                li { a href={ "?state=" (state) } { strong { (number(count(state))) } " " (words) } }
            }
            @if view.clusters.none.is_none() {
                li {
                    a href={ (TOP) "clusters" } {
                        strong { (number(reached)) } " of " (counted(clusters.len(), "cluster")) " ready"
                    }
                }
            }
        }
    }
}

fn nothing(view: &View, ask: &Ask) -> String {
    match (&view.namespace, ask.is_all()) {
        (_, false) => "No deployment is as these filters ask.".to_owned(),
        (None, true) => "There are no deployments.".to_owned(),
        (Some(namespace), true) => format!(
            "There are no deployments in namespace {namespace}: start with -n NAME for another one, or with -A for all."
        ),
    }
}

fn table(rows: &[&Arc<Deployment>]) -> Markup {
    html! {
        div.wide role="region" aria-label="Table of deployments" tabindex="0" {
            table #deployments {
                thead {
                    tr {
                        th scope="col" { "Deployment" }
                        th scope="col" { "State" }
                        th scope="col" { "Ready clusters" }
                        th scope="col" { "First failure" }
                        th scope="col" { "Waits" }
                    }
                }
                tbody { @for one in rows { (row(one)) } }
            }
        }
    }
}

fn row(one: &Deployment) -> Markup {
    let group = &one.group;
    let name = format!("{}/{}", group.namespace, group.name);
    html! {
        tr data-deployment=(name) data-ready=(group.ready) {
            th scope="row" { a href={ (TOP) "deployments/" (name) } { (said(&name)) } }
            td.state { (state(one)) }
            td.ready { (group.clusters.as_deref().unwrap_or("-")) }
            td.failure {
                @match one.failure() {
                    Some(failure) => (first(failure)),
                    None if group.ready == "True" => {},
                    None => {
                        (reason(TOP, Some("DeploymentIntentGroup"), &group.reason)) " " (said(&short(&group.message, SHORT)))
                    },
                }
            }
            td.waits {
                @if let Some(revision) = pending(one) {
                    a href={ (TOP) "deployments/" (name) "#plan" } {
                        @if revision == 0 { "removal" } @else { "revision " (revision) }
                    }
                }
            }
        }
    }
}

/// Its state in EMCO's words, with the tone of Ready.
pub fn state(one: &Deployment) -> Markup {
    let tone = match one.group.ready.as_str() {
        // Nothing of it is broken: a person has to say yes.
        "False" if one.group.reason == "AwaitingApproval" => Tone::Waits,
        "False" if one.group.state.ends_with("ing") => Tone::Busy,
        status => Tone::of_status(status),
    };
    chip(&one.group.state, tone)
}

fn first(failure: Failure<'_>) -> Markup {
    let Failure { app, cluster, verdict, thing } = failure;
    html! {
        @if !app.is_empty() { (said(app)) " on " }
        (said(cluster)) ": "
        @match thing {
            Some(thing) => {
                (reason(TOP, book::kind_of_row(&thing.reason), &thing.reason)) " " (said(&short(&thing.message, SHORT)))
            },
            None => (reason(TOP, book::kind_of_row(verdict.as_str()), verdict.as_str())),
        }
    }
}

fn pending(one: &Deployment) -> Option<i64> {
    one.object.status.as_ref()?.pending.as_ref().map(|pending| pending.revision)
}
