//! The hub as the operator meets it: whatever it asks for, its chart has to give it the right.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;

use super::beacon;
use crate::api::{ApiResult, ApiServer, Method, Request, WatchEvent};

/// A hub that ends the test over a request that the plain manifests, which are the rendered chart, give no right to.
pub struct Guarded(pub Arc<dyn ApiServer>);

#[async_trait]
impl ApiServer for Guarded {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        check(&request, false);
        self.0.send(request).await
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        check(&request, true);
        self.0.watch(request).await
    }
}

fn check(request: &Request, watch: bool) {
    let asked = Asked::of(request, watch);
    // Kinds that tests alone have are in no chart: one needs a group of its own, the other a row of the table.
    let of_tests = asked.group == beacon::GROUP || asked.resource == "gadgets/status";
    let may = of_tests || RIGHTS.allow(&asked);
    assert!(may, "the chart gives no right to {} {}: {asked:?}", asked.verb, request.path);
}

static RIGHTS: LazyLock<Rights> = LazyLock::new(Rights::read);

struct Rights {
    /// Of the whole hub.
    everywhere: Vec<Rule>,
    /// Of namespaces that the operator owns.
    owned: Vec<Rule>,
    /// Of its own namespace.
    home: Vec<Rule>,
}

/// The fields of a `PolicyRule`, each a list.
struct Rule(Value);

/// What a request asks for, in the words of a role.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    verb: &'static str,
    group: String,
    namespace: Option<String>,
    /// With its subresource.
    resource: String,
    name: Option<String>,
}

impl Rights {
    fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/operator/operator.yaml");
        let text = std::fs::read_to_string(file).unwrap();
        let documents: Vec<Value> =
            text.split("\n---").map(|text| emco_helm::yaml::to_json(text.as_bytes()).unwrap()).collect();
        let rules = |kind: &str, name: &str| -> Vec<Rule> {
            let role = documents.iter().find(|d| d["kind"] == kind && d["metadata"]["name"] == name);
            let rules = role.and_then(|role| role["rules"].as_array()).cloned().unwrap_or_default();
            assert!(!rules.is_empty(), "{kind} {name} is not in the manifests");
            rules.into_iter().map(Rule).collect()
        };
        Self {
            everywhere: rules("ClusterRole", "emco-operator"),
            owned: rules("ClusterRole", "emco-namespace-access"),
            home: rules("Role", "emco-operator"),
        }
    }

    fn allow(&self, asked: &Asked) -> bool {
        let here = match asked.namespace.as_deref() {
            None => &[][..],
            Some("emco-system") => &self.home,
            Some(_) => &self.owned,
        };
        self.everywhere.iter().chain(here).any(|rule| rule.allows(asked))
    }
}

impl Rule {
    fn allows(&self, asked: &Asked) -> bool {
        let list = |field: &str| self.0[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |field: &str, what: &str| list(field).iter().any(|known| known == what);
        has("apiGroups", &asked.group)
            && has("resources", &asked.resource)
            && has("verbs", asked.verb)
            && (list("resourceNames").is_empty()
                || asked.name.as_ref().is_some_and(|name| has("resourceNames", name)))
    }
}

impl Asked {
    fn of(request: &Request, watch: bool) -> Self {
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => panic!("{} is no path of a resource", request.path),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (resource, name) = match rest {
            // A selector of one name is that name to an authorizer.
            [resource] => ((*resource).to_owned(), selected(request)),
            [resource, name] => ((*resource).to_owned(), Some((*name).to_owned())),
            [resource, name, sub] => (format!("{resource}/{sub}"), Some((*name).to_owned())),
            _ => panic!("{} is no path of a resource", request.path),
        };
        let verb = match (request.method, &name) {
            (Method::Get, _) if watch => "watch",
            (Method::Get, Some(_)) if selected(request).is_none() => "get",
            (Method::Get, _) => "list",
            (Method::Post, _) => "create",
            (Method::Put, _) => "update",
            (Method::Patch, _) => "patch",
            (Method::Delete, Some(_)) => "delete",
            (Method::Delete, None) => "deletecollection",
        };
        Self { verb, group: group.to_owned(), namespace, resource, name }
    }
}

/// The name that a field selector asks for.
fn selected(request: &Request) -> Option<String> {
    let (_, fields) = request.query.iter().find(|(name, _)| *name == "fieldSelector")?;
    fields.strip_prefix("metadata.name=").filter(|name| !name.contains(',')).map(str::to_owned)
}

#[test]
fn a_request_is_read_as_an_api_server_reads_it() {
    let asked = |method, path: &str| Asked::of(&Request::new(method, path), false);
    let status = asked(Method::Patch, "/apis/emco.io/v1alpha1/namespaces/team-a/syncshards/s-1/status");
    assert_eq!((status.verb, status.resource.as_str()), ("patch", "syncshards/status"));
    assert_eq!((status.namespace.as_deref(), status.name.as_deref()), (Some("team-a"), Some("s-1")));
    let namespace = asked(Method::Get, "/api/v1/namespaces/team-a");
    assert_eq!(
        (namespace.verb, namespace.resource.as_str(), &namespace.namespace),
        ("get", "namespaces", &None)
    );
    assert!(RIGHTS.allow(&status) && RIGHTS.allow(&namespace));
    // Secrets of other namespaces than those it owns are none of its business, and neither are those of all.
    assert!(RIGHTS.allow(&asked(Method::Get, "/api/v1/namespaces/team-a/secrets/edge")));
    assert!(!RIGHTS.allow(&asked(Method::Get, "/api/v1/secrets")));
    assert!(!RIGHTS.allow(&asked(Method::Delete, "/api/v1/namespaces/team-a/secrets/edge")));
    assert!(
        !RIGHTS.allow(&asked(Method::Put, "/apis/emco.io/v1alpha1/namespaces/team-a/compositeapps/shop"))
    );
}
