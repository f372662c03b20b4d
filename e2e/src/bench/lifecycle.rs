//! Measures what people and apps wait for between an edit and its end: an approval, an app that others depend on, and a plan.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentApproval, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator, is, settled};
use emco_e2e::package::Package;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::record::Entry;

mod bulkheads;
mod changes;
mod pairs;
mod waves;

/// What makes this.
const HOW: &str = "make bench-lifecycle";
const PARTS: [&str; 5] = ["dependency", "approval", "changes", "waves", "bulkheads"];
/// Project, its namespace and its deployment.
const NAME: &str = "shop";
const SAMPLES: usize = 20;
const DB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}, annotations: {version: {{ .Values.version | quote }}}}
    spec:
      containers: [{name: db, image: example.com/db}]
";
const WEB: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {version: {{ .Values.version | quote }}}
";

/// Measures on one bed, with one operator; only one part if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    if let Some(only) = only.filter(|only| !PARTS.contains(only)) {
        bail!("there is no part {only}: they are {}", PARTS.join(", "));
    }
    // On a bed of its own.
    let apart = if only.is_none_or(|only| only == "bulkheads") {
        println!("bulkheads");
        Box::pin(bulkheads::measure(program)).await?
    } else {
        Vec::new()
    };
    if only == Some("bulkheads") {
        return Ok(apart);
    }
    let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
    let spec = BedSpec::default().with(hub).with(PlaneSpec::edge("a").audit(Audit::Writes));
    let bed = Bed::start(spec).await?;
    let operator = Operator::start(&bed, program).await?;
    let measured = Box::pin(async {
        let stage = Stage::start(&bed).await?;
        let mut entries = apart;
        let here = PARTS.into_iter().filter(|part| *part != "bulkheads");
        for part in here.filter(|part| only.is_none_or(|only| only == *part)) {
            println!("{part}");
            entries.extend(match part {
                "dependency" => Box::pin(stage.dependency()).await?,
                "changes" => Box::pin(changes::measure(&bed)).await?,
                "waves" => Box::pin(waves::measure(&bed, &operator)).await?,
                _ => Box::pin(stage.approval()).await?,
            });
        }
        Ok(entries)
    });
    let entries = operator::unless_ended(operator.process(), measured).await?;
    drop(operator);
    bed.end().await?;
    Ok(entries)
}

/// A deployment of `web`, which depends on `db`, on one edge.
struct Stage<'a> {
    bed: &'a Bed,
    digs: Api<DeploymentIntentGroup>,
}

impl<'a> Stage<'a> {
    async fn start(bed: &'a Bed) -> Result<Self> {
        operator::register(bed, "acme", &["a"]).await?;
        operator::project(bed, NAME).await?;
        operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        let chart = |name: &str, text: &str| -> Result<Package> {
            let template = format!("templates/{name}.yaml");
            operator::chart(name, "1.0.0", &[("values.yaml", "version: none\n"), (&template, text)])
        };
        let charts = [chart("db", DB)?, chart("web", WEB)?];
        operator::chart_map(bed, NAME, "charts", &charts).await?;
        let yaml = operator::deployment(NAME, NAME, &charts, "placement: {allOf: [{selector: {}}]}");
        bed.hub().kubectl().apply(&yaml).await?;
        let depends = r#"[{"op": "add", "path": "/spec/apps/1/dependsOn", "value": [{"app": "db"}]}]"#;
        let patch = ["patch", "capp", NAME, "-n", NAME, "--type=json", "-p", depends];
        bed.hub().kubectl().run(&patch).await?;
        let stage = Self { bed, digs: bed.hub().api(NAME).await? };
        stage.applied(stage.edit("begin").await?).await?;
        Ok(stage)
    }

    /// Changes both apps; the new generation.
    async fn edit(&self, version: &str) -> Result<i64> {
        let of = |app: &str| json!({"app": app, "values": {"version": version}});
        let patch = json!({"spec": {"overrideValues": [of("db"), of("web")]}});
        let changed = self.digs.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(changed.metadata.generation.unwrap_or_default())
    }

