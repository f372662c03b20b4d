//! Reads and writes Git's packets.

/// Largest packet, with its length.
const LARGEST: usize = 65520;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// End of a message.
    Flush,
    /// Between the sections of a message.
    Delimiter,
    /// End of an answer.
    End,
    /// Content.
    Line(&'a [u8]),
}

impl<'a> Packet<'a> {
    /// A line as text, without its end.
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Line(bytes) => {
                std::str::from_utf8(bytes).ok().map(|text| text.strip_suffix('\n').unwrap_or(text))
            }
            _ => None,
        }
    }
}

/// The packets of an answer; an error where it is cut off or is something else.
pub struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// The bytes are no packets.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let packet = next(&mut self.0).ok_or(Broken);
        if packet.is_err() {
            self.0 = &[];
        }
        Some(packet)
    }
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<Packet<'a>> {
    let (head, after) = rest.split_at_checked(4)?;
    if !head.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let length = usize::from_str_radix(std::str::from_utf8(head).ok()?, 16).ok()?;
    let (packet, after) = match length {
        0 => (Packet::Flush, after),
        1 => (Packet::Delimiter, after),
        2 => (Packet::End, after),
        4..=LARGEST => {
            let (line, after) = after.split_at_checked(length - 4)?;
            (Packet::Line(line), after)
        }
        _ => return None,
    };
    *rest = after;
    Some(packet)
}

/// A message in the making.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// A line; longer ones than a packet holds are cut, which no line of ours is.
    #[must_use]
    pub fn line(mut self, text: &str) -> Self {
        let text = text.get(..LARGEST - 5).unwrap_or(text);
        self.0.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
        self
    }

    #[must_use]
    pub fn delimiter(mut self) -> Self {
        self.0.extend_from_slice(b"0001");
        self
    }

    pub fn flush(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"0000");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = Message::default().line("command=fetch").delimiter().line("done").flush();
        let packets: Vec<_> = Packets::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(packets[0].text(), Some("command=fetch"));
        assert_eq!(packets[1..], [Packet::Delimiter, Packet::Line(b"done\n"), Packet::Flush]);
    }

    #[test]
    fn what_is_cut_off_or_no_packet_is_an_error_and_the_end() {
        for broken in [&b"0009ab"[..], b"00", b"0003", b"<html>", b"fff9xx", b"+004", "00\u{e9}0".as_bytes()]
        {
            let all: Vec<_> = Packets::new(broken).collect();
            assert_eq!(all.last(), Some(&Err(Broken)), "{broken:?}");
        }
    }
}
