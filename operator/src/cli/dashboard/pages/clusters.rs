//! Shows clusters in a table: whether each is ready, its version, and who uses it.

use emco_engine::text::counted;
use maud::{Markup, html};

use super::super::ask::{Ask, List, Missing, encoded};
use super::super::lists::{filter, pages};
use super::super::parts::{Page, TOP, Tone, banners, chip, number, reason, said, short};
use super::super::view::View;
use crate::cli::clusters::Shown;

/// Characters of a message.
const SHORT: usize = 160;

/// The page of clusters.
pub fn page(view: &View, ask: &Ask) -> Result<Page, Missing> {
    let all = &view.clusters.rows;
    let chosen: Vec<&Shown> = all.iter().filter(|one| takes(ask, one)).collect();
    let rows = ask.of(List::Clusters, &chosen)?;
    let ready = all.iter().filter(|one| one.ready == "True").count();
    let news = format!("{} of {} ready", number(ready), counted(all.len(), "cluster"));
    let filters = [("name", "Name"), ("provider", "Provider"), ("ready", "Ready")];
    let body = html! {
        (banners(view))
        h1 { "Clusters" }
        @if view.refused.is_none() {
            @match &view.clusters.none {
                Some(why) => p #none { (said(why)) },
                None => {
                    (filter(List::Clusters, ask, &filters))
                    @if rows.is_empty() {
                        p #none {
                            @if ask.is_all() { "There are no clusters." } @else { "No cluster is as these filters ask." }
                        }
                    } @else { (table(rows)) }
                    (pages(List::Clusters, ask, chosen.len(), ""))
                },
            }
        }
    };
    Ok(Page { kind: "clusters", title: "Clusters".to_owned(), root: TOP, news, plan: None, body })
}

fn takes(ask: &Ask, one: &Shown) -> bool {
    ask.get("name").is_none_or(|part| one.name.contains(part))
        && ask.get("provider").is_none_or(|provider| provider == one.provider)
        && ask.get("ready").is_none_or(|ready| ready == one.ready)
}

fn table(rows: &[&Shown]) -> Markup {
    html! {
        div.wide role="region" aria-label="Table of clusters" tabindex="0" {
            table #clusters {
                thead {
                    tr {
                        th scope="col" { "Cluster" }
                        th scope="col" { "Ready" }
                        th scope="col" { "Version" }
                        th scope="col" { "Nodes" }
                        th scope="col" { "Users" }
                        th scope="col" { "What it says" }
                    }
                }
                tbody { @for one in rows { (row(one)) } }
            }
        }
    }
}

fn row(one: &Shown) -> Markup {
    let name = format!("{}/{}", one.provider, one.name);
    let word = match one.ready.as_str() {
        "True" => "Ready",
        "False" => "NotReady",
        _ => "Unknown",
    };
    html! {
        tr data-cluster=(name) data-ready=(one.ready) {
            th scope="row" { (said(&name)) }
            td.state { (chip(word, Tone::of_status(&one.ready))) }
            td { (said(&one.version)) }
            td.number { (said(&one.nodes)) }
            td.users {
                a href={ (TOP) "?cluster=" (encoded(&name)) } { "deployments there" span.quiet { ": " (name) } }
                @if let Some(user) = &one.in_use { " " (said(user)) }
            }
            td.says {
                @if one.ready != "True" || !one.said.is_empty() {
                    (reason(TOP, Some("Cluster"), &one.reason)) " " (said(&short(&one.said, SHORT)))
                }
            }
        }
    }
}
