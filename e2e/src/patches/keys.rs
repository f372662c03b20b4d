//! Compares the engine's table of merge keys with the tags of the types of `k8s.io/api`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use emco_engine::edits::{FieldMerge, MergedField, merged_fields};
use serde::Deserialize;

use super::{is_of_servers, library};

/// The findings of the comparison.
#[derive(Debug)]
pub struct ComparedKeys {
    /// Kinds of `k8s.io/api` that have metadata.
    pub kinds: usize,
    /// Fields of them that are not merged as every other.
    pub fields: usize,
    /// A sentence for each kind or field that differs.
    pub differences: Vec<String>,
}

/// The tags of one field, as the types have them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tag {
    api_version: String,
    kind: String,
    path: String,
    form: Form,
    patch_strategy: String,
    patch_merge_key: String,
}

/// The form of a field's value in JSON.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    List,
    Map,
    Value,
}

/// Fields by their paths, by group and version and kind.
type Table = BTreeMap<(String, String), BTreeMap<String, FieldMerge>>;

/// Compares the table with the types, kind by kind and field by field.
pub async fn merge_keys() -> Result<ComparedKeys> {
    let mut tags = Vec::new();
    for line in library::tags().await?.lines() {
        tags.push(serde_json::from_str(line).with_context(|| format!("patch-checks printed {line}"))?);
    }
    Ok(compared(merged_fields(), tags))
}

fn compared(table: Vec<MergedField>, tags: Vec<Tag>) -> ComparedKeys {
    let (ours, (theirs, mut differences)) = (of_table(table), of_tags(tags));
    for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let (version, kind) = key;
        let name = format!("{kind} of {version}");
        match (ours.get(key), theirs.get(key)) {
            (Some(ours), Some(theirs)) => differences.extend(of_kind(&name, ours, theirs)),
            (Some(_), None) => {
                differences.push(format!("{name} is in the table, and k8s.io/api has no such kind"));
            }
            (None, Some(theirs)) => {
                let fields = theirs.iter().map(|(path, merge)| format!("{path} is {merge}"));
                let fields = fields.collect::<Vec<_>>().join(", ");
                differences.push(format!("{name} is missing in the table; by its tags {fields}"));
            }
            (None, None) => {}
        }
    }
    let fields = theirs.values().map(BTreeMap::len).sum();
    ComparedKeys { kinds: theirs.len(), fields, differences }
}

/// A sentence for each field of a kind that differs.
fn of_kind(
    name: &str,
    ours: &BTreeMap<String, FieldMerge>,
    theirs: &BTreeMap<String, FieldMerge>,
) -> Vec<String> {
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differs = paths.into_iter().filter(|path| ours.get(*path) != theirs.get(*path));
    let said =
        |merge: Option<&FieldMerge>| merge.map_or_else(|| "as every other".to_owned(), ToString::to_string);
    differs
        .map(|path| {
            let (ours, theirs) = (said(ours.get(path)), said(theirs.get(path)));
            format!("{name}, {path}: {ours} by the table, {theirs} by the tags")
        })
        .collect()
}

fn of_table(fields: Vec<MergedField>) -> Table {
    let mut table = Table::new();
    for MergedField { api_version, kind, path, merge } in fields {
        // The types of these are elsewhere.
        if !is_of_servers(api_version) {
            table.entry((api_version.to_owned(), kind.to_owned())).or_default().insert(path, merge);
        }
    }
    table
}

/// The table that the tags make, and a sentence for each tag that says what nobody here knows.
fn of_tags(tags: Vec<Tag>) -> (Table, Vec<String>) {
    let (mut table, mut unknown) = (Table::new(), Vec::new());
    for tag in tags {
        let fields = table.entry((tag.api_version.clone(), tag.kind.clone())).or_default();
        match tag.merge() {
            Ok(Some(merge)) => drop(fields.insert(tag.path, merge)),
            Ok(None) => {}
            Err(sentence) => unknown.push(sentence),
        }
    }
    (table, unknown)
}

