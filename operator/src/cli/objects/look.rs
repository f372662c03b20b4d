//! Asks a cluster how the objects of a deployment are.

use std::collections::BTreeSet;

use emco_crds::names::label;
use emco_engine::health::Health;
use emco_engine::health::rules::Rules;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::ApiResource;
use kube::discovery::ApiCapabilities;
use serde_json::Value;

use super::Asked;
use super::report::{Object, ObjectState};
use crate::cli::diff::edge::{self, Edge, Kinds};
use crate::cli::output::made;

/// Objects that are read at the same time.
const AT_ONCE: usize = 8;

/// How each object is; nothing for one that is gone as it is to be. An error where the cluster does not answer. `refused` names objects that
/// the operator reports as refused: of these, and of those that are missing, the cluster is asked why. `None`: nothing is tried.
pub(super) async fn all(
    edge: &Edge,
    rules: &Rules,
    asked: &[Asked],
    refused: Option<&BTreeSet<String>>,
) -> anyhow::Result<Vec<Option<Object>>> {
    let mut kinds = Kinds::new();
    for one in asked {
        edge.resource(&mut kinds, &one.manifest.json).await?;
    }
    stream::iter(asked)
        .map(|one| Box::pin(with_refusal(edge, &kinds, rules, one, refused)))
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// An object, with all that the cluster says where it refuses it.
async fn with_refusal(
    edge: &Edge,
    kinds: &Kinds,
    rules: &Rules,
    asked: &Asked,
    refused: Option<&BTreeSet<String>>,
) -> anyhow::Result<Option<Object>> {
    let Some(mut object) = look(edge, kinds, rules, asked).await? else { return Ok(None) };
    let Some(refused) = refused else { return Ok(Some(object)) };
    let asks = object.state == ObjectState::Missing || refused.contains(&object.id());
    if asks && let Some((resource, capabilities)) = kind_of(kinds, asked) {
        object.refusal = edge.refusal(resource, capabilities, &asked.manifest).await?;
    }
    Ok(Some(object))
}

/// The kind of an object, as the cluster serves it.
fn kind_of<'a>(kinds: &'a Kinds, asked: &Asked) -> Option<&'a (ApiResource, ApiCapabilities)> {
    let text = |key: &str| asked.manifest.json[key].as_str().unwrap_or_default().to_owned();
    kinds.get(&(text("apiVersion"), text("kind")))?.as_ref()
}

async fn look(edge: &Edge, kinds: &Kinds, rules: &Rules, asked: &Asked) -> anyhow::Result<Option<Object>> {
    let gone = |why: &str| Ok(asked.wanted.then(|| Object::of(asked, ObjectState::Missing, why.to_owned())));
    let Some((resource, capabilities)) = kind_of(kinds, asked) else {
        return gone("the cluster does not serve this kind");
    };
    let id = asked.manifest.identity();
    let live = match edge.api(resource, capabilities, &id.namespace).get_opt(&id.name).await {
        Ok(Some(live)) => live,
        Ok(None) => return gone("it is not there"),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let who = if edge.lent { "the deployment's account" } else { "the Cluster's credentials" };
            let why = format!("{who} may not read it: {}", status.message);
            return Ok(Some(Object::of(asked, ObjectState::Unknown, why)));
        }
        Err(error) => return Err(edge::failed(&error)),
    };
    let owner = live.labels().get(label::OWNER);
    let ours = owner == Some(&edge.hash);
    let taken = asked.manifest.crd_folder || asked.manifest.take_existing;
    let born = made(&live.metadata);
    let (state, message) = if !ours && !taken {
        if !asked.wanted {
            return Ok(None);
        }
        let whose = owner.map_or("it is there and EMCO did not make it", |_| "another owner of EMCO has it");
        (ObjectState::NotOurs, whose.to_owned())
    } else if !asked.wanted {
        if taken || asked.manifest.keep {
            return Ok(None);
        }
        (ObjectState::Removing, "no manifest has it any more".to_owned())
    } else {
        let judge = rules.judge(&id.group, &id.kind);
        match judge.judge(&serde_json::to_value(&live).unwrap_or(Value::Null)).health {
            Health::Ready => (ObjectState::Ready, String::new()),
            Health::Progressing(why) => (ObjectState::Progressing, why),
            Health::Failed(why) => (ObjectState::Failed, why),
            Health::Unknown(why) => (ObjectState::Unknown, why),
        }
    };
    let mut object = Object::of(asked, state, message);
    object.made = born;
    Ok(Some(object))
}
