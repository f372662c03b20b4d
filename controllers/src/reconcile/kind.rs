//! What the driver asks of a kind that has a controller. The reconcile file of the kind answers.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::Conditioned;
use futures::future::BoxFuture;
use kube::Resource;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::object::context::Reconciled;
use crate::reconcile::context::Context;
use crate::sync::Sync as SyncEngine;
use crate::triggers::{Change, ClusterMapsChanged, Triggers};

/// A kind of the table that is reconciled. Its status has conditions, so that a failure is in Ready.
pub trait Controlled:
    Resource<DynamicType = ()>
    + HasStatus<Status: Conditioned + Serialize + Clone + Default + Send + Sync>
    + Clone
    + Serialize
    + DeserializeOwned
    + Debug
    + Send
    + Sync
    + 'static
{
    /// Objects reconciled at once, divided by `api/places.rs` among namespaces.
    const AT_ONCE: u16 = 12;

    /// Between two looks of one object, once it took a few at once (`api/rests.rs`): of kinds that sum up what many others do.
    const APART: Duration = Duration::ZERO;

    /// Brings one object to what it asks for. `namespace` is "" where the kind has none.
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled>;

    /// Leaves out of what the watch shows what nobody here reads: the store keeps the rest for as long as the object is there.
    fn trim(&mut self) {}

    /// Made once, before the watch begins: queues the objects that read this kind and have to look again.
    fn listener(_reach: &Reach) -> Listener<Self> {
        Box::new(|_, _| {})
    }
}

/// Hears of every change of a kind, after its store has it.
pub type Listener<K> = Box<dyn FnMut(&Reach, &Change<'_, K>) + Send>;

/// All that a change may reach.
#[derive(Clone)]
pub struct Reach {
    /// Handles of the process, with the stores.
    pub ctx: Arc<Context>,
    /// Queues of all kinds.
    pub triggers: Arc<Triggers>,
    /// What runs on clusters.
    pub sync: Arc<SyncEngine>,
    /// ConfigMaps for members of projects.
    pub maps: Arc<ClusterMapsChanged>,
}
