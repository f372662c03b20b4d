//! Selects the objects that are shown, and says which kind or name nothing has.

use std::collections::BTreeSet;

use super::Asked;
use super::report::{AppObjects, ClusterObjects, Object};
use crate::cli::args::objects::{KindName, ObjectArgs, kind_text};
use crate::cli::orphans::some;
use crate::cli::status::filter::LISTED;

/// What the stored manifests of the apps and clusters that are asked about have.
#[derive(Default)]
pub(super) struct Met {
    /// Kinds of all objects: group and kind.
    kinds: BTreeSet<(String, String)>,
    /// Those of the names that are asked for.
    names: BTreeSet<String>,
    /// Manifests could not be read: there may be more.
    unread: bool,
}

impl Met {
    /// Where manifests could not be read.
    pub(super) fn unread() -> Self {
        Self { unread: true, ..Self::default() }
    }

    pub(super) fn of(asked: &[Asked], wanted: &ObjectArgs) -> Self {
        let mut met = Self::default();
        for one in asked {
            let id = one.manifest.identity();
            if wanted.object.contains(&id.name) {
                met.names.insert(id.name);
            }
            met.kinds.insert((id.group, id.kind));
        }
        met
    }

    /// The same of what the operator handed on.
    pub(super) fn of_objects(one: &ClusterObjects) -> Self {
        if one.error.is_some() && one.total == 0 {
            return Self::unread();
        }
        let mut met = Self::default();
        for id in one.objects.iter().map(Object::identity) {
            met.names.insert(id.name.clone());
            met.kinds.insert((id.group.clone(), id.kind.clone()));
        }
        met
    }

    /// Adds what another cluster has.
    pub(super) fn add(&mut self, other: Self) {
        self.kinds.extend(other.kinds);
        self.names.extend(other.names);
        self.unread |= other.unread;
    }

    /// The first kind or name that is asked for and that nothing has, in a clause; `None` also where that is not known.
    pub(super) fn absent(&self, wanted: &ObjectArgs) -> Option<String> {
        if self.unread || self.kinds.is_empty() {
            return None;
        }
        if let Some(kind) = wanted.kind.iter().find(|kind| !self.has(kind)) {
            let kinds: Vec<String> = self.kinds.iter().map(|(group, kind)| kind_text(group, kind)).collect();
            return Some(format!("no object of kind {kind}: there are {}", some(&kinds, LISTED)));
        }
        let name = wanted.object.iter().find(|name| !self.names.contains(name.as_str()))?;
        Some(format!("no object of the name {name}: leave out --name to see what it has"))
    }

    fn has(&self, wanted: &KindName) -> bool {
        self.kinds.iter().any(|(group, kind)| wanted.is(group, kind))
    }
}

