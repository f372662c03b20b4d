//! Waits for as many of the machine's slots as control planes are wanted.
//!
//! Several test binaries, demos and benchmarks may run at once. The slots are locked files, so that the kernel gives them
//! back however their holder ends.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use crate::programs::cache_dir;

/// Memory for a full plane: twelve fit a machine of 8 GB. They wait more than they compute.
const PLANE_BYTES: u64 = 8_000_000_000 / 12;
/// A file lock cannot be awaited together with others.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_mins(20);

/// How many planes the machine's memory has room for; `EMCO_TEST_PLANES` names another number.
fn fit() -> usize {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    usize::try_from(bytes / PLANE_BYTES).unwrap_or(usize::MAX).max(1)
}

/// Locks `planes` slots, all at once, waiting while others hold them. Asking for more than there are gets all there are.
///
/// Whoever waits first is served first, with one exception: `beside` another bed of its process, which ends only when this one
/// has come and gone, nobody's turn is awaited. Those who have a turn would wait for the other bed, and that for them.
pub(super) fn take(planes: usize, beside: bool) -> Result<Vec<File>> {
    let total = match std::env::var("EMCO_TEST_PLANES") {
        Ok(text) => {
            text.parse::<usize>().with_context(|| format!("EMCO_TEST_PLANES={text} is not a number"))?
        }
        Err(_) => fit(),
    };
    let wanted = planes.min(total);
    let dir = cache_dir()?.join("slots");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let open = |name: String| {
        let path = dir.join(name);
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))
    };
    let gate = open("gate".to_owned())?;
    if !beside {
        flock(&gate, FlockOperation::LockExclusive).context("cannot lock the gate to the slots")?;
    }
    let start = Instant::now();
    let mut told = false;
    loop {
        let mut taken = Vec::new();
        for slot in 0..total {
            let file = open(format!("{slot}"))?;
            if taken.len() < wanted && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                taken.push(file);
            }
        }
        if taken.len() == wanted {
            return Ok(taken);
        }
        if start.elapsed() > PATIENCE {
            bail!(
                "waited {} minutes for {wanted} of the {total} control planes that may run at once: end other beds, or raise EMCO_TEST_PLANES",
                PATIENCE.as_secs() / 60
            );
        }
        if !told {
            eprintln!("waiting: {wanted} control planes are wanted and {} may start now", taken.len());
            told = true;
        }
        // What does not suffice is given back: others may need no more than that.
        drop(taken);
        std::thread::sleep(LOOK_EVERY);
    }
}
