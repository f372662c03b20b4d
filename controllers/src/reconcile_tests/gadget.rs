//! A kind of tests alone. This file is its type and its reconcile file; `kinds.rs` has its row. There is no more of it.

use emco_crds::Conditioned;
use emco_crds::conditions::Condition;
use futures::future::BoxFuture;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::rig::{Rig, emco};
use crate::api::key_queue::Key;
use crate::kinds::{self, each_kind};
use crate::object::context::{Outcome, Reconciled};
use crate::object::{meta, status};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};

/// The field of the specification.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "Gadget",
    plural = "gadgets",
    namespaced,
    status = "GadgetStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct GadgetSpec {
    /// A deployment that reads it.
    pub deployment: String,
}

/// The status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GadgetStatus {
    /// The deployment that was found in the specification.
    pub seen: String,
    /// Ready.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The `metadata.generation` this is about.
    pub observed_generation: Option<i64>,
}

impl Conditioned for GadgetStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
    fn observed_generation(&self) -> Option<i64> {
        self.observed_generation
    }
    fn set_observed_generation(&mut self, generation: i64) {
        self.observed_generation = Some(generation);
    }
}

impl Controlled for Gadget {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    fn listener(_: &Reach) -> Listener<Self> {
        Box::new(|reach, change| {
            reach.triggers.digs.enqueue(meta::namespace(change.object), &change.object.spec.deployment);
        })
    }
}

async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(gadget) = ctx.stores.gadgets.named(namespace, name) else { return Ok(Outcome::Settled) };
    let fresh = GadgetStatus { seen: gadget.spec.deployment.clone(), ..GadgetStatus::default() };
    if gadget.status.as_ref() != Some(&fresh) {
        status::replace(ctx, gadget.as_ref(), &fresh).await?;
    }
    Ok(Outcome::Settled)
}

#[tokio::test]
async fn a_kind_is_its_type_one_reconcile_file_and_one_row() {
    let mut rig = Rig::new();
    assert!(crate::stores::KINDS.contains(&"Gadget"), "work waits until it was listed");
    rig.hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}));
    rig.hub.put("test", &emco("Gadget", Some("team-a"), "one", &json!({"deployment": "shop"})));
    rig.settle().await;
    let stored = rig.hub.object("/apis/emco.io/v1alpha1/namespaces/team-a/gadgets/one").unwrap();
    assert_eq!(stored["status"]["seen"], "shop");
}

/// A name of each kind of the table that is reconciled.
fn reconciled() -> Vec<&'static str> {
    macro_rules! names {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => { vec![$(stringify!($kind)),*] };
    }
    each_kind!(reconciled => names)
}

#[test]
fn every_kind_that_is_reconciled_has_a_queue_of_its_own() {
    let triggers = crate::triggers::Triggers::default();
    macro_rules! enqueue {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {$(
            triggers.$store.enqueue("team-a", stringify!($kind));
        )*};
    }
    each_kind!(reconciled => enqueue);
    let mut taken: Vec<Key> = Vec::new();
    macro_rules! take {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {$(
            taken.extend(triggers.$store.take());
            assert_eq!(<kinds::$kind as kube::Resource>::kind(&()), stringify!($kind));
        )*};
    }
    each_kind!(reconciled => take);
    let names: Vec<&str> = taken.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, reconciled());
}
