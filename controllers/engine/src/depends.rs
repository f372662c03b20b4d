//! Orders the apps of a deployment by their dependencies: which waits for which, which leaves first, and which wait for each other.
//! Generated apps come before all others, and leave after them, whatever depends on what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::SyncShardSpec;
use emco_crds::composite_app::{App, Dependency, DependencyScope, DependencyState};
use emco_crds::fields::DurationText;
use emco_crds::names::generated_app;
use emco_crds::sync_shard::{OrderedApp, ShardCombination, ShardOrder};

use crate::identity::{ClusterId, Combination, SetDigest};

mod gate;

pub use gate::{Judged, Reached, Waiting, judge};

/// One dependency of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The app that is waited for.
    pub on: String,
    /// What it must have reached.
    pub state: DependencyState,
    /// Where it must have.
    pub scope: DependencyScope,
    /// How long to wait after that.
    pub delay: Duration,
}

impl Wait {
    fn of(dependency: &Dependency) -> Self {
        let Dependency { app, state, delay, scope } = dependency;
        Self {
            on: app.clone(),
            state: state.unwrap_or_default(),
            scope: scope.unwrap_or_default(),
            delay: delay.as_ref().and_then(DurationText::parse).unwrap_or_default(),
        }
    }
}

/// Which apps wait for which, as a shard says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The revision whose clusters are counted; 0 = no app waits for other clusters.
    pub revision: i64,
    waits: BTreeMap<String, Vec<Wait>>,
    clusters: BTreeMap<String, usize>,
    silent: BTreeSet<String>,
    generated: Vec<String>,
}

impl Order {
    /// Reads what a shard says.
    pub fn of(order: Option<&ShardOrder>) -> Self {
        let mut read = Self::default();
        let Some(ShardOrder { revision, apps, generated, silent }) = order else { return read };
        read.generated.clone_from(generated);
        read.revision = *revision;
        read.silent = silent.iter().cloned().collect();
        for OrderedApp { app, depends_on, clusters } in apps {
            if !depends_on.is_empty() {
                read.waits.insert(app.clone(), depends_on.iter().map(Wait::of).collect());
            }
            if let Some(clusters) = clusters.and_then(|clusters| usize::try_from(clusters).ok()) {
                read.clusters.insert(app.clone(), clusters);
            }
        }
        read
    }

    /// The same with the generated apps among these, which a shard has: those that the order does not name, as of an earlier revision,
    /// come after those that it names.
    #[must_use]
    pub fn with<'a>(mut self, apps: impl IntoIterator<Item = &'a str>) -> Self {
        let has: BTreeSet<&str> = apps.into_iter().filter(|app| generated_app::is(app)).collect();
        self.generated.retain(|app| has.contains(app.as_str()));
        let more = has.into_iter().filter(|app| !self.generated.iter().any(|known| known == app));
        let more: Vec<String> = more.map(str::to_owned).collect();
        self.generated.extend(more);
        self
    }

    /// Generated apps, in the order in which they are applied. Every other app waits for those that its cluster is to have.
    pub fn generated(&self) -> &[String] {
        &self.generated
    }

    /// Whether clusters that are to have this combination say how far the revision is.
    pub fn hears(&self, combination: &str) -> bool {
        self.revision > 0 && !self.silent.contains(combination)
    }

    /// Whether a row with this target has the same to do by both: which apps wait for which, which are counted, and whether it says how far
    /// it is. How many clusters are waited for is known of all shards together.
    pub fn is_same_for(&self, other: &Self, target: Option<&str>) -> bool {
        let Self { revision, waits, clusters, silent: _, generated } = self;
        let hears = |order: &Self| target.is_some_and(|target| order.hears(target));
        (revision, waits, generated) == (&other.revision, &other.waits, &other.generated)
            && clusters.keys().eq(other.clusters.keys())
            && hears(self) == hears(other)
    }

    /// Whether no app waits.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.generated.is_empty()
    }

    /// The place of an app in the order of applying: what has a lower number comes first.
    pub fn place(&self, app: &str) -> usize {
        let generated = self.generated.iter().position(|known| known == app);
        generated.unwrap_or_else(|| self.generated.len() + self.depth(app))
    }

    /// What an app waits for.
    pub fn waits(&self, app: &str) -> &[Wait] {
        self.waits.get(app).map_or(&[], Vec::as_slice)
    }

    /// Apps that are waited for on other clusters, and how many clusters have each.
    pub fn counted(&self) -> impl Iterator<Item = (&str, usize)> {
        self.clusters.iter().map(|(app, clusters)| (app.as_str(), *clusters))
    }

    /// How many clusters have an app that is waited for on other clusters.
    pub fn clusters(&self, app: &str) -> Option<usize> {
        self.clusters.get(app).copied()
    }

    /// How long the longest chain of apps is that an app waits for: what has a lower number comes first. Apps of a cycle, which no
    /// plan has, have some number.
    pub fn depth(&self, app: &str) -> usize {
        let mut depth = 0;
        let mut level: BTreeSet<&str> = BTreeSet::from([app]);
        while depth <= self.waits.len() {
            level = level.into_iter().flat_map(|app| self.waits(app)).map(|wait| wait.on.as_str()).collect();
            if level.is_empty() {
                break;
            }
            depth += 1;
        }
        depth
    }

    /// Apps in the order of their removal, in groups: an app leaves when nothing is left that waits for it, also by way of others;
    /// generated apps leave last, together.
    pub fn removal<'a>(&self, apps: impl IntoIterator<Item = &'a str>) -> Vec<BTreeSet<&'a str>> {
        let mut groups: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for app in apps {
            let place = if generated_app::is(app) { usize::MAX } else { self.height(app) };
            groups.entry(place).or_default().insert(app);
        }
        groups.into_values().collect()
    }

    /// How long the longest chain of apps is that wait for an app.
    fn height(&self, app: &str) -> usize {
        let mut height = 0;
        let mut level: BTreeSet<&str> = BTreeSet::from([app]);
        while height <= self.waits.len() {
            let above =
                self.waits.iter().filter(|(_, waits)| waits.iter().any(|w| level.contains(w.on.as_str())));
            level = above.map(|(app, _)| app.as_str()).collect();
            if level.is_empty() {
                break;
            }
            height += 1;
        }
        height
    }
}

