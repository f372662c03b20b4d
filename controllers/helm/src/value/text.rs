//! Keeps Go's strings: immutable bytes that are cheap to clone.
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::limits::{give, take};

/// The longest text that is kept in place. Most keys and many values of charts are shorter.
const INLINE: usize = 22;

/// An immutable byte string. Ordered bytewise, as Go orders strings.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Shared(Rc<[u8]>),
}

/// Bytes that a shared text takes beside its own.
const SHARED_BYTES: usize = 32;

impl Drop for Text {
    fn drop(&mut self) {
        if let Repr::Shared(bytes) = &self.0
            && Rc::strong_count(bytes) == 1
        {
            give(bytes.len() + SHARED_BYTES);
        }
    }
}

impl Text {
    fn shared(bytes: &[u8]) -> Self {
        take(bytes.len() + SHARED_BYTES);
        Self(Repr::Shared(Rc::from(bytes)))
    }

    fn inline(bytes: &[u8]) -> Option<Self> {
        let mut place = [0; INLINE];
        place.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(Repr::Inline { len: u8::try_from(bytes.len()).ok()?, bytes: place }))
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Shared(bytes) => bytes,
        }
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => usize::from(*len),
            Repr::Shared(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that nobody else holds: what was made for this text alone.
    pub(crate) fn own_bytes(&self) -> usize {
        match &self.0 {
            Repr::Shared(bytes) if Rc::strong_count(bytes) == 1 => bytes.len(),
            _ => 0,
        }
    }

    /// The text, if its bytes are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    /// The text with every invalid byte replaced by U+FFFD.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(Repr::Inline { len: 0, bytes: [0; INLINE] })
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&[u8]> for Text {
    fn from(value: &[u8]) -> Self {
        Self::inline(value).unwrap_or_else(|| Self::shared(value))
    }
}

impl From<&str> for Text {
    fn from(value: &str) -> Self {
        Self::from(value.as_bytes())
    }
}

impl From<String> for Text {
    fn from(value: String) -> Self {
        Self::from(value.as_bytes())
    }
}

impl From<Vec<u8>> for Text {
    fn from(value: Vec<u8>) -> Self {
        Self::from(value.as_slice())
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(value: Cow<'_, str>) -> Self {
        Self::from(value.as_bytes())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_keep_their_bytes_and_order() {
        for len in [0, 1, INLINE - 1, INLINE, INLINE + 1, 300] {
            let bytes = vec![0xfe; len];
            let text = Text::from(bytes.as_slice());
            assert_eq!((text.as_bytes(), text.len()), (bytes.as_slice(), len));
        }
        let long = "a".repeat(INLINE + 1);
        let mut texts = [Text::from("b"), Text::from(long.as_str()), Text::from("a")];
        texts.sort();
        assert_eq!(texts.map(|text| text.len()), [1, INLINE + 1, 1]);
        assert_eq!(size_of::<crate::value::Value>(), 24);
    }
}
