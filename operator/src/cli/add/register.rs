//! A cluster's name, labels and kubeconfig come in; a Secret and a Cluster on the hub go out.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_controllers::remote::kubeconfig::claims;
use emco_crds::fields::Level;
use emco_crds::names::{API_VERSION, annotation, manager};
use emco_crds::{Cluster, ClusterProvider};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::grants;
use super::target::{Right, Target};
use crate::cli::args::AddArgs;
use crate::cli::hub::{Hub, is_forbidden};

/// The key of the kubeconfig.
const KEY: &str = "kubeconfig";

/// Name of the Secret that is made for a Cluster.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// A cluster as the hub will know it.
pub struct Registration {
    provider: String,
    name: String,
    /// The provider's namespace.
    pub namespace: String,
    labels: BTreeMap<String, String>,
    /// The target that it is written to through.
    git: Option<String>,
    token_duration: Duration,
    /// The highest level that a grant of the provider allows; `None` without grants.
    granted: Option<Level>,
}

/// Says in a Secret for how long a token was asked for: the operator asks for as long when it renews it.
pub fn asked_for(duration: Duration) -> Value {
    json!({annotation::TOKEN_DURATION: format!("{}s", duration.as_secs())})
}

impl Registration {
    /// Finds the provider's namespace.
    pub async fn prepare(hub: &Hub, provider: &str, name: &str, args: &AddArgs) -> anyhow::Result<Self> {
        let found = Api::<ClusterProvider>::all(hub.client.clone()).get_opt(provider).await;
        let found = found.map_err(|error| hub.sentence(&error, "read cluster provider", provider))?;
        let Some(found) = found else {
            bail!(
                "there is no ClusterProvider {provider} on the hub {}: make it first, since it says which projects may use its clusters",
                hub.url
            )
        };
        Ok(Self {
            provider: provider.to_owned(),
            name: name.to_owned(),
            granted: grants::highest(&found),
            namespace: found.spec.namespace.unwrap_or_else(|| provider.to_owned()),
            labels: args.labels(),
            git: args.git.clone(),
            token_duration: args.token_duration,
        })
    }

    /// What is to be said where the level is another one than grants of the provider allow.
    pub fn compared(&self, args: &AddArgs) -> Option<String> {
        // What a role of the cluster's own is good for, its owner knows.
        let has_level = args.cluster_role.is_none() && self.git.is_none();
        let level = has_level.then(|| args.level().stored())?;
        grants::compared(level, self.granted, &self.provider)
    }