/// The order that a revision gives to shards: what its apps wait for, how many clusters have what is waited for on other clusters, and
/// its generated apps where there is more than one. `None`: there is nothing to say.
pub fn order<'a>(
    apps: impl IntoIterator<Item = (&'a str, &'a [Dependency])>,
    wanted: &BTreeMap<ClusterId, Combination>,
    revision: i64,
) -> Option<ShardOrder> {
    let (generated, charts): (Vec<_>, Vec<_>) = apps.into_iter().partition(|(app, _)| generated_app::is(app));
    let mut generated: Vec<String> = generated.into_iter().map(|(app, _)| app.to_owned()).collect();
    if generated.len() == 1 {
        generated.clear();
    }
    let waiting: BTreeMap<&str, &[Dependency]> =
        charts.into_iter().filter(|(_, depends_on)| !depends_on.is_empty()).collect();
    let elsewhere = |app: &str, dependency: &Dependency| {
        dependency.scope == Some(DependencyScope::All)
            || wanted.values().any(|has| has.contains_key(app) && !has.contains_key(&dependency.app))
    };
    let counted: BTreeSet<&str> = waiting
        .iter()
        .flat_map(|(app, depends_on)| depends_on.iter().filter(|dependency| elsewhere(app, dependency)))
        .map(|dependency| dependency.app.as_str())
        .collect();
    let names: BTreeSet<&str> = waiting.keys().copied().chain(counted.iter().copied()).collect();
    let count = |app: &str| wanted.values().filter(|has| has.contains_key(app)).count();
    let apps: Vec<OrderedApp> = names
        .into_iter()
        .map(|app| OrderedApp {
            app: app.to_owned(),
            depends_on: waiting.get(app).map(|depends_on| depends_on.to_vec()).unwrap_or_default(),
            clusters: counted.contains(app).then(|| i64::try_from(count(app)).unwrap_or(i64::MAX)),
        })
        .collect();
    let revision = if counted.is_empty() { 0 } else { revision };
    let says = !apps.is_empty() || !generated.is_empty();
    says.then_some(ShardOrder { revision, apps, generated, silent: Vec::new() })
}

fn apps_of(one: &ShardCombination) -> Combination {
    one.apps.iter().map(|app| (app.app.clone(), SetDigest(app.set.clone()))).collect()
}

/// Most apps of an order.
const MOST: usize = 256;

