//! Lays objects of files over those of the hub, as applying the files would.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::{DeploymentIntentGroup, Project};
use emco_engine::path::ApiPath;
use jiff::Timestamp;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::world::Lists;
use crate::cli::digest::objects::Objects;

/// Fields of a deployment that commands set on the hub: applying files that do not name them leaves them there.
const KEPT: [&str; 2] = ["suspend", "revision"];

/// Kind, namespace (of a Project, the one that it owns) and name.
pub type Key = (String, String, String);

/// An object of the files as it is once they are applied.
#[derive(Debug)]
pub struct Laid<K> {
    pub object: K,
    /// Whether the hub has it already.
    pub exists: bool,
    /// Whether applying it changes its spec or its labels.
    pub changes: bool,
    /// What the hub has and the files do not name.
    pub kept: Vec<&'static str>,
}

/// One object over that of the hub.
pub fn laid<K>(on_hub: Option<&K>, file: &K, now: Timestamp) -> anyhow::Result<Laid<K>>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let mut object = match on_hub {
        Some(found) => serde_json::to_value(found)?,
        None => json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": {
                "name": file.meta().name, "namespace": file.meta().namespace, "creationTimestamp": now, "generation": 0,
                // Those that are made one after the other are told apart by it.
                "uid": format!("new-{}-{}-{}", K::kind(&()), file.meta().namespace.as_deref().unwrap_or_default(), file.name_any()),
            },
        }),
    };
    let mut written = serde_json::to_value(file)?;
    let mut spec = written.get_mut("spec").map(Value::take).unwrap_or_default();
    let mut kept = Vec::new();
    if K::kind(&()) == "DeploymentIntentGroup" {
        for field in KEPT {
            let known = object.pointer(&format!("/spec/{field}")).filter(|known| !known.is_null()).cloned();
            if let (Some(known), Some(spec)) =
                (known, spec.as_object_mut().filter(|spec| !spec.contains_key(field)))
            {
                spec.insert(field.to_owned(), known);
                kept.push(field);
            }
        }
    }
    let mut labels = false;
    for field in ["labels", "annotations"] {
        let named = written.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).cloned();
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
        let own = metadata.entry(field).or_insert_with(|| Map::new().into());
        let before = own.clone();
        if let Some(own) = own.as_object_mut() {
            own.extend(named.unwrap_or_default());
        }
        labels |= field == "labels" && before != *own;
    }
    let edited = object.get("spec") != Some(&spec);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("spec".to_owned(), spec);
    }
    if let Some(generation) = object.pointer_mut("/metadata/generation").filter(|_| edited) {
        *generation = (generation.as_i64().unwrap_or_default() + 1).into();
    }
    let object = serde_json::from_value(object).context("an object cannot be laid over that of the hub")?;
    Ok(Laid { object, exists: on_hub.is_some(), changes: edited || labels, kept })
}

macro_rules! files {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        /// Everything of the files.
        pub struct Files {
            $(pub $store: Vec<emco_crds::$kind>,)*
            /// ConfigMaps and Secrets, as the API server stores them.
            pub data: BTreeMap<Key, Value>,
        }

        /// Objects that the hub would store.
        pub struct Edits {
            $(pub $store: Vec<Laid<emco_crds::$kind>>,)*
        }
    };
}
emco_crds::each_kind!(all => files);

impl Files {
    /// Reads each into its type.
    pub fn of(objects: &Objects) -> anyhow::Result<Self> {
        let mut data = BTreeMap::new();
        for (kind, namespace, name, object) in objects.data() {
            let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
            data.insert(key, stored(object.clone()));
        }
        macro_rules! read {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
                Self { $($store: objects.all()?,)* data }
            };
        }
        Ok(emco_crds::each_kind!(all => read))
    }

    /// None but a deployment as the hub has it.
    pub fn of_deployment(dig: DeploymentIntentGroup) -> Self {
        macro_rules! none {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
                Self { $($store: Vec::new(),)* data: BTreeMap::new() }
            };
        }
        Self { digs: vec![dig], ..emco_crds::each_kind!(all => none) }
    }

    /// Whether there is nothing that a plan depends on.
    pub fn is_empty(&self) -> bool {
        macro_rules! none {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => { true $(&& self.$store.is_empty())* };
        }
        self.data.is_empty() && emco_crds::each_kind!(all => none)
    }

    /// Namespaces of projects that are looked at.
    pub fn namespaces(&self) -> BTreeSet<String> {
        fn of<K: Resource>(objects: &[K]) -> impl Iterator<Item = String> + '_ {
            objects.iter().filter_map(|object| object.meta().namespace.clone())
        }
        let mut all: BTreeSet<String> = self.data.keys().map(|(_, namespace, _)| namespace.clone()).collect();
        all.extend(self.projects.iter().map(namespace_of));
        macro_rules! of_projects {
            ($($store:ident: $kind:ident, $called:literal, $writer:ident, $($column:ident),*;)*) => {
                $(of_projects!(@$writer $store);)*
            };
            (@Hub $store:ident) => {};
            (@$writer:ident $store:ident) => { all.extend(of(&self.$store)) };
        }
        emco_crds::each_kind!(all => of_projects);
        all
    }

    /// ConfigMaps and Secrets by their path.
    pub fn paths(&self) -> BTreeMap<ApiPath, Value> {
        let path = |(kind, namespace, name): &Key| {
            let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
            ApiPath::core(namespace, plural).then(name)
        };
        self.data.iter().map(|(key, object)| (path(key), object.clone())).collect()
    }
}

