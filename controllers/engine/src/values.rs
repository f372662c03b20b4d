//! Merges layers of values for one app on one cluster. Merging is Helm's: maps deep, everything else replaced.

use emco_crds::fields::ClusterTerm;
use serde_json::{Map, Value};

use crate::terms::{self, Candidate};

pub mod template;

use template::{Fault, Scope, Templates};

/// One layer of values of one app, lowest first. What the chart brings lies below all of them, in the chart.
pub struct Layer<'a> {
    /// It was read from a Secret: nothing of it may be quoted.
    pub secret: bool,
    /// For messages: `CompositeProfile shop-prod, Secret web-values key values.yaml`.
    pub origin: String,
    /// The values, as written.
    pub values: Map<String, Value>,
    /// Set where the entry says `templating: Handlebars`.
    pub templates: Option<Templates>,
    /// `None`: on every cluster. Otherwise where a term matches.
    pub clusters: Option<&'a [ClusterTerm]>,
}

impl std::fmt::Debug for Layer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// The Secrets among the origins of layers.
pub fn secrets<'a>(layers: &'a [Layer<'_>]) -> Vec<&'a str> {
    layers.iter().filter(|layer| layer.secret).map(|layer| layer.origin.as_str()).collect()
}

/// A layer that could not be worked out on a cluster.
#[derive(Debug)]
pub struct LayerFault {
    /// Position of the layer.
    pub layer: usize,
    /// What is wrong.
    pub fault: Fault,
}

impl Layer<'_> {
    /// Whether the layer counts on this cluster.
    pub fn applies(&self, cluster: &Candidate<'_>) -> bool {
        self.clusters.is_none_or(|terms| terms::any_matches(terms, cluster))
    }
}

/// Which layers count on a cluster. Equal masks without templates mean equal values.
pub fn mask(layers: &[Layer<'_>], cluster: &Candidate<'_>) -> Vec<bool> {
    layers.iter().map(|layer| layer.applies(cluster)).collect()
}

/// Whether the values may differ between clusters of the same mask.
pub fn templated(layers: &[Layer<'_>], mask: &[bool]) -> bool {
    layers.iter().zip(mask).any(|(layer, applies)| *applies && layer.templates.is_some())
}

/// Merges the layers that count, lowest first.
pub fn merged(
    layers: &[Layer<'_>],
    mask: &[bool],
    scope: &Scope<'_>,
) -> Result<Map<String, Value>, LayerFault> {
    let mut merged = Map::new();
    for (position, layer) in layers.iter().enumerate() {
        if !mask.get(position).copied().unwrap_or_default() {
            continue;
        }
        match &layer.templates {
            None => merge(&mut merged, &layer.values),
            Some(templates) => {
                let filled = templates
                    .fill(&layer.values, scope)
                    .map_err(|fault| LayerFault { layer: position, fault })?;
                merge(&mut merged, &filled);
            }
        }
    }
    Ok(merged)
}

/// Puts `over` on top of `base`. A null stays in the result: it takes away what the chart has below.
pub fn merge(base: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge(below, above),
            (Some(slot), _) => *slot = value.clone(),
            (None, _) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(mut value: Value) -> Map<String, Value> {
        std::mem::take(value.as_object_mut().unwrap())
    }

    #[test]
    fn maps_merge_deep_and_lists_are_replaced() {
        let mut base = map(json!({"a": {"x": 1, "y": [1, 2]}, "b": 1}));
        merge(&mut base, &map(json!({"a": {"y": [3]}, "c": {}})));
        assert_eq!(Value::Object(base), json!({"a": {"x": 1, "y": [3]}, "b": 1, "c": {}}));
    }

    #[test]
    fn a_null_removes_a_lower_layers_key_and_reaches_the_chart() {
        let mut base = map(json!({"resources": {"limits": {"cpu": 1}}}));
        merge(&mut base, &map(json!({"resources": null})));
        assert_eq!(Value::Object(base), json!({"resources": null}));
    }

    #[test]
    fn a_map_over_a_scalar_and_a_scalar_over_a_map_replace_it() {
        let mut base = map(json!({"a": 1, "b": {"x": 1}}));
        merge(&mut base, &map(json!({"a": {"x": 1}, "b": "off"})));
        assert_eq!(Value::Object(base), json!({"a": {"x": 1}, "b": "off"}));
    }
}
