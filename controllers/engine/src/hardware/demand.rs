//! Reads what the consumers of intents need of nodes. What is wrong with one in itself is found here, before any deployment lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::fields::Quantity;
use emco_crds::hardware_intent::{
    Consumer, HardwareIntentSpec, Importance, Requirement, ResourceRequirement,
};

use super::nodes::Amounts;
use super::quantity;

/// Consumers of one deployment, and replicas of all of them on one cluster: each is fitted to nodes again and again, and others wait for it.
const CONSUMERS: usize = 256;
const REPLICAS: usize = 4_000;
/// No key of a label is longer.
const KEY: usize = 317;

/// The needs of one replica, of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Amounts, by resource.
    pub resources: Amounts,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
}

/// The need of a consumer on each cluster of its app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// For messages: `HardwareIntent gpu, spec.consumers[detector]`.
    pub origin: String,
    /// Replicas, each of which needs a node.
    pub replicas: usize,
    /// All that each of them cannot do without.
    pub required: Needs,
    /// Makes a cluster better, with its weight: all that is required, and this.
    pub preferred: Vec<(u32, Needs)>,
}

impl Demand {
    /// All that is read of nodes for it.
    pub(super) fn needs(&self) -> impl Iterator<Item = &Needs> {
        std::iter::once(&self.required).chain(self.preferred.iter().map(|(_, needs)| needs))
    }
}

/// The needs of a deployment, by app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands(pub BTreeMap<String, Vec<Arc<Demand>>>);

impl Demands {
    /// The needs of one app.
    pub fn of(&self, app: &str) -> &[Arc<Demand>] {
        self.0.get(app).map_or(&[], Vec::as_slice)
    }

    /// True where nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True of an app that asks for an amount of something: only then Pods count that others have.
    pub fn counts(&self, app: &str) -> bool {
        self.of(app).iter().flat_map(|demand| demand.needs()).any(|needs| !needs.resources.is_empty())
    }

    /// Says why they are too many to be fitted.
    pub fn too_many(&self) -> Option<String> {
        let consumers = self.0.values().map(Vec::len).sum::<usize>();
        let replicas = self.0.values().flatten().map(|demand| demand.replicas).sum::<usize>();
        (consumers > CONSUMERS || replicas > REPLICAS).then(|| {
            format!(
                "spec.consumers: with those of other intents there are {consumers} consumers with {replicas} replicas on each cluster, and a \
                 deployment has at most {CONSUMERS} with {REPLICAS}: divide it"
            )
        })
    }

    /// Resources that are asked for, in order.
    pub fn columns(&self) -> Vec<&str> {
        let needs = self.0.values().flatten().flat_map(|demand| demand.needs());
        let names: BTreeSet<&str> =
            needs.flat_map(|needs| needs.resources.keys().map(String::as_str)).collect();
        names.into_iter().collect()
    }

    /// Keys of labels that an app asks for.
    pub fn keys(&self, app: &str) -> BTreeSet<String> {
        let needs = self.of(app).iter().flat_map(|demand| demand.needs());
        needs.flat_map(|needs| needs.labels.keys().cloned()).collect()
    }
}

/// A fault of a requirement, whatever deployment lists its intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A sentence that begins with the field, such as `spec.consumers[detector].requirements[gpu]`.
    pub message: String,
}

/// Reads all consumers of an intent, with the apps that they belong to.
pub fn demands<'a>(
    intent: &str,
    spec: &'a HardwareIntentSpec,
) -> Result<Vec<(&'a Consumer, Arc<Demand>)>, Fault> {
    let read = |consumer: &'a Consumer| {
        let demand = demand(intent, consumer)?;
        Ok((consumer, Arc::new(demand)))
    };
    spec.consumers.iter().map(read).collect()
}

/// For messages: `HardwareIntent gpu, spec.consumers[detector]`.
pub fn origin(intent: &str, consumer: &str) -> String {
    format!("HardwareIntent {intent}, spec.consumers[{consumer}]")
}

fn demand(intent: &str, consumer: &Consumer) -> Result<Demand, Fault> {
    let at = format!("spec.consumers[{}]", consumer.name);
    let (required, preferred): (Vec<_>, Vec<_>) = consumer
        .requirements
        .iter()
        .partition(|requirement| requirement.importance.unwrap_or_default() == Importance::Required);
    let mut demand = Demand {
        origin: origin(intent, &consumer.name),
        replicas: usize::try_from(consumer.replicas.unwrap_or(1)).unwrap_or(1),
        ..Demand::default()
    };
    for requirement in required {
        add(&mut demand.required, requirement, &at)?;
    }
    for requirement in preferred {
        let mut needs = demand.required.clone();
        add(&mut needs, requirement, &at)?;
        let weight = u32::try_from(requirement.weight.unwrap_or(1)).unwrap_or(1);
        demand.preferred.push((weight, needs));
    }
    Ok(demand)
}

