//! Reads bytes as Go does: as runes, or as valid text.

/// One rune and its length in bytes; a byte that starts none is U+FFFD of length 1.
pub(crate) fn rune(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((char::from(first), 1));
    }
    let head = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => head
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    };
    Some(valid.chars().next().map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, c.len_utf8())))
}

/// The runes of a byte string with their positions, as Go's `range` yields them.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut position = 0;
    std::iter::from_fn(move || {
        let (c, length) = rune(bytes.get(position..)?)?;
        let at = position;
        position += length;
        Some((at, c))
    })
}

/// The text with every invalid byte replaced by U+FFFD.
pub(crate) fn valid(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => runes(error.as_bytes()).map(|(_, c)| c).collect(),
    }
}
