//! Builds sets and their assignment from a placement: what is stored stays, the rest is rendered and finished.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::deployment_intent_group::reachability::Reachability;

use self::edited::{Edited, Named};
use self::holdings::HoldingsKey;
use super::lookup::Holdings;
use super::render::{self, Job};
use super::work::{self, Item, Step};
use crate::cloud::CloudFacts;
use crate::identity::{ClusterId, Id, SetDigest};
use crate::manifests::{self, Draft, Kind};
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::resolve::Resolved;
use crate::role::Reach;
use crate::set::provenance::Provenance;
use crate::set::{Assigned, Assignment, ChartTests, Findings, ManifestSet, SetManifest};

mod edited;
mod generated;
mod holdings;
mod proof;

/// Warnings kept of one plan.
const MOST_WARNINGS: usize = 50;

/// What came of a placement.
#[derive(Debug, Default)]
pub struct Built {
    /// Who gets what.
    pub assignment: Assignment,
    /// Placed on clusters that nothing is known of yet.
    pub waiting: BTreeMap<ClusterId, Vec<String>>,
    /// Sets by digest, with those of tests.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// Sentences for people.
    pub warnings: Vec<String>,
    /// The proof of servers, if intents name some.
    pub reachability: Option<Reachability>,
}

/// One rendering, and what its result has to be.
struct Attempt<'a> {
    job: Job<'a>,
    /// The set that this attempt tries to make again; otherwise it is new.
    restores: Option<&'a Assigned>,
}

/// Works out every set.
pub fn build(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Result<Built, Box<Refusal>> {
    let cells = work::items(resolved, placement)?;
    let mut builder = Builder::new(resolved);
    let (mut attempts, mut edits, mut generated) = (Vec::new(), Vec::new(), Vec::new());
    for item in &cells {
        match item.step(resolved.snapshot) {
            Step::Edit(..) | Step::Restore(_) | Step::Render if builder.is_generated(item) => {
                generated.push(item);
            }
            Step::Keep(assigned, content) => builder.keep(item, assigned, content),
            Step::Edit(assigned, base) => {
                builder.define(item, &base);
                edits.push((item, assigned, base));
            }
            Step::Restore(assigned) => attempts.push(builder.restoring(item, assigned, true)),
            Step::Render => attempts.push(builder.rendering(item)),
            Step::Wait => builder.wait(item),
        }
    }
    while !attempts.is_empty() {
        attempts = builder.round(attempts)?;
    }
    // Last, for what an action adds may be of a kind that another app defines.
    for (item, stored, base) in edits {
        builder.edit_stored(item, stored, base)?;
    }
    for item in generated {
        builder.generate(item)?;
    }
    let work::Drawn { items, unread } =
        work::drawn(resolved, placement, &builder.built.assignment, &builder.built.sets)?;
    for item in &items {
        match item.step(resolved.snapshot) {
            Step::Keep(assigned, content) => builder.keep(item, assigned, content),
            Step::Wait => builder.wait(item),
            Step::Edit(..) | Step::Restore(_) | Step::Render => builder.generate(item)?,
        }
    }
    for item in &unread {
        builder.wait(item);
    }
    builder.check_duplicates()?;
    builder.check_needs()?;
    builder.prove(&cells)?;
    Ok(builder.built)
}

struct Builder<'a> {
    resolved: &'a Resolved<'a>,
    built: Built,
    /// Kinds that are defined on each cluster by what is put there.
    defined: BTreeMap<&'a ClusterId, BTreeMap<Kind, bool>>,
    /// Kinds that each stored set defines.
    defined_by: BTreeMap<SetDigest, BTreeMap<Kind, bool>>,
    /// Finished sets by draft.
    finished: BTreeMap<FinishedKey, Finished>,
    /// Outcomes of actions of intents on each rendered set, by app and both digests; without actions it is what it was.
    edited: BTreeMap<(String, SetDigest, Option<String>), Arc<Draft>>,
    /// The same, finished, by the draft and what was known of its kinds.
    edited_sets: BTreeMap<(usize, BTreeMap<Kind, bool>), Edited>,
    /// Fields that actions of intents changed, equal ones once.
    named: Named,
    /// Keeps every draft that `finished` names.
    drafts: Vec<Arc<Draft>>,
    /// What lookups find, once for all clusters with one set.
    holdings: BTreeMap<HoldingsKey, Arc<Holdings>>,
    /// The logical cloud, as if it allowed everything: what was rendered is judged after it was edited.
    unjudged: CloudFacts,
}

