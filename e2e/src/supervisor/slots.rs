//! In: how many control planes are wanted. Out: that many of the machine's slots, once they are free.
//!
//! Several test binaries, demos and benchmarks may run at once. The slots are locked files, so that the kernel gives them
//! back however their holder ends.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use crate::programs::cache_dir;

/// Full planes that fit a machine of 2 cores and 8 GB; `EMCO_TEST_PLANES` names another number.
const DEFAULT_SLOTS: usize = 12;
/// A file lock cannot be awaited together with others.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_mins(20);

/// Locks `planes` slots, waiting while others hold them. Asking for more than there are gets all there are.
pub(super) fn take(planes: usize) -> Result<Vec<File>> {
    let total = match std::env::var("EMCO_TEST_PLANES") {
        Ok(text) => {
            text.parse::<usize>().with_context(|| format!("EMCO_TEST_PLANES={text} is not a number"))?
        }
        Err(_) => DEFAULT_SLOTS,
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
    // One waits at a time: two that hold some and wait for more would wait for each other.
    let gate = open("gate".to_owned())?;
    flock(&gate, FlockOperation::LockExclusive).context("cannot lock the gate to the slots")?;
    let mut free = (0..total).map(|slot| open(format!("{slot}"))).collect::<Result<Vec<_>>>()?;
    let mut taken = Vec::new();
    let start = Instant::now();
    let mut told = false;
    loop {
        let mut rest = Vec::new();
        for file in free {
            if taken.len() < wanted && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                taken.push(file);
            } else {
                rest.push(file);
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
        free = rest;
        std::thread::sleep(LOOK_EVERY);
    }
}
