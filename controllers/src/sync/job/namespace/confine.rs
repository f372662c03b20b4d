//! Leaves what confines a namespace where it is, while the namespace stays for what it holds: a tenant's pods outlive nothing that bounds them.

use std::collections::BTreeMap;

use emco_crds::OwnerKind;
use emco_engine::identity::{Id, Identity};
use emco_engine::order;

use super::super::super::edge::Session;
use super::super::super::observe::Look;
use super::super::desired::PruneSet;
use super::super::row::Facts;
use super::super::{Job, Key};
use super::holds_others;

impl Job {
    /// Takes out of what is pruned the quotas, limit ranges and network policies of a logical cloud whose namespace goes as well and holds
    /// something of others. They keep the owner's label: the same logical cloud has them again when it comes back. False where what a namespace
    /// holds cannot be seen.
    pub(in super::super) async fn confine(
        &mut self,
        pruned: &PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        if self.ctx.owner.kind != OwnerKind::LogicalCloud || session.branch().is_some() {
            return true;
        }
        let mut confined: BTreeMap<Identity, Vec<Identity>> = BTreeMap::new();
        for id in pruned.objects.keys().filter(|id| order::confines(id) && !self.memory.gone.contains(id)) {
            confined.entry(namespace_of(id)).or_default().push(id.clone());
        }
        for (namespace, confining) in confined {
            if !self.goes(&namespace, pruned) || !self.are_there(&confining) {
                continue;
            }
            let key = Key::Object(Id::new(namespace.clone()));
            if let Some(tries) = self.memory.backoff.waiting(&key) {
                facts.trouble(None, Some(&namespace), &tries.trouble, tries.count);
                return false;
            }
            match holds_others(&self.ctx, session, &namespace.name).await {
                Ok(None) => {}
                Ok(Some(_)) => confining.into_iter().for_each(|id| self.memory.gone.stays(id)),
                Err(trouble) => {
                    self.failed(key.clone(), trouble.clone());
                    let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
                    facts.trouble(None, Some(&namespace), &trouble, attempts);
                    return false;
                }
            }
        }
        true
    }

    /// Whether a namespace is to go that was not there before it was the owner's: what becomes of the content of others is not ours to say.
    fn goes(&self, namespace: &Identity, pruned: &PruneSet) -> bool {
        let keep = pruned.objects.get(namespace).copied();
        let adopted = match self.ctx.edge.observed.look(namespace) {
            Look::There(seen) => seen.keep,
            // What was released has no label of ours, and is not seen: whether it still holds anything is asked.
            Look::Absent | Look::Unknown => false,
        };
        keep == Some(false) && !adopted && !self.memory.gone.contains(namespace)
    }

    /// Whether one of them is there, or may be.
    fn are_there(&self, ids: &[Identity]) -> bool {
        ids.iter().any(|id| !matches!(self.ctx.edge.observed.look(id), Look::Absent))
    }
}

/// The namespace that an object is in.
fn namespace_of(id: &Identity) -> Identity {
    let (group, namespace) = (String::new(), String::new());
    Identity { group, kind: "Namespace".to_owned(), namespace, name: id.namespace.clone() }
}
