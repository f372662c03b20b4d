//! A logical cloud with an account of its own, and a deployment in it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployment, is, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;

use super::{EVERYWHERE, start};

/// Between two questions what the account may do.
const HEEDED_EVERY: Duration = Duration::from_millis(100);
/// Of the logical cloud.
const NAME: &str = "tenant";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {say: {{ .Values.say | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.say | quote }}}
{{- with .Values.more }}
---
{{ . }}
{{- end }}
";

/// In a project of its own.
pub struct Tenant {
    pub bed: &'static Bed,
    note: Package,
    space: &'static str,
    level: &'static str,
}

impl Tenant {
    pub async fn new(space: &'static str, level: &'static str) -> Result<Self> {
        let files = [("values.yaml", "say: nothing\nmore: ''\n"), ("templates/note.yaml", NOTE)];
        let note = chart("note", "1.0.0", &files)?;
        let bed = start(space, std::slice::from_ref(&note)).await?;
        Ok(Self { bed, note, space, level })
    }

    /// Namespace on the clusters.
    fn there(&self) -> String {
        format!("{}-there", self.space)
    }

    pub fn account(&self) -> String {
        format!("system:serviceaccount:{}:emco-{NAME}", self.there())
    }

    /// Applies the logical cloud, with more fields of its spec.
    pub async fn cloud(&self, more: &str) -> Result<()> {
        let (space, level, there) = (self.space, self.level, self.there());
        let text = format!(
            "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: {NAME}, namespace: {space}}}, \
             spec: {{level: {level}, namespace: {there}{more}}}}}"
        );
        self.bed.hub().kubectl().apply(&text).await.map(drop)
    }

    /// Waits until the logical cloud is ready as it was last applied.
    pub async fn ready(&self) -> Result<()> {
        wait(self.bed, self.space, NAME, |cloud: &LogicalCloud| {
            let current = cloud.status.as_ref().and_then(|status| status.observed_generation);
            if current != cloud.metadata.generation {
                return Err("the last change was not looked at yet".to_owned());
            }
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await
        .map(drop)
    }

    /// Applies the deployment `shop`, of which `more` is one more manifest.
    pub async fn deploy(&self, say: &str, more: &str) -> Result<()> {
        self.wants("Instantiated", say, more).await
    }

    /// Applies it, and nothing is done on clusters.
    pub async fn plan(&self, say: &str, more: &str) -> Result<()> {
        self.wants("Planned", say, more).await
    }

    async fn wants(&self, state: &str, say: &str, more: &str) -> Result<()> {
        let values = serde_json::json!({"say": say, "more": more});
        let spec = format!(
            "{EVERYWHERE}\ndesiredState: {state}\nlogicalCloudRef: {{name: {NAME}}}\n\
             overrideValues: [{{app: note, values: {values}}}]"
        );
        let objects = deployment(self.space, "shop", std::slice::from_ref(&self.note), &spec);
        self.bed.hub().kubectl().apply(&objects).await.map(drop)
    }

    /// Waits until a cluster lets the account do that, or does not. `resource.group/name` is one object.
    pub async fn may(&self, verb: &str, resource: &str, namespace: &str, may: bool) -> Result<()> {
        let (kind, name) = resource.split_once('/').unwrap_or((resource, ""));
        let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
        let there = format!("system:serviceaccounts:{}", self.there());
        let review: SubjectAccessReview = serde_json::from_value(serde_json::json!({"spec": {
            "user": self.account(),
            "groups": ["system:serviceaccounts", there, "system:authenticated"],
            "resourceAttributes": {"verb": verb, "group": group, "resource": plural, "name": name, "namespace": namespace},
        }}))?;
        let reviews: Api<SubjectAccessReview> = Api::all(self.bed.edge("a").client().await?);
        let end = Instant::now() + SOON;
        // No watch tells when a server heeds a new rule.
        loop {
            let answer = Box::pin(reviews.create(&PostParams::default(), &review)).await?;
            if answer.status.as_ref().is_some_and(|status| status.allowed == may) {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{verb} {resource} in {namespace:?} is still otherwise: {answer:?}"
            );
            tokio::time::sleep(HEEDED_EVERY).await;
        }
    }

    /// Objects of the deployment that were written in a namespace ("": of the whole cluster), all of them as the account.
    pub fn written(&self, edge: &str, namespace: &str) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for event in self.bed.edge(edge).audit()? {
            let of_it = event.namespace == namespace && event.name.starts_with("shop-");
            if of_it && event.is_write() && event.code < 300 && !event.is_dry() {
                ensure!(event.acting_as == self.account(), "{edge}: {event:?}");
                names.insert(event.name);
            }
        }
        Ok(names)
    }

    /// Deletes the deployment, and waits until it is gone.
    pub async fn end_deployment(&self) -> Result<()> {
        let (hub, space) = (self.bed.hub(), self.space);
        hub.kubectl().run(&["delete", "dig", "shop", "-n", space, "--wait=false"]).await?;
        wait_until_gone(hub.api::<DeploymentIntentGroup>(space).await?, "shop", SOON).await
    }

    /// Deletes both, and waits until nothing of them is left.
    pub async fn leave(&self) -> Result<()> {
        let (hub, space) = (self.bed.hub(), self.space);
        self.end_deployment().await?;
        hub.kubectl().run(&["delete", "lc", NAME, "-n", space, "--wait=false"]).await?;
        wait_until_gone(hub.api::<LogicalCloud>(space).await?, NAME, SOON).await?;
        wait_until_gone(Api::<Namespace>::all(self.bed.edge("a").client().await?), &self.there(), SOON).await
    }
}
