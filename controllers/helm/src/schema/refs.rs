//! Resolves what a schema calls its parts (`$id`) and refers to (`$ref`), as Helm's validator does.
use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::funcs::Url;

/// Bytes that the names of a schema's parts, the places of them, and what makes a `$ref` absolute may take.
const MOST_NAMES: usize = 4 << 20;

/// The parts that have a name: JSON pointers by URL. The whole schema is there as the empty URL, and by its own.
#[derive(Debug, Default)]
pub(super) struct Documents {
    by_url: BTreeMap<String, String>,
    bytes: usize,
}

/// The place to which a `$ref` leads.
pub(super) enum Target {
    /// A JSON pointer into the schema.
    Here(String),
    /// Another document, which would have to be fetched.
    Remote,
    /// A name that nothing has.
    Nowhere,
}

/// Makes every `$ref` absolute, and finds the parts that have names.
pub(super) fn resolve(root: &mut Json) -> Result<Documents, String> {
    let mut documents = Documents::default();
    walk(root, &Url::default(), &mut Vec::new(), &mut documents)?;
    documents.by_url.insert(String::new(), String::new());
    Ok(documents)
}

fn walk(
    node: &mut Json,
    base: &Url,
    place: &mut Vec<String>,
    documents: &mut Documents,
) -> Result<(), String> {
    match node {
        Json::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                below(&at.to_string(), item, base, place, documents)?;
            }
        }
        Json::Object(map) => {
            // The name of draft 4 goes before that of the others.
            let name = map.get("id").or_else(|| map.get("$id")).and_then(Json::as_str);
            let named = name.and_then(|name| base.join(name));
            if let Some(url) = &named
                && !documents.add(url.text(), place)?
            {
                // The second part of a name is not looked into.
                return Ok(());
            }
            let base = named.as_ref().unwrap_or(base);
            let target = map.get("$ref").and_then(Json::as_str);
            if let Some((target, url)) = target.and_then(|target| Some((target, base.join(target)?))) {
                let text = url.text();
                documents.count(text.len().saturating_sub(target.len()))?;
                map.insert("$ref".to_owned(), Json::String(text));
            }
            for (key, value) in map.iter_mut() {
                match key.as_str() {
                    // They are values, not schemas.
                    "const" | "enum" => {}
                    // A name of a property is no word of the schema.
                    "properties" | "dependencies" | "patternProperties" => {
                        let Json::Object(children) = value else { continue };
                        place.push(key.clone());
                        for (key, child) in children.iter_mut() {
                            below(key, child, base, place, documents)?;
                        }
                        place.pop();
                    }
                    _ => below(key, value, base, place, documents)?,
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn below(
    step: &str,
    node: &mut Json,
    base: &Url,
    place: &mut Vec<String>,
    documents: &mut Documents,
) -> Result<(), String> {
    if !matches!(node, Json::Array(_) | Json::Object(_)) {
        return Ok(());
    }
    place.push(step.to_owned());
    walk(node, base, place, documents)?;
    place.pop();
    Ok(())
}

impl Documents {
    /// True if the name was free.
    fn add(&mut self, url: String, place: &[String]) -> Result<bool, String> {
        // One that is not free was made all the same.
        self.count(url.len())?;
        if self.by_url.contains_key(&url) {
            return Ok(false);
        }
        let mut pointer = String::new();
        for step in place {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
        self.count(pointer.len())?;
        self.by_url.insert(url, pointer);
        Ok(true)
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_NAMES {
            return Err(format!("the names of its parts ($id, $ref) take more than {MOST_NAMES} bytes"));
        }
        Ok(())
    }

    /// Follows an absolute `$ref`.
    pub fn target(&self, reference: &str) -> Result<Target, String> {
        let url = Url::of(reference).ok_or_else(|| format!("$ref {reference:?} is no URL"))?;
        let text = url.text();
        if let Some(pointer) = self.by_url.get(&text) {
            return Ok(Target::Here(pointer.clone()));
        }
        let document = text.split_once('#').map_or(text.as_str(), |(document, _)| document);
        let Some(pointer) = self.by_url.get(document) else {
            return Ok(if url.is_whole() { Target::Remote } else { Target::Nowhere });
        };
        // A fragment that is no pointer leads to the document itself.
        let fragment = url.fragment_text();
        let within = if fragment.starts_with('/') { fragment.as_str() } else { "" };
        Ok(Target::Here(format!("{pointer}{within}")))
    }
}
