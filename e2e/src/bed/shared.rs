//! Shares one bed among tests of one binary that run at the same time, or gives each a turn.

use anyhow::{Result, anyhow};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{Bed, BedSpec};

/// One bed for all tests of a binary, started by the first that wants it:
///
/// ```no_run
/// use emco_e2e::bed::{BedSpec, SharedBed};
///
/// static BED: SharedBed = SharedBed::new(BedSpec::hub);
/// # async fn test() -> anyhow::Result<()> {
/// let namespace = BED.get().await?.hub().namespace("a-fact").await?;
/// # Ok(()) }
/// ```
///
/// It ends with the process. Make clients per test: they belong to the test's runtime.
pub struct SharedBed {
    spec: fn() -> BedSpec,
    bed: OnceCell<Result<Bed, String>>,
}

impl SharedBed {
    /// A bed that nobody has wanted yet.
    pub const fn new(spec: fn() -> BedSpec) -> Self {
        Self { spec, bed: OnceCell::const_new() }
    }

    /// The bed. Should it not start, every test gets the same error at once.
    pub async fn get(&'static self) -> Result<&'static Bed> {
        // On a runtime of its own, since that of the first test ends with the test.
        let start = || async {
            let spec = self.spec;
            let started = tokio::task::spawn_blocking(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(Bed::start(spec()))
            });
            match started.await {
                Ok(bed) => bed.map_err(|error| format!("{error:#}")),
                Err(error) => Err(error.to_string()),
            }
        };
        self.bed.get_or_init(start).await.as_ref().map_err(|error| anyhow!("{error}"))
    }
}

/// A turn for a test that starts a bed of its own: tests of one binary that ask for it run one after the other.
pub async fn serial() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}