    /// Refuses what would mean another cluster than the one that is named.
    pub async fn refuse_confusion(&self, hub: &Hub, target: &Target, uid: &str) -> anyhow::Result<()> {
        let hub_uid =
            Api::<Namespace>::all(hub.client.clone()).get("kube-system").await.ok().and_then(|n| n.uid());
        if hub_uid.as_deref() == Some(uid) {
            bail!(
                "{} is the hub itself: --context and --kubeconfig name the cluster to add, --hub-context and --hub-kubeconfig the hub",
                target.server
            );
        }
        let id = format!("{}/{}", self.provider, self.name);
        let clusters =
            match hub.try_list(Api::<Cluster>::all(hub.client.clone()), &ListParams::default()).await {
                Ok(clusters) => clusters,
                Err(error) if is_forbidden(&error) => {
                    let api = Api::<Cluster>::namespaced(hub.client.clone(), &self.namespace);
                    hub.list(api, &ListParams::default(), "clusters", Some(&self.namespace)).await?
                }
                Err(error) => return Err(hub.sentence(&error, "list clusters", "in all namespaces")),
            };
        for cluster in &clusters {
            let status = cluster.status.clone().unwrap_or_default();
            let known = status.id.unwrap_or_else(|| {
                format!("{}/{}", cluster.namespace().unwrap_or_default(), cluster.name_any())
            });
            let this =
                cluster.namespace().as_deref() == Some(&self.namespace) && cluster.name_any() == self.name;
            if this && cluster.spec.access.git_target() != self.git.as_deref() {
                let now = cluster.spec.access.git_target();
                let now = now.map_or_else(|| "directly".to_owned(), |target| format!("with --git {target}"));
                bail!(
                    "cluster {id} is registered {now}, which cannot change: add it as it is, or take it off the hub first (kubectl emco \
                     cluster drain {id}, then cluster remove {id})"
                );
            }
            match status.uid {
                Some(known_uid) if this && known_uid != uid => bail!(
                    "cluster {id} exists already and is another one: its kube-system has UID {known_uid}, and that of {} has {uid}; \
                     choose another name, or delete the Cluster first",
                    target.server
                ),
                Some(known_uid) if !this && known_uid == uid => {
                    bail!("{} is registered already, as {known}: a cluster is registered once", target.server)
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn secret_name(&self) -> String {
        secret_name(&self.name)
    }

    /// The Secret.
    pub fn secret(&self, kubeconfig: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": self.secret_name(), "namespace": self.namespace,
                "annotations": asked_for(self.token_duration),
            },
            "data": {KEY: STANDARD.encode(kubeconfig)},
        })
    }

    /// The Cluster.
    pub fn cluster(&self) -> Value {
        let mut metadata = json!({"name": self.name, "namespace": self.namespace});
        if let Some(fields) = metadata.as_object_mut().filter(|_| !self.labels.is_empty()) {
            fields.insert("labels".to_owned(), json!(self.labels));
        }
        let kubeconfig = json!({"kubeconfigSecretRef": {"name": self.secret_name()}});
        let access = match &self.git {
            Some(target) => json!({"gitOps": {"targetRef": {"name": target}, "observe": kubeconfig}}),
            None => kubeconfig,
        };
        json!({
            "apiVersion": API_VERSION, "kind": "Cluster", "metadata": metadata,
            "spec": {"access": access},
        })
    }

    /// The stored kubeconfig, if it leads to this cluster, works, and will for a good while.
    pub async fn still_good(
        &self,
        hub: &Hub,
        target: &Target,
        args: &AddArgs,
        uid: &str,
        (account, right): (&str, Option<&Right>),
    ) -> Option<String> {
        let secrets = Api::<Secret>::namespaced(hub.client.clone(), &self.namespace);
        let secret = secrets.get_opt(&self.secret_name()).await.ok()??;
        let stored = String::from_utf8(secret.data?.remove(KEY)?.0).ok()?;
        let file: Value = serde_yaml::from_str(&stored).ok()?;
        let token = file.pointer("/users/0/user/token")?.as_str()?.to_owned();
        // A token of an account that was deleted is accepted for some seconds more: servers remember.
        if stored != target.kubeconfig(&token) || claims::account(&token).as_deref() != Some(account) {
            return None;
        }
        let left = claims::ends(&token).map(|end| end.duration_since(Timestamp::now()));
        let half = args.token_duration / 2;
        if left.is_some_and(|left| Duration::try_from(left).unwrap_or_default() < half) {
            return None;
        }
        target.check(&stored, uid, right).await.is_ok().then_some(stored)
    }

    /// Refuses to replace a Secret that somebody else made: with its content, credentials would be lost that nobody has twice, and
    /// `cluster remove` would delete it.
    pub async fn refuse_foreign_secret(&self, hub: &Hub) -> anyhow::Result<()> {
        let api = Api::<Secret>::namespaced(hub.client.clone(), &self.namespace);
        let what = format!("{}/{}", self.namespace, self.secret_name());
        let found = api.get_metadata_opt(&self.secret_name()).await;
        let found = found.map_err(|error| hub.sentence(&error, "read secret", &what))?;
        let ours = |secret: &PartialObjectMeta<Secret>| {
            secret.managed_fields().iter().any(|fields| fields.manager.as_deref() == Some(manager::CLI))
        };
        match found {
            Some(secret) if !ours(&secret) => bail!(
                "Secret {what} is there already, does not hold credentials of this cluster that work, and was not made by \
                 kubectl-emco: it is left as it is, and nothing on the hub was changed. Delete it, or choose another name for the cluster"
            ),
            _ => Ok(()),
        }
    }

    /// Puts the Secret on the hub.
    pub async fn apply_secret(&self, hub: &Hub, kubeconfig: &str) -> anyhow::Result<()> {
        let api = Api::<Secret>::namespaced(hub.client.clone(), &self.namespace);
        let params = PatchParams::apply(manager::CLI).force();
        let object = self.secret(kubeconfig);
        match api.patch(&self.secret_name(), &params, &Patch::Apply(&object)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => bail!(
                "the namespace {} of ClusterProvider {} does not exist yet: the operator makes it; is the operator running?",
                self.namespace,
                self.provider
            ),
            Err(error) => Err(hub.sentence(
                &error,
                "write secret",
                &format!("{}/{}", self.namespace, self.secret_name()),
            )),
        }
    }

    /// Puts the Cluster on the hub.
    pub async fn apply_cluster(&self, hub: &Hub) -> anyhow::Result<()> {
        let api = Api::<Cluster>::namespaced(hub.client.clone(), &self.namespace);
        let object = self.cluster();
        match api.patch(&self.name, &PatchParams::apply(manager::CLI), &Patch::Apply(&object)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "Cluster {}/{} exists already and is kept by somebody else, such as a GitOps tool: change it there ({})",
                self.provider,
                self.name,
                status.message
            ),
            Err(error) => {
                Err(hub.sentence(&error, "write cluster", &format!("{}/{}", self.namespace, self.name)))
            }
        }
    }
}
