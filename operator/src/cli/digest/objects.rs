//! Reads the objects of files and folders.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use emco_crds::kinds::{Files, Row};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

mod server;

use server::{Schemas, nulls, numbers};

/// Largest file that is read: an object of the hub is smaller.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Deepest folder.
const DEEPEST: usize = 32;
/// Names the standard input, as kubectl does.
const STDIN: &str = "-";

const MAP: &str = "ConfigMap";

/// Which objects a command reads; all others in the files are not looked at.
pub struct Kinds {
    /// The command, as people give it the standard input.
    command: &'static str,
    /// Kinds of ours.
    ours: fn(&Row) -> bool,
    /// Kinds of the core group.
    core: &'static [&'static str],
}

/// What a digest is made of.
pub const OF_DIGESTS: Kinds =
    Kinds { command: "kubectl emco digest -f -", ours: |row| row.files == Files::Digests, core: &[MAP] };

/// What a plan depends on.
pub const OF_PLANS: Kinds = Kinds {
    command: "kubectl emco plan -f -",
    ours: |row| row.files != Files::Nowhere,
    core: &[MAP, "Secret"],
};

/// Objects by kind, namespace (empty for those without) and name, each with its file.
pub struct Objects(BTreeMap<(String, String, String), (PathBuf, Value)>);

/// How objects are read.
struct Reader<'a> {
    kinds: &'a Kinds,
    /// Where those are applied that name no namespace.
    namespace: Option<&'a str>,
    schemas: Schemas,
    found: Objects,
}

impl Objects {
    /// Reads all of them. One that is there twice is an error: nobody knows which one is applied last.
    pub fn read(paths: &[PathBuf], namespace: Option<&str>, kinds: &Kinds) -> anyhow::Result<Self> {
        let schemas = Schemas::of(kinds.ours);
        let mut reader = Reader { kinds, namespace, schemas, found: Self(BTreeMap::new()) };
        for path in paths {
            if path == Path::new(STDIN) {
                reader.stream(Path::new("standard input"), std::io::stdin().lock())?;
            } else {
                reader.path(path, 0)?;
            }
        }
        Ok(reader.found)
    }

    fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&(PathBuf, Value)> {
        self.0.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }

    /// A ConfigMap as it is written; an error if it may be the one, and names no namespace.
    pub fn map(&self, namespace: &str, name: &str) -> anyhow::Result<Option<&Value>> {
        if let Some((_, map)) = self.get(MAP, namespace, name) {
            return Ok(Some(map));
        }
        match self.get(MAP, "", name) {
            Some((path, _)) => Err(unplaced(path, MAP, name)),
            None => Ok(None),
        }
    }

    /// The object of a name.
    pub fn one<K>(&self, namespace: &str, name: &str) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let found = self.get(&K::kind(&()), namespace, name);
        found.map(|(path, object)| decode(path, namespace, name, object)).transpose()
    }

    /// All of one kind, with the namespace that they are applied to.
    pub fn all<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let kind = K::kind(&());
        let of = self.0.iter().filter(|((of, ..), _)| *of == kind);
        of.map(|((_, namespace, name), (path, object))| decode(path, namespace, name, object)).collect()
    }

    /// ConfigMaps and Secrets as they are written, with kind, namespace and name.
    pub fn data(&self) -> impl Iterator<Item = (&str, &str, &str, &Value)> {
        let core = self.0.iter().filter(|((kind, ..), _)| OF_PLANS.core.contains(&kind.as_str()));
        core.map(|((kind, namespace, name), (_, object))| {
            (kind.as_str(), namespace.as_str(), name.as_str(), object)
        })
    }

    /// Fields of an object's spec that are written as `null`.
    pub fn nulls<K: Resource<DynamicType = ()>>(&self, namespace: &str, name: &str) -> Vec<String> {
        let object = self.get(&K::kind(&()), namespace, name);
        object.and_then(|(_, object)| object.get("spec")).map(nulls).unwrap_or_default()
    }
}

fn decode<K>(path: &Path, namespace: &str, name: &str, object: &Value) -> anyhow::Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let read = K::deserialize(object);
    let mut read =
        read.with_context(|| format!("{}: {} {name} cannot be read", path.display(), K::kind(&())))?;
    if !namespace.is_empty() {
        read.meta_mut().namespace = Some(namespace.to_owned());
    }
    Ok(read)
}

fn unplaced(path: &Path, kind: &str, name: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{}: {kind} {name} names no namespace, which counts: name the one that it is applied to with --namespace",
        path.display()
    )
}

