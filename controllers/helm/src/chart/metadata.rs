//! Checks the metadata in `Chart.yaml` and `requirements.yaml`.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::LoadError;
use super::decode::{Fields, scalar};
use crate::template::quoting::is_printable;
use crate::versions;

/// What `Chart.yaml` says; absent fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub name: String,
    pub home: String,
    pub sources: Vec<String>,
    pub version: String,
    pub description: String,
    pub keywords: Vec<String>,
    pub maintainers: Vec<Maintainer>,
    pub icon: String,
    pub api_version: String,
    pub condition: String,
    pub tags: String,
    pub app_version: String,
    pub deprecated: bool,
    pub annotations: BTreeMap<String, String>,
    /// The range of Kubernetes versions the chart is for.
    pub kube_version: String,
    pub dependencies: Vec<Dependency>,
    /// There is a list of dependencies, even if it is empty: only then are those of dependencies looked at.
    pub(crate) lists_dependencies: bool,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    pub name: String,
    pub email: String,
    pub url: String,
}

/// A chart another chart needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    /// A version or a range of versions.
    pub version: String,
    pub repository: String,
    /// Paths into the values, separated by commas; the first that is a boolean decides.
    pub condition: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    pub import_values: Vec<ImportValue>,
    pub alias: String,
}

/// Values a parent takes over from a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportValue {
    /// A name below the child's `exports`, taken over at the parent's root.
    Export(String),
    /// A path of the child, taken over at a path of the parent.
    Paths { child: String, parent: String },
}

impl ImportValue {
    /// The child's path and the parent's.
    pub fn paths(&self) -> (String, String) {
        match self {
            Self::Export(name) => (format!("exports.{name}"), ".".to_owned()),
            Self::Paths { child, parent } => (child.clone(), parent.clone()),
        }
    }
}

/// White space as plain spaces, and nothing unprintable.
fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|&c| is_printable(c)).collect()
}

fn invalid(message: impl std::fmt::Display) -> LoadError {
    LoadError::Invalid(format!("validation: {message}"))
}

impl Metadata {
    /// Takes over the fields a mapping has; `requirements.yaml` adds to what `Chart.yaml` said.
    pub(super) fn read(&mut self, map: &Map<String, Value>, file: &str) -> Result<(), LoadError> {
        let fields = Fields { map, file };
        let text = |slot: &mut String, name: &str| {
            if fields.get(name).is_some() {
                *slot = fields.text(name)?;
            }
            Ok::<_, LoadError>(())
        };
        text(&mut self.name, "name")?;
        text(&mut self.home, "home")?;
        text(&mut self.version, "version")?;
        text(&mut self.description, "description")?;
        text(&mut self.icon, "icon")?;
        text(&mut self.api_version, "apiVersion")?;
        text(&mut self.condition, "condition")?;
        text(&mut self.tags, "tags")?;
        text(&mut self.app_version, "appVersion")?;
        text(&mut self.kube_version, "kubeVersion")?;
        text(&mut self.chart_type, "type")?;
        if fields.get("deprecated").is_some() {
            self.deprecated = fields.bool("deprecated")?;
        }
        if fields.get("sources").is_some() {
            self.sources = fields.texts("sources")?;
        }
        if fields.get("keywords").is_some() {
            self.keywords = fields.texts("keywords")?;
        }
        if let Some(annotations) = fields.mapping("annotations")? {
            for (key, value) in annotations {
                let value = if value.is_null() { Some(String::new()) } else { scalar(value) };
                let value = value.ok_or_else(|| invalid(format!("annotation {key:?} is not a string")))?;
                self.annotations.insert(key.clone(), value);
            }
        }
        if fields.get("maintainers").is_some() {
            self.maintainers =
                fields.mappings("maintainers")?.iter().map(maintainer).collect::<Result<_, _>>()?;
        }
        if fields.get("dependencies").is_some() {
            self.lists_dependencies = true;
            self.dependencies =
                fields.mappings("dependencies")?.iter().map(dependency).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Cleans the texts and refuses what Helm refuses.
    pub(super) fn validate(&mut self) -> Result<(), LoadError> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ]
        .into_iter()
        .chain(&mut self.sources)
        .chain(&mut self.keywords)
        {
            *text = sanitize(text);
        }
        if self.name.is_empty() {
            return Err(invalid("chart.metadata.name is required"));
        }
        if self.name.contains('/') || self.name == ".." {
            return Err(invalid(format!("chart.metadata.name {:?} is invalid", self.name)));
        }
        if self.version.is_empty() {
            return Err(invalid("chart.metadata.version is required"));
        }
        if !versions::is_version(&self.version) {
            return Err(invalid(format!("chart.metadata.version {:?} is invalid", self.version)));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return Err(invalid("chart.metadata.type must be application or library"));
        }
        let mut names = BTreeSet::new();
        for dependency in &self.dependencies {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !dependency.alias.chars().all(allowed) {
                let name = &dependency.name;
                return Err(invalid(format!("dependency {name:?} has disallowed characters in the alias")));
            }
            let name = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !names.insert(name) {
                return Err(invalid(format!("more than one dependency with name or alias {name:?}")));
            }
        }
        Ok(())
    }
}

fn maintainer(fields: &Fields<'_>) -> Result<Maintainer, LoadError> {
    Ok(Maintainer {
        name: sanitize(&fields.text("name")?),
        email: sanitize(&fields.text("email")?),
        url: sanitize(&fields.text("url")?),
    })
}

fn dependency(fields: &Fields<'_>) -> Result<Dependency, LoadError> {
    let mut import_values = Vec::new();
    for item in fields.list("import-values")? {
        import_values.push(match item {
            Value::String(name) => ImportValue::Export(name.clone()),
            Value::Object(map) => match (map.get("child"), map.get("parent")) {
                (Some(Value::String(child)), Some(Value::String(parent))) => {
                    ImportValue::Paths { child: child.clone(), parent: parent.clone() }
                }
                _ => return Err(invalid("import-values needs the strings child and parent")),
            },
            // Helm ignores other kinds of items.
            _ => continue,
        });
    }
    Ok(Dependency {
        name: sanitize(&fields.text("name")?),
        version: sanitize(&fields.text("version")?),
        repository: sanitize(&fields.text("repository")?),
        condition: sanitize(&fields.text("condition")?),
        tags: fields.texts("tags")?.iter().map(|tag| sanitize(tag)).collect(),
        enabled: fields.bool("enabled")?,
        import_values,
        alias: fields.text("alias")?,
    })
}
