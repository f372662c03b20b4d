//! Prints steps, commands with their answers, and a table that is drawn anew in place on a terminal, or line by line where it
//! changes.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

/// Where the terminal does not say.
const COLUMNS: usize = 100;
/// Of what a command answers, in lines.
const MOST_LINES: usize = 60;

/// Standard output.
pub struct Screen {
    terminal: bool,
    start: Instant,
    step: Mutex<u32>,
}

impl Screen {
    pub fn new() -> Self {
        Self { terminal: std::io::stdout().is_terminal(), start: Instant::now(), step: Mutex::new(0) }
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// A headline.
    pub fn step(&self, text: &str) {
        let number = {
            let mut step = locked(&self.step);
            *step += 1;
            *step
        };
        let (bold, plain) = if self.terminal { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        write(&format!("\n{bold}{number}. {text}{plain}  ({:.0} s)\n", self.elapsed().as_secs_f64()));
    }

    /// A sentence.
    #[expect(clippy::unused_self, reason = "whoever speaks has the screen")]
    pub fn say(&self, text: &str) {
        write(&format!("{text}\n"));
    }

    /// A command that people could give themselves, and what it answered.
    pub fn command(&self, command: &str, answer: &str) {
        let (dim, plain) = if self.terminal { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
        let mut text = format!("{dim}$ {command}{plain}\n");
        let lines: Vec<&str> = answer.lines().collect();
        for line in lines.iter().take(MOST_LINES) {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
        if lines.len() > MOST_LINES {
            text.push_str(&format!("  ... {} more lines\n", lines.len() - MOST_LINES));
        }
        write(&text);
    }

    /// A table that changes.
    pub fn table(&self) -> Table<'_> {
        Table { screen: self, drawn: Vec::new() }
    }

    fn columns(&self) -> usize {
        let size = if self.terminal { tcgetwinsize(std::io::stdout()).ok() } else { None };
        size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 20).unwrap_or(COLUMNS)
    }
}

/// The lines of a table as they were drawn last.
pub struct Table<'a> {
    screen: &'a Screen,
    drawn: Vec<String>,
}

impl Table<'_> {
    /// Draws it, if anything changed.
    pub fn draw(&mut self, lines: Vec<String>) {
        if lines == self.drawn {
            return;
        }
        if self.screen.terminal {
            let columns = self.screen.columns();
            let mut text = String::new();
            if !self.drawn.is_empty() {
                // Up to the first line of the last drawing, and from there on everything away.
                text.push_str(&format!("\x1b[{}F\x1b[0J", self.drawn.len()));
            }
            for line in &lines {
                text.extend(line.chars().take(columns - 1));
                text.push('\n');
            }
            write(&text);
        } else {
            let time = self.screen.elapsed().as_secs_f64();
            let new = changed(&self.drawn, &lines);
            let stamped: Vec<String> =
                new.into_iter().map(|line| format!("{time:7.1} s  {line}\n")).collect();
            write(&stamped.concat());
        }
        self.drawn = lines;
    }
}

/// The lines that were not there before.
fn changed<'a>(old: &[String], new: &'a [String]) -> Vec<&'a str> {
    new.iter().filter(|line| !old.contains(line)).map(String::as_str).collect()
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever closed our output does not want to know more; the demo goes on to its end.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_only_changed_lines_are_printed() {
        let lines = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let old = lines(&["head", "a waiting", "b waiting"]);
        let new = lines(&["head", "a ready", "b waiting"]);
        assert_eq!(changed(&old, &new), ["a ready"]);
        assert!(changed(&new, &new).is_empty());
    }
}
