//! Reads the YAML documents of a folder, and the schema of a CRD.
#![allow(dead_code)] // each test binary uses a part

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// YAML files of a folder by name, sorted.
pub fn files(folder: &Path) -> BTreeMap<String, String> {
    std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The documents of a file.
pub fn documents(text: &str) -> Vec<Value> {
    use serde::Deserialize;
    serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap()).collect()
}

/// Schemas by kind.
pub fn schemas() -> BTreeMap<String, Value> {
    emco_crds::all()
        .into_iter()
        .map(|crd| {
            let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            (crd.spec.names.kind.clone(), serde_json::to_value(schema).unwrap())
        })
        .collect()
}

/// Documents of our own group in a folder of samples.
pub fn ours(folder: &str) -> Vec<(String, Value)> {
    let folder = root().join(folder);
    let mut all = Vec::new();
    for (name, text) in files(&folder) {
        for document in documents(&text) {
            if document["apiVersion"] == emco_crds::names::API_VERSION {
                all.push((name.clone(), document));
            }
        }
    }
    all
}
