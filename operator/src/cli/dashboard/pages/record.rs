//! Shows what a deployment went through: its conditions, the waves of its rollout, its revisions.

use emco_crds::conditions::{Condition, Conditioned as _, types};
use emco_crds::deployment_intent_group::rollout::{RolloutStatus, WaveApproval};
use emco_engine::rollout::LAST;
use maud::{Markup, html};

use super::super::book;
use super::super::look::More;
use super::super::parts::{DEPLOYMENT, Tone, chip, prose, reason, said, time};
use super::super::view::Deployment;
use super::deployment::tone;
use super::plan::buttons;
use crate::cli::history::Entry;

/// The kind that its reasons are of.
const KIND: &str = "DeploymentIntentGroup";

/// Each condition with the way to its reason. `trusted`: somebody keeps them true.
pub fn conditions(one: &Deployment, trusted: bool) -> Markup {
    let conditions = match &one.object.status {
        Some(status) => status.conditions(),
        None => &[],
    };
    html! {
        section #conditions aria-labelledby="h-conditions" {
            h2 #h-conditions { "Conditions" }
            @if conditions.is_empty() { p { "The operator has not looked at it yet." } } @else {
                div.wide role="region" aria-label="Table of conditions" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Condition" }
                                th scope="col" { "Status" }
                                th scope="col" { "Reason" }
                                th scope="col" { "Since" }
                                th scope="col" { "Message" }
                            }
                        }
                        tbody { @for one in conditions { (condition(one, trusted)) } }
                    }
                }
            }
        }
    }
}

fn condition(one: &Condition, trusted: bool) -> Markup {
    let status = if trusted { one.status.as_str() } else { "Unknown" };
    // Three of them are there only where something is the matter.
    let good = !matches!(one.type_.as_str(), types::RECONCILING | types::STALLED | types::IN_USE);
    let cure = book::reason(KIND, &one.reason).filter(|_| good == (one.status == "False"));
    let since = format!("{:.0}", one.last_transition_time.0);
    html! {
        tr data-condition=(one.type_) data-status=(status) {
            th scope="row" { (said(&one.type_)) }
            td.state {
                (chip(status, if good { tone(&one.status, trusted) } else { Tone::Unknown }))
                @if !trusted { " last reported " (said(&one.status)) }
            }
            td { (reason(DEPLOYMENT, Some(KIND), &one.reason)) }
            td.since { (time(&since)) }
            td.says {
                (said(&one.message))
                @if let Some(cure) = cure { span.todo { "What to do: " (prose(cure.cure)) } }
            }
        }
    }
}

/// The waves of its rollout, with the form that lets the one that waits go on; nothing where it has none.
pub fn waves(one: &Deployment, more: &More, stale: bool) -> Markup {
    let rollout = one.object.spec.rollout.as_ref();
    let mut names: Vec<(&str, WaveApproval)> = rollout
        .map(|rollout| {
            rollout.waves.iter().map(|wave| (wave.name.as_str(), wave.approval.unwrap_or_default())).collect()
        })
        .unwrap_or_default();
    let status = one.object.status.as_ref().and_then(|status| status.rollout.as_ref());
    if names.is_empty() && status.is_none() {
        return html! {};
    }
    names.push((LAST, WaveApproval::None));
    let decides = names.iter().any(|(_, approval)| *approval != WaveApproval::None);
    let may = more.may_not.is_none() && !stale;
    html! {
        section #waves aria-labelledby="h-waves" {
            h2 #h-waves { "Waves" }
            @if let Some(status) = status {
                @if status.taken_back { p.banner.bad { "Too many clusters failed: the revision was taken back." } }
                @if !status.waits_for.is_empty() { p #waits-for { (said(&status.waits_for)) } }
            }
            @if stale && decides { p.note { "The plan changed since this page was opened: " a href="" { "look at it again" } "." } }
            ol.waves {
                @for (place, (name, approval)) in (1_i64..).zip(&names) {
                    (wave(one, may, (place, name, *approval), status))
                }
            }
        }
    }
}

fn wave(
    one: &Deployment,
    may: bool,
    (place, name, approval): (i64, &str, WaveApproval),
    status: Option<&RolloutStatus>,
) -> Markup {
    let now = status.map_or(0, |status| status.place);
    let (word, tone) = match place.cmp(&now) {
        std::cmp::Ordering::Less => ("Done", Tone::Good),
        std::cmp::Ordering::Equal => ("UnderWay", Tone::Busy),
        std::cmp::Ordering::Greater => ("ToCome", Tone::Unknown),
    };
    let under_way = status.filter(|status| status.place == place && !status.taken_back);
    html! {
        li data-wave=(name) {
            strong { (said(name)) } " " (chip(word, tone))
            @match approval {
                WaveApproval::None => {},
                WaveApproval::Before => span.note { " waits for an approval before it begins" },
                WaveApproval::After => span.note { " waits for an approval when it is done" },
            }
            @if let Some(status) = under_way {
                " " (status.done) " of " (status.clusters) " clusters done, " (status.failed) " failed"
                @if approval != WaveApproval::None && may {
                    form.wave data-wave=(name) method="post" action=(one.group.name) {
                        input type="hidden" name="digest" value=(status.inputs_digest);
                        input type="hidden" name="wave" value=(name);
                        (buttons(Some(name)))
                    }
                }
            }
        }
    }
}

/// Its stored revisions.
pub fn history(more: &More) -> Markup {
    html! {
        section #history aria-labelledby="h-history" {
            h2 #h-history { "History" }
            @match &more.history {
                Err(why) => p { (said(why)) },
                Ok(entries) if entries.is_empty() => p { "It has no revisions." },
                Ok(entries) => div.wide role="region" aria-label="Table of revisions" tabindex="0" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Revision" }
                                th scope="col" { "State" }
                                th scope="col" { "Cause" }
                                th scope="col" { "Made" }
                                th scope="col" { "Outcome" }
                                th scope="col" { "Became" }
                                th scope="col" { "Objects" }
                            }
                        }
                        tbody { @for one in entries { (entry(one)) } }
                    }
                },
            }
        }
    }
}

fn entry(one: &Entry) -> Markup {
    let tone = match one.state {
        "Running" => Tone::Good,
        "TakenBack" => Tone::Bad,
        _ => Tone::Unknown,
    };
    html! {
        tr data-revision=(one.revision) {
            th scope="row" { (one.revision) }
            td.state { (chip(one.state, tone)) }
            td { (one.cause) }
            td.since { @if let Some(made) = one.made { (time(&format!("{made:.0}"))) } }
            td { (said(one.outcome.as_deref().unwrap_or("-"))) }
            td { (one.became.unwrap_or("-")) }
            td.number { (one.objects) }
        }
    }
}
