//! Makes the sets of generated apps: what their intents add, and nothing else. No chart is rendered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::conditions::types::RENDERED;
use emco_crds::names::generated_app;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::Builder;
use super::edited::Edited;
use crate::canonical;
use crate::identity::{ClusterId, Id, Identity, SetDigest, kind_of};
use crate::manifests::{self, Kind};
use crate::order;
use crate::plan::work::Item;
use crate::refusal::Refusal;
use crate::set::{ADDED, Assigned, ChartTests, ManifestSet, SetManifest};

impl<'a> Builder<'a> {
    /// True for an app that has no chart.
    pub(super) fn is_generated(&self, item: &Item<'_>) -> bool {
        item.app >= self.resolved.apps.len()
    }

    /// Makes the set of a cell. What is made again as it was stays stored as it was.
    pub(super) fn generate(&mut self, item: &Item<'a>) -> Result<(), Box<Refusal>> {
        let snapshot = self.resolved.snapshot;
        let digest = canonical::set_digest(&snapshot.installation.digest_key, &[]);
        let nothing = ManifestSet { digest, app: self.app(item).to_owned(), manifests: Vec::new() };
        let Edited { set, provenance } = self.edit(item, &Arc::new(nothing), None)?;
        let previous = item.previous;
        let render_key = item.class.render_key.clone();
        let assigned = match previous.filter(|previous| previous.set == set.digest) {
            // What is made again as it was stays stored as it was.
            Some(same) if same.render_key == render_key => same.clone(),
            Some(same) => Assigned { render_key, provenance, ..same.clone() },
            None => Assigned {
                set: set.digest.clone(),
                render_key,
                now: snapshot.now,
                release_revision: previous.map_or(1, |previous| previous.release_revision + 1),
                rendered_revision: None,
                findings: None,
                provenance,
                tests: Some(ChartTests::default()),
                edits: None,
            },
        };
        self.built.sets.entry(set.digest.clone()).or_insert(set);
        self.assign(item, assigned);
        Ok(())
    }

    /// Charts come after generated apps, which would wait for ever for what a chart makes.
    pub(super) fn check_needs(&self) -> Result<(), Box<Refusal>> {
        let mut checked: BTreeSet<Vec<&SetDigest>> = BTreeSet::new();
        for (cluster, apps) in &self.built.assignment {
            let generated = apps.keys().any(|app| generated_app::is(app));
            if !generated || !checked.insert(apps.values().map(|assigned| &assigned.set).collect()) {
                continue;
            }
            let sets = apps.iter().filter_map(|(app, assigned)| {
                Some((app.as_str(), self.built.sets.get(&assigned.set)?.as_ref()))
            });
            let (generated, charts): (Vec<_>, Vec<_>) = sets.partition(|(app, _)| generated_app::is(app));
            let made = Made::of(&charts);
            for (app, manifest) in
                generated.iter().flat_map(|(app, set)| set.manifests.iter().map(move |m| (app, m)))
            {
                made.check(app, manifest, cluster)?;
            }
        }
        Ok(())
    }
}

/// What charts make on a cluster that other objects need, and the app that does.
struct Made<'s> {
    kinds: BTreeMap<Kind, &'s str>,
    namespaces: BTreeMap<String, &'s str>,
}

impl<'s> Made<'s> {
    fn of(charts: &[(&'s str, &'s ManifestSet)]) -> Self {
        let mut made = Self { kinds: BTreeMap::new(), namespaces: BTreeMap::new() };
        for (app, set) in charts {
            for manifest in &set.manifests {
                made.kinds.extend(manifests::defined(&manifest.json).map(|(kind, _)| (kind, *app)));
                let identity = manifest.identity();
                if order::is_namespace(identity.kind()) {
                    made.namespaces.insert(identity.name, *app);
                }
            }
        }
        made
    }

    fn check(&self, app: &str, manifest: &SetManifest, cluster: &ClusterId) -> Result<(), Box<Refusal>> {
        let identity = manifest.identity();
        let (group, kind) = kind_of(&manifest.json);
        let defines = self.kinds.get(&(group.to_owned(), kind.to_owned())).map(|of| (*of, "its kind"));
        let holds = self.namespaces.get(&identity.namespace).map(|of| (*of, "its namespace"));
        let Some((chart, what)) = defines.or(holds) else { return Ok(()) };
        Err(Self::needs(app, manifest, &identity, (chart, what), cluster))
    }

    fn needs(
        app: &str,
        manifest: &SetManifest,
        identity: &Identity,
        (chart, what): (&str, &str),
        cluster: &ClusterId,
    ) -> Box<Refusal> {
        let text = format!(
            "app {app} on {cluster}: {} adds {identity}, and app {chart} makes {what}, which comes after it: let the action name that \
             app (app: {chart})",
            origin(manifest)
        );
        Refusal::new(RENDERED, Reason::IntentInvalid, text)
    }
}

/// The action that added an object.
fn origin(manifest: &SetManifest) -> &str {
    let added = manifest.edited_by.iter().find_map(|edit| edit.strip_prefix(ADDED));
    added.unwrap_or("an intent")
}

/// Who makes an object, for messages: the app and, where an intent made that, its action. Equal objects of two intents are one set, which
/// names the action of one of them.
fn maker(app: &str, manifest: &SetManifest) -> String {
    let Some((_, intent)) = app.split_once('.') else { return app.to_owned() };
    let origin = origin(manifest);
    let (kind, named) = origin.split_once(' ').unwrap_or((origin, ""));
    let is_its = named.split(',').next() == Some(intent);
    if is_its { format!("{app} ({origin})") } else { format!("{app} ({kind} {intent})") }
}

/// Two apps that make one object.
pub(super) fn duplicate(
    one: (&str, &SetManifest),
    other: (&str, &SetManifest),
    identity: &Id,
    cluster: &ClusterId,
) -> Box<Refusal> {
    let cure = match (generated_app::is(one.0), generated_app::is(other.0)) {
        (false, false) => {
            "rename it or turn it off in one of them with spec.overrideValues, or place them on different clusters"
        }
        (true, true) => "take one of the two actions away, or rename its object",
        _ => "let the action name the app and change what its chart makes, or rename the object",
    };
    let (one, other) = (maker(one.0, one.1), maker(other.0, other.1));
    let text = format!("apps {one} and {other} both make {identity} on {cluster}: {cure}");
    Refusal::new(RENDERED, Reason::DuplicateResource, text)
}
