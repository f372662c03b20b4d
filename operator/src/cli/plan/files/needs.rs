//! Works out what a deployment of the hub needs of a logical cloud, also where its plan is refused.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use emco_controllers::reconcile::deployment::preview::{self, Needs};

use super::overlay::{Files, Touched};
use super::world::{Lists, World};
use super::{Names, charts, failed, nodes};
use crate::cli::hub::Hub;

/// Plans the deployment as if its logical cloud allowed everything. What clusters serve is asked where it is not known.
pub async fn of(hub: &Hub, namespace: &str, name: &str) -> anyhow::Result<Needs> {
    let files = Files::of_deployment(hub.deployment(namespace, name).await?);
    let lists = Box::pin(Lists::read(hub, &files)).await?;
    let sources = charts::known(&lists.apps);
    let mut world = Box::pin(World::open(hub, lists, BTreeMap::new())).await?;
    let planned = Names::from([(namespace.to_owned(), name.to_owned())]);
    let unfetched = charts::fetch(&mut world, &Touched::default(), &sources, &planned).await;
    if let Some(why) = unfetched.into_values().next() {
        bail!("{why}");
    }
    loop {
        let needs = Box::pin(preview::needs(&world.ctx, namespace, name)).await;
        let needs = needs.map_err(|failure| anyhow!(failed(hub, &failure)))?;
        if !needs.unread.is_empty() {
            nodes::ask(hub, &world.clusters, &world.ctx, &needs.unread).await?;
        } else if !world.clusters.learn(hub, &needs.unheard).await? {
            return Ok(needs);
        }
    }
}
