//! Writes the texts of files on a branch: objects, lists of files, objects that the agent reads, and the claim.

use std::collections::BTreeMap;

use emco_crds::OwnerKind;
use emco_helm::yaml::from_json;
use serde_json::{Map, Value, json};

use super::layout;
use crate::marks;

/// What annotations of hooks begin with: Argo CD would run them as hooks of its own at every synchronisation.
const HOOKS: &str = "helm.sh/hook";
/// Tells Flux to leave an object where it is when its file left.
const STAYS: (&str, &str) = ("kustomize.toolkit.fluxcd.io/prune", "disabled");
/// Tells Flux to make an object and to leave it as it is from then on.
const ONCE: (&str, &str) = ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent");

/// An owner, as the head of its files names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerText {
    pub kind: OwnerKind,
    pub namespace: String,
    pub name: String,
    /// Value of the label of what is its.
    pub hash: String,
}

impl OwnerText {
    fn head(&self) -> String {
        let Self { kind, namespace, name, hash: _ } = self;
        format!("# Written by EMCO for {kind} {namespace}/{name}. Changes here are undone.\n")
    }
}

/// What becomes of an object whose file leaves, and of one that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handling {
    /// The agent leaves it on the cluster.
    pub stays: bool,
    /// The agent makes it, and changes it no more.
    pub once: bool,
}

/// The file of an object with its marks.
pub fn object(owner: &OwnerText, marked: &Value, handling: Handling) -> String {
    let mut object = marked.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // They are about one object on one cluster.
        metadata.remove("uid");
        metadata.remove("resourceVersion");
        annotate(metadata, handling);
    }
    owner.head() + &from_json(&object)
}

fn annotate(metadata: &mut Map<String, Value>, handling: Handling) {
    let Handling { stays, once } = handling;
    let mut annotations = match metadata.remove("annotations") {
        Some(Value::Object(annotations)) => annotations,
        _ => Map::new(),
    };
    annotations.retain(|key, _| !key.starts_with(HOOKS));
    for ((key, value), wanted) in [(STAYS, stays), (ONCE, once)] {
        if wanted {
            annotations.insert(key.to_owned(), Value::from(value));
        }
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
}

/// The list of a folder: these names, in their order.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut sorted: Vec<&str> = names.into_iter().collect();
    sorted.sort_unstable();
    let mut text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n".to_owned();
    if sorted.is_empty() {
        text.push_str("resources: []\n");
        return text;
    }
    text.push_str("resources:\n");
    for name in sorted {
        text.push_str(&format!("- {name}\n"));
    }
    text
}

/// Who applies the files of an app on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applier {
    /// Namespace and name of its account; none: the agent's own rights.
    pub account: Option<(String, String)>,
    /// Names the object for the agent that comes first, in the namespace of the agent.
    pub after: Option<String>,
}

/// Where the agent and its own objects are on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeObjects {
    /// Their namespace, such as `flux-system`.
    pub namespace: String,
    /// How often the agent compares, such as `1m`.
    pub interval: String,
}

/// The object for Flux of an owner's app. `path` is the app's folder from the root of the repository.
pub fn flux(owner: &OwnerText, app: &str, path: &str, applier: &Applier, edge: &EdgeObjects) -> String {
    let Applier { account, after } = applier;
    let namespace = account.as_ref().map_or(&edge.namespace, |(namespace, _)| namespace);
    let mut spec = json!({
        "interval": edge.interval,
        "path": format!("./{path}"),
        "prune": true,
        "wait": false,
        "sourceRef": {"kind": "GitRepository", "name": "emco", "namespace": edge.namespace},
    });
    if let Some(spec) = spec.as_object_mut() {
        if let Some((_, account)) = account {
            spec.insert("serviceAccountName".to_owned(), Value::from(account.as_str()));
        }
        if let Some(after) = after {
            let first = json!([{"name": after, "namespace": edge.namespace}]);
            spec.insert("dependsOn".to_owned(), first);
        }
    }
    let object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {
            "name": layout::agent_name(&owner.hash, app),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "emco"},
        },
        "spec": spec,
    });
    owner.head() + &from_json(&object)
}

/// Who has a folder of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The installation.
    pub installation: String,
    /// Since when.
    pub since: String,
    /// How far the hub's store had come.
    pub seen: u64,
}

