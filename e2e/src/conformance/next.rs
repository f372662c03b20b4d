//! Changes a deployment to the next version of its chart, beside `helm upgrade`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator;
use emco_e2e::package::Package;
use serde_json::json;

use super::compare::{Exceptions, compare, held};
use super::reference::{Reference, Rendered};
use super::snapshot::Objects;
use super::{Change, PROJECT, Tried, all, hand_over, refusal};

/// The revision of the next version: after that of the installation, and that of the changed value.
const REVISION: i64 = 3;

/// The next version of a chart that is deployed.
pub struct Next<'a> {
    bed: &'a Bed,
    package: &'a Package,
    reference: Reference<'a>,
    rendered: Rendered,
}

impl<'a> Next<'a> {
    /// Renders it with Helm; `None` where the corpus has no next version, or the chart is not upgraded.
    pub async fn new(bed: &'a Bed, tried: &'a Tried) -> Result<Option<Self>> {
        let Some(Change { values, next: Some(package) }) = &tried.change else { return Ok(None) };
        ensure!(
            package.name == tried.package.name && package.version != tried.package.version,
            "{} {} is no other version of {}",
            package.name,
            package.version,
            tried.package.name
        );
        let reference = Reference::new(bed, "next", package, values).await?;
        let rendered = reference.render().await.context("the next version")?;
        Ok(Some(Self { bed, package, reference, rendered }))
    }

    /// The version.
    pub fn version(&self) -> &str {
        &self.package.version
    }

    /// Upgrades on all planes, and compares what is there, or why it is refused.
    pub async fn step(
        &self,
        before: &BTreeMap<&str, Objects>,
        present: &BTreeMap<&str, Objects>,
        drawn: &Rendered,
    ) -> Result<String> {
        let chart = hand_over(self.bed, self.package, "next").await?;
        let patch = json!({"spec": {"apps": [{"name": "chart", "chart": chart}]}}).to_string();
        let object = format!("compositeapps.emco.io/{}", self.package.name);
        let args = ["patch", &object, "-n", PROJECT, "--type=merge", "-p", &patch];
        self.bed.hub().kubectl().run(&args).await?;
        if let Err(helm) = self.reference.upgrade().await {
            let what = self.refused(&format!("{helm:#}")).await?;
            return Ok(format!("version {} is refused by Helm and EMCO: {what}", self.version()));
        }
        let deployed = operator::deployed(self.bed, PROJECT, &self.package.name, REVISION).await;
        deployed.context("the deployment of it does not get ready")?;
        let now = all(self.bed).await?;
        // An upgrade by Helm makes no definitions of the folder, and leaves what earlier hooks made.
        let rules = Exceptions { definitions: true, hooks: true };
        let seen = compare(before, &now, &self.rendered, &rules)?;
        let kept = held(present, &now, drawn)?;
        Ok(format!("with version {} {seen}, {kept}", self.version()))
    }

    /// Waits until the deployment says that it fails where Helm does.
    async fn refused(&self, helm: &str) -> Result<String> {
        let same = operator::wait(self.bed, PROJECT, &self.package.name, |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().ok_or("it has no status yet")?;
            if operator::settled(dig).is_ok() && status.revision == Some(REVISION) {
                return Ok(None);
            }
            let conditions = status.conditions.iter().filter(|condition| condition.status != "True");
            let said = conditions.map(|condition| condition.message.as_str());
            let said = said.chain(status.failing.iter().map(|failing| failing.message.as_str()));
            let mut compared = said.map(|said| refusal::same(helm, said));
            if let Some(same) = compared.by_ref().find_map(Result::ok) {
                return Ok(Some(same));
            }
            Err(format!("{helm}; EMCO says {:?} {:?}", status.conditions, status.failing))
        });
        same.await?.with_context(|| format!("EMCO deploys what Helm refuses: {helm}"))
    }
}
