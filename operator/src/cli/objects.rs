//! Shows every object of a deployment with its health: as the operator reported it where all is ready, else as the cluster says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::reasons::is_progress;
use emco_engine::health::rules::Rules;
use emco_engine::identity::Identity;
use emco_engine::set::SetManifest;
use emco_engine::shard::{Content, Row, rows};
use futures::stream::{self, StreamExt as _};

use super::args::Format;
use super::args::deployments::{GetArgs, PartArgs};
use super::args::objects::ObjectArgs;
use super::args::status::Verdict;
use super::diff::edge;
use super::hub::{self, Hub};
use super::output::machine;
use super::status::filter::{Filter, absent};
use super::status::tree::{There, Thing, Tree};
use super::{Outcome, print, pulse, stored};

pub mod handed;
mod look;
mod narrow;
mod report;
mod rules;
mod show;

use narrow::{Met, narrow};
use report::{Answer, AppObjects, ClusterObjects, Object, ObjectCounts, ObjectState, Seen};

/// Clusters that are asked at the same time.
const AT_ONCE: usize = 8;
/// For all objects of one cluster.
const PATIENCE: Duration = Duration::from_secs(60);

/// An object of an app on a cluster, as the hub stores it.
struct Asked {
    app: String,
    manifest: SetManifest,
    /// Whether a manifest of the target has it; else it is on its way out.
    wanted: bool,
}

/// What is found of a cluster.
struct OnCluster {
    /// By app.
    apps: Vec<(String, ClusterObjects)>,
    met: Met,
}

