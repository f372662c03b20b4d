//! Says which digests approvals of deployments in files have to name, before anything is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::{
    CompositeApp, CompositeProfile, DeploymentIntentGroup, GenericActionIntent, HardwareIntent,
    TrafficGroupIntent,
};
use emco_engine::resolve;
use emco_engine::snapshot::{Source, SourceKey};
use emco_engine::written::{Written, inputs_digest};
use serde::Serialize;

use super::args::HubArgs;
use super::args::deployments::DigestArgs;
use super::hub;
use super::output::{Table, machine};
use super::{Outcome, print};

mod found;
pub mod objects;

use found::Found;
use objects::{OF_DIGESTS, Objects};

/// One deployment of the files.
#[derive(Debug, Default, Serialize)]
struct Answer {
    /// `namespace/name`.
    deployment: String,
    /// What an approval of scope `Inputs` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Why there is none, and what helps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// What the digest takes for granted, because nothing here can tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
}

impl Answer {
    fn missing(&mut self, why: String) {
        if !self.missing.contains(&why) {
            self.missing.push(why);
        }
    }

    fn assume(&mut self, what: String) {
        self.assumed.push(what);
    }
}

/// `kubectl emco digest`.
pub async fn run(args: DigestArgs) -> anyhow::Result<Outcome> {
    let DigestArgs { filename, namespace, context, kubeconfig, output } = args;
    let objects = Objects::read(&filename, namespace.as_deref(), &OF_DIGESTS)?;
    let mut deployments: Vec<DeploymentIntentGroup> = objects.all()?;
    if deployments.is_empty() {
        let paths: Vec<String> = filename.iter().map(|path| path.display().to_string()).collect();
        anyhow::bail!("there is no DeploymentIntentGroup in {}", paths.join(", "));
    }
    deployments.sort_by_key(|dig| (dig.metadata.namespace.clone(), dig.metadata.name.clone()));
    let hub = match context {
        None => None,
        Some(context) => {
            let (operator_namespace, as_group) = (String::new(), Vec::new());
            let context = Some(context);
            let args = HubArgs { kubeconfig, context, as_user: None, as_group, operator_namespace };
            Some(hub::connect(&args).await?)
        }
    };
    let mut answers = Vec::new();
    for dig in deployments {
        answers.push(answer(&Found { objects: &objects, hub: hub.as_ref() }, dig).await?);
    }
    let complete = answers.iter().all(|answer| answer.digest.is_some());
    print(&match machine(output, &answers)? {
        Some(text) => text,
        None => table(&answers),
    })?;
    Ok(if complete { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn table(answers: &[Answer]) -> String {
    let mut table = Table::new(&["DEPLOYMENT", "DIGEST"]);
    for Answer { deployment, digest, .. } in answers {
        table.row(vec![deployment.clone(), digest.clone().unwrap_or_default()]);
    }
    let mut text = table.text();
    for Answer { deployment, missing, assumed, .. } in answers {
        for missing in missing {
            text.push_str(&format!("{deployment}: {missing}\n"));
        }
        for assumed in assumed {
            text.push_str(&format!("{deployment}: assumed: {assumed}\n"));
        }
    }
    text
}

async fn answer(found: &Found<'_>, dig: DeploymentIntentGroup) -> anyhow::Result<Answer> {
    let namespace = dig.metadata.namespace.clone().unwrap_or_default();
    let name = dig.metadata.name.clone().unwrap_or_default();
    let mut answer = Answer { deployment: format!("{namespace}/{name}"), ..Answer::default() };
    let spec = &dig.spec;
    // It is there; what is written as null in it is noted.
    let _: Option<DeploymentIntentGroup> = found.named(&namespace, &name, &mut answer).await?;
    let app = spec.composite_app_ref.name.as_str();
    let composite_app: Option<CompositeApp> = found.named(&namespace, app, &mut answer).await?;
    let profile: Option<CompositeProfile> = match &spec.composite_profile_ref {
        Some(profile) => found.named(&namespace, &profile.name, &mut answer).await?,
        None => None,
    };
    found.scope(&namespace, &mut answer).await?;
    let cloud = found.cloud(&namespace, &spec.logical_cloud_ref.name, &mut answer).await?;
    let charts = match &composite_app {
        Some(app) => found.charts(&namespace, app, &mut answer).await?,
        None => BTreeMap::default(),
    };
    let mut sources = BTreeMap::new();
    if let Some(profile) = &profile {
        let (name, keys) = (&spec.composite_profile_ref, resolve::sources(profile));
        let name = name.as_ref().map(|reference| reference.name.as_str()).unwrap_or_default();
        let reader = format!("CompositeProfile {namespace}/{name}");
        sources.extend(found.sources(&namespace, &reader, keys, &mut answer).await?);
    }
    let Intents { actions: intents, hardware, traffic } =
        listed(found, &dig, &mut sources, &mut answer).await?;
    if let Some(cloud) = cloud.filter(|_| answer.missing.is_empty()) {
        let (composite_app, profile, dig) =
            (composite_app.map(Arc::new), profile.map(Arc::new), Arc::new(dig));
        let written =
            Written { dig, composite_app, profile, intents, hardware, traffic, cloud, charts, sources };
        match inputs_digest(written) {
            Ok(found) => answer.digest = Some(found),
            Err(refusal) => answer.missing(refusal.message),
        }
    }
    Ok(answer)
}

/// What a deployment lists.
#[derive(Default)]
struct Intents {
    actions: BTreeMap<String, Arc<GenericActionIntent>>,
    hardware: BTreeMap<String, Arc<HardwareIntent>>,
    traffic: BTreeMap<String, Arc<TrafficGroupIntent>>,
}

async fn listed(
    found: &Found<'_>,
    dig: &DeploymentIntentGroup,
    sources: &mut BTreeMap<SourceKey, Source>,
    answer: &mut Answer,
) -> anyhow::Result<Intents> {
    let namespace = dig.metadata.namespace.clone().unwrap_or_default();
    let mut all = Intents::default();
    for listed in &dig.spec.intents {
        let name = listed.name.as_str();
        if resolve::is_generic_action(listed) {
            let intent: Option<GenericActionIntent> = found.named(&namespace, name, answer).await?;
            let Some(intent) = intent else { continue };
            let reader = format!("GenericActionIntent {namespace}/{name}");
            let keys = resolve::intent_sources(&intent);
            sources.extend(found.sources(&namespace, &reader, keys, answer).await?);
            all.actions.insert(name.to_owned(), Arc::new(intent));
        } else if resolve::is_hardware(listed) {
            let intent: Option<HardwareIntent> = found.named(&namespace, name, answer).await?;
            all.hardware.extend(intent.map(|intent| (name.to_owned(), Arc::new(intent))));
        } else if resolve::is_traffic(listed) {
            let intent: Option<TrafficGroupIntent> = found.named(&namespace, name, answer).await?;
            all.traffic.extend(intent.map(|intent| (name.to_owned(), Arc::new(intent))));
        }
    }
    Ok(all)
}

/// Why a Secret's content cannot be in a digest that is worked out here.
fn keyed(reader: &str, namespace: &str, read: &SourceKey) -> String {
    format!(
        "{reader} reads {} {namespace}/{}, which counts with a key that only the operator has: apply the change where plans wait for an approval, and take status.pending.digest",
        read.kind, read.name
    )
}
