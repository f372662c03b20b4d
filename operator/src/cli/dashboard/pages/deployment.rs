//! Shows one deployment: what waits, where each app is and what is wrong there, its conditions, waves and history.

use maud::{Markup, html};

use super::super::ask::{Ask, List, Missing};
use super::super::lists::{filter, pages};
use super::super::look::More;
use super::super::parts::{DEPLOYMENT, Page, Tone, banners, chip, number, prose, reason, said, time};
use super::super::view::{Deployment, View, badness};
use super::super::{book, outcome};
use super::{deployments, plan, record};
use crate::cli::args::status::Verdict;
use crate::cli::status::tree::{There, Thing};

/// Content of a page besides the view.
pub struct Look<'a> {
    pub one: &'a Deployment,
    pub more: &'a More,
    /// Outcome of a form that was sent.
    pub outcome: Option<&'a outcome::Said>,
    /// Another plan came since the page was opened: it must be looked at before it is decided.
    pub stale: bool,
}

/// An app on a cluster.
struct Place<'a> {
    app: &'a str,
    there: &'a There,
}

/// The page of a deployment.
pub fn page(view: &View, ask: &Ask, look: &Look<'_>) -> Result<Page, Missing> {
    let Look { one, more, outcome, stale } = look;
    let group = &one.group;
    let name = format!("{}/{}", group.namespace, group.name);
    let places = places(one, ask);
    let rows = ask.of(List::Places, &places)?;
    let pending = one.object.status.as_ref().and_then(|status| status.pending.as_ref());
    let body = html! {
        (banners(view))
        h1 { (said(&name)) }
        (head(one))
        @if let Some(outcome) = outcome {
            p #said .banner.bad[!outcome.done] role=(if outcome.done { "status" } else { "alert" })
                data-outcome=(if outcome.done { "done" } else { "refused" }) { (said(&outcome.text)) }
        }
        @if let Some(pending) = pending { (plan::section(one, pending, more, *stale)) }
        section #apps aria-labelledby="h-apps" {
            h2 #h-apps { "Apps and clusters" }
            (filter(List::Places, ask, &[("app", "App"), ("cluster", "Cluster"), ("state", "State")]))
            @if rows.is_empty() {
                p #none {
                    @if ask.is_all() { "It is on no cluster." } @else { "No app on a cluster is as these filters ask." }
                }
            }
            @for app in apps(rows) { (table(one, app, rows)) }
            (pages(List::Places, ask, places.len(), "#apps"))
        }
        (record::conditions(one, view.pulse.is_trusted()))
        (record::waves(one, more, *stale))
        (record::history(more))
    };
    Ok(Page {
        kind: "deployment",
        news: format!("{name}: {}, ready: {}", group.state, group.ready),
        title: name,
        root: DEPLOYMENT,
        plan: one.digest().map(str::to_owned),
        body,
    })
}

fn head(one: &Deployment) -> Markup {
    let group = &one.group;
    let last = if group.reason == "OperatorSilent" { "last reported: " } else { "" };
    html! {
        p #head {
            (deployments::state(one)) " "
            span { "Ready: " strong { (group.ready) } }
            @if let Some(revision) = group.revision { span { "revision " strong { (revision) } } }
            @if let Some(clusters) = &group.clusters { span { "clusters " strong { (clusters) } } }
            @if let Some(objects) = &group.resources { span { "objects " strong { (objects) } } }
        }
        @if group.ready != "True" {
            p #why-not {
                (reason(DEPLOYMENT, Some("DeploymentIntentGroup"), &group.reason)) " " (last) (said(&group.message))
            }
        }
        @if let Some(note) = &group.note { p.note { "Note: " (said(note)) } }
    }
}

/// Apps on clusters that are asked for, what is wrong first.
fn places<'a>(one: &'a Deployment, ask: &Ask) -> Vec<Place<'a>> {
    let all = one
        .group
        .apps
        .iter()
        .flat_map(|app| app.clusters.iter().map(move |there| Place { app: app.name.as_str(), there }));
    let takes = |place: &Place<'_>| {
        ask.get("app").is_none_or(|app| app == place.app)
            && ask.get("cluster").is_none_or(|cluster| cluster == place.there.cluster)
            && ask.get("state").is_none_or(|state| state == place.there.verdict.as_str())
    };
    let mut all: Vec<Place<'a>> = all.filter(takes).collect();
    // Apps keep their order within both.
    all.sort_by_key(|place| (place.there.verdict == Verdict::Ready, place.app, badness(place.there.verdict)));
    all
}

/// The apps of some rows, each once.
fn apps<'a>(rows: &[Place<'a>]) -> Vec<&'a str> {
    let mut apps: Vec<&str> = rows.iter().map(|place| place.app).collect();
    apps.sort_unstable();
    apps.dedup();
    apps
}

fn table(one: &Deployment, app: &str, rows: &[Place<'_>]) -> Markup {
    let all = one.group.apps.iter().find(|found| found.name == app).map(|app| app.clusters.as_slice());
    let all = all.unwrap_or_default();
    let ready = all.iter().filter(|there| there.verdict == Verdict::Ready).count();
    let name = if app.is_empty() { "What was there before" } else { app };
    html! {
        h3 { (said(name)) " " span.count { (number(ready)) " of " (number(all.len())) " ready" } }
        div.wide role="region" aria-label={ "Clusters of " (name) } tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "Cluster" }
                        th scope="col" { "State" }
                        th scope="col" { "Objects" }
                        th scope="col" { "Since" }
                        th scope="col" { "What is wrong" }
                    }
                }
                tbody { @for place in rows.iter().filter(|place| place.app == app) { (row(place)) } }
            }
        }
    }
}

fn row(place: &Place<'_>) -> Markup {
    let Place { app, there } = place;
    html! {
        tr data-app=(app) data-cluster=(there.cluster) data-state=(there.verdict.as_str()) {
            th scope="row" { (said(&there.cluster)) }
            td.state {
                (chip(there.verdict.as_str(), there.verdict.into()))
                @if let Some(last) = there.last_reported { " last reported " (last.as_str()) }
            }
            td.objects {
                @if let (Some(ready), Some(total)) = (there.ready, there.total) { (ready) "/" (total) }
            }
            td.since {
                @if there.verdict != Verdict::Ready {
                    @if let Some(since) = &there.since { (time(since)) }
                }
            }
            td.wrong {
                @if there.objects.is_empty() && there.verdict == Verdict::Unreachable {
                    ul { (wrong(&Thing { object: String::new(), reason: "Unreachable".to_owned(), message: String::new() })) }
                } @else if !there.objects.is_empty() {
                    ul { @for thing in &there.objects { (wrong(thing)) } }
                }
            }
        }
    }
}

fn wrong(thing: &Thing) -> Markup {
    let kind = book::kind_of_row(&thing.reason);
    let cure = kind.and_then(|kind| book::reason(kind, &thing.reason));
    html! {
        li data-reason=(thing.reason) {
            (reason(DEPLOYMENT, kind, &thing.reason)) " "
            @if !thing.object.is_empty() { code { (said(&thing.object)) } " " }
            (said(&thing.message))
            @if let Some(cure) = cure { span.todo { "What to do: " (prose(cure.cure)) } }
        }
    }
}

/// The tone of a status that nobody keeps true.
pub fn tone(status: &str, trusted: bool) -> Tone {
    if trusted { Tone::of_status(status) } else { Tone::Unknown }
}
