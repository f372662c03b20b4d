//! Works out the least rights on a cluster that stored manifests need: to be looked at, applied, kept and removed.
//!
//! The rules are those of RBAC as the API server judges requests of the operator: it lists and watches each kind on the whole cluster by
//! label, and reads, applies and deletes single objects by name. Server-side apply asks for `patch`, and for `create` where the object is
//! new; both know the name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::apis::ApiList;
use crate::cloud;
use crate::identity::{Identity, kind_of};
use crate::set::{ManifestSet, SetManifest};

mod account;
mod derived;
mod escalation;
mod gain;
mod harmless;
mod listed;
mod registration;

pub use account::{Asked, Rights};
pub(crate) use derived::is_of_the_cluster;
pub use derived::{Derived, Reach};
pub use gain::{Gain, Power};
pub use listed::Listed;
pub use registration::{Registration, RegistrationRoles};

/// Group of roles and bindings.
pub const RBAC: &str = "rbac.authorization.k8s.io";

/// To see all objects of a kind.
const SEE: [&str; 2] = ["list", "watch"];
/// To read, make, change and remove an object.
const KEEP: [&str; 4] = ["get", "create", "patch", "delete"];
/// The same without its removal: objects of a chart's folder `crds` are never removed.
const MAKE: [&str; 3] = ["get", "create", "patch"];
/// To say why a workload is not ready: `Pods`, or where there are none, Events.
const CAUSES: [&str; 2] = ["pods", "events"];

/// A rule of a Role or `ClusterRole`, and what needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// As RBAC has it.
    pub rule: Rule,
    /// Objects (`ConfigMap/shop/note`) with their app, or other words.
    pub because: BTreeSet<String>,
}

/// A rule as RBAC has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API groups; "" is the core group.
    pub groups: Vec<String>,
    /// Resources.
    pub resources: Vec<String>,
    /// Only objects of these names; all if empty.
    pub names: Vec<String>,
    /// Paths that are no resources.
    pub urls: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

impl Rule {
    fn of(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Self {
            groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The rules of a role, or of a review of what somebody may do.
    pub fn list(rules: Option<&Value>) -> Vec<Self> {
        let rules = rules.and_then(Value::as_array);
        let rules = rules.into_iter().flatten().map(|rule| {
            let list = |field: &str| {
                let list = rule.get(field).and_then(Value::as_array);
                let mut list: Vec<String> =
                    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
                list.sort();
                list.dedup();
                list
            };
            Self {
                groups: list("apiGroups"),
                resources: list("resources"),
                names: list("resourceNames"),
                urls: list("nonResourceURLs"),
                verbs: list("verbs"),
            }
        });
        rules.collect()
    }

    /// As it stands in `rules`.
    pub fn to_json(&self) -> Value {
        let Self { groups, resources, names, urls, verbs } = self;
        let fields = [
            ("apiGroups", groups),
            ("resources", resources),
            ("resourceNames", names),
            ("nonResourceURLs", urls),
            ("verbs", verbs),
        ];
        // The core group's name is empty, and a list of it is not.
        let written = fields.into_iter().filter(|(_, list)| !list.is_empty());
        written.map(|(field, list)| (field.to_owned(), Value::from(list.clone()))).collect()
    }
}

/// The least roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Rules that hold on the whole cluster.
    pub cluster: Vec<Needed>,
    /// Rules by the namespace that they hold in.
    pub namespaces: BTreeMap<String, Vec<Needed>>,
    /// Kinds that neither the server nor the manifests define: of these nothing can be said.
    pub unknown: BTreeMap<(String, String), BTreeSet<String>>,
}

/// Whether rules name the objects that are there now, or hold for all of a kind. To list and to watch cannot be limited to names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// All of a kind: the next revision may have others.
    #[default]
    Any,
    /// Those of the manifests.
    Listed,
}

/// The roles that sets of manifests need on a cluster that serves `apis`.
pub fn least<'a>(sets: impl IntoIterator<Item = &'a ManifestSet>, apis: &ApiList, names: Names) -> Roles {
    let sets: Vec<&ManifestSet> = sets.into_iter().collect();
    let mut needs =
        Needs { apis, names, own: defined(&sets), rules: BTreeMap::new(), unknown: BTreeMap::new() };
    for set in &sets {
        for manifest in &set.manifests {
            needs.add(&set.app, manifest);
        }
    }
    needs.roles()
}

