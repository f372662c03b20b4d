//! Finds out whether a GitTarget has its folder alone: two that publish into one would undo each other's files.

use std::sync::Arc;

use emco_crds::GitTarget;
use emco_crds::reasons::GitTargetReason as Reason;

use super::Judged;
use crate::object::meta;
use crate::object::status::ReadyState;
use crate::reconcile::context::Context;
use crate::tenancy::owned_namespace;

/// The reason for which a target publishes nothing: its namespace is nobody's, or another one has the folder.
pub(super) fn refusal(ctx: &Context, target: &GitTarget) -> Option<Judged> {
    let namespace = meta::namespace(target);
    if owned_namespace::provider_of(ctx, namespace).is_none() {
        let message = format!(
            "no ClusterProvider owns namespace {namespace}: create a ClusterProvider with spec.namespace {namespace}, or make the GitTarget elsewhere"
        );
        return Some(Judged::new(ReadyState::Waiting, Reason::NoClusterProvider, message));
    }
    let all = ctx.stores.git_targets.sorted();
    let other = holder(target, &all)?;
    let (within, name) = (meta::namespace(other.as_ref()), meta::name(other.as_ref()));
    let message = format!(
        "GitTarget {within}/{name} is older and publishes into folder {:?} of the same branch: make this one again with another folder, or delete one of the two",
        other.spec.folder
    );
    Some(Judged::new(ReadyState::Stalled, Reason::SameFolderTwice, message))
}

/// An older target that publishes into the same folder, or into a part of it.
fn holder<'a>(target: &GitTarget, all: &'a [Arc<GitTarget>]) -> Option<&'a Arc<GitTarget>> {
    let age = |one: &GitTarget| {
        let meta = &one.metadata;
        (meta.creation_timestamp.clone(), meta.namespace.clone(), meta.name.clone())
    };
    all.iter().find(|other| {
        meta::uid(other.as_ref()) != meta::uid(target) && age(other) < age(target) && overlap(target, other)
    })
}

fn overlap(one: &GitTarget, other: &GitTarget) -> bool {
    let (a, b) = (&one.spec, &other.spec);
    let same = address(&a.url) == address(&b.url) && a.branch == b.branch;
    same && (a.folder == b.folder || inside(&a.folder, &b.folder) || inside(&b.folder, &a.folder))
}

/// The repository that an address names. Hosts do not tell upper from lower case, and servers take `.git` or leave it; with and without
/// TLS it is the same one.
fn address(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url);
    match url.split_once("://").and_then(|(_, rest)| rest.split_once('/')) {
        Some((host, path)) => {
            let host = host.to_lowercase();
            let bare = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(&host);
            format!("{bare}/{path}")
        }
        None => url.to_owned(),
    }
}

/// True for a folder in what a target with the other folder has for itself.
fn inside(folder: &str, other: &str) -> bool {
    ["clusters", ".emco"].iter().any(|own| {
        let own = if other.is_empty() { (*own).to_owned() } else { format!("{other}/{own}") };
        folder.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(url: &str, branch: &str, folder: &str) -> GitTarget {
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "GitTarget", "metadata": {"name": "one", "namespace": "acme"},
            "spec": {"url": url, "branch": branch, "folder": folder},
        }))
        .unwrap()
    }

    #[test]
    fn two_targets_overlap_where_one_would_write_into_the_others_folder() {
        let mine = target("https://git.example.com/acme/fleet.git", "main", "hub");
        for (url, branch, folder, expected) in [
            ("https://git.example.com/acme/fleet.git", "main", "hub", true),
            ("https://GIT.example.com/acme/fleet/", "main", "hub", true),
            ("http://git.example.com:80/acme/fleet", "main", "hub", true),
            ("https://git.example.com:8443/acme/fleet", "main", "hub", false),
            ("https://git.example.com/acme/Fleet", "main", "hub", false),
            ("https://git.example.com/acme/fleet", "test", "hub", false),
            ("https://git.example.com/acme/fleet", "main", "", false),
            ("https://git.example.com/acme/fleet", "main", "hub/more", false),
            ("https://git.example.com/acme/fleet", "main", "hub/clusters/acme", true),
            ("https://git.example.com/acme/fleet", "main", "hub/.emco", true),
            ("https://git.example.com/acme/fleet", "main", "hub/clusters2", false),
        ] {
            let other = target(url, branch, folder);
            assert_eq!(overlap(&mine, &other), expected, "{url} {branch} {folder}");
            assert_eq!(overlap(&other, &mine), expected, "{url} {branch} {folder}");
        }
    }
}