    /// Waits for what the deployment says of this generation.
    async fn says<T>(
        &self,
        generation: i64,
        mut check: impl FnMut(&DeploymentIntentGroup) -> Result<T, String>,
    ) -> Result<T> {
        operator::wait(self.bed, NAME, NAME, |dig: &DeploymentIntentGroup| {
            let seen = dig.status.as_ref().and_then(|status| status.observed_generation);
            if seen != Some(generation) {
                return Err(format!("generation {generation} was not looked at yet, {seen:?} was"));
            }
            check(dig)
        })
        .await
    }

    async fn applied(&self, generation: i64) -> Result<()> {
        self.says(generation, settled).await
    }

    /// Seconds from the answer of the edge to the write that made `db` ready until the first write of `web`.
    async fn dependency(&self) -> Result<Vec<Entry>> {
        let mut samples = Vec::new();
        for number in 0..SAMPLES {
            let mark = self.bed.edge("a").audit_mark()?;
            self.applied(self.edit(&format!("d{number}")).await?).await?;
            let events = self.bed.edge("a").audit_since(mark)?;
            let web = first_of_ours(&events, "configmaps").context("web was not written")?;
            let db = first_of_ours(&events, "deployments").context("db was not written")?;
            ensure!(db.received < web.received, "web came before db");
            let of_db = |event: &&AuditEvent| {
                event.resource == "deployments" && event.subresource == "status" && event.name == "db"
            };
            let ready = events.iter().filter(of_db).rfind(|event| event.answered <= web.received);
            samples.push(seconds(ready.context("db did not become ready")?.answered, web.received));
        }
        let entry = Entry::quantile("dependency_overhead_s_p50", "s", samples.clone(), 0.5, HOW);
        let most = Entry::quantile("dependency_overhead_s_p99", "s", samples, 0.99, HOW);
        Ok(vec![entry.context("nothing was measured")?.at_most(0.1), most.context("nothing was measured")?])
    }

    /// Seconds from the hub's answer to an approval until the first write on the edge.
    async fn approval(&self) -> Result<Vec<Entry>> {
        let kubectl = self.bed.hub().kubectl();
        let manual = r#"{"spec":{"approval":{"mode":"Manual"}}}"#;
        kubectl.run(&["patch", "project", NAME, "--type=merge", "-p", manual]).await?;
        let who = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        let approvals: Api<DeploymentApproval> = self.bed.hub().api(NAME).await?;
        let mut samples = Vec::new();
        for number in 0..SAMPLES {
            let generation = self.edit(&format!("a{number}")).await?;
            let digest = self.says(generation, |dig| {
                let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
                pending.map(|pending| pending.digest.clone()).ok_or_else(|| "nothing waits".to_owned())
            });
            let digest = digest.await?;
            let mark = self.bed.edge("a").audit_mark()?;
            let approval: DeploymentApproval = serde_json::from_value(approve(number, &digest, &who))?;
            approvals.create(&PostParams::default(), &approval).await?;
            let accepted = Timestamp::now();
            self.applied(generation).await?;
            let events = self.bed.edge("a").audit_since(mark)?;
            let first = first_of_ours(&events, "deployments").context("db was not written")?;
            samples.push(seconds(accepted, first.received));
        }
        let [p50, p99] = [("p50", 0.5, 0.05), ("p99", 0.99, 0.15)].map(|(name, part, most)| {
            let name = format!("approval_to_first_write_s_{name}");
            Entry::quantile(&name, "s", samples.clone(), part, HOW).map(|entry| entry.at_most(most))
        });
        Ok(vec![p50.context("nothing was measured")?, p99.context("nothing was measured")?])
    }
}

fn approve(number: usize, digest: &str, who: &str) -> Value {
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentApproval",
        "metadata": {"name": format!("yes-{number}"), "namespace": NAME},
        "spec": {"deploymentIntentGroupRef": {"name": NAME}, "digest": digest, "approvedBy": who.trim()},
    })
}

/// The first write of the operator to a resource.
fn first_of_ours<'a>(events: &'a [AuditEvent], resource: &str) -> Option<&'a AuditEvent> {
    events.iter().find(|event| {
        event.user == "emco"
            && event.verb == "patch"
            && event.resource == resource
            && event.subresource.is_empty()
            && !event.is_dry()
    })
}

/// Less than none where an approval was worked off before its client heard of it.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}
