//! Starts the API server of an edge again and again while removals, ledgers, installations and plans wait for it.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_crds::{DeploymentIntentGroup, SyncShard};
use kube::Api;
use kube::runtime::watcher::Config;

use crate::audit::AuditMark;
use crate::bed::{Audit, Bed, BedSpec, PlaneSpec};
use crate::operator::{Operator, chart, chart_map, deployed, deployment, ours, project, register};
use crate::package::Package;
use crate::wait::{wait_for_some, wait_until_gone};

mod kinds;
mod watched;
mod window;

pub use kinds::{Scope, definition};
pub use watched::watched;
pub use window::Windows;

/// The edge whose API server starts.
const EDGE: &str = "a";
const SPACE: &str = "starts";
const PLACEMENT: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
/// For an edge with hundreds of kinds, on a slow machine.
const LONG: Duration = Duration::from_mins(5);

/// The planes that [`run`] needs.
pub fn bed() -> BedSpec {
    let edge = PlaneSpec::light(EDGE, &[]).own_etcd().audit(Audit::Writes);
    BedSpec::bare_hub().with(edge)
}

/// Defines so many kinds on the edge, each of a group of its own; every other belongs to the whole cluster.
///
/// # Errors
/// The edge does not take them, or does not serve them in time.
pub async fn define(bed: &Bed, kinds: usize) -> Result<()> {
    kinds::define(bed.edge(EDGE), kinds).await
}

/// An operator whose edge has this many kinds of its own.
pub struct Stage<'a> {
    bed: &'a Bed,
    operator: &'a mut Operator,
    kinds: usize,
    /// What the edge was asked before concerns others.
    mark: AuditMark,
}

impl<'a> Stage<'a> {
    /// Registers the edge, which has the kinds already, and deploys what the start of this number removes.
    pub async fn new(bed: &'a Bed, operator: &'a mut Operator, kinds: usize, first: usize) -> Result<Self> {
        let mark = bed.edge(EDGE).audit_mark()?;
        register(bed, "acme", &[EDGE]).await?;
        project(bed, SPACE).await?;
        chart_map(bed, SPACE, "charts", &[app(kinds)?]).await?;
        let stage = Self { bed, operator, kinds, mark };
        let old = format!("app-{}", first - 1);
        stage.apply(&old, PLACEMENT).await?;
        deployed(bed, SPACE, &old, 1).await?;
        Ok(stage)
    }

    async fn apply(&self, name: &str, spec: &str) -> Result<()> {
        let yaml = deployment(SPACE, name, &[app(self.kinds)?], spec);
        self.bed.hub().kubectl().apply(&yaml).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let args = ["delete", "dig", name, "-n", SPACE, "--wait=false"];
        self.bed.hub().kubectl().run(&args).await.map(drop)
    }

    async fn gone(&self, name: &str) -> Result<()> {
        let groups: Api<DeploymentIntentGroup> = self.bed.hub().api(SPACE).await?;
        wait_until_gone(groups, name, LONG).await
    }

    /// One start, the `number`th, from 1 on. What the edge has is compared with what is wanted before and after.
    ///
    /// # Errors
    /// Something is left, missing, or made anew.
    pub async fn start(&mut self, number: usize) -> Result<Windows> {
        let edge = self.bed.edge(EDGE);
        let (old, new) = (format!("app-{}", number - 1), format!("app-{number}"));
        let left = format!("left-{number}");
        // The third start, and every sixth after it, have both: a new process has no earlier answer that would show what an API that is down served.
        let (down, restarts) = (number % 2 == 1, number.is_multiple_of(2) || number.is_multiple_of(3));
        if down {
            edge.kubectl().apply(kinds::DOWN).await?;
        }
        self.apply(&left, &format!("{PLACEMENT}\nunreachable: {{action: Abandon, after: 1s}}")).await?;
        deployed(self.bed, SPACE, &left, 1).await?;
        self.has(&[&old, &left]).await?;
        edge.kill().await?;
        // A removal and a ledger wait for the edge, and an installation.
        self.delete(&left).await?;
        self.gone(&left).await?;
        self.delete(&old).await?;
        self.apply(&new, PLACEMENT).await?;
        if restarts {
            // Nothing is known of the edge then, and the plan waits for it, too.
            self.operator.restart(self.bed).await?;
        }
        let windows = window::watch(edge, self.kinds).await?;
        self.gone(&old).await.with_context(|| format!("{old} was not removed"))?;
        deployed(self.bed, SPACE, &new, 1).await.with_context(|| format!("{new} was not installed"))?;
        if down {
            self.ledger("names the API that is down", |ledgers| ledgers.contains(kinds::DOWN_NAME)).await?;
            self.has_besides(&[&new], &left).await?;
            edge.kubectl().run(&["delete", "apiservice", kinds::DOWN_NAME]).await?;
        }
        self.ledger("is worked off", str::is_empty).await?;
        self.has(&[&new]).await?;
        Ok(windows)
    }

