//! Serves pages for a browser on this machine that show what runs, what is wrong and what waits, with the rights of the user.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context as _;
use emco_crds::DeploymentIntentGroup;
use kube::Api;
use kube::api::ListParams;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::args::DashboardArgs;
use super::hub::{self, Hub, is_forbidden};
use super::status::Scope;
use super::{Outcome, print};

mod ask;
mod book;
mod connections;
mod decision;
mod follow;
mod link;
mod lists;
mod live;
mod look;
mod outcome;
mod pages;
mod parts;
mod rights;
mod serve;
mod view;

use follow::Follower;
use link::Link;
use serve::Site;

/// Serves until interrupted.
pub async fn run(args: DashboardArgs) -> anyhow::Result<Outcome> {
    let hub = Arc::new(hub::connect(&args.hub).await?);
    let listener = bind(args.port).await?;
    let link = Link::new(listener.local_addr().context("the address that is served is not known")?.port())?;
    let (scope, note) = scope(&hub, &args).await?;
    let mut follower = Box::pin(Follower::new(Arc::clone(&hub), scope, note)).await?;
    let (sender, views) = watch::channel(Arc::new(follower.view(None)));
    let mut ended = signal(SignalKind::terminate()).context("signals cannot be heard")?;
    let address = link.address();
    let site = Arc::new(Site::new(hub, link, views));
    let followed = tokio::spawn(Box::pin(follower.run(sender)));
    let served = tokio::spawn(Box::pin(connections::serve(listener, move |request, known| {
        Box::pin(serve::answer(Arc::clone(&site), request, known))
    })));
    print(&format!("{address}\n"))?;
    eprintln!(
        "serving until Ctrl-C; open the link in a browser of this machine, and give it to nobody: whoever has it may do there what you may"
    );
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = ended.recv() => {}
        // Neither ends by itself, and pages that nobody keeps true are worse than none.
        _ = followed => anyhow::bail!("the hub is not followed any more: start it again"),
        _ = served => anyhow::bail!("nothing is served any more: start it again"),
    }
    Ok(Outcome::AsWanted)
}

/// A port of this machine that no other machine reaches.
async fn bind(port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {port} of 127.0.0.1 is in use: choose another with --port, or leave it out to take a free one"
        ),
        ErrorKind::PermissionDenied => {
            anyhow::anyhow!("port {port} of 127.0.0.1 may not be used: choose one from 1024 with --port")
        }
        _ => anyhow::anyhow!("port {port} of 127.0.0.1 cannot be used: {error}"),
    })
}

/// Chooses the namespaces, with a note where they are fewer than asked for.
async fn scope(hub: &Hub, args: &DashboardArgs) -> anyhow::Result<(Scope, Option<String>)> {
    let mut note = None;
    if args.scope.all_namespaces {
        let all = Api::<DeploymentIntentGroup>::all(hub.client.clone());
        match all.list(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok((Scope { namespace: None, name: None }, None)),
            Err(error) if is_forbidden(&error) => {
                note = Some(format!(
                    "You may not list deployments in all namespaces: this is namespace {}; another one is shown with -n NAME.",
                    hub.namespace
                ));
            }
            Err(error) => {
                return Err(hub.sentence(&error, "list deployment intent groups", "in all namespaces"));
            }
        }
    }
    let namespace = hub.namespace_or(args.scope.namespace.as_deref());
    let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), &namespace);
    let params = ListParams::default().limit(1);
    hub.list(api, &params, "deployment intent groups", Some(&namespace)).await?;
    Ok((Scope { namespace: Some(namespace), name: None }, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_is_said_with_what_to_do() {
        let taken = bind(0).await.unwrap();
        let address = taken.local_addr().unwrap();
        assert!(address.ip().is_loopback());
        let said = bind(address.port()).await.unwrap_err().to_string();
        assert!(said.contains("is in use: choose another with --port"), "{said}");
    }
}
