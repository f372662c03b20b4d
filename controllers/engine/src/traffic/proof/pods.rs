//! Sets of pods, by the labels of their namespace and their own, and whether one is within others.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::fields::LabelSelector;

use crate::traffic::made::JOB_NAME;
use crate::traffic::policy::NAMESPACE_LABEL;

/// A value that no selector names.
const FRESH: &str = "\0";
/// Most labelings that are tried; a set that would take more is not within the others, as far as that is known.
const MOST: usize = 4096;
/// Most sets of which it is tried whether they hold another one together.
const MOST_SETS: usize = 64;
/// Labels that Kubernetes adds to pods, besides those of their template.
const ADDED: [&str; 10] = [
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    JOB_NAME,
    "controller-revision-hash",
    "controller-uid",
    "job-name",
    "pod-template-generation",
    "pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// A label of pods, or of their namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Of the namespace.
    Namespace(String),
    /// Of the pod.
    Pod(String),
}

/// The share of some pods that is in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// All of them.
    All,
    /// Some may be: it depends on labels that Kubernetes adds.
    Maybe,
    /// None.
    None,
}

/// A need of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
}

impl Need {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
        }
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        let values = match self {
            Self::In(values) | Self::NotIn(values) => Some(values),
            Self::Exists | Self::Absent => None,
        };
        values.into_iter().flatten().map(String::as_str)
    }
}

/// All pods whose labels are as these needs say.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSet(BTreeMap<Key, BTreeSet<Need>>);

impl PodSet {
    /// Those of a namespace.
    pub fn of_namespace(namespace: &str, pods: &LabelSelector) -> Self {
        Self::of_namespaces([namespace.to_owned()].into(), pods)
    }

    /// Those of namespaces with these names.
    pub fn of_namespaces(namespaces: BTreeSet<String>, pods: &LabelSelector) -> Self {
        let mut set = Self::default();
        set.add(Key::Namespace(NAMESPACE_LABEL.to_owned()), Need::In(namespaces));
        set.select(pods, Key::Pod);
        set
    }

    /// Those of namespaces with these labels.
    pub fn of_selected(namespaces: &LabelSelector, pods: &LabelSelector) -> Self {
        let mut set = Self::default();
        set.select(namespaces, Key::Namespace);
        set.select(pods, Key::Pod);
        set
    }

    fn add(&mut self, key: Key, need: Need) {
        self.0.entry(key).or_default().insert(need);
    }

    fn select(&mut self, selector: &LabelSelector, key: impl Fn(String) -> Key) {
        for (name, value) in selector.match_labels.iter().flatten() {
            self.add(key(name.clone()), Need::In([value.clone()].into()));
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values = || expression.values.iter().flatten().cloned().collect();
            let need = match expression.operator.as_str() {
                "In" => Need::In(values()),
                "NotIn" => Need::NotIn(values()),
                "Exists" => Need::Exists,
                "DoesNotExist" => Need::Absent,
                // The API server knows no other: nothing may be proved by it.
                _ => continue,
            };
            self.add(key(expression.key.clone()), need);
        }
    }

    fn allows(&self, key: &Key, value: Option<&str>) -> bool {
        self.0.get(key).is_none_or(|needs| needs.iter().all(|need| need.holds(value)))
    }

