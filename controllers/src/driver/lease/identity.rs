//! Gives this process a name that no other has, the same again after a restart.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::api::world::Random;

/// Digits of the random part.
const DIGITS: usize = 16;

/// A process's name in the Lease, and the lock that keeps others from using it.
#[derive(Debug)]
pub struct Identity {
    name: String,
    /// Locked as long as it is open; the kernel unlocks it however the process ends.
    lock: Option<File>,
}

impl Identity {
    /// The identity kept in `state_dir`, made on first use. Where another process uses it, one for this process's life alone
    /// is made up. The machine's name is part of it, so that a copied directory is not a copied identity. The error is a
    /// sentence.
    pub fn claim(state_dir: &Path, random: &dyn Random) -> Result<Self, String> {
        let path = state_dir.join("identity");
        let fail = |what: &str, error: &std::io::Error| {
            format!(
                "the state directory {} cannot be used: {what}: {error}; name a writable directory with --state-dir",
                state_dir.display()
            )
        };
        std::fs::create_dir_all(state_dir).map_err(|error| fail("it cannot be made", &error))?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| fail("the file identity cannot be opened", &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Self::ephemeral(random)),
            Err(error) => return Err(fail("the file identity cannot be locked", &error.into())),
        }
        let mut text = String::new();
        // What is not text counts as no identity.
        if (&file).take(256).read_to_string(&mut text).is_err() {
            text.clear();
        }
        let known = text.trim();
        if known.len() == DIGITS && known.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self { name: named(known), lock: Some(file) });
        }
        let made = fresh(random);
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(format!("{made}\n").as_bytes()))
            .and_then(|()| file.sync_all());
        written.map_err(|error| fail("the file identity cannot be written", &error))?;
        Ok(Self { name: named(&made), lock: Some(file) })
    }

    /// An identity that nobody had before and nobody has again.
    pub fn ephemeral(random: &dyn Random) -> Self {
        Self { name: named(&fresh(random)), lock: None }
    }

    /// As `holderIdentity` has it.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Whether it is found again after a restart.
    pub const fn is_kept(&self) -> bool {
        self.lock.is_some()
    }
}

fn fresh(random: &dyn Random) -> String {
    let mut bytes = [0; DIGITS / 2];
    random.secret(&mut bytes);
    hex::encode(bytes)
}

fn named(digits: &str) -> String {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let machine: String =
        machine.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).take(200).collect();
    format!("{machine}_{digits}")
}
