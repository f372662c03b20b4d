//! Writes to a branch: one reference goes from one commit to another, with the pack of what is new. The server refuses where the
//! reference is not what it was, so nothing of others is ever overwritten.

use emco_engine::git::object::{Format, Id};

use super::packet::{Message, Packet, Packets};
use super::upload::{AGENT, Unusable};
use crate::remote::wire::cut;

/// Type of the answer to the first question.
pub const ADVERTISEMENT: &str = "application/x-git-receive-pack-advertisement";
/// Type of a push.
pub const REQUEST: &str = "application/x-git-receive-pack-request";

/// What a server can do that takes pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ability {
    /// It sends words for people beside its answer.
    talks: bool,
    /// It leaves out how far it is.
    quiet: bool,
}

impl Ability {
    /// Reads the answer to the first question. A server that does not say what became of a push is of no use.
    pub fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        for packet in Packets::new(bytes) {
            let Packet::Line(line) = packet.map_err(|_| Unusable::CutOff)? else { continue };
            if line.starts_with(b"ERR ") {
                return Err(Unusable::Refused);
            }
            let Some(end) = line.iter().position(|byte| *byte == 0) else { continue };
            let words = String::from_utf8_lossy(line.get(end + 1..).unwrap_or_default()).into_owned();
            let can = |what: &str| words.split_whitespace().any(|word| word == what);
            let (talks, quiet) = (can("side-band-64k"), can("quiet"));
            return if can("report-status") { Ok(Self { talks, quiet }) } else { Err(Unusable::OldProtocol) };
        }
        Err(Unusable::CutOff)
    }

    /// A push of a branch from one commit, or from nothing, to another.
    pub fn push(self, branch: &str, old: Option<Id>, new: Id, pack: &[u8], format: Format) -> Vec<u8> {
        let old = old.map_or_else(|| "0".repeat(format.bytes() * 2), |id| id.to_string());
        let talks = if self.talks { " side-band-64k" } else { "" };
        let quiet = if self.quiet { " quiet" } else { "" };
        let object_format = match format {
            Format::Sha1 => String::new(),
            Format::Sha256 => format!(" object-format={}", format.name()),
        };
        let command =
            format!("{old} {new} refs/heads/{branch}\0 report-status{talks}{quiet}{object_format} {AGENT}");
        let mut message = Message::default().line(&command).flush();
        message.extend_from_slice(pack);
        message
    }

    /// Reads what became of it.
    pub fn outcome(self, answer: &[u8], branch: &str) -> Result<Outcome, Unusable> {
        if !self.talks {
            return outcome(answer, branch, "");
        }
        let (mut report, mut words) = (Vec::new(), Vec::new());
        for packet in Packets::new(answer) {
            let Packet::Line(line) = packet.map_err(|_| Unusable::CutOff)? else { continue };
            match line.split_first() {
                Some((1, data)) => report.extend_from_slice(data),
                Some((2 | 3, data)) => words.extend_from_slice(data),
                _ => return Err(Unusable::CutOff),
            }
        }
        outcome(&report, branch, &String::from_utf8_lossy(&words))
    }
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The server's words.
    Refused(String),
}

/// Reads a report. `words`: what the server says to people beside it.
fn outcome(report: &[u8], branch: &str, words: &str) -> Result<Outcome, Unusable> {
    let why = |reason: &str| {
        let words = words.trim();
        said(&if words.is_empty() { reason.to_owned() } else { format!("{reason}: {words}") })
    };
    let reference = format!("refs/heads/{branch}");
    let mut found = None;
    for packet in Packets::new(report) {
        let Some(line) = packet.map_err(|_| Unusable::CutOff)?.text() else { continue };
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("unpack"), Some("ok"), None) => {}
            (Some("unpack"), Some(first), rest) => {
                let first = format!("unpack {first} {}", rest.unwrap_or_default());
                return Ok(Outcome::Refused(why(first.trim_end())));
            }
            (Some("ok"), Some(name), None) if name == reference => found = Some(Outcome::Done),
            (Some("ng"), Some(name), reason) if name == reference => {
                found = Some(Outcome::Refused(why(reason.unwrap_or_default())));
            }
            _ => {}
        }
    }
    found.ok_or(Unusable::CutOff)
}

/// A server's words in a message: one line, and short.
fn said(words: &str) -> String {
    let plain: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(plain.trim(), 120)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "ce013625030ba8dba906f756967f9e9ca394464a";

    const SILENT: Ability = Ability { talks: false, quiet: false };

    #[test]
    fn a_push_names_what_the_branch_was() {
        let id = Id::parse(ID, Format::Sha1).unwrap();
        let bytes = SILENT.push("main", Some(id), id, b"PACK", Format::Sha1);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(&format!("{ID} {ID} refs/heads/main\0 report-status agent=emco-operator/")));
        assert!(text.ends_with("\n0000PACK"), "{text}");
        let first = String::from_utf8(SILENT.push("main", None, id, b"", Format::Sha1)).unwrap();
        assert!(first.contains(&format!("{} {ID}", "0".repeat(40))));
    }

    fn report(lines: &[&str]) -> Vec<u8> {
        lines.iter().fold(Message::default(), |message, line| message.line(line)).flush()
    }

    fn refused(words: &str) -> Outcome {
        Outcome::Refused(words.to_owned())
    }

    #[test]
    fn an_answer_says_what_became_of_the_push() {
        let outcome = |lines: &[&str]| SILENT.outcome(&report(lines), "main");
        assert_eq!(outcome(&["unpack ok", "ok refs/heads/main"]), Ok(Outcome::Done));
        let declined = outcome(&["unpack ok", "ng refs/heads/main pre-receive hook declined"]);
        assert_eq!(declined, Ok(refused("pre-receive hook declined")));
        assert_eq!(outcome(&["unpack index-pack failed"]), Ok(refused("unpack index-pack failed")));
        assert_eq!(outcome(&["unpack ok"]), Err(Unusable::CutOff));
        assert_eq!(SILENT.outcome(b"<html>", "main"), Err(Unusable::CutOff));
    }

    #[test]
    fn words_of_a_hook_stand_beside_the_report() {
        let band = |number: u8, data: &[u8]| {
            let mut line = format!("{:04x}", data.len() + 5).into_bytes();
            line.push(number);
            line.extend_from_slice(data);
            line
        };
        let declined = report(&["unpack ok", "ng refs/heads/main pre-receive hook declined"]);
        let mut answer = band(2, b"only on weekdays\n");
        answer.extend(band(1, &declined));
        answer.extend(b"0000");
        let talks = Ability { talks: true, quiet: true };
        assert_eq!(
            talks.outcome(&answer, "main"),
            Ok(refused("pre-receive hook declined: only on weekdays"))
        );
    }

    #[test]
    fn a_server_that_does_not_report_takes_no_pushes() {
        let first = |words: &str| {
            let line = format!("{ID} refs/heads/main\0{words}");
            let mut bytes = Message::default().line("# service=git-receive-pack").flush();
            bytes.extend(Message::default().line(&line).flush());
            Ability::read(&bytes)
        };
        assert_eq!(first("report-status delete-refs agent=git/2.43"), Ok(SILENT));
        assert_eq!(first("report-status side-band-64k quiet"), Ok(Ability { talks: true, quiet: true }));
        assert_eq!(first("delete-refs"), Err(Unusable::OldProtocol));
        assert_eq!(Ability::read(b""), Err(Unusable::CutOff));
    }
}
