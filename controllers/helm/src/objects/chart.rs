//! Makes `.Chart` of a chart's metadata.
use std::rc::Rc;

use super::{Field, Record};
use crate::chart::{Dependency, ImportValue, Maintainer, Metadata};
use crate::value::{Kind, List, ListType, Map, MapType, Text, Value};

/// The object `.Chart` of a chart.
pub(crate) fn chart_object(metadata: &Metadata, is_root: bool) -> Value {
    Value::object(Record {
        type_name: "struct { chart.Metadata; IsRoot bool }",
        kind: Kind::Struct,
        fields: vec![Field::always("IsRoot", "IsRoot", is_root)],
        embedded: Some(("Metadata", Rc::new(metadata_record(metadata)))),
    })
}

fn metadata_record(metadata: &Metadata) -> Record {
    let text = |text: &String| Value::text(text.as_str());
    Record {
        type_name: "chart.Metadata",
        kind: Kind::Struct,
        fields: vec![
            Field::new("Name", "name", text(&metadata.name)),
            Field::new("Home", "home", text(&metadata.home)),
            Field::new("Sources", "sources", strings(&metadata.sources)),
            Field::new("Version", "version", text(&metadata.version)),
            Field::new("Description", "description", text(&metadata.description)),
            Field::new("Keywords", "keywords", strings(&metadata.keywords)),
            Field::new(
                "Maintainers",
                "maintainers",
                pointers("[]*chart.Maintainer", &metadata.maintainers, maintainer),
            ),
            Field::new("Icon", "icon", text(&metadata.icon)),
            Field::new("APIVersion", "apiVersion", text(&metadata.api_version)),
            Field::new("Condition", "condition", text(&metadata.condition)),
            Field::new("Tags", "tags", text(&metadata.tags)),
            Field::new("AppVersion", "appVersion", text(&metadata.app_version)),
            Field::new("Deprecated", "deprecated", metadata.deprecated),
            Field::new("Annotations", "annotations", annotations(metadata)),
            Field::new("KubeVersion", "kubeVersion", text(&metadata.kube_version)),
            Field::new(
                "Dependencies",
                "dependencies",
                pointers("[]*chart.Dependency", &metadata.dependencies, dependency),
            ),
            Field::new("Type", "type", text(&metadata.chart_type)),
        ],
        embedded: None,
    }
}

fn strings(items: &[String]) -> Value {
    if items.is_empty() {
        return Value::List(List::nil(ListType::String));
    }
    Value::strings(items.iter().map(String::as_str))
}

fn pointers<T>(type_name: &'static str, items: &[T], make: fn(&T) -> Value) -> Value {
    let list_type = ListType::Named(type_name);
    if items.is_empty() {
        return Value::List(List::nil(list_type));
    }
    Value::List(List::new(list_type, items.iter().map(make).collect()))
}

fn annotations(metadata: &Metadata) -> Value {
    if metadata.annotations.is_empty() {
        return Value::Map(Map::nil(MapType::String));
    }
    let entries = metadata.annotations.iter();
    Value::Map(Map::from_entries(
        MapType::String,
        entries.map(|(key, value)| (Text::from(key.as_str()), Value::text(value.as_str()))),
    ))
}

fn maintainer(maintainer: &Maintainer) -> Value {
    Value::object(Record {
        type_name: "*chart.Maintainer",
        kind: Kind::Pointer,
        fields: vec![
            Field::new("Name", "name", maintainer.name.as_str()),
            Field::new("Email", "email", maintainer.email.as_str()),
            Field::new("URL", "url", maintainer.url.as_str()),
        ],
        embedded: None,
    })
}

fn dependency(dependency: &Dependency) -> Value {
    Value::object(Record {
        type_name: "*chart.Dependency",
        kind: Kind::Pointer,
        fields: vec![
            Field::always("Name", "name", dependency.name.as_str()),
            Field::new("Version", "version", dependency.version.as_str()),
            Field::always("Repository", "repository", dependency.repository.as_str()),
            Field::new("Condition", "condition", dependency.condition.as_str()),
            Field::new("Tags", "tags", strings(&dependency.tags)),
            Field::new("Enabled", "enabled", dependency.enabled),
            Field::new("ImportValues", "import-values", imports(&dependency.import_values)),
            Field::new("Alias", "alias", dependency.alias.as_str()),
        ],
        embedded: None,
    })
}

fn imports(imports: &[ImportValue]) -> Value {
    if imports.is_empty() {
        return Value::List(List::nil(ListType::Any));
    }
    let pair = |import: &ImportValue| {
        let (child, parent) = import.paths();
        Value::Map(Map::from_entries(
            MapType::String,
            [(Text::from("child"), Value::text(child)), (Text::from("parent"), Value::text(parent))],
        ))
    };
    Value::list(imports.iter().map(pair).collect())
}
