//! What a test's thread logs.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that this thread logs at `info` and above, until this is dropped.
pub struct Log {
    lines: Lines,
    _other: Dispatch,
    _guard: DefaultGuard,
}

impl Log {
    pub fn begin() -> Self {
        let lines = Lines::default();
        // While there is one subscriber alone, a line that another test's thread comes to first is taken for one that nobody wants.
        let other = Dispatch::new(tracing_subscriber::registry());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .with_writer(lines.clone());
        let guard = tracing::subscriber::set_default(subscriber.finish());
        Self { lines, _other: other, _guard: guard }
    }

    /// What was logged since the last look, without times.
    pub fn take(&self) -> String {
        let text = String::from_utf8(std::mem::take(&mut *self.lines.0.lock())).unwrap();
        let words = |line: &str| {
            let words = line.split(' ').map(|word| match word.split_once('=') {
                Some(("seconds", _)) => "seconds=_".to_owned(),
                _ => word.to_owned(),
            });
            words.collect::<Vec<_>>().join(" ").trim().to_owned()
        };
        text.lines().map(words).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
