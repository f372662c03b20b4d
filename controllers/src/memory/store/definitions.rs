//! Definitions of kinds: what they make the server serve, and what becomes of watches when they change.

use emco_engine::apis::ApiResource;

use super::{Store, Target, kind_key};

impl Store {
    /// Serves a kind in these versions alone. Where that is news its watches end, and none of before goes on.
    pub(super) fn define(&mut self, versions: Vec<ApiResource>) {
        let Some(first) = versions.first() else { return };
        let is_it = |known: &ApiResource| known.group == first.group && known.plural == first.plural;
        let before: Vec<&ApiResource> = self.resources.iter().filter(|known| is_it(known)).collect();
        if before.len() == versions.len() && before.iter().all(|known| versions.contains(known)) {
            return;
        }
        let kind = kind_key(&first.group, &first.plural);
        self.resources.retain(|known| !is_it(known));
        self.resources.extend(versions);
        self.watchers.retain(|watcher| watcher.kind != kind);
        self.defined.insert(kind, self.revision);
    }

    /// Takes a definition away: its objects go, then nothing is served of it any more.
    pub fn undefine(&mut self, plural: &str, group: &str) {
        let is_it = |known: &&ApiResource| known.group == group && known.plural == plural;
        let Some(resource) = self.resources.iter().find(is_it).cloned() else { return };
        let kind = kind_key(group, plural);
        let names: Vec<_> = self.objects.get(&kind).into_iter().flat_map(|all| all.keys().cloned()).collect();
        for (namespace, name) in names {
            let (resource, subresource) = (resource.clone(), String::new());
            let _ = self.delete(&Target { resource, namespace, name, subresource }, None);
        }
        self.resources.retain(|known| known.group != group || known.plural != plural);
        self.watchers.retain(|watcher| watcher.kind != kind);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
        if let Ok(definition) = self.resolve(&path) {
            let _ = self.delete(&definition, None);
        }
    }

    /// Whether a watch that begins there is refused.
    pub fn is_too_old(&self, target: &Target, since: u64) -> bool {
        since != 0 && self.defined.get(&target.kind_key()).is_some_and(|defined| since < *defined)
    }
}
