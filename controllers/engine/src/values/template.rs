//! Fills in the texts of values that say `templating: Handlebars`, for one cluster.
//!
//! Strict: a variable that is not known is a fault with its line, never an empty text. Nothing is escaped, for the result
//! is YAML and not HTML. Templates are a tenant's input: no loops, no partials, no inline definitions, bounded nesting, so
//! that what comes out is at most as long as what went in times a property.

use std::collections::BTreeMap;

use emco_crds::names::label::virtual_;
use handlebars::template::{Parameter, TemplateElement};
use handlebars::{
    Context, Handlebars, Helper, HelperResult, Output, RenderContext, RenderError, RenderErrorReason,
    Template,
};
use serde_json::{Map, Value, json};

use crate::terms::Candidate;

/// Longest text that may hold templates, in bytes.
const LONGEST: usize = 64 * 1024;
/// Deepest nesting of blocks or parentheses.
const DEEPEST: usize = 16;
/// Where the context keeps labels: not a name that a template can write.
const LABELS: &str = "\0labels";
/// Helpers that make nothing longer.
const HELPERS: [&str; 11] = ["label", "lookup", "eq", "ne", "gt", "gte", "lt", "lte", "and", "or", "not"];
/// Blocks that make nothing longer.
const BLOCKS: [&str; 2] = ["if", "unless"];

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the values: `ingress.host`.
    pub path: String,
    /// Line within the text, from 1.
    pub line: usize,
    /// The variable that is not known, as written.
    pub unknown: Option<String>,
    /// What the template engine or we say about anything else.
    pub message: String,
}

/// What templates can see of one cluster and of the deployment.
#[derive(Debug)]
pub struct Scope<'a> {
    context: Context,
    /// `provider/cluster`, for messages.
    pub cluster: &'a str,
}

impl<'a> Scope<'a> {
    /// Collects the variables: `cluster.name`, `cluster.provider`, `cluster.properties.*`, `label "..."`, `project`,
    /// `release`.
    pub fn new(cluster: &Candidate<'a>, project: &str, release: &str) -> Self {
        let facts = cluster.facts;
        let mut labels: BTreeMap<&str, &str> =
            facts.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        for key in [virtual_::PROVIDER, virtual_::CLUSTER, virtual_::KUBERNETES_MINOR] {
            if let Some(value) = cluster.label(key) {
                labels.insert(key, value);
            }
        }
        let context = json!({
            "cluster": {
                "name": facts.id.cluster(),
                "provider": facts.id.provider(),
                "properties": facts.properties,
            },
            "project": project,
            "release": release,
            LABELS: labels,
        });
        Self { context: Context::from(context), cluster: facts.id.as_str() }
    }
}

/// The texts of one layer, parsed once for all clusters.
pub struct Templates {
    registry: Handlebars<'static>,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates").field("texts", &self.registry.get_templates().len()).finish()
    }
}

impl Templates {
    /// Parses every text that holds `{{`.
    pub fn parse(values: &Map<String, Value>) -> Result<Self, Fault> {
        let mut registry = Handlebars::new();
        registry.set_strict_mode(true);
        registry.register_escape_fn(handlebars::no_escape);
        for helper in ["each", "with", "raw", "log", "len"] {
            registry.unregister_helper(helper);
        }
        registry.register_helper("label", Box::new(label));
        for (key, value) in values {
            collect(value, &segment("", key), &mut registry)?;
        }
        Ok(Self { registry })
    }

    /// Fills in the texts for one cluster; keys and everything that is no text stay.
    pub fn fill(&self, values: &Map<String, Value>, scope: &Scope<'_>) -> Result<Map<String, Value>, Fault> {
        values
            .iter()
            .map(|(key, value)| Ok((key.clone(), self.filled(value, &segment("", key), scope)?)))
            .collect()
    }

