//! Writes each event of the log as one line, whatever its fields hold: texts of charts and of edges must not write lines of their own.

use std::borrow::Cow;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// Makes writers that replace the control characters of each event, its last line break excepted.
#[derive(Clone, Debug)]
pub struct OneLine<M>(pub M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(self.0.make_writer())
    }

    fn make_writer_for(&'a self, meta: &tracing::Metadata<'_>) -> Self::Writer {
        Line(self.0.make_writer_for(meta))
    }
}

/// A writer that is given whole events.
pub struct Line<W>(W);

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(one_line(&String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Replaces control characters, and what some terminals and collectors take for a line break.
fn one_line(event: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let line = event.strip_suffix('\n').unwrap_or(event);
    if line.contains(breaks) { Cow::Owned(line.replace(breaks, " ") + "\n") } else { Cow::Borrowed(event) }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_field_of_an_event_begins_a_line() {
        let buffer = Buffer::default();
        let made = buffer.clone();
        let layer =
            tracing_subscriber::fmt::layer().with_ansi(false).with_writer(OneLine(move || made.clone()));
        let forged = "X\nERROR forged\r\u{1b}[31m\u{85}\u{2028}";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("span", on = %forged);
            let _entered = span.enter();
            tracing::warn!(text = forged, shown = %forged, debugged = ?forged, "cluster failed: {forged}");
            tracing::info!("the next");
        });
        let written = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), 2, "{written}");
        assert!(
            lines[0].contains("cluster failed: X ERROR forged") && lines[1].ends_with("the next"),
            "{written}"
        );
        assert!(!written.trim_end_matches('\n').replace('\n', "").contains(char::is_control), "{written:?}");
    }
}
