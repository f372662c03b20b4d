//! Names objects that are not ours: who has them, and all of those that are in the way of a row.

use std::collections::BTreeMap;

use emco_crds::names::annotation;
use emco_crds::sync_shard::status::RowError;
use emco_engine::adopt::{self, Holder};
use emco_engine::identity::Identity;

use super::super::errors::{LONGEST, Retry, Trouble, first_bytes};
use super::super::observe::Seen;

/// Objects named besides the first, at most: more never find room.
const NAMED: usize = 32;
/// Holders named, at most.
const HOLDERS: usize = 8;

/// The trouble with an object that exists and that EMCO did not make. The row names the object beside it. Whose tool writes it
/// again and again has to be stopped first: the command says so. `offers`: the owner can have it taken over.
pub(super) fn trouble(holder: &Holder, offers: bool) -> Trouble {
    let Holder { who, remedy, tool } = holder;
    let way = match tool {
        _ if !offers => " or change its name here",
        Some(_) => " change its name here, or take it over in place (emco adopt)",
        None => " change its name here, or take it over (spec.sync.conflicts)",
    };
    not_ours(holder, &format!("{MADE} {who}: {remedy},{way}"))
}

/// The trouble with a namespace that is there, with a way out besides another name. Whether EMCO made it once is not known: an earlier
/// version released without a proof.
pub(super) fn namespace(found: &Foreign, way: &str) -> Trouble {
    let Foreign { holder, proof, .. } = found;
    let why = match (&holder.tool, proof) {
        (Some(_), _) => format!("{} has it", holder.who),
        (None, Some(_)) => format!("its {} is not for this owner", annotation::MADE_FOR),
        (None, None) => "nothing on it says that EMCO made it for this owner".to_owned(),
    };
    not_ours(holder, &format!("is there, and {why}: use another name here{way}"))
}

/// The trouble with one that is to be taken over only if it is the same.
pub(super) fn differs(holder: &Holder, fields: &[String]) -> Trouble {
    let (who, fields) = (&holder.who, adopt::named(fields));
    not_ours(
        holder,
        &format!(
            "{MADE} {who}, and differs in {fields}: make both alike, or set spec.sync.conflicts to Adopt or Force"
        ),
    )
}

/// The trouble with one whose fields other managers hold with other values.
pub(super) fn contested(holder: &Holder, causes: &[(String, String)]) -> Trouble {
    let fields: Vec<String> = causes.iter().map(|(field, cause)| format!("{field} ({cause})")).collect();
    let (who, fields) = (&holder.who, adopt::named(&fields));
    not_ours(
        holder,
        &format!(
            "{MADE} {who}, and others hold {fields}: make both alike, or set spec.sync.conflicts: Force"
        ),
    )
}

/// The trouble with one that differs where nothing can be changed.
pub(super) fn fixed(holder: &Holder, words: &str) -> Trouble {
    let Holder { who, remedy, .. } = holder;
    not_ours(
        holder,
        &format!(
            "{MADE} {who}, and differs in a field that cannot be changed: {remedy}, or make both alike: {words}"
        ),
    )
}

fn not_ours(holder: &Holder, text: &str) -> Trouble {
    Trouble { holder: Some(holder.who.clone()), ..Trouble::new("NotOurs", text, Retry::Slowly) }
}

/// How each of them begins.
const MADE: &str = "was not made by EMCO but by";
/// An object that carries no owner, with who has it.
pub(super) struct Foreign {
    pub seen: Seen,
    pub holder: Holder,
    /// What it carries as the proof that it was made for an owner.
    pub proof: Option<String>,
}

/// Adds to the error of a row the other objects that are in the way, by who has them: people who move in see all of them at once.
pub(super) fn name_all(error: &mut RowError, all: &BTreeMap<Identity, String>) {
    if error.reason != "NotOurs" {
        return;
    }
    let first = error.resource.clone().unwrap_or_default();
    let mut by_holder: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, holder) in all {
        let name = id.to_string();
        if name != first {
            by_holder.entry(holder).or_default().push(name);
        }
    }
    let mut groups: Vec<(&str, Vec<String>)> = by_holder.into_iter().collect();
    if groups.is_empty() {
        return;
    }
    // Those who have most come first.
    groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    // As many as find room: rather all holders without an object than objects of some holders alone.
    let mut tries =
        (0..=NAMED).rev().map(|names| (HOLDERS, names)).chain((0..HOLDERS).rev().map(|holders| (holders, 0)));
    let text = tries.find_map(|(holders, names)| {
        let text = format!("{}; {}", error.message, others(&groups, holders, names));
        (text.len() <= LONGEST).then_some(text)
    });
    error.message = text.unwrap_or_else(|| {
        let others = format!("...; {}", others(&groups, 0, 0));
        format!("{}{others}", first_bytes(&error.message, LONGEST.saturating_sub(others.len())))
    });
}

