//! In: the chart, the book's page on rights, and the audit log of the hub. Out: what the operator may do, why, and what it did.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, root};
use serde_json::Value;

use super::render::documents;

const OPERATOR: &str = "system:serviceaccount:emco-system:emco-operator";

/// Whether the operator itself asked, and not somebody with its token.
fn is_operators(event: &AuditEvent) -> bool {
    event.user == OPERATOR && event.user_agent.starts_with("emco-operator/")
}

/// One right: group, resource with its subresource and the names it is bound to, verb.
type Right = (String, String, String);

/// A resource of which only objects with these names are meant.
fn named(resource: &str, names: &[String]) -> String {
    if names.is_empty() { resource.to_owned() } else { format!("{resource} named {}", names.join(" ")) }
}

/// The rights that the chart gives to the operator; those that are no request are left out.
fn given(rendered: &str) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for role in documents(rendered)? {
        let name = role.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let kind = role["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "ClusterRole" | "Role")
            || !["emco-operator", "emco-namespace-access"].contains(&name)
        {
            continue;
        }
        let list = |rule: &Value, key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in list(rule, "apiGroups") {
                for resource in list(rule, "resources") {
                    for verb in list(rule, "verbs") {
                        ensure!(
                            ![&group, &resource, &verb].contains(&&"*".to_owned()),
                            "{name} has a wildcard"
                        );
                        if verb != "own" && verb != "bind" {
                            let resource = named(&resource, &list(rule, "resourceNames"));
                            rights.insert((group.clone(), resource, verb));
                        }
                    }
                }
            }
        }
    }
    Ok(rights)
}

/// The rights that the book explains.
fn explained() -> Result<BTreeSet<Right>> {
    let page = std::fs::read_to_string(root().join("docs/rights.md"))?;
    let mut rights = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [group, resources, verbs, reason] = cells[..] else { continue };
        if group == "API group" || group.starts_with("---") {
            continue;
        }
        ensure!(!reason.is_empty(), "no reason is given for {resources}");
        let words = |cell: &str| -> Vec<String> {
            cell.split(',').map(|word| word.trim().replace('`', "")).collect()
        };
        let group = if group == "core" { String::new() } else { group.trim_matches('`').to_owned() };
        for resource in words(resources) {
            for verb in words(verbs) {
                rights.insert((group.clone(), resource.clone(), verb));
            }
        }
    }
    Ok(rights)
}

/// What was asked, with the names of the objects.
fn asked(events: &[AuditEvent]) -> BTreeMap<Right, BTreeSet<String>> {
    let mine = events.iter().filter(|event| is_operators(event) && !event.resource.is_empty());
    mine.map(|event| {
        let resource = match event.subresource.as_str() {
            "" => event.resource.clone(),
            sub => format!("{}/{sub}", event.resource),
        };
        ((event.group.clone(), resource, event.verb.clone()), event.name.clone())
    })
    .fold(BTreeMap::new(), |mut all: BTreeMap<Right, BTreeSet<String>>, (right, name)| {
        all.entry(right).or_default().insert(name);
        all
    })
}

/// A shard is read only after somebody else wrote it at the same moment, which is no fact of every run.
fn is_after_conflicts((group, resource, verb): &Right) -> bool {
    (group.as_str(), resource.as_str(), verb.as_str()) == ("emco.io", "syncshards", "get")
}

/// The audit log with the watches of an operator that has ended: they are told when they end. `watched` names resources of which there
/// were any; Leases are watched by a replica that waits for one.
pub async fn everything_asked(bed: &Bed, watched: &[&str]) -> Result<Vec<AuditEvent>> {
    let deadline = Instant::now() + SOON;
    loop {
        let events = bed.hub().audit()?;
        let told = |resource: &str| {
            events
                .iter()
                .any(|event| is_operators(event) && event.verb == "watch" && event.resource == resource)
        };
        if watched.iter().all(|resource| told(resource)) {
            return Ok(events);
        }
        ensure!(Instant::now() < deadline, "the ends of the operator's watches are not in the audit log");
        // The log is a file; nothing tells of its growth.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What was asked and refused although the operator needs it.
pub fn refused(events: &[AuditEvent]) -> BTreeSet<String> {
    events
        .iter()
        .filter(|event| is_operators(event) && event.code == 403)
        // Before the operator has bound itself in a namespace that just became its own, a watch may be early.
        .filter(|event| event.is_write() || !["secrets", "configmaps"].contains(&event.resource.as_str()))
        // Nobody may create anything in a namespace that is being deleted.
        .filter(|event| !(["hasty", "held"].contains(&event.namespace.as_str()) && event.verb == "create"))
        .map(|event| format!("{} {} {}", event.verb, event.uri, event.code))
        .collect()
}

/// The book explains the rights that the rendered chart gives, and each of them was used.
pub fn are_explained_and_used(rendered: &str, events: &[AuditEvent]) -> Result<()> {
    let (given, asked) = (given(rendered)?, asked(events));
    assert_eq!(explained()?, given, "docs/rights.md and the chart");
    let used = |(group, resource, verb): &Right| {
        let (resource, named) = resource.split_once(" named ").unwrap_or((resource, ""));
        let names = asked.get(&(group.clone(), resource.to_owned(), verb.clone()));
        names.is_some_and(|names| {
            verb == "watch" || named.split(' ').all(|name| name.is_empty() || names.contains(name))
        })
    };
    let unused: Vec<_> = given.iter().filter(|right| !used(right) && !is_after_conflicts(right)).collect();
    assert!(unused.is_empty(), "rights that nothing asked for: {unused:#?}");
    Ok(())
}

/// What the operator's account may not do, tried by somebody who has its token.
pub async fn stolen(bed: &Bed, account: &Path) -> Result<()> {
    let thief = bed.hub().kubectl().with_kubeconfig(account);
    let other = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: other, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: emco-namespace-access}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody}]
";
    bed.hub().kubectl().apply(other).await?;
    let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    let admin = other.replace("name: emco-namespace-access", "name: cluster-admin").replace("other", "more");
    let elsewhere = other.replace("namespace: shop", "namespace: kube-system");
    for (args, input) in [
        (vec!["get", "rolebinding", "other", "-n", "shop"], ""),
        (vec!["get", "rolebindings", "-n", "shop"], ""),
        (vec!["patch", "rolebinding", "other", "-n", "shop", "-p", patch], ""),
        (vec!["delete", "rolebinding", "other", "-n", "shop"], ""),
        (vec!["create", "-f", "-"], &admin),
        (vec!["create", "-f", "-"], &elsewhere),
        (vec!["get", "leases", "-n", "kube-system"], ""),
        (vec!["get", "secrets", "-n", "kube-system"], ""),
        (vec!["delete", "lease", "emco-operator", "-n", "emco-system"], ""),
    ] {
        let answer = thief.output(&args, input).await?;
        ensure!(
            !answer.is_ok() && answer.stderr.to_lowercase().contains("forbidden"),
            "{args:?}: {}{}",
            answer.stdout,
            answer.stderr
        );
    }
    bed.hub().kubectl().run(&["delete", "rolebinding", "other", "-n", "shop"]).await.map(drop)
}