    /// Waits for ledgers as they should be, by what their statuses say.
    async fn ledger(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let ledgers: Api<SyncShard> = self.bed.hub().api("acme").await?;
        wait_for_some(ledgers, Config::default(), LONG, &format!("a ledger that {what}"), |found| {
            let said: Vec<String> = found.values().map(|ledger| format!("{:?}", ledger.status)).collect();
            let said = said.join("\n");
            if wanted(&said) { Ok(()) } else { Err(said) }
        })
        .await
    }

    /// Objects of all used kinds on the edge.
    async fn found(&self) -> Result<Vec<String>> {
        let kinds: Vec<String> = kinds::used(self.kinds).map(kinds::resource).collect();
        ours(self.bed, EDGE, &format!("configmaps,{}", kinds.join(",")), None).await
    }

    fn names(&self, releases: &[&str]) -> Vec<String> {
        let objects = |release: &&str| {
            let release = (*release).to_owned();
            let custom = kinds::used(self.kinds).map(|number| kinds::name(number, SPACE, &release));
            custom.chain([format!("ConfigMap/{SPACE}/{release}")]).collect::<Vec<_>>()
        };
        let mut all: Vec<String> = releases.iter().flat_map(objects).collect();
        all.sort();
        all
    }

    /// The edge has the objects of these deployments and no others.
    async fn has(&self, releases: &[&str]) -> Result<()> {
        let (found, wanted) = (self.found().await?, self.names(releases));
        ensure!(found == wanted, "the edge has {found:?}, and {wanted:?} is wanted");
        Ok(())
    }

    /// The same while those of one more are removed.
    async fn has_besides(&self, releases: &[&str], going: &str) -> Result<()> {
        let (mut found, wanted) = (self.found().await?, self.names(releases));
        let going = self.names(&[going]);
        found.retain(|object| !going.contains(object));
        ensure!(found == wanted, "the edge has {found:?}, and {wanted:?} is wanted");
        Ok(())
    }

    /// How often the operator deleted an object of a kind of the whole cluster: once for each that was removed.
    ///
    /// # Errors
    /// Another number than that of removals: something was deleted that was wanted, or twice.
    pub fn deleted_once(&self, starts: usize) -> Result<()> {
        let events = self.bed.edge(EDGE).audit_since(self.mark)?;
        let deletes = events.iter().filter(|event| {
            let custom = event.group.ends_with(kinds::DOMAIN);
            event.user == "emco" && event.verb == "delete" && custom && event.code < 300
        });
        let (found, wanted) = (deletes.count(), 2 * starts * kinds::used(self.kinds).count());
        ensure!(found == wanted, "{found} objects were deleted, and {wanted} were to go");
        Ok(())
    }
}

/// A chart with an object of each used kind.
fn app(kinds: usize) -> Result<Package> {
    let custom: String = kinds::used(kinds).map(kinds::manifest).collect();
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {say: one}\n";
    chart("web", "1.0.0", &[("templates/all.yaml", &format!("{note}{custom}"))])
}

/// All of it: the starts of these numbers with so many kinds, which the edge has already.
///
/// # Errors
/// One of the starts lost or took something.
pub async fn run(
    bed: &Bed,
    operator: &mut Operator,
    starts: RangeInclusive<usize>,
    kinds: usize,
) -> Result<Windows> {
    let mut stage = Box::pin(Stage::new(bed, operator, kinds, *starts.start())).await?;
    let mut windows = Windows::default();
    for number in starts.clone() {
        let found =
            Box::pin(stage.start(number)).await.with_context(|| format!("start {number} of {starts:?}"))?;
        windows.add(&found);
        println!("start {number} of {starts:?} with {kinds} kinds: {found}");
    }
    stage.deleted_once(starts.count())?;
    Ok(windows)
}