impl Claim {
    /// The file.
    pub fn text(&self) -> String {
        let Self { installation, since, seen } = self;
        format!(
            "# The folders beside this one are written by this EMCO hub alone.\nformat: 1\ninstallation: {installation}\nsince: {since}\nseen: {seen}\n"
        )
    }

    /// Reads the file; `None` where it is none.
    pub fn read(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let fields: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once(": ")).collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let (installation, since) = (field("installation"), field("since"));
        // They become parts of a command that people copy.
        if installation.is_empty() || !is_plain(installation) || !is_plain(since) {
            return None;
        }
        Some(Self {
            installation: installation.to_owned(),
            since: since.to_owned(),
            seen: fields.get("seen").and_then(|seen| seen.parse().ok()).unwrap_or_default(),
        })
    }
}

/// Whether a text is short, and has no character that means something to a shell.
fn is_plain(text: &str) -> bool {
    text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:+".contains(c))
}

/// The text of an object with our marks, as it is put on a branch.
pub fn marked(manifest: Value, owner: &OwnerText, token: &str, placed_by: &str) -> Value {
    marks::mark(manifest, &owner.hash, token, placed_by)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> OwnerText {
        let [namespace, name, hash] = ["team-a", "shop", "0123456789abcdef"].map(str::to_owned);
        OwnerText { kind: OwnerKind::DeploymentIntentGroup, namespace, name, hash }
    }

    #[test]
    fn a_file_has_the_object_with_its_marks_and_without_hooks() {
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                "annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "1"}},
            "data": {"on": "yes", "mode": "0644"},
        });
        let marked = marked(manifest, &owner(), "d1", "hub");
        let text = object(&owner(), &marked, Handling { stays: true, once: false });
        insta::assert_snapshot!(text, @r#"
        # Written by EMCO for DeploymentIntentGroup team-a/shop. Changes here are undone.
        apiVersion: v1
        data:
          mode: "0644"
          "on": "yes"
        kind: ConfigMap
        metadata:
          annotations:
            emco.io/manifest: d1
            emco.io/placed-by: hub
            kustomize.toolkit.fluxcd.io/prune: disabled
          labels:
            emco.io/owner: 0123456789abcdef
          name: a
          namespace: shop
        "#);
    }

    #[test]
    fn an_app_of_a_logical_cloud_is_applied_as_its_account_after_it() {
        let applier = Applier {
            account: Some(("shop".to_owned(), "emco-edge".to_owned())),
            after: Some("emco-9876543210-namespace".to_owned()),
        };
        let edge = EdgeObjects { namespace: "flux-system".to_owned(), interval: "1m".to_owned() };
        let path = "clusters/acme/berlin-1/team-a/dig-shop/web";
        let text = flux(&owner(), "web", path, &applier, &edge);
        insta::assert_snapshot!(text, @r#"
        # Written by EMCO for DeploymentIntentGroup team-a/shop. Changes here are undone.
        apiVersion: kustomize.toolkit.fluxcd.io/v1
        kind: Kustomization
        metadata:
          labels:
            app.kubernetes.io/managed-by: emco
          name: emco-0123456789abcdef-web
          namespace: shop
        spec:
          dependsOn:
          - name: emco-9876543210-namespace
            namespace: flux-system
          interval: 1m
          path: ./clusters/acme/berlin-1/team-a/dig-shop/web
          prune: true
          serviceAccountName: emco-edge
          sourceRef:
            kind: GitRepository
            name: emco
            namespace: flux-system
          wait: false
        "#);
    }

    #[test]
    fn a_list_names_its_files_in_order_and_may_be_empty() {
        assert!(list(["b.yaml", "a.yaml"]).ends_with("resources:\n- a.yaml\n- b.yaml\n"));
        assert!(list([]).ends_with("resources: []\n"));
    }

    #[test]
    fn a_claim_that_is_written_is_read_back() {
        let claim =
            Claim { installation: "inst".to_owned(), since: "2026-11-22T10:00:00Z".to_owned(), seen: 4711 };
        assert_eq!(Claim::read(&claim.text()), Some(claim));
        assert_eq!(Claim::read("<html>"), None);
        assert_eq!(Claim::read("installation: $(id)\nsince: 2026-11-22T10:00:00Z\n"), None);
    }
}