/// The shard with this order. What apps waited for that leave is kept until the shard names them no more: they leave in reverse.
/// `given` is what clusters have that had their turn in a rollout; absent where all have. `None`: nothing to write.
pub fn ordered(
    spec: &SyncShardSpec,
    order: Option<&ShardOrder>,
    given: Option<&BTreeSet<Combination>>,
) -> Option<SyncShardSpec> {
    let targets: BTreeSet<&str> = spec.clusters.iter().filter_map(|row| row.target.as_deref()).collect();
    let named = |wanted: bool| -> BTreeSet<&str> {
        let some = spec.combinations.iter().filter(|one| !wanted || targets.contains(one.name.as_str()));
        some.flat_map(|one| &one.apps).map(|app| app.app.as_str()).collect()
    };
    let (named, wanted) = (named(false), named(true));
    let mut fresh = order.cloned().unwrap_or_default();
    if let Some(given) = given.filter(|_| fresh.revision > 0) {
        let has_turn = |one: &ShardCombination| given.contains(&apps_of(one));
        let waiting =
            spec.combinations.iter().filter(|one| targets.contains(one.name.as_str()) && !has_turn(one));
        fresh.silent = waiting.map(|one| one.name.clone()).collect();
    }
    let has = |app: &str| order.is_some_and(|order| order.apps.iter().any(|other| other.app == app));
    for old in spec.order.iter().flat_map(|order| &order.apps) {
        let app = old.app.as_str();
        let leaves = named.contains(app) && !wanted.contains(app);
        if leaves && fresh.apps.len() < MOST && !old.depends_on.is_empty() && !has(app) {
            fresh.apps.push(OrderedApp { clusters: None, ..old.clone() });
        }
    }
    fresh.apps.sort_by(|a, b| a.app.cmp(&b.app));
    let fresh = (!fresh.apps.is_empty() || !fresh.generated.is_empty()).then_some(fresh);
    (fresh != spec.order).then(|| SyncShardSpec { order: fresh, ..spec.clone() })
}

/// The same of a shard that nothing else is written to. It keeps its order while none of its clusters had its turn in the rollout, and where
/// only more clusters of others had theirs: who counts clusters takes the largest number that a shard of the owner says. A number that falls
/// is written, else too many were waited for.
pub fn ordered_alone(
    spec: &SyncShardSpec,
    order: Option<&ShardOrder>,
    given: Option<&BTreeSet<Combination>>,
) -> Option<SyncShardSpec> {
    let fresh = ordered(spec, order, given)?;
    let (Some(old), Some(new)) = (&spec.order, &fresh.order) else { return Some(fresh) };
    let targets: BTreeSet<&str> = spec.clusters.iter().filter_map(|row| row.target.as_deref()).collect();
    let is_silent = |target: &&str| new.silent.iter().any(|silent| silent == target);
    let awaits_its_turn = given.is_some()
        && old.revision != new.revision
        && !targets.is_empty()
        && targets.iter().all(is_silent);
    (!awaits_its_turn && !only_counts_more(old, new)).then_some(fresh)
}

/// Whether nothing differs but that more clusters are waited for.
fn only_counts_more(old: &ShardOrder, new: &ShardOrder) -> bool {
    let is_more = |(old, new): (&OrderedApp, &OrderedApp)| {
        let same = (&old.app, &old.depends_on, old.clusters.is_some())
            == (&new.app, &new.depends_on, new.clusters.is_some());
        same && old.clusters <= new.clusters
    };
    (old.revision, &old.generated, &old.silent) == (new.revision, &new.generated, &new.silent)
        && old.apps.len() == new.apps.len()
        && old.apps.iter().zip(&new.apps).all(is_more)
}

/// What is wrong with the dependencies of apps, in words: they wait for each other.
pub fn fault(apps: &[App]) -> Option<String> {
    let cycle = cycle(apps)?;
    let steps: Vec<String> = cycle
        .windows(2)
        .filter_map(|pair| {
            let [app, on] = pair else { return None };
            Some(format!("{app} waits for {on}"))
        })
        .collect();
    let (said, first) = (steps.join(", "), cycle.first()?);
    Some(if steps.len() == 1 {
        format!("spec.apps[{first}].dependsOn: {said}, itself: remove that dependency")
    } else {
        format!(
            "spec.apps[{first}].dependsOn: apps wait for each other: {said}; remove one of these dependencies"
        )
    })
}

/// A shortest cycle of the first app that is in one: `a, b, c, a`.
fn cycle(apps: &[App]) -> Option<Vec<&str>> {
    let on: BTreeMap<&str, Vec<&str>> = apps
        .iter()
        .map(|app| {
            (app.name.as_str(), app.depends_on.iter().map(|dependency| dependency.app.as_str()).collect())
        })
        .collect();
    on.keys().find_map(|first| way_back(&on, first))
}

/// The shortest way from an app back to it.
fn way_back<'a>(on: &BTreeMap<&'a str, Vec<&'a str>>, first: &'a str) -> Option<Vec<&'a str>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut ways = vec![vec![first]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in way.last().and_then(|last| on.get(last)).into_iter().flatten() {
                let mut way = way.clone();
                way.push(next);
                if *next == first {
                    return Some(way);
                }
                if seen.insert(next) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests;