impl Reader<'_> {
    fn path(&mut self, path: &Path, depth: usize) -> anyhow::Result<()> {
        let shown = path.display();
        let unread = || format!("{shown} cannot be read");
        if !std::fs::metadata(path).with_context(unread)?.is_dir() {
            return self.stream(path, std::fs::File::open(path).with_context(unread)?);
        }
        if depth == DEEPEST {
            bail!("{shown} is more than {DEEPEST} folders deep");
        }
        let entries = std::fs::read_dir(path).with_context(unread)?;
        let entries = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut entries = entries.collect::<Result<Vec<_>, _>>().with_context(unread)?;
        entries.sort();
        let called = |path: &Path| path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let is_build = |path: &PathBuf| {
            matches!(called(path).as_str(), "kustomization.yaml" | "kustomization.yml" | "Kustomization")
        };
        if entries.iter().any(is_build) {
            bail!(
                "{shown} is built by Kustomize, which may change what counts: kubectl kustomize {shown} | {}",
                self.kinds.command
            );
        }
        for entry in entries {
            let ending = entry.extension().and_then(OsStr::to_str);
            let is_manifest = entry.is_file() && matches!(ending, Some("yaml" | "yml" | "json"));
            // Git keeps its own things in a folder of that name.
            if is_manifest || entry.is_dir() && called(&entry) != ".git" {
                self.path(&entry, depth + 1)?;
            }
        }
        Ok(())
    }

    fn stream(&mut self, path: &Path, from: impl Read) -> anyhow::Result<()> {
        let shown = path.display();
        let mut text = Vec::new();
        // Whatever its size is said to be: pipes have none.
        from.take(LARGEST + 1).read_to_end(&mut text).with_context(|| format!("{shown} cannot be read"))?;
        if text.len() as u64 > LARGEST {
            bail!("{shown} has more than 16 MiB");
        }
        let all = emco_helm::yaml::documents(&text).map_err(|error| {
            let said = error.to_string();
            // The value may be a Secret's.
            anyhow::anyhow!("{shown}: {}", said.split(", value: ").next().unwrap_or_default())
        })?;
        all.into_iter().try_for_each(|object| self.add(path, object))
    }

    fn add(&mut self, path: &Path, mut object: Value) -> anyhow::Result<()> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let own = text("/metadata/namespace");
        if let Some(items) = object.get_mut("items").filter(|_| kind.ends_with("List")) {
            let items = items.as_array_mut().map(std::mem::take).unwrap_or_default();
            return items.into_iter().try_for_each(|item| self.add(path, item));
        }
        let shown = path.display();
        let (group, known) = (emco_crds::names::GROUP, emco_crds::names::API_VERSION);
        let ours = version.split_once('/').is_some_and(|(of, _)| of == group);
        let is_read = if ours {
            self.schemas.has(&kind)
        } else {
            version == "v1" && self.kinds.core.contains(&kind.as_str())
        };
        if !is_read {
            return Ok(());
        }
        if name.is_empty() {
            // One without a name is not what a deployment refers to.
            if !ours {
                return Ok(());
            }
            bail!("{shown}: a {kind} has no metadata.name, by which others refer to it: give it one");
        }
        if ours && version != known {
            bail!("{shown}: {kind} {name} is of {version}, and this program knows {known}");
        }
        if let Some(field) = self.schemas.unknown(&kind, &object) {
            bail!(
                "{shown}: {kind} {name}: {field} is not known here: correct it, or use the kubectl-emco of the hub's release"
            );
        }
        let namespace = match (own.as_str(), self.namespace) {
            _ if ours && !self.schemas.namespaced(&kind) => String::new(),
            ("", None) if ours => return Err(unplaced(path, &kind, &name)),
            ("", named) => named.unwrap_or_default().to_owned(),
            (own, _) => own.to_owned(),
        };
        numbers(&mut object);
        let bytes = if kind == MAP { "binaryData" } else { "data" };
        for bytes in
            object.get_mut(bytes).and_then(Value::as_object_mut).into_iter().flatten().filter(|_| !ours)
        {
            // As the API server reads it.
            if let Value::String(text) = bytes.1 {
                text.retain(|c| !matches!(c, '\n' | '\r'));
            }
        }
        if !ours && namespace.is_empty() {
            // Whichever is meant, it is refused.
            self.found.0.entry((kind, namespace, name)).or_insert_with(|| (path.to_owned(), object));
            return Ok(());
        }
        if let Some((other, _)) = self.found.get(&kind, &namespace, &name) {
            let other = other.display();
            let of = if namespace.is_empty() { String::new() } else { format!(" of namespace {namespace}") };
            bail!("{kind} {name}{of} is in {other} and in {shown}: keep one of them");
        }
        self.found.0.insert((kind, namespace, name), (path.to_owned(), object));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
