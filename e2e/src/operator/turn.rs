//! Lends one bed to tests that each start an operator of their own, one test after the other.

use anyhow::Result;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{Operator, install_kinds, program};
use crate::bed::{Bed, BedSpec, SharedBed};

/// One bed for all tests of a binary that end the operator, replace it, or start it with other settings: each waits for its turn. What
/// the test before made is still there, so each has projects of its own. Edges that were registered stay registered.
pub struct OperatorInTurn {
    bed: SharedBed,
    /// What kubectl said when the kinds were installed.
    installed: OnceCell<String>,
    /// Of the test whose turn it is, or was last.
    operator: Mutex<Option<Operator>>,
}

impl OperatorInTurn {
    /// A bed that nobody has wanted yet.
    pub const fn new(bed: fn() -> BedSpec) -> Self {
        Self { bed: SharedBed::new(bed), installed: OnceCell::const_new(), operator: Mutex::const_new(None) }
    }

    /// Waits for the turn, and ends the operator of the test before. On the bed that is answered no operator runs.
    ///
    /// # Errors
    /// The bed did not start, or the operator of the test before does not end.
    pub async fn turn(&'static self) -> Result<(&'static Bed, Turn)> {
        let bed = self.bed.get().await?;
        let mut operator = self.operator.lock().await;
        if let Some(before) = operator.take().filter(|before| before.process().is_running()) {
            before.kill().await?;
        }
        Ok((bed, Turn { bed, installed: &self.installed, operator }))
    }
}

/// The turn of one test: it lasts until this is dropped. Its operator is ended by the next one.
pub struct Turn {
    bed: &'static Bed,
    installed: &'static OnceCell<String>,
    operator: MutexGuard<'static, Option<Operator>>,
}

impl Turn {
    /// Installs the kinds on the hub where no test did before, and starts an operator, with more in its environment.
    ///
    /// # Errors
    /// The kinds cannot be installed, or the program cannot be started.
    pub async fn start(&mut self, more: &[(&str, &str)]) -> Result<&mut Operator> {
        let installed = self.installed.get_or_try_init(|| install_kinds(self.bed)).await?.clone();
        let kubeconfig = self.bed.hub().kubeconfig_file()?;
        let operator = Operator::start_with(self.bed, &program()?, kubeconfig, installed, more).await?;
        Ok(self.operator.insert(operator))
    }
}
