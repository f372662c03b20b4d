//! Namespaces: what they take in, and how they drain.

use serde_json::Value;

use super::{Store, Target};
use crate::api::ApiResult;
use crate::memory::{refusals, status};

impl Store {
    pub(super) fn accepts(&self, target: &Target) -> ApiResult<()> {
        if !target.resource.namespaced {
            return Ok(());
        }
        let namespace = self
            .objects
            .get("namespaces.")
            .and_then(|all| all.get(&(String::new(), target.namespace.clone())));
        match namespace {
            None => Err(status(404, "NotFound", format!("namespaces \"{}\" not found", target.namespace))),
            Some(namespace) if namespace.pointer("/metadata/deletionTimestamp").is_some() => {
                Err(refusals::terminating(&target.resource, &target.name, &target.namespace))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn has_content(&self, namespace: &str) -> bool {
        self.objects.values().any(|objects| objects.keys().any(|(ns, _)| ns == namespace))
    }

    /// The namespace controller: everything in a namespace that is being deleted is deleted.
    pub(super) fn drain(&mut self, namespace: &str) {
        let content: Vec<Target> = self
            .resources
            .clone()
            .into_iter()
            .filter(|resource| resource.namespaced)
            .flat_map(|resource| {
                let collection = Target {
                    resource,
                    namespace: namespace.to_owned(),
                    name: String::new(),
                    subresource: String::new(),
                };
                self.list(&collection)
                    .filter(|object| object.pointer("/metadata/deletionTimestamp").is_none())
                    .filter_map(|object| {
                        object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
                    })
                    .map(|name| Target { name, ..collection.clone() })
                    .collect::<Vec<_>>()
            })
            .collect();
        for target in content {
            let _ = self.delete(&target, None);
        }
        self.finish_namespace(namespace);
    }

    pub(super) fn finish_namespace(&mut self, namespace: &str) {
        if self.has_content(namespace) {
            return;
        }
        let key = (String::new(), namespace.to_owned());
        let terminating = self
            .objects
            .get("namespaces.")
            .and_then(|all| all.get(&key))
            .is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_some());
        if terminating {
            let before = self.objects.get_mut("namespaces.").and_then(|all| all.remove(&key));
            self.revision += 1;
            self.tell("namespaces.".to_owned(), before, None);
        }
    }
}