/// Leaves the objects that are asked for, and the apps on clusters that have one, or whose objects are not known.
pub(super) fn narrow(apps: Vec<AppObjects>, wanted: &ObjectArgs) -> Vec<AppObjects> {
    if wanted.is_all() {
        return apps;
    }
    let narrowed = apps.into_iter().map(|mut app| {
        app.clusters.retain_mut(|one| {
            one.objects.retain(|object| object.is_asked_for(wanted));
            !one.objects.is_empty() || (one.error.is_some() && one.total == 0)
        });
        app
    });
    narrowed.filter(|app| !app.clusters.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use emco_engine::set::{Phase, SetManifest};
    use serde_json::json;

    use super::super::report::{ObjectCounts, ObjectState, Seen};
    use super::*;
    use crate::cli::args::status::Verdict;

    fn asked(api_version: &str, kind: &str, name: &str) -> Asked {
        let metadata = json!({"namespace": "shop", "name": name});
        let manifest = SetManifest {
            digest: String::new(),
            phase: Phase::Main,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            account: None,
            edited_by: Vec::new(),
            json: json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}),
        };
        Asked { app: "web".to_owned(), manifest, wanted: true }
    }

    fn all() -> Vec<Asked> {
        vec![
            asked("apps/v1", "Deployment", "web"),
            asked("v1", "ConfigMap", "web"),
            asked("v1", "Secret", "key"),
        ]
    }

    /// On `acme/a` a Deployment that is not ready; `acme/b` cannot be looked at.
    fn apps() -> Vec<AppObjects> {
        let at = |cluster: &str, objects: Vec<Object>, error: Option<&str>| ClusterObjects {
            cluster: cluster.to_owned(),
            verdict: Verdict::Progressing,
            revision: Some(1),
            seen: Seen::Cluster,
            error: error.map(str::to_owned),
            total: objects.len(),
            objects,
        };
        let state = |asked: &Asked| match asked.manifest.identity().kind.as_str() {
            "Deployment" => ObjectState::Progressing,
            _ => ObjectState::Ready,
        };
        let objects = all().iter().map(|asked| Object::of(asked, state(asked), String::new())).collect();
        let clusters = vec![at("acme/a", objects, None), at("acme/b", Vec::new(), Some("no manifests"))];
        vec![AppObjects { name: "web".to_owned(), clusters }]
    }

    fn shown(wanted: &ObjectArgs) -> Vec<String> {
        let clusters = narrow(apps(), wanted).into_iter().flat_map(|app| app.clusters);
        let text = |one: ClusterObjects| {
            let objects: Vec<String> = one.objects.iter().map(Object::id).collect();
            format!("{} {}", one.cluster, objects.join(" ")).trim_end().to_owned()
        };
        clusters.map(text).collect()
    }

    fn of_kind(kind: &str) -> ObjectArgs {
        ObjectArgs { kind: vec![kind.parse().unwrap()], ..ObjectArgs::default() }
    }

    #[test]
    fn objects_are_selected_and_what_is_not_known_stays() {
        assert_eq!(shown(&of_kind("secret")), ["acme/a Secret/shop/key", "acme/b"]);
        let named = ObjectArgs { object: vec!["web".to_owned()], ..ObjectArgs::default() };
        assert_eq!(shown(&named), ["acme/a apps/Deployment/shop/web ConfigMap/shop/web", "acme/b"]);
        let ready = ObjectArgs { ready: true, ..named.clone() };
        assert_eq!(shown(&ready), ["acme/a ConfigMap/shop/web", "acme/b"]);
        let not_ready = ObjectArgs { not_ready: true, ..named };
        assert_eq!(shown(&not_ready), ["acme/a apps/Deployment/shop/web", "acme/b"]);
        assert_eq!(shown(&ObjectArgs { not_ready: true, ..of_kind("Secret") }), ["acme/b"]);
    }

    #[test]
    fn objects_are_counted_beside_what_is_shown() {
        let counts = ObjectCounts::of(&narrow(apps(), &of_kind("Deployment")), 3);
        assert_eq!(counts, ObjectCounts { shown: 1, of: 3, ready: 0, not_ready: 1 });
        assert_eq!(counts.text().as_deref(), Some("shown: 1 of 3 objects"));
        assert_eq!(ObjectCounts::of(&apps(), 3).text(), None);
    }

    #[test]
    fn a_kind_or_name_that_nothing_has_is_said_with_the_kinds_there_are() {
        let absent = |wanted: &ObjectArgs| Met::of(&all(), wanted).absent(wanted);
        assert_eq!(absent(&of_kind("Deployment.apps")), None);
        let said = absent(&of_kind("Job")).unwrap();
        assert_eq!(said, "no object of kind Job: there are ConfigMap, Secret, Deployment.apps");
        let named = ObjectArgs { object: vec!["web".to_owned(), "api".to_owned()], ..ObjectArgs::default() };
        assert!(absent(&named).unwrap().starts_with("no object of the name api"));
        let mut met = Met::of(&all(), &named);
        met.add(Met::unread());
        assert_eq!(met.absent(&named), None, "it may be where nothing could be read");
        assert_eq!(Met::default().absent(&named), None, "nothing is anywhere");
    }
}