    /// True for a pod that is one of them. Of its namespace the name alone is known: no other label counts as there.
    pub fn has<'l>(&self, namespace: &'l str, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.holds(|key| match key {
            Key::Namespace(name) if name == NAMESPACE_LABEL => Some(namespace),
            Key::Namespace(_) => None,
            Key::Pod(name) => label(name),
        })
    }

    /// The same for a pod of which all labels are known.
    pub fn holds<'l>(&self, label: impl Fn(&Key) -> Option<&'l str>) -> bool {
        self.0.iter().all(|(key, needs)| needs.iter().all(|need| need.holds(label(key))))
    }

    /// The share of the pods of a template with these labels that is in it.
    pub fn among(&self, namespace: &str, labels: &BTreeMap<&str, &str>) -> Among {
        let mut among = Among::All;
        for (key, needs) in &self.0 {
            let value = match key {
                Key::Namespace(name) if name == NAMESPACE_LABEL => Some(namespace),
                Key::Namespace(_) => None,
                Key::Pod(name) => {
                    let value = labels.get(name.as_str()).copied();
                    if value.is_none() && ADDED.contains(&name.as_str()) {
                        among = Among::Maybe;
                        continue;
                    }
                    value
                }
            };
            if !needs.iter().all(|need| need.holds(value)) {
                return Among::None;
            }
        }
        among
    }

    /// Number of its needs and their values: the cost of a look at it.
    pub fn size(&self) -> usize {
        self.0.values().flatten().map(|need| 1 + need.values().count()).sum()
    }

    /// True where every pod of it is in one of the others.
    pub fn is_within(&self, others: &[&Self]) -> bool {
        if self.0.keys().any(|key| self.domain(key, &[]).is_empty())
            || others.iter().any(|other| self.is_in(other))
        {
            return true;
        }
        // Sets that have none of its pods do not help.
        let others: Vec<&Self> = others.iter().copied().filter(|other| self.meets(other)).collect();
        others.len() <= MOST_SETS && self.is_within_together(&others)
    }

    /// True where every pod of it is in one other.
    fn is_in(&self, other: &Self) -> bool {
        other.0.keys().all(|key| self.domain(key, &[other]).iter().all(|value| other.allows(key, *value)))
    }

    /// False where no pod can be in both.
    fn meets(&self, other: &Self) -> bool {
        other.0.keys().all(|key| self.domain(key, &[other]).iter().any(|value| other.allows(key, *value)))
    }

    fn is_within_together(&self, others: &[&Self]) -> bool {
        let keys: BTreeSet<&Key> =
            std::iter::once(self).chain(others.iter().copied()).flat_map(|set| set.0.keys()).collect();
        let domains: Vec<(&Key, Vec<Option<&str>>)> =
            keys.into_iter().map(|key| (key, self.domain(key, others))).collect();
        let labelings = domains.iter().try_fold(1_usize, |all, (_, values)| all.checked_mul(values.len()));
        labelings.is_some_and(|all| all <= MOST) && all_within(&domains, others)
    }

    /// Values of a label by which its pods could be told apart.
    fn domain<'s>(&'s self, key: &Key, others: &[&'s Self]) -> Vec<Option<&'s str>> {
        let sets = std::iter::once(self).chain(others.iter().copied());
        let needs = sets.filter_map(|set| set.0.get(key)).flatten();
        let mut values: BTreeSet<Option<&str>> = needs.flat_map(Need::values).map(Some).collect();
        values.insert(Some(FRESH));
        // Every namespace has its name.
        if *key != Key::Namespace(NAMESPACE_LABEL.to_owned()) {
            values.insert(None);
        }
        values.into_iter().filter(|value| self.allows(key, *value)).collect()
    }

    /// True where nobody else has such pods: a label says the release, or the name of a Job.
    pub fn is_of_release(&self, release: &str) -> bool {
        self.0.iter().any(|(key, needs)| {
            let Key::Pod(name) = key else { return false };
            let is_release = |need: &Need| need.values().eq([release]) && matches!(need, Need::In(_));
            name == JOB_NAME || needs.iter().any(is_release)
        })
    }

    /// In words: `pods with app=ui of namespace retail`.
    pub fn described(&self) -> String {
        let said = |own: bool| -> Vec<String> {
            let of = self.0.iter().filter_map(|(key, needs)| match key {
                Key::Namespace(name) if !own && name != NAMESPACE_LABEL => Some((name, needs)),
                Key::Pod(name) if own => Some((name, needs)),
                Key::Namespace(_) | Key::Pod(_) => None,
            });
            of.flat_map(|(name, needs)| needs.iter().map(move |need| words(name, need))).collect()
        };
        let pods = said(true);
        let pods =
            if pods.is_empty() { "any pod".to_owned() } else { format!("pods with {}", pods.join(", ")) };
        let name = self.0.get(&Key::Namespace(NAMESPACE_LABEL.to_owned())).into_iter().flatten();
        let names: Vec<String> = name.flat_map(Need::values).map(str::to_owned).collect();
        let labels = said(false);
        match (names.as_slice(), labels.is_empty()) {
            ([], true) => format!("{pods} of any namespace"),
            ([], false) => format!("{pods} of namespaces with {}", labels.join(", ")),
            ([name], _) => format!("{pods} of namespace {name}"),
            (names, _) => format!("{pods} of namespaces {}", names.join(", ")),
        }
    }
}

fn words(name: &str, need: &Need) -> String {
    let list = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match need {
        Need::In(values) if values.len() == 1 => format!("{name}={}", list(values)),
        Need::In(values) => format!("{name} in ({})", list(values)),
        Need::NotIn(values) => format!("{name} not in ({})", list(values)),
        Need::Exists => format!("{name} of any value"),
        Need::Absent => format!("no {name}"),
    }
}

/// Tries every labeling.
fn all_within(domains: &[(&Key, Vec<Option<&str>>)], others: &[&PodSet]) -> bool {
    let mut at = vec![0; domains.len()];
    loop {
        let labeling: Vec<(&Key, Option<&str>)> = domains
            .iter()
            .zip(&at)
            .filter_map(|((key, values), at)| Some((*key, *values.get(*at)?)))
            .collect();
        let is_in = |other: &&PodSet| labeling.iter().all(|(key, value)| other.allows(key, *value));
        if !others.iter().any(is_in) {
            return false;
        }
        // The next one, as an odometer turns.
        let mut turned = false;
        for (digit, (_, values)) in at.iter_mut().zip(domains) {
            *digit += 1;
            if *digit < values.len() {
                turned = true;
                break;
            }
            *digit = 0;
        }
        if !turned {
            return true;
        }
    }
}
