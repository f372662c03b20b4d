//! Lists the fields of all built-in kinds that are not merged as every other.

use std::fmt;

use super::{Field, Shape, kinds};

/// A field of a built-in kind that is not merged as every other: maps are merged field by field, lists are replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MergedField {
    /// Group and version of the kind, such as `apps/v1`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Names of fields with dots between them; the items of a list have none.
    pub path: String,
    /// The way it is merged.
    pub merge: FieldMerge,
}

/// The ways in which Kubernetes merges a field that it does not merge as every other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldMerge {
    /// A map that is replaced as a whole.
    Replaced,
    /// A list of maps, each known by the value of this field.
    ByKey(String),
    /// A list of values, each of which is in it once.
    Values,
}

impl fmt::Display for FieldMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced => f.write_str("replaced as a whole"),
            Self::ByKey(key) => write!(f, "merged by {key}"),
            Self::Values => f.write_str("merged by its values"),
        }
    }
}

/// The table of merge keys as it is: every such field of every built-in kind. Each kind has some, those of its metadata.
#[must_use]
pub fn merged_fields() -> Vec<MergedField> {
    let mut listed = Vec::new();
    for (api_version, kind, shape) in kinds::all() {
        let mut fields = Vec::new();
        collect(shape, "", &mut fields);
        let with_kind = |(path, merge)| MergedField { api_version, kind, path, merge };
        listed.extend(fields.into_iter().map(with_kind));
    }
    listed
}

fn collect(shape: &Shape, above: &str, fields: &mut Vec<(String, FieldMerge)>) {
    for (name, field) in shape.0 {
        let path = if above.is_empty() { (*name).to_owned() } else { format!("{above}.{name}") };
        match field {
            Field::Object(shape) => collect(shape, &path, fields),
            Field::Whole => fields.push((path, FieldMerge::Replaced)),
            Field::Keyed(key, shape) => {
                fields.push((path.clone(), FieldMerge::ByKey((*key).to_owned())));
                collect(shape, &path, fields);
            }
            Field::Set => fields.push((path, FieldMerge::Values)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn fields_are_listed_with_their_paths_through_maps_and_lists() {
        let listed = merged_fields();
        for (kind, path, merge) in [
            ("CronJob", "metadata.finalizers", "merged by its values"),
            ("CronJob", "spec.jobTemplate.spec.template.spec.containers", "merged by name"),
            ("CronJob", "spec.jobTemplate.spec.template.spec.containers.ports", "merged by containerPort"),
            ("PodDisruptionBudget", "spec.selector", "replaced as a whole"),
        ] {
            let found = listed.iter().find(|field| field.kind == kind && field.path == path);
            assert_eq!(found.map(|field| field.merge.to_string()).as_deref(), Some(merge), "{kind}, {path}");
        }
    }

    #[test]
    fn every_kind_is_listed_and_no_field_twice() {
        let listed = merged_fields();
        let fields: BTreeSet<_> =
            listed.iter().map(|field| (field.api_version, field.kind, field.path.as_str())).collect();
        assert_eq!(fields.len(), listed.len());
        let kinds: BTreeSet<_> = fields.iter().map(|(version, kind, _)| (*version, *kind)).collect();
        let known: Vec<_> = kinds::all().map(|(version, kind, _)| (version, kind)).collect();
        assert_eq!(kinds.len(), known.len(), "a kind is in the table twice, or has no such field");
        for (version, kind) in known {
            assert!(kinds.contains(&(version, kind)), "{kind} of {version}");
            assert!(kinds::shape(version, kind).is_some(), "{kind} of {version}");
        }
    }
}
