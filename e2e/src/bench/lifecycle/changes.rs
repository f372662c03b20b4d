//! Measures a change of 20 of 1,000 objects: until its plan is in `status.pending`, and how many writes it costs on the edge.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{self, is, settled};
use emco_e2e::package::Package;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::super::record::Entry;
use super::{HOW, SAMPLES, seconds};

/// Project, namespace, app and deployment.
const NAME: &str = "many";
/// Another CompositeApp of the same chart.
const NEXT: &str = "many-next";
/// Of 1,000 objects, these many have a value that is edited.
const CHANGED: usize = 20;
const MAPS: &str = "
{{- range $at := until 1000 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: note-{{ $at }}}
data: {version: {{ ternary $.Values.version \"same\" (lt $at 20) | quote }}}
{{- end }}
";

struct Many<'a> {
    bed: &'a Bed,
    digs: Api<DeploymentIntentGroup>,
}

/// All of it.
pub async fn measure(bed: &Bed) -> Result<Vec<Entry>> {
    let many = Many::start(bed).await?;
    let mut waits = Vec::new();
    let mut writes = Vec::new();
    for number in 0..SAMPLES {
        let version = format!("p{number}");
        waits.push(many.pending(&version).await?);
        let mark = bed.edge("a").audit_mark()?;
        let resumed = many.change(&json!({"suspend": null})).await?;
        let revision = many.until(resumed, "Ready").await?;
        writes.push(many.written(mark)?);
        // Back and forth, as often as one is enough to see that neither writes more.
        if number == 0 {
            for (pin, reason) in [(json!(revision - 1), "Pinned"), (Value::Null, "Ready")] {
                let mark = bed.edge("a").audit_mark()?;
                let turned = many.change(&json!({"revision": pin})).await?;
                many.until(turned, reason).await?;
                writes.push(many.written(mark)?);
            }
        }
    }
    writes.push(many.migrated().await?);
    let pending = Entry::quantile("plan_pending_s_p50", "s", waits, 0.5, HOW);
    // Neither what wrote too much nor what wrote nothing is hidden by the others.
    #[allow(clippy::cast_precision_loss)] // some dozens
    let per_object = writes.into_iter().map(|count| count as f64 / CHANGED as f64);
    let farthest = per_object.max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()));
    let farthest = farthest.context("nothing was measured")?;
    let writes = Entry::one("edge_writes_per_changed_object", "", farthest, HOW);
    Ok(vec![pending.context("nothing was measured")?.at_most(0.1), writes.at_most(1.0).at_least(1.0)])
}

impl<'a> Many<'a> {
    async fn start(bed: &'a Bed) -> Result<Self> {
        operator::project(bed, NAME).await?;
        operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        let files = [("values.yaml", "version: none\n"), ("templates/maps.yaml", MAPS)];
        let charts = [operator::chart(NAME, "1.0.0", &files)?];
        operator::chart_map(bed, NAME, "charts", &charts).await?;
        let yaml = operator::deployment(NAME, NAME, &charts, "placement: {allOf: [{selector: {}}]}");
        bed.hub().kubectl().apply(&yaml).await?;
        let key = charts.iter().map(Package::file_name).collect::<String>();
        let next = format!(
            "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: {NEXT}, namespace: {NAME}}}
spec:
  apps: [{{name: {NAME}, chart: {{configMapRef: {{name: charts, key: {key}}}}}}}]"
        );
        bed.hub().kubectl().apply(&next).await?;
        operator::wait(bed, NAME, NAME, settled).await?;
        Ok(Self { bed, digs: bed.hub().api(NAME).await? })
    }

    /// Changes the spec; the new generation.
    async fn change(&self, spec: &Value) -> Result<i64> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let changed = self.digs.patch(NAME, &PatchParams::default(), &patch).await?;
        Ok(changed.metadata.generation.unwrap_or_default())
    }

    /// Waits until this generation is looked at and Ready is True for this reason; the revision that runs.
    async fn until(&self, generation: i64, reason: &str) -> Result<i64> {
        operator::wait(self.bed, NAME, NAME, |dig: &DeploymentIntentGroup| {
            let now = dig.status.as_ref().filter(|status| status.observed_generation == Some(generation));
            let now = now.ok_or_else(|| format!("generation {generation} was not looked at yet"))?;
            let ready = now.condition(types::READY).ok_or("it does not say whether it is ready")?;
            let moving = now.condition(types::RECONCILING).is_some() && reason == "Ready";
            if (ready.status.as_str(), ready.reason.as_str(), moving) == ("True", reason, false) {
                Ok(now.revision.unwrap_or_default())
            } else {
                Err(format!("Ready is {} {}: {}", ready.status, ready.reason, ready.message))
            }
        })
        .await
    }

    /// Seconds from the hub's answer to an edit until its answer to the status with the plan, which is not carried out.
    async fn pending(&self, version: &str) -> Result<f64> {
        let mark = self.bed.hub().audit_mark()?;
        let values = json!([{"app": NAME, "values": {"version": version}}]);
        let generation = self.change(&json!({"suspend": true, "overrideValues": values})).await?;
        operator::wait(self.bed, NAME, NAME, |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().filter(|status| status.observed_generation == Some(generation));
            let pending = status.and_then(|status| status.pending.as_ref());
            pending.map(drop).ok_or_else(|| "no plan waits yet".to_owned())
        })
        .await?;
        let events = self.bed.hub().audit_since(mark)?;
        let of = |user: &str, subresource: &str| {
            events.iter().rfind(|event: &&AuditEvent| {
                let what = (event.resource.as_str(), event.subresource.as_str(), event.name.as_str());
                event.user == user
                    && event.is_write()
                    && what == ("deploymentintentgroups", subresource, NAME)
            })
        };
        let edited = of("tester", "").context("the edit is not in the audit log")?;
        let said = of("emco", "status").context("no status is in the audit log")?;
        ensure!(edited.answered < said.received, "the status is older than the edit");
        Ok(seconds(edited.answered, said.answered))
    }

    /// Moves to another CompositeApp, with another value; objects that were written for it.
    async fn migrated(&self) -> Result<usize> {
        let before = self.digs.get(NAME).await?.status.and_then(|status| status.revision);
        let mark = self.bed.edge("a").audit_mark()?;
        let values = json!([{"app": NAME, "values": {"version": "moved"}}]);
        let spec = json!({"compositeAppRef": {"name": NEXT}, "overrideValues": values});
        let revision = self.until(self.change(&spec).await?, "Ready").await?;
        ensure!(before < Some(revision), "revision {revision} is not of the migration");
        self.written(mark)
    }

    /// Objects of the deployment that the operator wrote on the edge.
    fn written(&self, mark: AuditMark) -> Result<usize> {
        let events = self.bed.edge("a").audit_since(mark)?;
        let ours = |event: &&AuditEvent| event.user == "emco" && event.is_write() && event.namespace == NAME;
        Ok(events.iter().filter(ours).count())
    }
}
