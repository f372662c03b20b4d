//! Kinds that an edge has besides those of Kubernetes, each of a group of its own.

use anyhow::Result;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::{Api, Client};

use crate::bed::Plane;

/// All groups end with this.
pub const DOMAIN: &str = "starts.example.com";
/// An API whose server nobody runs.
pub const DOWN: &str = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.down.starts.example.com}
spec:
  group: down.starts.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {name: nobody, namespace: default}
";
pub const DOWN_NAME: &str = "v1.down.starts.example.com";
/// Definitions per request of kubectl.
const BATCH: usize = 100;

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

/// Every other kind belongs to the whole cluster.
const fn scope(number: usize) -> Scope {
    if number.is_multiple_of(2) { Scope::Namespaced } else { Scope::Cluster }
}

fn group(number: usize) -> String {
    format!("g{number:03}.{DOMAIN}")
}

fn kind(number: usize) -> String {
    format!("Thing{number:03}")
}

/// As kubectl names it.
pub fn resource(number: usize) -> String {
    format!("thing{number:03}s.{}", group(number))
}

/// The objects of a kind, in a namespace where it lives in one.
pub fn api(client: Client, number: usize, namespace: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group(number), "v1", &kind(number)));
    match scope(number) {
        Scope::Namespaced => Api::namespaced_with(client, namespace, &kind),
        Scope::Cluster => Api::all_with(client, &kind),
    }
}

/// The kinds that are deployed: the first and the last ones.
pub fn used(kinds: usize) -> impl Iterator<Item = usize> {
    [0, 1, kinds - 2, kinds - 1].into_iter()
}

/// An object as a test names it.
pub fn name(number: usize, namespace: &str, name: &str) -> String {
    match scope(number) {
        Scope::Namespaced => format!("{}/{namespace}/{name}", kind(number)),
        Scope::Cluster => format!("{}/{name}", kind(number)),
    }
}

/// A template of an object.
pub fn manifest(number: usize) -> String {
    format!(
        "---\napiVersion: {}/v1\nkind: {}\nmetadata: {{name: {{{{ .Release.Name }}}}}}\nspec: {{size: 1}}\n",
        group(number),
        kind(number)
    )
}

/// A definition of a kind, as YAML.
pub fn definition(group: &str, kind: &str, scope: Scope) -> String {
    let singular = kind.to_lowercase();
    format!(
        "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: {scope:?}
  names: {{kind: {kind}, plural: {singular}s, singular: {singular}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

/// Defines the kinds and waits until they are served.
pub async fn define(edge: &Plane, kinds: usize) -> Result<()> {
    let all: Vec<usize> = (0..kinds).collect();
    for batch in all.chunks(BATCH) {
        let yaml: String = batch.iter().map(|n| definition(&group(*n), &kind(*n), scope(*n))).collect();
        edge.kubectl().apply(&yaml).await?;
    }
    let established = ["wait", "--for=condition=Established", "--timeout=120s", "crd", "--all"];
    edge.kubectl().run(&established).await.map(drop)
}