fn add(needs: &mut Needs, requirement: &Requirement, at: &str) -> Result<(), Fault> {
    let at = format!("{at}.requirements[{}]", requirement.name);
    let fault = |what: String| Err(Fault { message: format!("{at}{what}") });
    if let Some(ResourceRequirement { name, request, limit }) = &requirement.resource {
        let Some(amount) = amount(request).filter(|amount| *amount > 0) else {
            return fault(format!(
                ".resource.request: {} is no amount above 0: write one such as 500m, 2 or 4Gi",
                request.0
            ));
        };
        if let Some(limit) = limit
            && self::amount(limit).is_none_or(|limit| limit < amount)
        {
            return fault(format!(
                ".resource.limit: {} is smaller than the request {}: raise it, or leave it out",
                limit.0, request.0
            ));
        }
        let preferred = requirement.importance == Some(Importance::Preferred);
        match needs.resources.get_mut(name) {
            None => {
                needs.resources.insert(name.clone(), amount);
            }
            // The amount that is required is a part of it.
            Some(known) if preferred => *known = amount.max(*known),
            Some(_) => {
                return fault(format!(
                    ".resource.name: another requirement asks for {name} as well: ask once for all of it"
                ));
            }
        }
    }
    for (key, value) in requirement.node_selector.iter().flat_map(|selector| &selector.match_labels) {
        if key.len() > KEY {
            let length = key.len();
            return fault(format!(
                ".nodeSelector.matchLabels: a key has {length} bytes, and no label of a node has more than {KEY}: correct it"
            ));
        }
        let known = needs.labels.insert(key.clone(), value.clone());
        if let Some(known) = known.filter(|known| known != value) {
            return fault(format!(
                ".nodeSelector: another requirement asks for {key}={known}, and no node has two values of one label"
            ));
        }
    }
    Ok(())
}

fn amount(Quantity(written): &Quantity) -> Option<i128> {
    quantity::thousandths(&written.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[allow(clippy::needless_pass_by_value)] // written where it is called
    fn read(requirements: Value) -> Result<Demand, String> {
        let consumer = json!({"name": "web", "app": "web", "replicas": 2, "requirements": requirements});
        let spec: HardwareIntentSpec = serde_json::from_value(json!({"consumers": [consumer]})).unwrap();
        let all = demands("gpu", &spec).map_err(|fault| fault.message)?;
        Ok(all[0].1.as_ref().clone())
    }

    #[test]
    fn what_is_preferred_is_asked_for_beside_all_that_is_required() {
        let demand = read(json!([
            {"name": "cpu", "resource": {"name": "cpu", "request": "500m"}},
            {"name": "avx", "nodeSelector": {"matchLabels": {"avx": "true"}}, "importance": "Preferred", "weight": 20},
        ]));
        let demand = demand.unwrap();
        assert_eq!((demand.replicas, demand.origin.as_str()), (2, "HardwareIntent gpu, spec.consumers[web]"));
        assert_eq!(demand.required.resources, BTreeMap::from([("cpu".to_owned(), 500)]));
        assert!(demand.required.labels.is_empty());
        let (weight, needs) = &demand.preferred[0];
        assert_eq!((*weight, needs.resources.len(), needs.labels.len()), (20, 1, 1));
    }

    #[test]
    fn memory_is_counted_in_bytes_with_the_suffix_that_is_written() {
        let asked = |request: &str| {
            let one = json!([{"name": "m", "resource": {"name": "memory", "request": request}}]);
            read(one).unwrap().required.resources["memory"]
        };
        assert_eq!((asked("500M"), asked("500Mi")), (500_000_000_000, 524_288_000_000));
    }

    #[test]
    fn a_request_above_its_limit_and_no_quantity_are_refused() {
        let one = |resource: Value| read(json!([{"name": "r", "resource": resource}])).unwrap_err();
        assert_eq!(
            one(json!({"name": "cpu", "request": 2, "limit": "1500m"})),
            "spec.consumers[web].requirements[r].resource.limit: 1500m is smaller than the request 2: raise it, or leave it out"
        );
        assert_eq!(
            one(json!({"name": "cpu", "request": "many"})),
            "spec.consumers[web].requirements[r].resource.request: many is no amount above 0: write one such as 500m, 2 or 4Gi"
        );
    }

    #[test]
    fn requirements_that_contradict_each_other_are_refused() {
        let twice = json!([
            {"name": "a", "resource": {"name": "cpu", "request": 1}}, {"name": "b", "resource": {"name": "cpu", "request": 2}},
        ]);
        assert!(
            read(twice)
                .unwrap_err()
                .starts_with("spec.consumers[web].requirements[b].resource.name: another")
        );
        let labels = json!([
            {"name": "a", "nodeSelector": {"matchLabels": {"zone": "a"}}}, {"name": "b", "nodeSelector": {"matchLabels": {"zone": "b"}}},
        ]);
        assert!(read(labels).unwrap_err().contains("asks for zone=a, and no node"));
    }

    #[test]
    fn more_than_can_be_fitted_is_told_with_the_numbers() {
        let demand = |replicas| Arc::new(Demand { replicas, ..Demand::default() });
        let demands = |all: Vec<Arc<Demand>>| Demands([("web".to_owned(), all)].into());
        assert_eq!(demands(vec![demand(1000); 4]).too_many(), None);
        let many = demands(vec![demand(1000); 5]).too_many().unwrap();
        assert!(many.contains("there are 5 consumers with 5000 replicas on each cluster"), "{many}");
        assert!(demands(vec![demand(1); 257]).too_many().is_some());
    }

    #[test]
    fn a_key_that_no_label_has_is_refused() {
        let long = "k".repeat(318);
        let refused = read(json!([{"name": "a", "nodeSelector": {"matchLabels": {(long): "yes"}}}]));
        assert!(refused.unwrap_err().contains("a key has 318 bytes"));
    }
}