impl Tag {
    /// The way in which the field is merged, if not as every other; a sentence where the tags say something new.
    fn merge(&self) -> Result<Option<FieldMerge>, String> {
        let Self { api_version, kind, path, form, patch_strategy, patch_merge_key } = self;
        // `retainKeys` is for those who make a patch, and says nothing of how it is merged.
        let strategies = patch_strategy.split(',').filter(|word| !word.is_empty() && *word != "retainKeys");
        match (form, strategies.collect::<Vec<_>>().as_slice()) {
            (Form::List, ["merge"]) if patch_merge_key.is_empty() => Ok(Some(FieldMerge::Values)),
            (Form::List, ["merge"]) => Ok(Some(FieldMerge::ByKey(patch_merge_key.clone()))),
            (Form::Map, ["replace"]) => Ok(Some(FieldMerge::Replaced)),
            // As it would be without.
            (_, []) | (Form::List, ["replace"]) | (Form::Map, ["merge"]) => Ok(None),
            _ => Err(format!(
                "{kind} of {api_version}, {path}: nobody knows what the strategy {patch_strategy} means for this {form:?}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(kind: &str, path: &str, form: Form, strategy: &str, key: &str) -> Tag {
        Tag {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            form,
            patch_strategy: strategy.to_owned(),
            patch_merge_key: key.to_owned(),
        }
    }

    fn field(kind: &'static str, path: &str, merge: FieldMerge) -> MergedField {
        MergedField { api_version: "v1", kind, path: path.to_owned(), merge }
    }

    fn by(key: &str) -> FieldMerge {
        FieldMerge::ByKey(key.to_owned())
    }

    #[test]
    fn what_the_tags_say_and_the_table_has_is_no_difference() {
        let table = vec![
            field("Pod", "metadata.finalizers", FieldMerge::Values),
            field("Pod", "spec.volumes", by("name")),
            field("Pod", "spec.selector", FieldMerge::Replaced),
        ];
        let tags = vec![
            tag("Pod", "metadata.finalizers", Form::List, "merge", ""),
            tag("Pod", "spec.volumes", Form::List, "merge,retainKeys", "name"),
            tag("Pod", "spec.selector", Form::Map, "replace", ""),
            tag("Pod", "spec.strategy", Form::Map, "retainKeys", ""),
        ];
        let compared = compared(table, tags);
        assert_eq!(compared.differences, Vec::<String>::new());
        assert_eq!((compared.kinds, compared.fields), (1, 3));
    }

    #[test]
    fn each_difference_is_named_by_kind_and_field() {
        let table = vec![
            field("Pod", "spec.containers", by("image")),
            field("Pod", "spec.old", FieldMerge::Values),
            field("Gone", "metadata.finalizers", FieldMerge::Values),
        ];
        let tags = vec![
            tag("Pod", "spec.containers", Form::List, "merge", "name"),
            tag("Pod", "spec.volumes", Form::List, "merge", "name"),
            tag("New", "spec.parts", Form::List, "merge", "name"),
            tag("Pod", "spec.odd", Form::Value, "merge", ""),
        ];
        assert_eq!(
            compared(table, tags).differences,
            [
                "Pod of v1, spec.odd: nobody knows what the strategy merge means for this Value",
                "Gone of v1 is in the table, and k8s.io/api has no such kind",
                "New of v1 is missing in the table; by its tags spec.parts is merged by name",
                "Pod of v1, spec.containers: merged by image by the table, merged by name by the tags",
                "Pod of v1, spec.old: merged by its values by the table, as every other by the tags",
                "Pod of v1, spec.volumes: as every other by the table, merged by name by the tags",
            ]
        );
    }

    #[test]
    fn kinds_of_which_the_types_are_elsewhere_are_left_out() {
        let mut definition = field("CustomResourceDefinition", "metadata.finalizers", FieldMerge::Values);
        definition.api_version = "apiextensions.k8s.io/v1";
        assert!(compared(vec![definition], Vec::new()).differences.is_empty());
    }
}
