//! Whoever asks for an object that does not exist leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::DeploymentIntentGroup;
use futures::future::BoxFuture;
use kube::runtime::{reflector, watcher};
use tokio_util::sync::CancellationToken;

use super::control;
use crate::api::key_queue::KeyQueue;
use crate::driver::metrics::Metrics;
use crate::object::context::{Outcome, Reconciled};
use crate::reconcile::context::Context;
use crate::reconcile_tests::Rig;

#[tokio::test(start_paused = true)]
async fn what_asks_for_a_deployment_that_never_was_is_forgotten() {
    let rig = Rig::new();
    for kind in crate::stores::KINDS {
        rig.ctx.stores.listed.done(kind);
    }
    let (store, mut writer) = reflector::store::<DeploymentIntentGroup>();
    writer.apply_watcher_event(&watcher::Event::Init);
    writer.apply_watcher_event(&watcher::Event::InitDone);
    let (ctx, metrics) = (Arc::new(rig.ctx), Metrics::new("1.0.0", "abc"));
    let (queue, stop) = (Arc::<KeyQueue>::default(), CancellationToken::new());
    queue.tell(Arc::clone(&ctx.looks));
    // As an approval does that names no deployment.
    queue.enqueue("team-a", "none");
    assert_eq!(ctx.looks.asked(), 1);
    let reconcile = |_: Arc<Context>, _: String, _: String| -> BoxFuture<'static, Reconciled> {
        Box::pin(futures::future::ready(Ok(Outcome::Settled)))
    };
    let asked = queue.stream::<DeploymentIntentGroup>();
    let (none, parts) = (futures::stream::pending(), (Arc::clone(&ctx), metrics));
    let kind = ("DeploymentIntentGroup", 1, Duration::ZERO);
    let controller = tokio::spawn(control(none, store, asked, parts, kind, reconcile, stop.clone()));
    let forgotten = async {
        while ctx.looks.asked() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), forgotten).await.unwrap();
    stop.cancel();
    controller.await.unwrap();
}
