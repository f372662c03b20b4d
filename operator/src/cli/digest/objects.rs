//! Reads the objects of files and folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Largest file that is read: an object of the hub is smaller.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Deepest folder.
const DEEPEST: usize = 32;

const PROJECT: &str = "Project";
/// Kinds of ours that a digest is made of.
const OURS: [&str; 5] =
    ["DeploymentIntentGroup", "CompositeApp", "CompositeProfile", "LogicalCloud", PROJECT];
const MAP: (&str, &str) = ("v1", "ConfigMap");

/// Objects by kind, namespace (empty for those without) and name, each with its file.
pub struct Objects(BTreeMap<(String, String, String), (PathBuf, Value)>);

impl Objects {
    /// Reads all of them. One that is there twice is an error: nobody knows which one is applied last.
    pub fn read(paths: &[PathBuf], namespace: Option<&str>) -> anyhow::Result<Self> {
        let mut objects = Self(BTreeMap::new());
        for path in paths {
            objects.path(path, namespace, 0)?;
        }
        Ok(objects)
    }

    fn path(&mut self, path: &Path, namespace: Option<&str>, depth: usize) -> anyhow::Result<()> {
        let shown = path.display();
        let meta = std::fs::metadata(path).with_context(|| format!("{shown} cannot be read"))?;
        if !meta.is_dir() {
            if meta.len() > LARGEST {
                bail!("{shown} has more than 16 MiB");
            }
            let text = std::fs::read(path).with_context(|| format!("{shown} cannot be read"))?;
            let all =
                emco_helm::yaml::documents(&text).map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
            return all.into_iter().try_for_each(|object| self.add(path, object, namespace));
        }
        if depth == DEEPEST {
            bail!("{shown} is more than {DEEPEST} folders deep");
        }
        let entries = std::fs::read_dir(path).with_context(|| format!("{shown} cannot be read"))?;
        let mut entries = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("{shown} cannot be read"))?;
        entries.sort();
        let is_manifest = |path: &Path| {
            let ending = path.extension().and_then(std::ffi::OsStr::to_str);
            path.is_dir() || matches!(ending, Some("yaml" | "yml" | "json"))
        };
        // What Git keeps for itself.
        let is_git = |path: &Path| path.file_name().is_some_and(|name| name == ".git");
        entries
            .iter()
            .filter(|path| is_manifest(path) && !is_git(path))
            .try_for_each(|path| self.path(path, namespace, depth + 1))
    }

    fn add(&mut self, path: &Path, mut object: Value, namespace: Option<&str>) -> anyhow::Result<()> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let own = text("/metadata/namespace");
        if let Some(items) = object.get_mut("items").filter(|_| kind.ends_with("List")) {
            let items = items.as_array_mut().map(std::mem::take).unwrap_or_default();
            return items.into_iter().try_for_each(|item| self.add(path, item, namespace));
        }
        let (shown, group) = (path.display(), emco_crds::names::GROUP);
        let ours = version.split_once('/').is_some_and(|(of, _)| of == group);
        let is_read =
            if ours { OURS.contains(&kind.as_str()) } else { (version.as_str(), kind.as_str()) == MAP };
        if !is_read {
            return Ok(());
        }
        if ours && version != emco_crds::names::API_VERSION {
            bail!(
                "{shown}: {kind} {name} is of {version}, and this program knows {}",
                emco_crds::names::API_VERSION
            );
        }
        let namespace = match (kind.as_str(), own.as_str(), namespace) {
            (PROJECT, ..) => String::new(),
            (_, "", None) => bail!(
                "{shown}: {kind} {name} names no namespace, which counts: name the one that it is applied to with --namespace"
            ),
            (_, "", Some(named)) => named.to_owned(),
            (_, own, _) => own.to_owned(),
        };
        for bytes in object.get_mut("binaryData").and_then(Value::as_object_mut).into_iter().flatten() {
            // As the API server reads it.
            if let Value::String(text) = bytes.1 {
                text.retain(|c| !matches!(c, '\n' | '\r'));
            }
        }
        let key = (kind, namespace, name);
        if let Some((other, _)) = self.0.get(&key) {
            let (kind, namespace, name) = key;
            let other = other.display();
            bail!("{kind} {name} of namespace {namespace} is in {other} and in {shown}: keep one of them");
        }
        self.0.insert(key, (path.to_owned(), object));
        Ok(())
    }

    /// One object as it is written.
    pub fn plain(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned())).map(|(_, object)| object)
    }

    /// All of one kind, with the namespace that they are applied to.
    pub fn all<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let kind = K::kind(&());
        let of = self.0.iter().filter(|((of, ..), _)| *of == kind);
        of.map(|((_, namespace, name), (path, object))| {
            let read = serde_json::from_value::<K>(object.clone());
            let mut read =
                read.with_context(|| format!("{}: {kind} {name} cannot be read", path.display()))?;
            if !namespace.is_empty() {
                read.meta_mut().namespace = Some(namespace.clone());
            }
            Ok(read)
        })
        .collect()
    }
}
