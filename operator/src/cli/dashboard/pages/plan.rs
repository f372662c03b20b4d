//! Shows the plan that waits, and the form that approves or rejects exactly it.

use emco_crds::deployment_intent_group::status::{ChangeCounts, Pending, PendingApp, PendingRequires};
use emco_engine::changes::What;
use emco_engine::text::counted;
use maud::{Markup, html};

use super::super::look::More;
use super::super::parts::said;
use super::super::view::Deployment;
use crate::cli::decide::decidable;
use crate::cli::plan::read::{App, OfApp, Variant};
use crate::cli::plan::waits;

/// Names that are shown without being asked for.
const OPEN: usize = 20;
/// Names that are shown at all; `kubectl emco plan` shows more.
const MOST: usize = 200;

/// The section of the plan that waits.
pub fn section(one: &Deployment, pending: &Pending, more: &More, stale: bool) -> Markup {
    let why = one.object.status.as_ref().map(waits).unwrap_or_default();
    let what = match pending.revision {
        0 => "All of it would be removed".to_owned(),
        revision => format!("Revision {revision}"),
    };
    html! {
        section #plan aria-labelledby="h-plan" {
            h2 #h-plan { "What waits" }
            p #summary-of-plan { strong { (what) } ": " (said(&pending.summary)) }
            p { "Digest " code #digest { (pending.digest) } }
            @if !why.is_empty() { p #why { (said(&why)) } }
            p.counts { "Clusters " (counts(pending.clusters)) ", objects " (counts(pending.resources)) }
            @if !pending.gains.is_empty() {
                p #gains .banner { "Rights that it gains: " (said(&pending.gains.join(", "))) }
            }
            @if more.apps.is_empty() {
                ul.changes { @for app in &pending.apps { (brief(app)) } }
            } @else {
                ul.changes { @for app in &more.apps { (whole(app)) } }
            }
            @for note in &more.notes { p.note { (said(note)) } }
            (decision(one, pending, more, stale))
        }
    }
}

fn counts(counts: ChangeCounts) -> Markup {
    let ChangeCounts { added, changed, removed } = counts;
    html! {
        (amount("plus", "+", &added, " added")) " " (amount("tilde", "~", &changed, " changed")) " "
        (amount("minus", "-", &removed, " removed"))
    }
}

/// A number of changes; none of them is not as loud as some.
fn amount(class: &str, sign: &str, count: &impl ToString, word: &str) -> Markup {
    let count = count.to_string();
    let class = if count == "0" { "zero" } else { class };
    html! { span class=(class) { (sign) (count) (word) } }
}

/// Changes of an app, from the status.
fn brief(app: &PendingApp) -> Markup {
    html! {
        li data-app=(app.name) {
            h3 { (said(&app.name)) }
            p { "clusters " (counts(app.clusters)) ", objects " (counts(app.resources)) }
            (names("Clusters that gain it", &app.gained))
            (names("Clusters that lose it", &app.lost))
            (names("Objects", &app.first))
            (names("Hooks", &app.hooks))
            (names("Refused by a cluster that was asked", &app.refused))
            (names("Deleted and made again", &app.recreated))
        }
    }
}

/// Changes of an app, from the details of the plan.
fn whole(app: &App) -> Markup {
    html! {
        li data-app=(app.name) {
            h3 { (said(&app.name)) " " span.count { "on " (counted(app.clusters, "cluster")) " then" } }
            ul { @for variant in &app.variants { (of_variant(variant)) } }
            @if app.left_out > 0 { p.note { (counted(app.left_out, "more variant")) " not written down" } }
        }
    }
}

fn of_variant(variant: &Variant) -> Markup {
    let (kind, word) = match variant.change {
        OfApp::Joins => ("Joins", "comes to"),
        OfApp::Leaves => ("Leaves", "leaves"),
        OfApp::Changes => ("Changes", "changes on"),
    };
    let objects: Vec<String> = variant
        .objects
        .iter()
        .map(|object| {
            let word = match object.row.what {
                What::Added => "+ added",
                What::Changed => "~ changed",
                What::Removed => "- removed",
            };
            format!("{word} {}{}", object.row.object, object.row.only_by())
        })
        .collect();
    let recreated: Vec<String> = variant
        .recreated
        .iter()
        .map(|row| {
            if row.lost.is_empty() {
                row.object.clone()
            } else {
                format!("{} (loses {})", row.object, row.lost)
            }
        })
        .collect();
    let all = variant.added + variant.changed + variant.removed;
    html! {
        li data-change=(kind) {
            p {
                strong { (word) } " " (counted(variant.total, "cluster")) ": "
                (amount("plus", "+", &variant.added, "")) " " (amount("tilde", "~", &variant.changed, "")) " "
                (amount("minus", "-", &variant.removed, "")) " " (if all == 1 { "object" } else { "objects" })
            }
            (names("Clusters", &variant.clusters))
            (names("Objects", &objects))
            (names("Hooks", &variant.hooks))
            (names("Deleted and made again", &recreated))
            @if variant.more_recreated > 0 { p.note { "and " (variant.more_recreated) " more of them" } }
        }
    }
}

/// A list that is open where it is short.
fn names(what: &str, names: &[String]) -> Markup {
    html! {
        @if !names.is_empty() {
            details open[names.len() <= OPEN] {
                summary { (what) " (" (names.len()) ")" }
                ul.names { @for name in names.iter().take(MOST) { li { (said(name)) } } }
                @if names.len() > MOST { p.note { "and " (names.len() - MOST) " more of them" } }
            }
        }
    }
}

fn decision(one: &Deployment, pending: &Pending, more: &More, stale: bool) -> Markup {
    let decided_here =
        matches!(pending.requires, PendingRequires::Approval | PendingRequires::RemovalConfirmation)
            && decidable(&one.object).is_some();
    let (namespace, name) = (&one.group.namespace, &one.group.name);
    html! {
        @if !decided_here {
            p.note {
                @match pending.requires {
                    PendingRequires::DeletionConfirmation => {
                        (format!("A deletion is confirmed with: kubectl emco confirm {namespace}/{name}"))
                    }
                    _ => "It needs no approval.",
                }
            }
        } @else if stale {
            p #stale .banner.bad role="alert" {
                "Another plan came meanwhile. " a href={ "?plan=" (pending.digest) "#plan" } { "Look at it again" } " before you decide."
            }
        } @else if let Some(why) = &more.may_not {
            p #may-not .note { "You may not approve or reject: " (said(why)) }
        } @else {
            form #decide method="post" action=(name) {
                input type="hidden" name="digest" value=(pending.digest);
                p {
                    label for="comment" { "Comment" }
                    textarea #comment name="comment" rows="2" maxlength="1024" {}
                }
                (buttons(None))
            }
        }
    }
}

/// The buttons that decide, of a plan or of a wave.
pub fn buttons(wave: Option<&str>) -> Markup {
    let of = wave.map(|wave| format!(" wave {wave}")).unwrap_or_default();
    let id = |word: &str| wave.map_or_else(|| word.to_owned(), |wave| format!("{word}-{wave}"));
    html! {
        p.act {
            button.approve id=(id("approve")) type="submit" name="decision" value="Approved" { "Approve" (of) }
            button.reject id=(id("reject")) type="submit" name="decision" value="Rejected" { "Reject" (of) }
        }
    }
}
