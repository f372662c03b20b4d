//! Names what keeps an object that is being deleted.
//!
//! A status shows what the watches show. That nothing keeps the object is believed when the hub lists so, for the watches may be
//! behind.

use std::time::Duration;

use kube::Resource;
use serde::de::DeserializeOwned;

use crate::api::ApiResult;
use crate::reconcile::context::Context;
use crate::store::{self, each_of};

/// What keeps an object.
#[derive(Debug)]
pub struct Holders {
    /// `Kind/namespace/name` of each.
    pub names: Vec<String>,
    unseen: bool,
}

impl Holders {
    /// As the watches show them.
    pub const fn shown(names: Vec<String>) -> Self {
        Self { names, unseen: false }
    }

    /// As the hub listed them, where the watches show none.
    pub const fn listed(names: Vec<String>) -> Self {
        let unseen = !names.is_empty();
        Self { names, unseen }
    }

    /// The same for an object that is being deleted: where the watches show nothing that keeps it, the hub is asked.
    pub async fn proven<K>(
        self,
        ctx: &Context,
        namespace: &str,
        of: impl FnOnce(&[K]) -> Vec<String>,
    ) -> ApiResult<Self>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        if !self.names.is_empty() {
            return Ok(self);
        }
        Ok(Self::listed(of(&listed(ctx, namespace).await?)))
    }

    /// When to look again at what the watches do not show: they may never show it.
    pub fn again(&self) -> Option<Duration> {
        self.unseen.then_some(store::SHOWN)
    }
}

/// All objects of a kind in a namespace, as the hub has them now. One that cannot be read may refer to anything: it is an error.
pub async fn listed<K>(ctx: &Context, namespace: &str) -> ApiResult<Vec<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut all = Vec::new();
    each_of::<K>(ctx, Some(namespace), None, |object| {
        all.push(object);
        Ok(())
    })
    .await?;
    Ok(all)
}
