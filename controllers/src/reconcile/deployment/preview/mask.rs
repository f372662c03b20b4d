//! Leaves values of Secrets out of lines that are shown: templates put values anywhere, and what is shown before a change is merged is
//! read by more people than may read Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::identity::kind_of;
use emco_engine::set::ManifestSet;
use emco_engine::snapshot::{Source, SourceKey};
use serde_json::Value;

/// Shorter ones are in any text, and hide nothing there.
const SHORTEST: usize = 4;
/// What stands in the place of a value.
const MASK: &str = "(withheld)";
/// Words that are no secrets.
const WORDS: [&str; 6] = ["true", "false", "null", "none", "Secret", "Opaque"];

/// Values that are not shown, as they are and as base64.
#[derive(Clone, Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Those that profiles and intents read.
    pub fn of_sources(sources: &BTreeMap<SourceKey, Source>) -> Self {
        let mut secrets = Self::default();
        for source in sources.iter().filter(|(key, _)| key.kind == "Secret").map(|(_, source)| source) {
            let Source::Found(text) = source else { continue };
            match emco_helm::yaml::to_json(text.as_bytes()) {
                Ok(values) => secrets.scalars(&values),
                Err(_) => secrets.add(text),
            }
        }
        secrets
    }

    /// Those of another look as well.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Those in Secrets of manifests.
    pub fn add_sets<'a>(&mut self, sets: impl IntoIterator<Item = &'a Arc<ManifestSet>>) {
        let manifests = sets.into_iter().flat_map(|set| &set.manifests);
        for manifest in manifests.filter(|manifest| kind_of(&manifest.json) == ("", "Secret")) {
            for text in values(&manifest.json, "data") {
                if let Some(text) = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok())
                {
                    self.add(&text);
                }
                self.add(text);
            }
            values(&manifest.json, "stringData").for_each(|text| self.add(text));
        }
    }

    fn scalars(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.scalars(item)),
            Value::Object(fields) => fields.values().for_each(|value| self.scalars(value)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn add(&mut self, text: &str) {
        if text.trim().len() < SHORTEST || WORDS.contains(&text.trim()) {
            return;
        }
        self.0.insert(STANDARD.encode(text));
        // A text of several lines is printed line by line, indented.
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
        self.0.extend(lines.filter(|line| !WORDS.contains(line)).map(str::to_owned));
    }

    /// A text without them; the longest first, for one may be part of another.
    pub fn masked(&self, text: &str) -> String {
        let mut found: Vec<&str> =
            self.0.iter().map(String::as_str).filter(|one| text.contains(one)).collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.len()));
        found.into_iter().fold(text.to_owned(), |text, one| text.replace(one, MASK))
    }
}

fn values<'a>(manifest: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let fields = manifest.get(field).and_then(Value::as_object);
    fields.into_iter().flatten().filter_map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use emco_engine::identity::SetDigest;
    use emco_engine::set::{Phase, SetManifest};
    use serde_json::json;

    use super::*;

    fn set(manifest: Value) -> Arc<ManifestSet> {
        let manifest = SetManifest {
            digest: String::new(),
            phase: Phase::Main,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json: manifest,
        };
        Arc::new(ManifestSet {
            digest: SetDigest("x".to_owned()),
            app: "web".to_owned(),
            manifests: vec![manifest],
        })
    }

    #[test]
    fn values_from_a_secret_are_withheld_wherever_they_stand() {
        let key = |kind: &str| SourceKey { kind: kind.to_owned(), name: "n".to_owned(), key: "k".to_owned() };
        let secret = Source::Found("db: {password: hunter2, port: 5432, tls: true, id: 7}".to_owned());
        let open = Source::Found("host: db.example.com".to_owned());
        let secrets = Secrets::of_sources(&[(key("Secret"), secret), (key("ConfigMap"), open)].into());
        let text = "+url: me:hunter2@db.example.com:5432?tls=true&id=7\n+b64: aHVudGVyMg==\n";
        let wanted = "+url: me:(withheld)@db.example.com:(withheld)?tls=true&id=7\n+b64: (withheld)\n";
        assert_eq!(secrets.masked(text), wanted);
    }

    #[test]
    fn values_of_secrets_among_the_manifests_are_withheld_line_by_line() {
        let mut secrets = Secrets::default();
        let data = json!({"kind": "Secret", "apiVersion": "v1", "data": {"a": STANDARD.encode("first line\nsecond line")},
            "stringData": {"b": "hunter2"}});
        let open = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"c": "open word"}});
        secrets.add_sets([&set(data), &set(open)]);
        let text = " first line\n+  second line\n-open word hunter2\n";
        assert_eq!(secrets.masked(text), " (withheld)\n+  (withheld)\n-open word (withheld)\n");
    }
}
