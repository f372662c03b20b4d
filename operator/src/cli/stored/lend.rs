//! Lends connections of the operator to clusters, as the account that a deployment is applied as.

use std::sync::Arc;

use anyhow::bail;
use emco_controllers::remote::{Edge, Pool};
use emco_engine::identity::ClusterId;
use kube::Client;

use crate::cli::hub::Lender;

/// Lends connections of a pool.
pub struct PoolLender {
    /// The connections.
    pub pool: Arc<Pool>,
    /// The account of clusters that is acted as; none: the credentials of each Cluster, at level Admin.
    pub account: Option<String>,
}

impl PoolLender {
    /// A connection of its own to a cluster, if it is the one with this identity.
    pub fn edge(&self, id: &ClusterId, uid: Option<&str>) -> anyhow::Result<Arc<Edge>> {
        let (edge, now) = self.pool.beside(id).map_err(anyhow::Error::msg)?;
        if let (Some(known), Some(now)) = (uid, &now)
            && known != now
        {
            bail!(
                "another cluster answers behind this name: its kube-system has UID {now}, and {known} is on record"
            );
        }
        Ok(edge)
    }
}

impl Lender for PoolLender {
    fn client(&self, id: &ClusterId, uid: Option<&str>) -> anyhow::Result<Client> {
        Ok(self.edge(id, uid)?.client(self.account.as_deref()))
    }
}
