//! Bounds what one render may use, and names the first bound that is passed.
mod room;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use room::{
    Held, MAP_BYTES, NODE_BYTES, apart, fits, give, has_passed, look, take, take_document,
};

/// Bounds on one load and one render. Charts are tenant input; every bound has a default no real chart reaches.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time of the processor that one render may take: a machine that is busy with other work refuses no chart. When it is stopped says
    /// who waits for it.
    pub time: Duration,
    /// Nested template calls (`template`, `include`, `tpl`), and nesting of parsed templates and YAML.
    pub depth: usize,
    /// Bytes all files of one render may print, in manifests and notes. What is printed into a text counts as memory.
    pub output_bytes: usize,
    /// Bytes of values and texts that one render may have alive at one time. What was dropped again does not count: time bounds it.
    /// The data of documents is counted apart; it may take as much, and more where much was printed.
    pub memory_bytes: usize,
    /// Loop turns over one render.
    pub iterations: u64,
    /// Bytes of an unpacked archive, nested archives included.
    pub archive_bytes: u64,
    /// Files of an unpacked archive, nested archives included.
    pub archive_files: usize,
    /// Set from outside when the render is of no use any more: it ends soon after.
    pub stop: Option<Arc<AtomicBool>>,
    /// Called once, on the thread of the render, when it has taken [`SLOW`]: to lower the thread's priority, say.
    pub slow: Option<fn()>,
}

/// A render that takes longer is a slow one; most charts take a fifth of it.
pub const SLOW: Duration = Duration::from_millis(50);

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            depth: 1000,
            output_bytes: 16 << 20,
            memory_bytes: 64 << 20,
            iterations: 20_000_000,
            archive_bytes: 32 << 20,
            archive_files: 20_000,
            stop: None,
            slow: None,
        }
    }
}

/// A limit that a chart passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    #[error("rendering takes longer than {0:?}")]
    Time(Duration),
    #[error("templates call each other more than {0} deep")]
    Depth(usize),
    #[error("templates and their expressions nest too deeply for the stack")]
    Stack,
    #[error("templates print more than {0} bytes")]
    Output(usize),
    #[error("templates hold more than {0} bytes of values, texts and documents at one time")]
    Memory(usize),
    #[error("templates loop more than {0} times")]
    Iterations(u64),
    #[error("rendering was stopped")]
    Stopped,
}

/// The running account of one render, which stays on the thread that started it.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    /// What the thread had taken of the processor before.
    had: Duration,
    told_slow: Cell<bool>,
    output: Cell<usize>,
    /// Number of texts that are being printed inside each other; 0 in a manifest.
    nested: Cell<usize>,
    iterations: Cell<u64>,
    steps: Cell<u32>,
}

impl Meter {
    /// Starts the clock.
    pub fn start(limits: &Limits) -> Self {
        room::open(limits.memory_bytes);
        Self {
            limits: limits.clone(),
            had: taken(),
            told_slow: Cell::new(false),
            output: Cell::new(0),
            nested: Cell::new(0),
            iterations: Cell::new(0),
            steps: Cell::new(0),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Asks for bytes that a function is about to make. Call it before allocating: values count themselves only once they are made.
    pub fn charge(&self, bytes: usize) -> Result<(), LimitError> {
        self.charge_more(bytes, bytes)
    }

    /// As [`Self::charge`], where `all` with these was asked for and is not made yet.
    pub fn charge_more(&self, bytes: usize, all: usize) -> Result<(), LimitError> {
        fits(all);
        self.check_memory()?;
        // Large values take time to make, so they look at the clock sooner.
        if bytes > 1 << 16 { self.check_time() } else { self.step() }
    }

    /// Accounts for bytes that stay until the render ends.
    pub fn keep(&self, bytes: usize) -> Result<(), LimitError> {
        take(bytes);
        self.check_memory()
    }

    /// Fails when more is alive, or was about to be made, than the render may have.
    pub fn check_memory(&self) -> Result<(), LimitError> {
        if has_passed() { Err(LimitError::Memory(self.limits.memory_bytes)) } else { Ok(()) }
    }

    /// All that is printed while `work` runs becomes a text, and nothing of a manifest.
    pub fn nested<T>(&self, work: impl FnOnce() -> T) -> T {
        self.nested.set(self.nested.get() + 1);
        let done = work();
        self.nested.set(self.nested.get() - 1);
        done
    }

    /// Accounts for printed bytes. Whoever drops what was printed into a text gives them back.
    pub fn print(&self, bytes: usize) -> Result<(), LimitError> {
        self.keep(bytes)?;
        if self.nested.get() > 0 {
            return Ok(());
        }
        room::print(bytes);
        let total = self.output.get().saturating_add(bytes);
        self.output.set(total);
        if total > self.limits.output_bytes {
            return Err(LimitError::Output(self.limits.output_bytes));
        }
        Ok(())
    }

    /// Accounts for one loop turn.
    pub fn iterate(&self) -> Result<(), LimitError> {
        let total = self.iterations.get() + 1;
        self.iterations.set(total);
        if total > self.limits.iterations {
            return Err(LimitError::Iterations(self.limits.iterations));
        }
        self.step()
    }

    /// One small piece of work; looks at the clock now and then.
    pub fn step(&self) -> Result<(), LimitError> {
        self.check_memory()?;
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(256) { self.check_time() } else { Ok(()) }
    }

    pub fn check_time(&self) -> Result<(), LimitError> {
        if self.limits.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(LimitError::Stopped);
        }
        let taken = taken().saturating_sub(self.had);
        if taken > self.limits.time {
            return Err(LimitError::Time(self.limits.time));
        }
        if let Some(slow) = self.limits.slow
            && taken > SLOW
            && !self.told_slow.replace(true)
        {
            slow();
        }
        Ok(())
    }
}

/// What this thread has taken of the processor.
fn taken() -> Duration {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(taken).unwrap_or_default()
}

impl Drop for Meter {
    fn drop(&mut self) {
        room::close();
    }
}

/// Cuts a message that quotes tenant text to about `max` bytes.
pub(crate) fn shorten(message: &mut String, max: usize) {
    if message.len() > max {
        let cut = (0..=max).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(cut);
        message.push_str("...");
    }
}