/// The draft (its address, as drafts outlive the builder's rounds), what was known of its kinds, the digests of what stays, and whether
/// it is to be edited.
type FinishedKey = (usize, BTreeMap<Kind, bool>, Vec<String>, bool);

/// What a draft is on a cluster.
#[derive(Clone)]
struct Finished {
    set: Arc<ManifestSet>,
    tests: ChartTests,
    /// The set that `tests` names.
    test_set: Option<Arc<ManifestSet>>,
    /// The rendered set, where it was edited.
    base: Option<Arc<ManifestSet>>,
    /// The edited fields.
    provenance: Option<Arc<Provenance>>,
}

impl<'a> Builder<'a> {
    fn new(resolved: &'a Resolved<'a>) -> Self {
        Self {
            resolved,
            built: Built::default(),
            defined: BTreeMap::new(),
            defined_by: BTreeMap::new(),
            finished: BTreeMap::new(),
            edited: BTreeMap::new(),
            edited_sets: BTreeMap::new(),
            named: Named::default(),
            drafts: Vec::new(),
            holdings: BTreeMap::new(),
            unjudged: CloudFacts {
                reach: Reach { cluster: true, ..resolved.cloud.reach.clone() },
                ..resolved.cloud.clone()
            },
        }
    }

    fn app(&self, item: &Item<'_>) -> &'a str {
        self.resolved.app_name(item.app)
    }

    fn assign(&mut self, item: &Item<'a>, mut assigned: Assigned) {
        self.hold_tests(&mut assigned);
        self.hold_base(&mut assigned);
        let app = self.app(item).to_owned();
        self.built.assignment.entry(item.id().clone()).or_default().insert(app, assigned);
    }

    /// Holds what a cell names as its tests, to be stored with it. Tests that were stored and cannot be read are said to be missing:
    /// they keep nobody from deploying the app.
    fn hold_tests(&mut self, assigned: &mut Assigned) {
        let Some(digest) = assigned.tests.as_ref().and_then(|tests| tests.set.as_ref()) else { return };
        if !self.hold(digest) {
            let left_out = vec!["the tests that an earlier revision stored cannot be read".to_owned()];
            assigned.tests = Some(ChartTests { set: None, left_out });
        }
    }

    /// The same of what was rendered. Where it cannot be read, the next edit renders the chart.
    fn hold_base(&mut self, assigned: &mut Assigned) {
        if assigned.edits.as_ref().is_some_and(|edits| !self.hold(&edits.base)) {
            assigned.edits = None;
        }
    }

    /// True for a set that is there to be stored, or was before.
    fn hold(&mut self, digest: &SetDigest) -> bool {
        if self.built.sets.contains_key(digest) {
            return true;
        }
        let snapshot = self.resolved.snapshot;
        let mut stored = snapshot.running.iter().chain(snapshot.waiting.as_deref());
        let found = stored.find_map(|stored| stored.sets.get(digest));
        self.built.sets.extend(found.map(|set| (digest.clone(), Arc::clone(set))));
        found.is_some()
    }

    /// Kinds that are defined on the cluster by what is put there.
    fn define(&mut self, item: &Item<'a>, content: &ManifestSet) {
        let defines = self.defined_by.entry(content.digest.clone()).or_insert_with(|| {
            content.manifests.iter().filter_map(|manifest| manifests::defined(&manifest.json)).collect()
        });
        if !defines.is_empty() {
            self.defined.entry(item.id()).or_default().extend(defines.clone());
        }
    }

    fn keep(&mut self, item: &Item<'a>, assigned: &Assigned, content: Option<Arc<ManifestSet>>) {
        if let Some(content) = content {
            self.define(item, &content);
            self.built.sets.insert(assigned.set.clone(), content);
        }
        self.assign(item, assigned.clone());
    }

    /// Nothing is known of the cluster: what it has stays, and what it shall have is worked out at the first contact.
    fn wait(&mut self, item: &Item<'a>) {
        let app = self.app(item).to_owned();
        self.built.waiting.entry(item.id().clone()).or_default().push(app);
        if let Some(previous) = item.previous {
            let sets = self.resolved.snapshot.running.as_ref().map(|running| &running.sets);
            let content = sets.and_then(|sets| sets.get(&previous.set)).cloned();
            self.keep(item, previous, content);
        }
    }

    fn rendering(&mut self, item: &Item<'a>) -> Attempt<'a> {
        let snapshot = self.resolved.snapshot;
        let installed = (item.id().clone(), self.app(item).to_owned());
        let job = Job {
            item: item.clone(),
            is_install: !snapshot.installed.contains(&installed),
            revision: item.previous.map_or(1, |previous| previous.release_revision + 1),
            now: snapshot.now,
            holdings: self.holdings(item),
            tentative: false,
        };
        Attempt { job, restores: None }
    }

    /// A set that cannot be read is made again as it was made; whether that was an installation was not written down. Lookups
    /// find what can still be read of it, which is what the set before gave them where a chart keeps it. The rest they do not
    /// find, as before an installation: only the very same set is taken, so that a wrong answer does no harm.
    fn restoring(&mut self, item: &Item<'a>, assigned: &'a Assigned, first: bool) -> Attempt<'a> {
        let revision = assigned.rendered_revision();
        let job = Job {
            item: item.clone(),
            is_install: (revision == 1) == first,
            revision,
            now: assigned.now,
            holdings: self.assumed(assigned),
            tentative: true,
        };
        Attempt { job, restores: Some(assigned) }
    }

    /// Carries out attempts; returns those that have to follow.
    fn round(&mut self, attempts: Vec<Attempt<'a>>) -> Result<Vec<Attempt<'a>>, Box<Refusal>> {
        let jobs: Vec<Job<'a>> = attempts.iter().map(|attempt| attempt.job.clone()).collect();
        let drafts = render::render(self.resolved, &jobs)?;
        for (job, draft) in jobs.iter().zip(&drafts) {
            let Some(draft) = draft.as_ref().filter(|draft| !draft.defines.is_empty()) else { continue };
            self.defined.entry(job.item.id()).or_default().extend(draft.defines.clone());
        }
        let (mut follow, mut refusals) = (Vec::new(), BTreeMap::new());
        for (attempt, draft) in attempts.into_iter().zip(drafts) {
            let set = match draft.as_ref().map(|draft| self.made(&attempt.job, draft)) {
                Some(Err(refusal)) => {
                    // The first of each app.
                    refusals.entry(attempt.job.item.app).or_insert(refusal);
                    continue;
                }
                Some(Ok(made)) => made,
                None => None,
            };
            let findings = draft.and_then(|draft| draft.findings.clone());
            let wanted = attempt.restores.map(|stored| &stored.set);
            let set = set.filter(|made| wanted.is_none_or(|wanted| *wanted == made.set.digest));
            match (set, attempt.restores) {
                (Some(made), _) => self.take(&attempt, made, findings),
                (None, Some(stored)) => {
                    let first = (stored.rendered_revision() == 1) == attempt.job.is_install;
                    let item = &attempt.job.item;
                    // Both ways tried: what was stored cannot be had again, so this becomes a new set.
                    follow.push(if first {
                        self.restoring(item, stored, false)
                    } else {
                        self.rendering(item)
                    });
                }
                (None, None) => {}
            }
        }
        Refusal::all(refusals.into_values()).map_or(Ok(follow), Err)
    }

    fn take(&mut self, attempt: &Attempt<'a>, made: Finished, found: Option<Arc<Findings>>) {
        let Job { item, revision, now, .. } = &attempt.job;
        let Finished { set, tests, test_set, base, provenance } = made;
        // Counted are different sets, not renderings.
        let same = item.previous.filter(|previous| previous.set == set.digest);
        let edits = edited::stored(item, base.as_ref());
        let release_revision = same.map_or(*revision, |previous| previous.release_revision);
        let assigned = Assigned {
            set: set.digest.clone(),
            render_key: item.class.render_key.clone(),
            now: *now,
            release_revision,
            rendered_revision: edits.as_ref().and(Some(*revision)).filter(|made| *made != release_revision),
            // What was stored stays as it was.
            findings: attempt.restores.map_or(found, |stored| stored.findings.clone()),
            provenance: attempt.restores.map_or(provenance, |stored| stored.provenance.clone()),
            tests: attempt.restores.map_or(Some(tests), |stored| stored.tests.clone()),
            edits,
        };
        let assigned = match attempt.restores {
            None => assigned,
            // A pack that holds another rendering would be another pack.
            Some(stored) => Assigned {
                rendered_revision: stored.rendered_revision,
                edits: assigned.edits.filter(|made| stored.edits.as_ref() == Some(made)),
                ..assigned
            },
        };
        self.built.sets.entry(set.digest.clone()).or_insert(set);
        for set in [test_set, base].into_iter().flatten() {
            if assigned.sets().any(|named| *named == set.digest) {
                self.built.sets.entry(set.digest.clone()).or_insert(set);
            }
        }
        self.assign(item, assigned);
    }

    fn finish(&mut self, job: &Job<'a>, draft: &Arc<Draft>) -> Result<Finished, Box<Refusal>> {
        let item = &job.item;
        let empty = BTreeMap::new();
        let defined = self.defined.get(item.id()).unwrap_or(&empty);
        let scopes = manifests::scopes(&draft.kinds, item.cluster.apis.as_deref(), defined);
        let is_edited = item.class.edits.is_some();
        let mut staying = job.holdings.staying(&draft.lookups);
        staying.retain(|manifest| manifests::may_stay(&manifest.identity(), self.resolved.cloud));
        let stays = staying.iter().map(|manifest| manifest.digest.clone()).collect();
        let key = (Arc::as_ptr(draft).addr(), scopes, stays, is_edited);
        if let Some(made) = self.finished.get(&key) {
            return Ok(made.clone());
        }
        let app = self.app(item);
        let digest_key = &self.resolved.snapshot.installation.digest_key;
        let cloud = if is_edited { &self.unjudged } else { self.resolved.cloud };
        let (set, warnings) =
            draft.finish(app, digest_key, cloud, &key.1, &self.before(item.previous), staying)?;
        for warning in draft.warnings.iter().chain(&warnings) {
            self.warn(warning);
        }
        let (tests, test_set) = draft.finish_tests(app, digest_key, self.resolved.cloud, &key.1);
        let (set, test_set) = (Arc::new(set), test_set.map(Arc::new));
        let made = Finished { set, tests, test_set, base: None, provenance: None };
        self.drafts.push(Arc::clone(draft));
        self.finished.insert(key, made.clone());
        Ok(made)
    }

    /// The running part of a cell, whose digests stay.
    fn before(&self, previous: Option<&Assigned>) -> Vec<&'a ManifestSet> {
        let running = self.resolved.snapshot.running.as_ref();
        let sets = previous.into_iter().flat_map(|previous| [previous.base(), &previous.set]);
        sets.filter_map(|set| running?.sets.get(set)).map(AsRef::as_ref).collect()
    }

    fn warn(&mut self, warning: &str) {
        if self.built.warnings.len() < MOST_WARNINGS && !self.built.warnings.iter().any(|w| w == warning) {
            self.built.warnings.push(warning.to_owned());
        }
    }

    /// Two apps that make the same object would take it from each other for ever.
    fn check_duplicates(&self) -> Result<(), Box<Refusal>> {
        let mut checked: BTreeSet<Vec<&SetDigest>> = BTreeSet::new();
        for (cluster, apps) in &self.built.assignment {
            if apps.len() < 2 || !checked.insert(apps.values().map(|assigned| &assigned.set).collect()) {
                continue;
            }
            let mut owners: BTreeMap<Id, (&str, &SetManifest)> = BTreeMap::new();
            for (app, assigned) in apps {
                let Some(set) = self.built.sets.get(&assigned.set) else { continue };
                for manifest in set.manifests.iter().filter(|manifest| !manifest.crd_folder) {
                    let identity = Id::new(manifest.identity());
                    let made = (app.as_str(), manifest);
                    if let Some(other) = owners.get(&identity).filter(|(other, _)| other != app) {
                        return Err(generated::duplicate(*other, made, &identity, cluster));
                    }
                    owners.insert(identity, made);
                }
            }
        }
        Ok(())
    }
}
