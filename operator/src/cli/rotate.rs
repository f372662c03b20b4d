//! Gives a registered cluster new credentials and ends the old ones.
//!
//! The order is what makes it safe to die anywhere: a new token, proven on the cluster, stored on the hub where nobody stored another
//! one meanwhile, used by the operator, and only then the end of the tokens that were there before. Running it again finishes the job:
//! it ends all tokens but the stored one.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_controllers::remote::kubeconfig::{claims, pick};
use emco_crds::Cluster;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::names::{annotation, manager, object};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::absence::delete;
use super::add::account::{self, Token, Wanted, is_of_token};
use super::add::target::{self, Target};
use super::add::{ACCOUNT, asked_for};
use super::args::RotateArgs;
use super::diff::edge;
use super::hub::{self, Hub, client_of};
use super::scheduling::{HubCluster, locate, read};
use super::{Outcome, print, watched};

/// What the hub has for a cluster.
struct Stored {
    secrets: Api<Secret>,
    secret: Secret,
    key: String,
    /// For how long the new token is asked for.
    duration: Duration,
    kubeconfig: String,
    token: String,
    /// Namespace and name, for people.
    said: String,
}

/// `kubectl emco cluster rotate`.
pub async fn run(args: RotateArgs) -> anyhow::Result<Outcome> {
    let id = args.cluster.clone();
    let hub = hub::connect(&args.hub()).await?;
    let place = locate(&hub, &id).await?;
    let cluster = read(&hub, &place, &id).await?;
    if cluster.metadata.deletion_timestamp.is_some() {
        bail!("Cluster {id} is being deleted: its credentials go with it");
    }
    let Some(uid) = cluster.status.as_ref().and_then(|status| status.uid.clone()) else {
        bail!(
            "the operator has never reached {id}, so nobody can say which cluster it is: register it with \
             `kubectl emco cluster add {id} --context CONTEXT`"
        );
    };
    let stored = stored(&hub, &place, &cluster, &args).await?;
    let own = args.kubeconfig.is_none() && args.context.is_none();
    let client = if own {
        client_of(&stored.kubeconfig).await?
    } else {
        target::person(args.kubeconfig.as_deref(), args.context.as_deref()).await?
    };
    let target = target::stored(client, &stored.kubeconfig)?;
    let hint = |error: anyhow::Error| if own { with_a_person(&id, &error) } else { error };
    let now = target.uid().await.map_err(hint)?;
    if now != uid {
        bail!(
            "that is another cluster than {id}: its kube-system has UID {now}, and that of {id} has {uid}; nothing was changed"
        );
    }
    if args.dry_run {
        print(&format!(
            "{id} would get a new token of the account {ACCOUNT} in Secret {}; then {} (dry run)\n",
            stored.said,
            ends(&stored.token)
        ))?;
        return Ok(Outcome::AsWanted);
    }
    let account = account::uid(&target).await.map_err(hint)?;
    // Those of somebody who does the same at this moment are made later: they are not touched.
    let before = secrets_of_tokens(&target).await.map_err(hint)?;
    let wanted = Wanted { kind: args.token, duration: args.token_duration, fresh: true };
    let new = account::token(&target, &wanted, &account).await.map_err(hint)?;
    eprintln!("{}", new.note);
    let kubeconfig = target.kubeconfig(&new.text);
    let put = match target.check(&kubeconfig, &uid, None).await {
        Ok(()) => stored.replace(&kubeconfig, &hub).await,
        refused => refused,
    };
    if let Err(error) = put {
        end(&target, &new.secret).await.ok();
        return Err(error.context("the credentials of the hub are as they were"));
    }
    print(&format!("{id} has new credentials, in Secret {}\n", stored.said))?;
    // Who may do everything needs no such right, and the stored credentials may not give it.
    if !own && let Err(error) = account::grant_renewal(&target).await {
        eprintln!("warning: the operator may not be able to renew them: {error:#}");
    }
    if let Err(why) = until_used(&hub, &place, args.timeout).await? {
        eprintln!(
            "warning: the operator has not said within {:?} that it uses them ({why}): the old ones are left as they are. Run this \
             again to end them",
            args.timeout
        );
        return Ok(Outcome::NotAsWanted);
    }
    // The stored ones are ended now; those of a person may have more rights than the new ones.
    let target = if own { target::stored(client_of(&kubeconfig).await?, &kubeconfig)? } else { target };
    revoke(&stored, &target, &new, &before).await
}

/// Ends what was there before.
async fn revoke(stored: &Stored, target: &Target, new: &Token, before: &[String]) -> anyhow::Result<Outcome> {
    let mut failed = Vec::new();
    for name in before.iter().filter(|name| **name != new.secret) {
        if let Err(error) = end(target, name).await {
            failed.push(format!("Secret {name} in namespace {}: {error:#}", object::EDGE_NAMESPACE));
        }
    }
    if !failed.is_empty() {
        eprintln!(
            "warning: the old credentials are not ended: {}. Run this again, or delete them on the cluster",
            failed.join("; ")
        );
        return Ok(Outcome::NotAsWanted);
    }
    print(&format!("{}\n", ends(&stored.token)))?;
    Ok(Outcome::AsWanted)
}

