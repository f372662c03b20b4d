//! What one render may use: limits come in, the first one that is passed goes out as an error.
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Bounds on one load and one render. Charts are tenant input; every bound has a default no real chart reaches.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Wall time of one render.
    pub time: Duration,
    /// Nested template calls (`template`, `include`, `tpl`), and nesting of parsed templates and YAML.
    pub depth: usize,
    /// Bytes all templates of one render may print.
    pub output_bytes: usize,
    /// Bytes of intermediate values that functions may make over one render.
    pub memory_bytes: usize,
    /// Loop turns over one render.
    pub iterations: u64,
    /// Bytes of an unpacked archive, nested archives included.
    pub archive_bytes: u64,
    /// Files of an unpacked archive, nested archives included.
    pub archive_files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            depth: 1000,
            output_bytes: 64 << 20,
            memory_bytes: 1 << 30,
            iterations: 20_000_000,
            archive_bytes: 256 << 20,
            archive_files: 20_000,
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
    #[error("template functions make more than {0} bytes of values")]
    Memory(usize),
    #[error("templates loop more than {0} times")]
    Iterations(u64),
}

/// The running account of one render.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    deadline: Instant,
    memory: Cell<usize>,
    output: Cell<usize>,
    iterations: Cell<u64>,
    steps: Cell<u32>,
}

impl Meter {
    /// Starts the clock.
    pub fn start(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            deadline: Instant::now() + limits.time,
            memory: Cell::new(0),
            output: Cell::new(0),
            iterations: Cell::new(0),
            steps: Cell::new(0),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Accounts for bytes a function is about to make. Call it before allocating.
    pub fn charge(&self, bytes: usize) -> Result<(), LimitError> {
        let total = self.memory.get().saturating_add(bytes);
        self.memory.set(total);
        if total > self.limits.memory_bytes {
            return Err(LimitError::Memory(self.limits.memory_bytes));
        }
        // Large values take time to make, so they look at the clock sooner.
        if bytes > 1 << 16 { self.check_time() } else { self.step() }
    }

    /// Accounts for printed bytes.
    pub fn print(&self, bytes: usize) -> Result<(), LimitError> {
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
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(256) { self.check_time() } else { Ok(()) }
    }

    pub fn check_time(&self) -> Result<(), LimitError> {
        if Instant::now() > self.deadline { Err(LimitError::Time(self.limits.time)) } else { Ok(()) }
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
