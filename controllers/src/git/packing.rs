//! Writes packs: whole objects, one after the other. What files have is packed once, however many packs it goes into.

use std::io::Write as _;
use std::sync::Arc;

use emco_engine::git::object::{Format, Id, Kind, name_of};
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// An object as packs have it.
#[derive(Clone)]
pub struct Packed {
    pub id: Id,
    kind: Kind,
    size: usize,
    bytes: Arc<[u8]>,
}

impl Packed {
    pub fn new(kind: Kind, content: &[u8], format: Format) -> Self {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let bytes = zlib.write_all(content).and_then(|()| zlib.finish()).unwrap_or_default();
        Self { id: name_of(format, kind, content), kind, size: content.len(), bytes: bytes.into() }
    }

    fn head(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Commit => 1_u8,
            Kind::Tree => 2,
            Kind::Blob => 3,
            Kind::Tag => 4,
        };
        let low = |bits: usize, mask: usize| u8::try_from(bits & mask).unwrap_or_default();
        let mut rest = self.size >> 4;
        let mut byte = (kind << 4) | low(self.size, 0x0f);
        let mut head = Vec::new();
        while rest > 0 {
            head.push(byte | 0x80);
            byte = low(rest, 0x7f);
            rest >>= 7;
        }
        head.push(byte);
        head
    }
}

/// A pack of objects.
pub fn pack(objects: &[Packed], format: Format) -> Vec<u8> {
    let mut bytes = b"PACK\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(objects.len()).unwrap_or(u32::MAX).to_be_bytes());
    for object in objects {
        bytes.extend(object.head());
        bytes.extend_from_slice(&object.bytes);
    }
    let mut hash = format.hash();
    hash.update(&bytes);
    bytes.extend_from_slice(hash.finish().bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::GitLimits;
    use super::super::pack::Pack;
    use super::*;

    proptest! {
        #[test]
        fn a_pack_that_is_written_is_read_back(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 0..8),
            wide in any::<bool>(),
        ) {
            let format = if wide { Format::Sha256 } else { Format::Sha1 };
            let objects: Vec<Packed> =
                contents.iter().map(|content| Packed::new(Kind::Blob, content, format)).collect();
            let read = Pack::read(pack(&objects, format), format, &GitLimits::default());
            prop_assert!(read.is_ok());
            let Ok(read) = read else { return Ok(()) };
            for (object, content) in objects.iter().zip(&contents) {
                let found = read.get(object.id).ok().flatten();
                prop_assert_eq!(found.map(|(_, data)| data.to_vec()), Some(content.clone()));
            }
        }
    }
}