/// A kind, as URLs have it.
#[derive(Clone)]
struct Resource {
    plural: String,
    namespaced: bool,
}

type Kind = (String, String);

/// Kinds that the manifests themselves define.
fn defined(sets: &[&ManifestSet]) -> BTreeMap<Kind, Resource> {
    let manifests = sets.iter().flat_map(|set| &set.manifests).map(|manifest| &manifest.json);
    let definitions =
        manifests.filter(|json| kind_of(json) == ("apiextensions.k8s.io", "CustomResourceDefinition"));
    let kinds = definitions.filter_map(|json| {
        let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let resource = Resource {
            plural: text("/spec/names/plural")?,
            namespaced: text("/spec/scope")? == "Namespaced",
        };
        Some(((text("/spec/group")?, text("/spec/names/kind")?), resource))
    });
    kinds.collect()
}

/// The namespace that a rule holds in; none: the whole cluster.
type Place = Option<String>;

struct Needs<'a> {
    apis: &'a ApiList,
    names: Names,
    own: BTreeMap<Kind, Resource>,
    /// Why, by place and rule without its names; and the names.
    rules: BTreeMap<(Place, Rule), (BTreeSet<String>, BTreeSet<String>)>,
    unknown: BTreeMap<Kind, BTreeSet<String>>,
}

impl Needs<'_> {
    fn add(&mut self, app: &str, manifest: &SetManifest) {
        let json = &manifest.json;
        let (group, kind) = kind_of(json);
        let id = Identity::of(json);
        let why = format!("{id} (app {app})");
        let Some(resource) = self.resource(group, kind) else {
            self.unknown.entry((group.to_owned(), kind.to_owned())).or_default().insert(why);
            return;
        };
        let account = manifest.account.as_deref().and_then(cloud::account_parts);
        let verbs: &[&str] = match account {
            Some(_) => &["get"],
            None if manifest.crd_folder => &MAKE,
            None => &KEEP,
        };
        let place = resource.namespaced.then(|| id.namespace.clone());
        self.need(None, Rule::of(group, &resource.plural, &SEE), None, &why);
        let name = (self.names == Names::Listed).then_some(id.name.as_str());
        self.need(place.clone(), Rule::of(group, &resource.plural, verbs), name, &why);
        if is_workload(group, kind) {
            for resource in CAUSES {
                self.need(place.clone(), Rule::of("", resource, &["list"]), None, &why);
            }
        }
        // What the account may do is in the role that it has.
        if let Some((home, account)) = account {
            let home = Some(home.to_owned());
            self.need(home, Rule::of("", "serviceaccounts", &["impersonate"]), Some(account), &why);
            return;
        }
        for held in escalation::held(json) {
            self.need(place.clone(), held.rule, held.name.as_deref(), &why);
        }
    }

    fn resource(&self, group: &str, kind: &str) -> Option<Resource> {
        let served = self.apis.preferred(group, kind);
        let served = served.map(|api| Resource { plural: api.plural.clone(), namespaced: api.namespaced });
        served.or_else(|| self.own.get(&(group.to_owned(), kind.to_owned())).cloned())
    }

    fn need(&mut self, place: Place, rule: Rule, name: Option<&str>, why: &str) {
        let (because, names) = self.rules.entry((place, rule)).or_default();
        because.insert(why.to_owned());
        names.extend(name.map(str::to_owned));
    }

    fn roles(self) -> Roles {
        let mut roles = Roles { unknown: self.unknown, ..Roles::default() };
        for ((place, rule), (because, names)) in self.rules {
            let names = if rule.names.is_empty() { names.into_iter().collect() } else { rule.names };
            let needed = Needed { rule: Rule { names, ..rule }, because };
            match place {
                None => roles.cluster.push(needed),
                Some(namespace) => roles.namespaces.entry(namespace).or_default().push(needed),
            }
        }
        roles
    }
}

/// Whether its Pods are looked at while it is not ready.
fn is_workload(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
    )
}

#[cfg(test)]
mod tests;