/// Namespace of a project.
pub fn namespace_of(project: &Project) -> String {
    project.spec.namespace.clone().unwrap_or_else(|| project.name_any())
}

/// A ConfigMap or Secret as it is stored: what a Secret has as text is in its data.
fn stored(mut object: Value) -> Value {
    let text = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    let Some(Value::Object(text)) = text else { return object };
    let encoded =
        text.into_iter().filter_map(|(key, value)| Some((key, STANDARD.encode(value.as_str()?).into())));
    let encoded: Map<String, Value> = encoded.collect();
    match object.get_mut("data").and_then(Value::as_object_mut) {
        Some(data) => data.extend(encoded),
        None => object["data"] = encoded.into(),
    }
    object
}

/// What the files change.
#[derive(Default)]
pub struct Touched {
    /// Objects of ours that differ from those of the hub, and all ConfigMaps and Secrets of the files.
    pub objects: BTreeSet<Key>,
    /// Namespaces of projects that the hub has not.
    pub new_projects: BTreeMap<String, String>,
    /// Clusters and providers that differ.
    pub places: Vec<String>,
    /// Deployments of the files.
    pub deployments: BTreeSet<(String, String)>,
    /// Sentences for people.
    pub notes: Vec<String>,
}

/// Lays everything over the lists of the hub.
pub fn lay(files: &Files, lists: &mut Lists, now: Timestamp) -> anyhow::Result<(Touched, Edits)> {
    let mut touched = Touched::default();
    macro_rules! lay_each {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
            Edits { $($store: each(&files.$store, &mut lists.$store, now, &mut touched)?,)* }
        };
    }
    let edits = emco_crds::each_kind!(all => lay_each);
    for Laid { object: project, exists, .. } in &edits.projects {
        let (namespace, name) = (namespace_of(project), project.name_any());
        if !exists {
            touched.new_projects.insert(namespace.clone(), name.clone());
        }
        touched.objects.insert(("Project".to_owned(), namespace, name));
    }
    let is_place = |kind: &str| ["Cluster", "GitTarget", "ClusterProvider"].contains(&kind);
    let places = touched.objects.iter().filter(|(kind, ..)| is_place(kind));
    touched.places = places.map(|(kind, _, name)| format!("{kind} {name}")).collect();
    touched.objects.extend(files.data.keys().cloned());
    let named = |dig: &DeploymentIntentGroup| (dig.namespace().unwrap_or_default(), dig.name_any());
    touched.deployments = files.digs.iter().map(named).collect();
    Ok((touched, edits))
}

/// Lays those of one kind over their list; those that differ are returned.
fn each<K>(
    files: &[K],
    list: &mut Vec<K>,
    now: Timestamp,
    touched: &mut Touched,
) -> anyhow::Result<Vec<Laid<K>>>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned,
{
    let mut edits = Vec::new();
    for file in files {
        let (kind, namespace, name) =
            (K::kind(&()).into_owned(), file.namespace().unwrap_or_default(), file.name_any());
        let is_it = |object: &K| {
            (object.meta().namespace.as_ref(), &object.meta().name)
                == (file.meta().namespace.as_ref(), &file.meta().name)
        };
        let at = list.iter().position(is_it);
        let laid = laid(at.and_then(|at| list.get(at)), file, now)?;
        for field in &laid.kept {
            touched.notes.push(format!(
                "spec.{field} of {kind} {namespace}/{name} is in none of the files, and stays as the hub has it"
            ));
        }
        if !laid.changes {
            continue;
        }
        match at.and_then(|at| list.get_mut(at)) {
            Some(known) => *known = laid.object.clone(),
            None => list.push(laid.object.clone()),
        }
        touched.objects.insert((kind, namespace, name));
        edits.push(laid);
    }
    Ok(edits)
}

#[cfg(test)]
mod tests;