/// `2 more of Helm release shop/web: a, b; 1 of kubectl apply: c`, of so many holders and so many objects.
fn others(groups: &[(&str, Vec<String>)], holders: usize, names: usize) -> String {
    let mut room = names;
    let mut unnamed: usize = groups.iter().skip(holders).map(|(_, all)| all.len()).sum();
    let unsaid = unnamed;
    let mut parts = Vec::new();
    for (holder, all) in groups.iter().take(holders) {
        let named: Vec<&str> = all.iter().take(room).map(String::as_str).collect();
        room -= named.len();
        unnamed += all.len() - named.len();
        let more = if parts.is_empty() { "more " } else { "" };
        let colon = if named.is_empty() { "" } else { ": " };
        parts.push(format!("{} {more}of {holder}{colon}{}", all.len(), named.join(", ")));
    }
    if unsaid > 0 {
        parts.push(format!("{unsaid} more of others"));
    }
    if unnamed > 0 {
        parts.push(format!("{unnamed} not named here, emco diff lists all"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn says(metadata: &Value) -> String {
        trouble(&adopt::holder(metadata, &["web".to_owned()]), true).message
    }

    #[test]
    fn an_object_of_others_is_named_with_its_tool_and_the_way_out() {
        let helm = json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"});
        insta::assert_snapshot!(says(&json!({"annotations": helm})), @"was not made by EMCO but by Helm release shop/web: helm uninstall web -n shop, change its name here, or take it over in place (emco adopt)");
        insta::assert_snapshot!(
            says(&json!({"annotations": helm, "labels": {"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "flux"}})),
            @"was not made by EMCO but by Helm release shop/web of Flux's HelmRelease flux/web: delete the HelmRelease, change its name here, or take it over in place (emco adopt)"
        );
        insta::assert_snapshot!(
            says(&json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"}})),
            @"was not made by EMCO but by Flux's Kustomization flux/apps: remove it from its source, change its name here, or take it over in place (emco adopt)"
        );
        insta::assert_snapshot!(
            says(&json!({"annotations": {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/c"}})),
            @"was not made by EMCO but by Argo CD's Application web: remove it from its source, change its name here, or take it over in place (emco adopt)"
        );
        insta::assert_snapshot!(
            says(&json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}})),
            @"was not made by EMCO but by kubectl apply: delete it, change its name here, or take it over (spec.sync.conflicts)"
        );
        insta::assert_snapshot!(says(&json!({})), @"was not made by EMCO but by web: delete it, change its name here, or take it over (spec.sync.conflicts)");
    }

    #[test]
    fn no_takeover_is_offered_where_it_does_not_help() {
        let said = trouble(&adopt::holder(&json!({}), &["web".to_owned()]), false).message;
        assert_eq!(said, "was not made by EMCO but by web: delete it, or change its name here");
    }

    fn id(n: usize) -> Identity {
        let (group, kind) = (String::new(), "ConfigMap".to_owned());
        Identity { group, kind, namespace: "s".to_owned(), name: format!("c{n:03}") }
    }

    fn named(message: &str, all: impl IntoIterator<Item = (usize, String)>) -> String {
        let mut error = RowError {
            reason: "NotOurs".to_owned(),
            resource: Some(id(0).to_string()),
            message: message.to_owned(),
            ..RowError::default()
        };
        name_all(&mut error, &all.into_iter().map(|(n, holder)| (id(n), holder)).collect());
        assert!(error.message.len() <= LONGEST, "{}", error.message);
        error.message
    }

    #[test]
    fn a_row_in_the_way_of_many_objects_says_who_has_each() {
        let of = |all: &[(usize, &str)]| {
            named("was not made by EMCO", all.iter().map(|(n, holder)| (*n, (*holder).to_owned())))
        };
        let (helm, kubectl) = ("Helm release shop/web", "kubectl apply");
        assert_eq!(of(&[(0, helm)]), "was not made by EMCO");
        insta::assert_snapshot!(
            of(&[(0, helm), (1, helm), (2, kubectl), (3, helm)]),
            @"was not made by EMCO; 2 more of Helm release shop/web: ConfigMap/s/c001, ConfigMap/s/c003; 1 of kubectl apply: ConfigMap/s/c002"
        );
    }

    #[test]
    fn a_row_in_the_way_of_many_objects_says_how_many_find_no_room() {
        let hundred = |holder: fn(usize) -> String| (0..100).map(move |n| (n, holder(n)));
        insta::assert_snapshot!(
            named("was not made by EMCO", hundred(|_| "Helm release shop/web".to_owned())),
            @"was not made by EMCO; 99 more of Helm release shop/web: ConfigMap/s/c001, ConfigMap/s/c002, ConfigMap/s/c003, ConfigMap/s/c004, ConfigMap/s/c005, ConfigMap/s/c006, ConfigMap/s/c007, ConfigMap/s/c008, ConfigMap/s/c009; 90 not named here, emco diff lists all"
        );
        let many = named("was not made by EMCO", hundred(|n| format!("Helm release shop/web-{}", n % 20)));
        assert!(
            many.contains("5 more of Helm release shop/web-") && many.contains(" more of others; "),
            "{many}"
        );
        let long = named(&"x".repeat(LONGEST), hundred(|_| "kubectl apply".to_owned()));
        assert!(long.ends_with("x...; 99 more of others; 99 not named here, emco diff lists all"), "{long}");
    }
}
