//! Finds any of many texts in another one, in a time that does not grow with their number.

use std::collections::BTreeMap;

/// Bytes by which a text is looked up; shorter ones are not found.
const PREFIX: usize = 8;

/// The texts that are searched for.
pub struct Finder<'a> {
    /// Whether one begins with these two bytes.
    begins: Vec<bool>,
    by_prefix: BTreeMap<[u8; PREFIX], Vec<&'a str>>,
}

fn two(first: u8, second: u8) -> usize {
    usize::from(u16::from_be_bytes([first, second]))
}

impl<'a> Finder<'a> {
    pub fn new(texts: impl IntoIterator<Item = &'a String>) -> Self {
        let mut begins = vec![false; 1 << 16];
        let mut by_prefix: BTreeMap<_, Vec<&'a str>> = BTreeMap::new();
        for text in texts {
            if let Some(prefix) = text.as_bytes().first_chunk::<PREFIX>() {
                begins[two(prefix[0], prefix[1])] = true;
                by_prefix.entry(*prefix).or_default().push(text);
            }
        }
        Self { begins, by_prefix }
    }

    /// The one that stands first in `within`.
    pub fn find(&self, within: &str) -> Option<&'a str> {
        let (bytes, begins) = (within.as_bytes(), self.begins.as_slice());
        let mut at = 0;
        // Plain indexes: in a program that is not optimized, iterators would take most of the time.
        while at + PREFIX <= bytes.len() {
            if begins[two(bytes[at], bytes[at + 1])] {
                let rest = &bytes[at..];
                let known = rest.first_chunk::<PREFIX>().and_then(|prefix| self.by_prefix.get(prefix));
                let found = known.into_iter().flatten().find(|text| rest.starts_with(text.as_bytes()));
                if found.is_some() {
                    return found.copied();
                }
            }
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_texts_is_found_wherever_it_stands() {
        let texts = ["abcdefgh-one", "abcdefgh-two", "zyxwvuts", "ab"].map(str::to_owned);
        let finder = Finder::new(&texts);
        for (within, found) in [
            ("abcdefgh-two", Some("abcdefgh-two")),
            ("an abcdefgh-on abcdefgh-one", Some("abcdefgh-one")),
            ("ab\u{e4}zyxwvuts", Some("zyxwvuts")),
            ("zyxwvut", None),
            ("ab", None),
            ("", None),
        ] {
            assert_eq!(finder.find(within), found, "{within}");
        }
        let none: [String; 0] = [];
        assert_eq!(Finder::new(&none).find("abcdefgh-one"), None);
    }
}
