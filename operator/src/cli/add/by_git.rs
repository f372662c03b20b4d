//! Registers a cluster that is written to through Git: its account may only read, and Flux there follows a folder of the branch.

use anyhow::bail;
use emco_crds::GitTarget;
use emco_engine::git::layout;
use emco_engine::git::tree::join;
use emco_engine::identity::ClusterId;
use kube::Api;
use serde_json::{Value, json};

use super::account;
use super::target::Target;
use crate::cli::args::AddArgs;
use crate::cli::hub::Hub;

/// Name of the two objects of Flux.
const NAME: &str = "emco";
/// Name of the Secret with Flux's login, where none is named.
const LOGIN: &str = "emco-git";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";

/// The branch that the agent of a cluster follows, and the folder of it.
pub struct Followed {
    target: GitTarget,
    folder: String,
    login: Option<String>,
}

impl Followed {
    /// Finds the target that `--git` names.
    pub async fn read(
        hub: &Hub,
        namespace: &str,
        id: &ClusterId,
        args: &AddArgs,
    ) -> anyhow::Result<Option<Self>> {
        let Some(name) = &args.git else { return Ok(None) };
        let what = format!("{namespace}/{name}");
        let found = Api::<GitTarget>::namespaced(hub.client.clone(), namespace).get_opt(name).await;
        let Some(target) = found.map_err(|error| hub.sentence(&error, "read git target", &what))? else {
            bail!(
                "there is no GitTarget {name} in namespace {namespace} of the hub {}: make it first",
                hub.url
            )
        };
        let folder = join(&target.spec.folder, &layout::cluster(id));
        let login = target.spec.secret_ref.as_ref().map(|_| LOGIN.to_owned());
        Ok(Some(Self { folder, login: args.git_secret.clone().or(login), target }))
    }

    /// The objects of Flux that the cluster needs once; everything else comes from the branch.
    pub fn objects(&self) -> [Value; 2] {
        let spec = &self.target.spec;
        let metadata = json!({"name": NAME, "namespace": spec.edge.namespace});
        let mut source = json!({
            "interval": spec.edge.interval, "url": spec.url, "ref": {"branch": spec.branch},
            "sparseCheckout": [self.folder],
        });
        if let (Some(login), Some(source)) = (&self.login, source.as_object_mut()) {
            source.insert("secretRef".to_owned(), json!({"name": login}));
        }
        [
            json!({"apiVersion": SOURCE, "kind": "GitRepository", "metadata": metadata, "spec": source}),
            json!({
                "apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": metadata,
                "spec": {
                    "interval": spec.edge.interval, "path": format!("./{}/sync", self.folder), "prune": true,
                    "sourceRef": {"kind": "GitRepository", "name": NAME},
                },
            }),
        ]
    }

    /// Puts them on the cluster; where it has no Flux yet, they are printed for later. What a person should know besides.
    pub async fn apply(&self, target: &Target) -> anyhow::Result<Vec<String>> {
        let mut notes = Vec::new();
        let namespace = &self.target.spec.edge.namespace;
        if let Some(login) = &self.login {
            notes.push(format!(
                "Flux reads the repository with Secret {login} in namespace {namespace} of the cluster: put a login there that may only read"
            ));
        }
        let objects = self.objects();
        for object in &objects {
            if let Err(error) = account::apply(target, object).await {
                let texts: Vec<String> =
                    objects.iter().filter_map(|one| serde_yaml::to_string(one).ok()).collect();
                notes.push(format!(
                    "the objects of Flux are not on the cluster ({error:#}): install Flux, then apply there:\n---\n{}",
                    texts.join("---\n")
                ));
                break;
            }
        }
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(secret: bool) -> Followed {
        let mut target = json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "GitTarget", "metadata": {"name": "fleet", "namespace": "acme"},
            "spec": {"url": "https://git.example.com/acme/fleet.git", "branch": "main", "folder": "hub"},
        });
        if secret {
            target["spec"]["secretRef"] = json!({"name": "fleet-login"});
        }
        let login = secret.then(|| LOGIN.to_owned());
        let folder = "hub/clusters/acme/b".to_owned();
        Followed { target: serde_json::from_value(target).unwrap(), folder, login }
    }

    #[test]
    fn flux_follows_the_folder_of_the_cluster_alone() {
        let [source, sync] = followed(true).objects();
        assert_eq!(source["metadata"], json!({"name": "emco", "namespace": "flux-system"}));
        assert_eq!(source["spec"]["sparseCheckout"], json!(["hub/clusters/acme/b"]));
        assert_eq!(source["spec"]["secretRef"], json!({"name": "emco-git"}));
        assert_eq!(sync["spec"]["path"], "./hub/clusters/acme/b/sync");
        assert_eq!(sync["spec"]["prune"], true);
        assert!(followed(false).objects()[0]["spec"].get("secretRef").is_none());
    }
}
