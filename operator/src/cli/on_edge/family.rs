//! Tells objects of a deployment, and what they made, from those of others in the same namespace.

use std::collections::BTreeMap;

use emco_crds::names::label;
use emco_engine::identity::split_api_version;
use emco_engine::path::{fault, is_dns_subdomain};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, ResourceExt as _};

use super::place::Placed;
use crate::cli::diff::edge;

/// Objects of one cluster whose owner is looked for.
pub const MOST_OBJECTS: usize = 300;
/// Owners above an object: a Pod has a `ReplicaSet` has a Deployment has an operator's resource.
const DEPTH: usize = 5;

/// An object of the deployment's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct One {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

impl One {
    /// Whether it can be of a deployment. What an Event is about, whoever wrote it says, and it becomes an address: Events about Nodes have
    /// no version, and a name may be made up to lead elsewhere.
    fn can_be_asked_for(&self) -> bool {
        let (group, version) = split_api_version(&self.api_version);
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':');
        (group.is_empty() || is_dns_subdomain(group))
            && is_word(version)
            && is_word(&self.kind)
            && fault(&self.name).is_none()
            && self.name.bytes().all(is_name)
    }
}

/// Objects of a deployment and of what those made, as far as they were looked at.
pub struct Family<'a> {
    client: Client,
    placed: &'a Placed,
    known: BTreeMap<One, bool>,
}

impl<'a> Family<'a> {
    /// Nothing is known yet.
    pub const fn of(client: Client, placed: &'a Placed) -> Self {
        Self { client, placed, known: BTreeMap::new() }
    }

    /// No further object is looked at.
    pub fn is_full(&self) -> bool {
        self.known.len() >= MOST_OBJECTS
    }

    /// Tells whether an object is the deployment's, or was made by what is.
    pub async fn has(&mut self, one: One) -> anyhow::Result<bool> {
        if !one.can_be_asked_for() {
            return Ok(false);
        }
        if let Some(known) = self.known.get(&one) {
            return Ok(*known);
        }
        if self.is_full() {
            return Ok(false);
        }
        let mut path = vec![one];
        let mut ours = false;
        while let Some(last) = path.last().filter(|_| path.len() <= DEPTH) {
            if let Some(known) = self.known.get(last) {
                ours = *known;
                break;
            }
            match self.owner(last).await? {
                Above::Deployment => {
                    ours = true;
                    break;
                }
                Above::Object(owner) => path.push(owner),
                Above::Nothing => break,
            }
        }
        for one in path {
            self.known.insert(one, ours);
        }
        Ok(ours)
    }

    /// Who made an object.
    async fn owner(&self, one: &One) -> anyhow::Result<Above> {
        if !one.can_be_asked_for() {
            return Ok(Above::Nothing);
        }
        let (group, version) = split_api_version(&one.api_version);
        let kind = GroupVersionKind::gvk(group, version, &one.kind);
        let resource = match pinned_kind(&self.client, &kind).await {
            Ok((resource, capabilities)) if capabilities.scope == Scope::Namespaced => resource,
            Ok(_) | Err(kube::Error::Discovery(_)) => return Ok(Above::Nothing),
            Err(kube::Error::Api(status)) if status.code < 500 => return Ok(Above::Nothing),
            Err(error) => return Err(edge::failed(&error)),
        };
        let api: Api<kube::api::DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.placed.namespace, &resource);
        let object = match api.get_metadata_opt(&one.name).await {
            Ok(Some(object)) => object,
            // What is gone has no owner any more; what may not be read is not shown.
            Ok(None) => return Ok(Above::Nothing),
            Err(kube::Error::Api(status)) if status.code < 500 => return Ok(Above::Nothing),
            Err(error) => return Err(edge::failed(&error)),
        };
        if object.labels().get(label::OWNER) == Some(&self.placed.hash) {
            return Ok(Above::Deployment);
        }
        let owners = object.owner_references();
        let above = owners.iter().find(|owner| owner.controller == Some(true)).or_else(|| owners.first());
        Ok(above.map_or(Above::Nothing, |owner| {
            Above::Object(One {
                api_version: owner.api_version.clone(),
                kind: owner.kind.clone(),
                name: owner.name.clone(),
            })
        }))
    }
}

/// Who made an object.
enum Above {
    /// It carries the deployment's label.
    Deployment,
    /// Another object.
    Object(One),
    /// No owner that can be read.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_is_about_leads_to_no_other_address() {
        let one = |version: &str, kind: &str, name: &str| {
            let [api_version, kind, name] = [version, kind, name].map(str::to_owned);
            One { api_version, kind, name }.can_be_asked_for()
        };
        assert!(one("v1", "Pod", "web-0") && one("apps/v1", "Deployment", "system:web.x_y"));
        assert!(!one("", "Node", "worker"), "the kubelet says no version");
        for name in ["", "..", "?watch=true", "x/proxy/metrics", "%2e%2e", "a b", "a#b", "a\nb"] {
            assert!(!one("v1", "Pod", name), "{name:?}");
        }
        assert!(!one("../v1", "Pod", "a") && !one("v1", "Po?d", "a") && !one("a/b/c", "Pod", "a"));
    }
}