/// `kubectl emco get`.
pub async fn run(args: GetArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let on_hub = (namespace.clone(), name.clone());
    let shards = hub.shards(&namespace, &name).await?;
    let reading = pulse::read(&hub).await;
    let trusted = reading.pulse.is_trusted();
    let filter =
        Filter { clusters: args.part.cluster.clone(), apps: args.part.app.clone(), ..Filter::default() };
    let groups = [group];
    if let Some(absent) = absent(&groups, &shards, &filter) {
        bail!("{absent}");
    }
    let health_rules = rules::read(&hub, &reading.pulse).await;
    let mut tree = Tree::of(&groups, &shards, reading.pulse, &filter);
    let Some(group) = tree.groups.pop() else {
        bail!(
            "{namespace}/{name} has no such app on such a cluster: leave out --app or --cluster to see what it has"
        );
    };
    let filter = Filter { states: args.state.clone(), objects: args.objects.clone(), ..filter };
    let mut there: BTreeMap<(String, String), There> = BTreeMap::new();
    for app in group.apps.clone() {
        for one in app.clusters.into_iter().filter(|one| filter.takes_state(one.verdict)) {
            there.insert((one.cluster.clone(), app.name.clone()), one);
        }
    }
    let content = stored::content(&hub);
    let live = args.live || args.output == Some(Format::Wide);
    let question = handed::question(&args.part, live);
    let handed =
        if there.is_empty() { None } else { stored::by_operator(&hub, "get", &on_hub, question).await? };
    let live = live || !trusted;
    let mut jobs = Vec::new();
    for shard in &shards {
        let hash = stored::owner_hash(shard)?;
        for row in rows(&shard.spec, shard.status.as_ref()) {
            let mine: BTreeMap<String, There> = there
                .iter()
                .filter(|((cluster, _), _)| cluster == row.cluster.as_str())
                .map(|((_, app), one)| (app.clone(), one.clone()))
                .collect();
            if !mine.is_empty() {
                jobs.push((hash.clone(), row, mine));
            }
        }
    }
    let found = if let Some(handed) = handed {
        handed::found(handed, &there)
    } else {
        let (part, objects) = (&args.part, &args.objects);
        let (hub, content, health_rules) = (&hub, &content, &health_rules);
        let asking = Asking { hub, content, health_rules, part, objects, live, refusals: args.live };
        asking.all(&namespace, jobs).await
    };
    let mut apps: BTreeMap<String, Vec<ClusterObjects>> = BTreeMap::new();
    let (mut met, mut total) = (Met::default(), 0);
    for one in found {
        met.add(one.met);
        for (app, objects) in one.apps {
            total += objects.total;
            apps.entry(app).or_default().push(objects);
        }
    }
    // Of a state, nothing may have what is elsewhere.
    if let Some(absent) = met.absent(&args.objects).filter(|_| args.state.is_empty()) {
        bail!("{namespace}/{name} has {absent}");
    }
    let apps = apps
        .into_iter()
        .map(|(name, mut clusters)| {
            clusters.sort_by(|a, b| a.cluster.cmp(&b.cluster));
            AppObjects { name, clusters }
        })
        .collect();
    let apps = narrow(apps, &args.objects);
    let answer = Answer::of(tree.pulse, &group, ObjectCounts::of(&apps, total), apps);
    if let Some(text) = machine(args.output, &answer)? {
        print(&text)?;
    } else {
        if !answer.pulse.message.is_empty() {
            eprintln!("warning: {}", super::output::printable(&answer.pulse.message));
        }
        if answer.apps.is_empty() {
            let selects = total > 0 || !args.state.is_empty();
            let what = if selects { "no object that these filters select" } else { "nothing on any cluster" };
            eprintln!("{namespace}/{name} has {what}");
        }
        print(&show::text(&answer, &group, args.output == Some(Format::Wide)))?;
    }
    let as_wanted = group.itself_is_as_wanted(&filter) && answer.is_as_wanted();
    Ok(if as_wanted { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// A cluster that is asked: the owner's hash there, its row, and what the operator reports of each app there.
type Job = (String, Row, BTreeMap<String, There>);

/// Everything that clusters are asked with.
struct Asking<'a> {
    hub: &'a Hub,
    content: &'a HubContent,
    health_rules: &'a Rules,
    part: &'a PartArgs,
    objects: &'a ObjectArgs,
    /// Clusters are asked, also where the operator says that all is ready.
    live: bool,
    /// Clusters are asked why they refuse objects.
    refusals: bool,
}

impl Asking<'_> {
    async fn all(&self, namespace: &str, jobs: Vec<Job>) -> Vec<OnCluster> {
        let ask = |job| Box::pin(on_cluster(self, namespace, job));
        stream::iter(jobs).map(ask).buffered(AT_ONCE).collect().await
    }
}

/// The objects of the apps of one cluster.
async fn on_cluster(asking: &Asking<'_>, namespace: &str, (hash, row, mine): Job) -> OnCluster {
    let Asking { hub, content, health_rules, part, objects, live, refusals } = *asking;
    let plain = |there: &There| there.verdict == Verdict::Ready && there.objects.is_empty();
    let reported = !live && row.target.is_some() && mine.values().all(plain);
    let mut found: BTreeMap<String, ClusterObjects> =
        mine.iter().map(|(app, there)| (app.clone(), ClusterObjects::of(there, &row))).collect();
    let mut asked = match asked(content, part, namespace, &hash, &row).await {
        Ok(asked) => asked,
        Err(error) => {
            fail(&mut found, &error);
            return OnCluster { apps: found.into_iter().collect(), met: Met::unread() };
        }
    };
    let met = Met::of(&asked, objects);
    for one in asked.iter().filter(|one| one.wanted) {
        if let Some(there) = found.get_mut(&one.app) {
            there.total += 1;
        }
    }
    // The cluster is only asked for what is shown.
    asked.retain(|one| objects.takes_identity(&one.manifest.identity()));
    let seen = if reported || (asked.is_empty() && objects.names_objects()) {
        Ok(None)
    } else {
        let refused = refusals.then(|| refused(&mine));
        Box::pin(ask(hub, health_rules, &row, hash, &asked, refused.as_ref())).await.map(Some)
    };
    let mut add = |asked: &Asked, mut object: Object, seen: Seen| {
        // What is on its way out may be of an app that the target has no more.
        let app = if found.contains_key(&asked.app) { asked.app.as_str() } else { "" };
        let Some(one) = found.get_mut(app) else { return };
        one.seen = seen;
        one.total += usize::from(!asked.wanted);
        if let Some(there) = mine.get(app) {
            object.explain(&there.objects);
        }
        one.objects.push(object);
    };
    match seen {
        Ok(None) => {
            for asked in asked.iter().filter(|asked| asked.wanted) {
                add(asked, Object::of(asked, ObjectState::Ready, String::new()), Seen::Operator);
            }
        }
        Ok(Some(objects)) => {
            for (asked, object) in asked.iter().zip(objects) {
                if let Some(object) = object {
                    add(asked, object, Seen::Cluster);
                }
            }
        }
        Err(error) => {
            for asked in asked.iter().filter(|asked| asked.wanted) {
                add(asked, Object::of(asked, ObjectState::Unknown, String::new()), Seen::Nobody);
            }
            fail(&mut found, &error);
        }
    }
    OnCluster { apps: found.into_iter().collect(), met }
}

fn fail(found: &mut BTreeMap<String, ClusterObjects>, error: &anyhow::Error) {
    for one in found.values_mut() {
        one.error = Some(format!("{error:#}"));
    }
}

/// Objects that the operator reports as refused.
fn refused(mine: &BTreeMap<String, There>) -> BTreeSet<String> {
    let things = mine.values().flat_map(|there| &there.objects).filter(|thing| is_refusal(thing));
    things.map(|thing| thing.object.trim_start_matches('/').to_owned()).collect()
}

/// True of what the cluster said of a manifest, and not of the object that is there.
fn is_refusal(thing: &Thing) -> bool {
    !matches!(thing.reason.as_str(), "NotReady" | "Drift" | "FieldsLeftOut") && !is_progress(&thing.reason)
}

/// Asks the cluster; nothing for what is gone as it is to be.
async fn ask(
    hub: &Hub,
    health_rules: &Rules,
    row: &Row,
    hash: String,
    asked: &[Asked],
    refused: Option<&BTreeSet<String>>,
) -> anyhow::Result<Vec<Option<Object>>> {
    let looked = async {
        let edge = edge::connect(hub, &row.cluster, row.uid.as_deref(), hash).await?;
        look::all(&edge, health_rules, asked, refused).await
    };
    let answer = tokio::time::timeout(PATIENCE, looked).await;
    answer.unwrap_or_else(|_| bail!("the cluster does not answer within {} s", PATIENCE.as_secs()))
}

/// What the hub stores for a cluster: the objects of the target, then those of earlier targets that may still be there.
async fn asked(
    content: &HubContent,
    part: &PartArgs,
    namespace: &str,
    hash: &str,
    row: &Row,
) -> anyhow::Result<Vec<Asked>> {
    let mut asked = Vec::new();
    let before = row.may_have.iter().filter_map(|content| match content {
        Content::Sets(target) => Some(target),
        Content::Identities(_) => None,
    });
    let mut names: BTreeSet<Identity> = BTreeSet::new();
    for (target, wanted) in row.target.iter().map(|t| (t, true)).chain(before.map(|t| (t, false))) {
        let source =
            Source { namespace: namespace.to_owned(), owner: hash.to_owned(), revision: target.revision };
        for (app, set) in &target.apps {
            let set = stored::set(content, &source, set)
                .await
                .with_context(|| format!("the manifests of revision {}", target.revision))?;
            for manifest in set.manifests.iter().filter(|manifest| stored::lasts(manifest)) {
                if names.insert(manifest.identity()) && part.takes(app, row.cluster.as_str()) {
                    asked.push(Asked { app: app.clone(), manifest: manifest.clone(), wanted });
                }
            }
        }
    }
    Ok(asked)
}

impl Object {
    /// Adds what the operator says of the object, which knows the cause.
    fn explain(&mut self, things: &[Thing]) {
        if let Some(refusal) = self.refusal.take() {
            // It is there in its earlier shape.
            if self.state == ObjectState::Ready {
                self.state = ObjectState::Failed;
            }
            self.message = refusal;
            return;
        }
        let id = self.id();
        let Some(thing) = things.iter().find(|thing| thing.object.trim_start_matches('/') == id) else {
            return;
        };
        let said = if thing.reason == "NotReady" {
            thing.message.clone()
        } else {
            format!("{}: {}", thing.reason, thing.message)
        };
        match self.state {
            ObjectState::Ready if thing.reason == "NotReady" => return,
            // It is there in its earlier shape, and the present one was refused.
            ObjectState::Ready if !matches!(thing.reason.as_str(), "Drift" | "FieldsLeftOut") => {
                self.state = ObjectState::Failed;
            }
            _ => {}
        }
        if !said.is_empty() {
            self.message = said;
        }
    }
}