/// What becomes of a token once what it is bound to is deleted.
fn ends(token: &str) -> String {
    if claims::secret(token).is_some() {
        return "the old token is ended, with the Secret that it lived with".to_owned();
    }
    let until = claims::ends(token).map_or_else(String::new, |end| format!(" {end:.0}"));
    format!(
        "the old token is bound to the account alone, and ends{until} by itself; to end it now, delete the service account {ACCOUNT} in \
         namespace {} of the cluster and register it again",
        object::EDGE_NAMESPACE
    )
}

async fn end(target: &Target, secret: &str) -> anyhow::Result<()> {
    let secrets = Api::<Secret>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    delete(&secrets, secret).await.map_err(|error| target.failed(&error))
}

async fn secrets_of_tokens(target: &Target) -> anyhow::Result<Vec<String>> {
    let secrets = Api::<Secret>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    let found = secrets.list_metadata(&ListParams::default()).await.map_err(|error| target.failed(&error))?;
    Ok(found.items.iter().map(kube::ResourceExt::name_any).filter(|name| is_of_token(name)).collect())
}

/// The stored credentials cannot replace themselves.
fn with_a_person(id: &str, error: &anyhow::Error) -> anyhow::Error {
    anyhow!(
        "the stored credentials of {id} cannot replace themselves: {error:#}. Name a kubeconfig of a person with rights on the cluster: \
         kubectl emco cluster rotate {id} --context CONTEXT"
    )
}

/// Reads what the hub has, where it was made by this program.
async fn stored(
    hub: &Hub,
    place: &HubCluster,
    cluster: &Cluster,
    args: &RotateArgs,
) -> anyhow::Result<Stored> {
    let id = &args.cluster;
    let kubeconfig = edge::kubeconfig_of(hub, cluster).await?;
    let reference = cluster.spec.access.kubeconfig().context("the Cluster names no kubeconfig")?;
    let secrets = Api::<Secret>::namespaced(hub.client.clone(), &place.namespace);
    let said = format!("{}/{}", place.namespace, reference.name);
    let secret =
        secrets.get(&reference.name).await.map_err(|error| hub.sentence(&error, "read secret", &said))?;
    let by_hand = || {
        format!(
            "the credentials of {id} were not made by kubectl-emco: make new ones where they come from, and write them into \
             Secret {said}, key kubeconfig; the operator takes them at once"
        )
    };
    if !secret.managed_fields().iter().any(|fields| fields.manager.as_deref() == Some(manager::CLI)) {
        bail!(
            "Secret {said} is kept by somebody else, such as a GitOps tool, which would put the old credentials back; {}. For Git: \
             kubectl emco cluster add {id} --context CONTEXT --renew --secret-file FILE",
            by_hand()
        );
    }
    let file: Value = serde_yaml::from_str(&kubeconfig).map_err(|_| anyhow!("{}", by_hand()))?;
    let token = file.pointer("/users/0/user/token").and_then(Value::as_str).unwrap_or_default().to_owned();
    let ours = (object::EDGE_NAMESPACE.to_owned(), ACCOUNT.to_owned());
    if claims::account_name(&token) != Some(ours) {
        bail!("{}", by_hand());
    }
    let data = secret.data.clone().unwrap_or_default();
    let key = reference.key.clone().unwrap_or_else(|| {
        let is = |bytes: &[u8]| bytes == kubeconfig.as_bytes();
        let found = data.iter().find(|(_, bytes)| is(&bytes.0)).map(|(key, _)| key.clone());
        found.unwrap_or_else(|| "kubeconfig".to_owned())
    });
    let bytes = data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
    // The object that is replaced is the one whose credentials were read.
    if pick::<Vec<u8>>(&bytes, reference.key.as_deref())? != kubeconfig.as_bytes() {
        bail!("Secret {said} changes at this moment: run this again");
    }
    Ok(Stored { secrets, secret, key, duration: args.token_duration, kubeconfig, token, said })
}

impl Stored {
    /// Puts new credentials in the place of those that were read, and of no other ones.
    async fn replace(&self, kubeconfig: &str, hub: &Hub) -> anyhow::Result<()> {
        let version = self.secret.resource_version();
        let patch = json!({
            "metadata": {
                "resourceVersion": version, "uid": self.secret.uid(), "annotations": asked_for(self.duration),
            },
            "data": {&self.key: STANDARD.encode(kubeconfig)},
        });
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        match self.secrets.patch(&self.secret.name_any(), &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "Secret {} was changed by somebody else meanwhile, perhaps by the same command: run this again",
                self.said
            ),
            Err(error) => Err(hub.sentence(&error, "write secret", &self.said)),
        }
    }
}

/// Waits until the operator has looked at the cluster with what is stored now, and reaches it.
async fn until_used(hub: &Hub, place: &HubCluster, limit: Duration) -> anyhow::Result<Result<(), String>> {
    let request = Timestamp::now().to_string();
    let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation::REQUESTED_AT: request}}}));
    let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
    let what = format!("{}/{}", place.namespace, place.name);
    place
        .api
        .patch(&place.name, &params, &patch)
        .await
        .map_err(|error| hub.sentence(&error, "change cluster", &what))?;
    let unseen = "no operator has looked at it";
    watched::until(place.api.clone(), &place.name, limit, unseen, |cluster| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        let Some(status) = status.filter(|status| status.last_handled_request.as_ref() == Some(&request))
        else {
            return Err(unseen.to_owned());
        };
        match status.condition(types::READY) {
            Some(ready) if ready.status == "True" => Ok(()),
            Some(ready) => Err(format!("{}: {}", ready.reason, ready.message)),
            None => Err(unseen.to_owned()),
        }
    })
    .await
}
