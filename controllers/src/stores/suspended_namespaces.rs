//! Finds the suspended project that claims a namespace of the hub, without a walk over all projects.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::Project;
use parking_lot::Mutex;

use crate::object::meta;

#[derive(Default)]
struct Inner {
    /// The namespace of each suspended project.
    projects: BTreeMap<String, String>,
    by_namespace: BTreeMap<String, BTreeSet<String>>,
}

/// The index. The watch of projects keeps it. What a project claims counts, and not the label of the namespace: whoever takes that
/// away, or gives it another owner's name, resumes nothing.
#[derive(Default)]
pub struct SuspendedNamespaces(Mutex<Inner>);

impl SuspendedNamespaces {
    /// Takes in what the watch shows; namespaces that are suspended or resumed by it. A project that is seen for the first time and
    /// is not suspended changes nothing.
    pub fn note(&self, project: &Project, gone: bool) -> BTreeSet<String> {
        let name = meta::name(project);
        let holds = project.spec.suspend == Some(true) && !gone;
        let now = holds.then(|| project.owned_namespace().to_owned());
        let mut inner = self.0.lock();
        let before = match &now {
            Some(namespace) => inner.projects.insert(name.to_owned(), namespace.clone()),
            None => inner.projects.remove(name),
        };
        if before == now {
            return BTreeSet::new();
        }
        if let Some(before) = &before
            && let Some(projects) = inner.by_namespace.get_mut(before)
        {
            projects.remove(name);
            if projects.is_empty() {
                inner.by_namespace.remove(before);
            }
        }
        if let Some(now) = &now {
            inner.by_namespace.entry(now.clone()).or_default().insert(name.to_owned());
        }
        before.into_iter().chain(now).collect()
    }

    /// The suspended project that claims a namespace; of several the first by name.
    pub fn project(&self, namespace: &str) -> Option<String> {
        self.0.lock().by_namespace.get(namespace)?.first().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str, namespace: Option<&str>, suspend: Option<bool>) -> Project {
        let mut project = Project::default();
        project.metadata.name = Some(name.to_owned());
        project.spec.namespace = namespace.map(str::to_owned);
        project.spec.suspend = suspend;
        project
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_a_suspension_that_begins_or_ends_is_told() {
        let index = SuspendedNamespaces::default();
        assert_eq!(index.note(&project("shop", None, None), false), set(&[]), "nobody was suspended");
        assert_eq!(index.note(&project("shop", None, Some(true)), false), set(&["shop"]));
        assert_eq!(index.note(&project("shop", None, Some(true)), false), set(&[]));
        assert_eq!(index.project("shop").as_deref(), Some("shop"));
        assert_eq!(index.note(&project("shop", None, Some(false)), false), set(&["shop"]));
        assert_eq!(index.project("shop"), None);
    }

    #[test]
    fn a_project_suspends_the_namespace_that_it_claims_and_no_other() {
        let index = SuspendedNamespaces::default();
        assert_eq!(index.note(&project("shop", Some("tills"), Some(true)), false), set(&["tills"]));
        assert_eq!((index.project("tills").as_deref(), index.project("shop")), (Some("shop"), None));
        assert_eq!(index.note(&project("shop", Some("more"), Some(true)), false), set(&["more", "tills"]));
        assert_eq!((index.project("tills"), index.project("more").as_deref()), (None, Some("shop")));
    }

    #[test]
    fn a_namespace_is_suspended_until_the_last_that_suspends_it_goes_on() {
        let index = SuspendedNamespaces::default();
        index.note(&project("a", Some("tills"), Some(true)), false);
        index.note(&project("b", Some("tills"), Some(true)), false);
        index.note(&project("a", Some("tills"), None), false);
        assert_eq!(index.project("tills").as_deref(), Some("b"));
        assert_eq!(index.note(&project("b", Some("tills"), Some(true)), true), set(&["tills"]));
        assert_eq!(index.project("tills"), None);
    }
}
