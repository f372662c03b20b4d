//! Digests everything people wrote about a deployment: what an approval covers, and what makes a new revision.
//!
//! Stored approvals hang on it. Fields that are absent and values equal to a default are left out, so that a field that
//! comes in a later release moves nothing, and writing a default out moves nothing either. Lifecycle fields are not in it.
//! Structs are taken apart field by field: a new one is a decision here.

use emco_crds::composite_app::{App, ChartSource, Dependency, DependencyScope, DependencyState};
use emco_crds::composite_profile::ProfileApp;
use emco_crds::deployment_intent_group::placement::{AnyOf, AppRule, Membership, Placement, Weight};
use emco_crds::deployment_intent_group::{DeploymentIntentGroupSpec, OverrideValues};
use emco_crds::fields::{ClusterTerm, KeyRef, LabelSelector, SourceKind, Templating};
use serde_json::{Map, Value, json};

use crate::canonical;
use crate::cloud::CloudFacts;
use crate::resolve::{Resolved, ResolvedApp};

mod intents;
mod traffic;

use intents::intent_of;

/// Domain of inputs digests; the number is the format.
const DOMAIN: &str = "emco-inputs/1\0";

/// `sha256:` and 64 hexadecimal digits.
pub fn digest(resolved: &Resolved<'_>) -> String {
    canonical::sha256(DOMAIN, &document(resolved))
}

fn document(resolved: &Resolved<'_>) -> Value {
    let key = &resolved.snapshot.installation.digest_key;
    let DeploymentIntentGroupSpec {
        placement,
        override_values,
        intents,
        render_serial,
        // Their content counts, wherever it comes from.
        composite_app_ref: _,
        composite_profile_ref: _,
        logical_cloud_ref: _,
        // With its default, below.
        release: _,
        // Lifecycle: when and how, not what.
        desired_state: _,
        rollout: _,
        sync: _,
        progress_deadline: _,
        hook_timeout: _,
        unreachable: _,
        ready_clusters: _,
        revision_history_limit: _,
        suspend: _,
        revision: _,
    } = &resolved.dig.spec;
    let mut out = Fields::new();
    let apps = resolved.apps.iter().map(|app| (app.app.name.clone(), app_of(app, key)));
    out.put("apps", Value::Object(apps.collect()));
    out.put("release", resolved.dig.release().into());
    out.put("placement", placement_of(placement));
    out.list("overrideValues", override_values.iter().map(override_of));
    out.list("intents", intents.iter().map(|intent| intent_of(intent, resolved.snapshot)));
    out.some("renderSerial", render_serial.filter(|serial| *serial != 0));
    out.put("cloud", cloud_of(resolved.cloud));
    out.done()
}

fn cloud_of(cloud: &CloudFacts) -> Value {
    let mut out = Fields::new();
    out.put("level", cloud.level.as_str().into());
    out.put("namespace", cloud.namespace.as_str().into());
    out.some("account", cloud.account());
    out.done()
}

fn app_of(resolved: &ResolvedApp<'_>, key: &[u8; 32]) -> Value {
    let App { name: _, chart, depends_on } = resolved.app;
    let mut depends_on: Vec<_> = depends_on.iter().collect();
    depends_on.sort_by(|a, b| a.app.cmp(&b.app));
    let mut out = Fields::new();
    out.put("chart", chart_of(chart));
    out.put("chartDigest", resolved.chart.digest.as_str().into());
    out.list("dependsOn", depends_on.into_iter().map(dependency_of));
    if let Some((entry, texts)) = &resolved.profile {
        out.object("profile", profile_of(entry, texts, resolved, key));
    }
    out.done()
}

/// The source as it is written, without what is the default.
fn chart_of(chart: &ChartSource) -> Value {
    let mut chart = chart.clone();
    chart.skip_schema_validation = chart.skip_schema_validation.filter(|skip| *skip);
    if let Some(KeyRef { key, .. }) = &mut chart.config_map_ref
        && key.as_deref() == Some("chart.tgz")
    {
        *key = None;
    }
    serde_json::to_value(chart).unwrap_or_default()
}

fn dependency_of(dependency: &Dependency) -> Value {
    let Dependency { app, state, delay, scope } = dependency;
    let mut out = Fields::new();
    out.put("app", app.as_str().into());
    out.some(
        "state",
        state.filter(|state| *state != DependencyState::default()).map(|state| format!("{state:?}")),
    );
    out.some("delay", delay.as_ref().map(|delay| delay.0.clone()));
    let scope = scope.filter(|scope| *scope != DependencyScope::default());
    out.some("scope", scope.map(|scope| format!("{scope:?}")));
    out.done()
}