    fn filled(&self, value: &Value, path: &str, scope: &Scope<'_>) -> Result<Value, Fault> {
        Ok(match value {
            Value::String(_) if self.registry.has_template(path) => {
                let text = self
                    .registry
                    .render_with_context(path, &scope.context)
                    .map_err(|error| rendering(&error, path))?;
                Value::String(text)
            }
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| self.filled(item, &format!("{path}[{i}]"), scope))
                .collect::<Result<_, _>>()?,
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| Ok((key.clone(), self.filled(item, &segment(path, key), scope)?)))
                .collect::<Result<Map<_, _>, _>>()?
                .into(),
            other => other.clone(),
        })
    }
}

/// One step down: `a.b`, or `a["b.c"]` for keys that would be ambiguous. Paths name templates, so they must be unique.
fn segment(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

fn collect(value: &Value, path: &str, registry: &mut Handlebars<'static>) -> Result<(), Fault> {
    match value {
        Value::String(text) if text.contains("{{") => {
            let template = parse(text, path)?;
            registry.register_template(path, template);
            Ok(())
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| collect(item, &format!("{path}[{i}]"), registry)),
        Value::Object(map) => {
            map.iter().try_for_each(|(key, item)| collect(item, &segment(path, key), registry))
        }
        _ => Ok(()),
    }
}

fn parse(text: &str, path: &str) -> Result<Template, Fault> {
    let fault = |line, message: String| Fault { path: path.to_owned(), line, unknown: None, message };
    if text.len() > LONGEST {
        return Err(fault(1, format!("the text is longer than {LONGEST} bytes, too long for a template")));
    }
    // Before parsing, because the parser calls itself once per level.
    if text.matches("{{#").count() > DEEPEST || text.matches('(').count() > DEEPEST {
        return Err(fault(1, format!("more than {DEEPEST} blocks or parentheses in one text")));
    }
    let template = Template::compile(text).map_err(|error| {
        let line = error.pos().map_or(1, |(line, _)| line);
        fault(line, error.reason().to_string())
    })?;
    check(&template).map_err(|(line, message)| fault(line, message))?;
    Ok(template)
}

/// Refuses what could make a text longer than its parts, and helpers nobody has.
fn check(template: &Template) -> Result<(), (usize, String)> {
    for (i, element) in template.elements.iter().enumerate() {
        let line = template.mapping.get(i).map_or(1, |at| at.0);
        match element {
            TemplateElement::RawString(_) | TemplateElement::Comment(_) => {}
            TemplateElement::Expression(e) | TemplateElement::HtmlExpression(e) => {
                if let Parameter::Name(name) = &e.name
                    && !e.params.is_empty()
                    && !HELPERS.contains(&name.as_str())
                {
                    return Err((line, format!("there is no helper {name}: {}", HELPERS.join(", "))));
                }
            }
            TemplateElement::HelperBlock(block) => {
                let name = block.name.as_name().unwrap_or_default();
                if !BLOCKS.contains(&name) {
                    return Err((
                        line,
                        format!("block {name} is not available here, only {}", BLOCKS.join(" and ")),
                    ));
                }
                block.template.iter().chain(&block.inverse).try_for_each(check)?;
            }
            // Partials, decorators, and what a later version of the library may bring.
            _ => {
                return Err((line, "partials and inline definitions are not available here".to_owned()));
            }
        }
    }
    Ok(())
}

/// `{{label "topology.kubernetes.io/region"}}`.
fn label(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    context: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let key = helper.param(0).and_then(|p| p.value().as_str()).ok_or_else(|| {
        RenderErrorReason::Other("label needs a text, for example {{label \"tier\"}}".to_owned())
    })?;
    let value = context.data().get(LABELS).and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let value = value.ok_or_else(|| RenderErrorReason::MissingVariable(Some(format!("label \"{key}\""))))?;
    out.write(value)?;
    Ok(())
}

fn rendering(error: &RenderError, path: &str) -> Fault {
    let unknown = match error.reason() {
        RenderErrorReason::MissingVariable(name) => Some(name.clone().unwrap_or_default()),
        _ => None,
    };
    Fault {
        path: path.to_owned(),
        line: error.line_no.unwrap_or(1),
        unknown,
        message: error.reason().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ClusterId;
    use crate::snapshot::{ClusterFacts, Scheduling};

    fn facts() -> ClusterFacts {
        ClusterFacts {
            id: ClusterId::new("acme", "oslo-2"),
            labels: [("tier".to_owned(), "edge".to_owned())].into(),
            properties: [("rack".to_owned(), "12 & <b>".to_owned())].into(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: None,
            kubernetes_version: None,
            apis: None,
            nodes: None,
            network_policy: None,
        }
    }

    fn fill(text: &str) -> Result<String, Fault> {
        let values = json!({"a": [{"b": text}]}).as_object().unwrap().clone();
        let facts = facts();
        let filled =
            Templates::parse(&values)?.fill(&values, &Scope::new(&Candidate::new(&facts), "team-a", "r1"))?;
        Ok(filled["a"][0]["b"].as_str().unwrap().to_owned())
    }

    #[test]
    fn every_variable_is_filled_in_without_escaping() {
        assert_eq!(
            fill(
                "{{cluster.name}} {{cluster.provider}} {{label \"tier\"}} {{label \"emco.io/cluster\"}} {{cluster.properties.rack}} {{project}} {{release}}"
            )
            .unwrap(),
            "oslo-2 acme edge oslo-2 12 & <b> team-a r1"
        );
    }

    #[test]
    fn an_unknown_variable_is_a_fault_with_path_and_line() {
        for (text, name) in [
            ("x\n{{cluster.rack}}", "cluster.rack"),
            ("x\n{{label \"disk\"}}", "label \"disk\""),
            ("x\n{{nothing}}", "nothing"),
        ] {
            let fault = fill(text).unwrap_err();
            assert_eq!((fault.path.as_str(), fault.line), ("a[0].b", 2), "{text}");
            assert_eq!(fault.unknown.as_deref(), Some(name), "{text}");
        }
    }

    #[test]
    fn conditions_work() {
        let text = "{{#if (eq (lookup cluster \"name\") \"oslo-2\")}}here{{else}}there{{/if}}";
        assert_eq!(fill(text).unwrap(), "here");
    }

    #[test]
    fn what_could_grow_without_bound_is_refused() {
        for text in [
            "{{#each cluster.properties}}{{this}}{{/each}}",
            "{{#if true}}{{#with cluster}}x{{/with}}{{/if}}",
            "{{#*inline \"x\"}}{{> x}}{{/inline}}{{> x}}",
            "{{> other}}",
        ] {
            assert!(fill(text).unwrap_err().message.contains("not available"), "{text}");
        }
        assert!(fill(&format!("{}x", "{{#if true}}".repeat(1000))).unwrap_err().message.contains("blocks"));
        let deep = format!("{{{{eq {}1{} 1}}}}", "(eq ".repeat(1000), " 1)".repeat(1000));
        assert!(fill(&deep).unwrap_err().message.contains("parentheses"));
    }

    #[test]
    fn a_template_that_does_not_parse_says_where() {
        let fault = fill("x\n{{#if true}}").unwrap_err();
        assert_eq!(fault.path, "a[0].b");
        assert!(fault.unknown.is_none());
    }

    #[test]
    fn a_key_with_a_dot_is_not_taken_for_a_path() {
        let values = json!({"a.b": "{{project}}", "a": {"b": "{{release}}"}}).as_object().unwrap().clone();
        let facts = facts();
        let scope = Scope::new(&Candidate::new(&facts), "team-a", "r1");
        let filled = Templates::parse(&values).unwrap().fill(&values, &scope).unwrap();
        assert_eq!(Value::Object(filled), json!({"a.b": "team-a", "a": {"b": "r1"}}));
    }

    #[test]
    fn labels_are_not_reachable_but_by_the_helper() {
        assert!(fill("{{labels.tier}}").is_err());
    }
}
