//! Keeps the Lease while the work leaves no thread free, and ends the work when the Lease is lost.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_controllers::api::ApiServerExt;
use emco_controllers::api::world::system::SystemRandom;
use emco_controllers::driver::hub::{Fenced, HubApi};
use emco_controllers::driver::lease::{Identity, Keeper, Keeping, LeaseFence, Lost, Pulse};
use emco_controllers::sync::Fence;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, install_kinds};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::sync::mpsc;

use super::BED;

/// Longer than a Lease lasts that nobody renews.
const BUSY: Duration = Duration::from_secs(15);

/// What takes the threads of the work.
#[derive(Clone, Copy)]
enum Taken {
    /// Calls that wait and give no thread back.
    Waiting,
    /// Computing: all processors of the machine are taken, too.
    Computing,
}

impl Taken {
    /// One moment of it.
    fn pass(self) {
        match self {
            Self::Waiting => std::thread::sleep(Duration::from_millis(20)),
            Self::Computing => spin_loop(),
        }
    }
}

async fn hub_config(bed: &Bed) -> Result<kube::Config> {
    let file = Kubeconfig::from_yaml(&bed.hub().kubeconfig()?)?;
    Ok(kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
}

async fn keeper(bed: &Bed, pulse: Arc<Pulse>) -> Result<(Keeper, mpsc::UnboundedReceiver<Lost>)> {
    let (sender, ended) = mpsc::unbounded_channel();
    let config = hub_config(bed).await?;
    let identity = Identity::ephemeral(&SystemRandom::new());
    let end = move |lost: &Lost| drop(sender.send(lost.clone()));
    let keeping = Keeping::of((config, Arc::default()), "default", identity, pulse, end);
    Ok((Keeper::start(keeping).await.map_err(anyhow::Error::msg)?, ended))
}

/// A runtime as the operator's, with few enough threads that all of them can be taken.
struct Work {
    runtime: Option<tokio::runtime::Runtime>,
    busy: Arc<AtomicBool>,
    taken: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Work {
    const WORKERS: usize = 2;
    const BLOCKING: usize = 4;

    /// Work that writes to the hub as long as it may.
    async fn start(bed: &Bed, pulse: Arc<Pulse>, fence: Arc<LeaseFence>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(Self::WORKERS)
            .max_blocking_threads(Self::BLOCKING)
            .enable_all()
            .build()?;
        let (config, written) = (hub_config(bed).await?, Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&written);
        runtime.spawn(async move { pulse.beat().await });
        runtime.spawn(async move {
            let hub =
                Fenced::new(Arc::new(HubApi::connect(config, Arc::default()).expect("a client")), fence);
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "work-"}});
            // Each write is a new object: the hub has a record of when it was made.
            loop {
                if hub.create("/api/v1/namespaces/default/configmaps", &map).await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Ok(Self { runtime: Some(runtime), busy: Arc::default(), taken: Arc::default(), written })
    }

    /// Takes every thread, and returns when all are taken.
    async fn starve(&self, by: Taken) {
        self.busy.store(true, Ordering::Relaxed);
        let take = move |busy: Arc<AtomicBool>, taken: Arc<AtomicU64>| {
            taken.fetch_add(1, Ordering::Relaxed);
            while busy.load(Ordering::Relaxed) {
                by.pass();
            }
        };
        let runtime = self.runtime.as_ref().expect("a runtime");
        for _ in 0..Self::BLOCKING {
            let (busy, taken) = (Arc::clone(&self.busy), Arc::clone(&self.taken));
            runtime.spawn_blocking(move || take(busy, taken));
        }
        for _ in 0..Self::WORKERS {
            let (busy, taken) = (Arc::clone(&self.busy), Arc::clone(&self.taken));
            runtime.spawn(async move { take(busy, taken) });
        }
        let all = (Self::WORKERS + Self::BLOCKING) as u64;
        while self.taken.load(Ordering::Relaxed) < all {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Relaxed);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test]
async fn a_lease_is_renewed_while_no_thread_of_the_work_is_free() {
    Box::pin(renewed_for(BUSY, Taken::Waiting)).await;
}

mod soak {
    use std::time::Duration;

    use super::{Taken, renewed_for};

    #[tokio::test]
    async fn a_lease_is_renewed_for_a_minute_while_no_thread_of_the_work_is_free() {
        Box::pin(renewed_for(Duration::from_mins(1), Taken::Computing)).await;
    }
}

async fn renewed_for(time: Duration, by: Taken) {
    let bed = BED.get().await.unwrap();
    bed.explain(async {
        // Who takes the Lease looks for the highest epoch of shards: a hub that does not serve them is one that starts.
        install_kinds(bed).await?;
        let pulse = Arc::new(Pulse::default());
        let (mut keeper, mut ended) = keeper(bed, Arc::clone(&pulse)).await?;
        let first =
            tokio::time::timeout(SOON, keeper.acquired()).await.context("the lease is not taken")??;
        ensure!(first == 1);
        let fence = keeper.fence();
        let work = Work::start(bed, pulse, Arc::clone(&fence)).await?;
        while work.written.load(Ordering::Relaxed) < 3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        work.starve(by).await;
        renewed_while_busy(bed, &fence, time).await?;
        ensure!(ended.try_recv().is_err(), "the work was ended although the lease was kept");

        // Somebody else takes it. The work cannot hear of that; the keeper closes the fence and ends the process.
        let leases: Api<Lease> = Api::namespaced(bed.hub().client().await?, "default");
        let taken = json!({"spec": {"holderIdentity": "somebody-else", "leaseTransitions": 2}});
        leases.patch("emco-operator", &PatchParams::default(), &Patch::Merge(&taken)).await?;
        let begun = Instant::now();
        let lost = tokio::time::timeout(Duration::from_secs(15), ended.recv()).await?.context("no end")?;
        ensure!(matches!(lost, Lost::Taken { .. }), "{lost}");
        ensure!(begun.elapsed() < Duration::from_secs(9), "it took {:?}", begun.elapsed());
        ensure!(!fence.may_write());
        // Where the process lived on, as here, the fence would hold back what the work had not sent.
        let maps: Api<ConfigMap> = Api::namespaced(bed.hub().client().await?, "default");
        let before = maps.list(&ListParams::default()).await?.items.len();
        work.busy.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        // One request was under way when all threads were taken.
        let after = maps.list(&ListParams::default()).await?.items.len();
        ensure!(after <= before + 1, "{before} objects, {after} after the lease was lost");
        Ok(())
    })
    .await;
}

/// For this wall time, the Lease moves on, and writing is allowed throughout.
async fn renewed_while_busy(bed: &Bed, fence: &LeaseFence, time: Duration) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(bed.hub().client().await?, "default");
    let spec = |lease: Lease| lease.spec.context("a Lease has a spec");
    let first = spec(leases.get("emco-operator").await?)?;
    let begun = Instant::now();
    let (mut last, mut moved, mut renewals) = (first.renew_time.clone(), Instant::now(), 0);
    while begun.elapsed() < time {
        ensure!(fence.may_write(), "the fence closed after {:?}", begun.elapsed());
        let now = spec(leases.get("emco-operator").await?)?;
        ensure!(now.holder_identity == first.holder_identity && now.lease_transitions == Some(1));
        if now.renew_time != last {
            (last, moved, renewals) = (now.renew_time, Instant::now(), renewals + 1);
        }
        ensure!(moved.elapsed() < Duration::from_secs(8), "not renewed for {:?}", moved.elapsed());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // Eight in a minute.
    ensure!(15 * renewals >= 2 * time.as_secs(), "renewed {renewals} times in {time:?}");
    Ok(())
}