fn profile_of(entry: &ProfileApp, texts: &[&str], resolved: &ResolvedApp<'_>, key: &[u8; 32]) -> Value {
    let ProfileApp { app: _, values, values_from, templating, files: _ } = entry;
    let mut out = Fields::new();
    // A ConfigMap counts as what it says, a Secret as a keyed digest: this document must not help to guess it.
    let found =
        values_from.iter().zip(texts).zip(&resolved.layers).map(|((from, text), layer)| match from.kind {
            SourceKind::ConfigMap => json!({"values": layer.values}),
            SourceKind::Secret => json!({"secret": canonical::secret_digest(key, text)}),
        });
    out.list("valuesFrom", found);
    if let Some(values) = values {
        out.object("values", Value::Object(values.0.clone()));
    }
    out.put_templating(*templating);
    let files = resolved.files.iter().map(|(path, text)| ((*path).to_owned(), Value::from(*text)));
    out.object("files", Value::Object(files.collect()));
    out.done()
}

fn override_of(entry: &OverrideValues) -> Value {
    let OverrideValues { app, clusters, values, templating } = entry;
    let mut out = Fields::new();
    out.put("app", app.as_str().into());
    if let Some(clusters) = clusters {
        out.put("clusters", clusters.iter().map(term_of).collect());
    }
    out.put("values", Value::Object(values.0.clone()));
    out.put_templating(*templating);
    out.done()
}

fn placement_of(placement: &Placement) -> Value {
    let Placement { all_of, any_of, membership, weights, apps } = placement;
    let mut out = rule_of(all_of, any_of, *membership, weights);
    let apps = apps.iter().map(|rule| {
        let AppRule { app, all_of, any_of, membership, weights } = rule;
        (app.clone(), rule_of(all_of, any_of, *membership, weights).done())
    });
    out.object("apps", Value::Object(apps.collect()));
    out.done()
}

fn rule_of(
    all_of: &[ClusterTerm],
    any_of: &[AnyOf],
    membership: Option<Membership>,
    weights: &[Weight],
) -> Fields {
    let mut out = Fields::new();
    out.list("allOf", all_of.iter().map(term_of));
    out.list("anyOf", any_of.iter().map(group_of));
    out.some("membership", membership.filter(|m| *m != Membership::default()).map(|m| format!("{m:?}")));
    let mut weights: Vec<_> = weights.iter().collect();
    weights.sort_by(|a, b| a.name.cmp(&b.name));
    let weights = weights.into_iter().map(|Weight { name, weight }| json!({"name": name, "weight": weight}));
    out.list("weights", weights);
    out
}

fn group_of(group: &AnyOf) -> Value {
    let AnyOf { count: _, min: _, from } = group;
    let mut out = Fields::new();
    out.some("count", Some(group.count()).filter(|count| *count != 1));
    out.some("min", Some(group.min()).filter(|min| *min != group.count()));
    out.list("from", from.iter().map(term_of));
    out.done()
}

fn term_of(term: &ClusterTerm) -> Value {
    let ClusterTerm { provider, cluster, selector } = term;
    let mut out = Fields::new();
    out.some("provider", provider.clone());
    out.some("cluster", cluster.clone());
    if let Some(selector) = selector {
        // An empty selector means all clusters; no selector means none of its own.
        out.put("selector", selector_of(selector));
    }
    out.done()
}

fn selector_of(selector: &LabelSelector) -> Value {
    let LabelSelector { match_labels, match_expressions } = selector;
    let mut out = Fields::new();
    out.object("matchLabels", json!(match_labels.clone().unwrap_or_default()));
    let expressions = match_expressions.iter().flatten();
    out.list(
        "matchExpressions",
        expressions.map(|e| {
            let mut out = Fields::new();
            out.put("key", e.key.as_str().into());
            out.put("operator", e.operator.as_str().into());
            out.list("values", e.values.iter().flatten().map(|value| value.as_str().into()));
            out.done()
        }),
    );
    out.done()
}

/// An object that is filled only with what differs from a default.
struct Fields(Map<String, Value>);

impl Fields {
    fn new() -> Self {
        Self(Map::new())
    }

    fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value.into());
        }
    }

    fn list(&mut self, name: &str, values: impl Iterator<Item = Value>) {
        let values: Vec<Value> = values.collect();
        if !values.is_empty() {
            self.put(name, Value::Array(values));
        }
    }

    fn object(&mut self, name: &str, value: Value) {
        if value.as_object().is_none_or(|map| !map.is_empty()) {
            self.put(name, value);
        }
    }

    fn put_templating(&mut self, templating: Option<Templating>) {
        if templating.unwrap_or_default() == Templating::Handlebars {
            self.put("templating", "Handlebars".into());
        }
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}
