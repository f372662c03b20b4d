//! Unpacks the objects of a Git pack. A name is the digest of what the object was unpacked to, so a server can give
//! something else under no name. What unpacking may cost is bounded, whatever the pack says of itself.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::sync::Arc;

use flate2::bufread::ZlibDecoder;

use emco_engine::git::object::{Format, Hash, Id, Kind, Object};

use super::GitLimits;

/// Deltas on deltas; Git makes at most 4,095.
const CHAIN: usize = 4096;
/// What a look at one difference of a chain counts as, in bytes: chains of empty objects cost time, too.
const STEP: u64 = 64;
/// Unpacked objects that are kept because others may build on them.
const CACHED_BYTES: usize = 16 << 20;

/// Why a pack cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackError {
    /// It is cut off, or no pack.
    Broken,
    /// It builds on an object that is not in it.
    Base,
    /// It has more objects.
    Objects(u32),
    /// It unpacks to more.
    Work(u64),
    /// An object is larger than what is used.
    Object(usize),
}

enum Base {
    Whole(Kind),
    At(usize),
    Named(Id),
}

struct Entry {
    base: Base,
    /// Where its compressed bytes begin.
    data: usize,
    /// Bytes that these unpack to: of the object, or of the delta.
    size: u64,
}

/// A pack.
pub struct Pack {
    bytes: Vec<u8>,
    limits: GitLimits,
    entries: BTreeMap<usize, Entry>,
    index: BTreeMap<Id, usize>,
    work: Cell<u64>,
    cache: RefCell<Cache>,
}

impl Pack {
    /// Reads all of it once. Objects too large to be used are passed over.
    pub fn read(bytes: Vec<u8>, format: Format, limits: &GitLimits) -> Result<Self, PackError> {
        let mut pack = Self {
            bytes,
            limits: limits.clone(),
            entries: BTreeMap::new(),
            index: BTreeMap::new(),
            work: Cell::new(0),
            cache: RefCell::default(),
        };
        pack.scan(format)?;
        pack.name_deltas(format)?;
        Ok(pack)
    }

    pub fn has(&self, id: Id) -> bool {
        self.index.contains_key(&id)
    }

    /// An object; `None` if it is not here.
    pub fn get(&self, id: Id) -> Result<Option<Object>, PackError> {
        self.index.get(&id).map(|at| self.unpack(*at)).transpose()
    }

    /// Everything.
    #[cfg(test)]
    pub(crate) fn all(&self) -> BTreeMap<Id, Object> {
        self.index.iter().map(|(id, at)| (*id, self.unpack(*at).unwrap())).collect()
    }

    /// All trees, by name. All of them are in memory at once, so they may have as many bytes as a pack, however small this one is.
    pub fn trees(&self) -> Result<BTreeMap<Id, Vec<u8>>, PackError> {
        let mut found = BTreeMap::new();
        let mut left = self.limits.pack_bytes;
        for (id, at) in &self.index {
            if self.entries.get(at).is_some_and(|entry| matches!(entry.base, Base::Whole(Kind::Blob))) {
                continue;
            }
            if let (Kind::Tree, content) = self.unpack(*at)? {
                let most = self.limits.pack_bytes as u64;
                left = left.checked_sub(content.len()).ok_or(PackError::Work(most))?;
                found.insert(*id, content.to_vec());
            }
        }
        Ok(found)
    }

    fn scan(&mut self, format: Format) -> Result<(), PackError> {
        let end = self.bytes.len().checked_sub(format.bytes()).ok_or(PackError::Broken)?;
        let (content, sum) = self.bytes.split_at_checked(end).ok_or(PackError::Broken)?;
        let mut hash = format.hash();
        hash.update(content);
        if Id::read(sum, format) != Some(hash.finish()) {
            return Err(PackError::Broken);
        }
        let mut reader = Reader { bytes: content, at: 0 };
        if reader.take(4)? != b"PACK" || !matches!(reader.number()?, 2 | 3) {
            return Err(PackError::Broken);
        }
        let count = reader.number()?;
        if count > self.limits.objects {
            return Err(PackError::Objects(self.limits.objects));
        }
        let (mut entries, mut index) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..count {
            let start = reader.at;
            let (kind, size) = reader.head()?;
            let base = match kind {
                1 => Base::Whole(Kind::Commit),
                2 => Base::Whole(Kind::Tree),
                3 => Base::Whole(Kind::Blob),
                4 => Base::Whole(Kind::Tag),
                6 => Base::At(reader.back(start)?),
                7 => Base::Named(Id::read(reader.take(format.bytes())?, format).ok_or(PackError::Broken)?),
                _ => return Err(PackError::Broken),
            };
            let data = reader.at;
            let mut hash = match base {
                Base::Whole(kind) => Some(Hash::of(format, kind, size)),
                _ => None,
            };
            reader.at += self.pass(content.get(data..).unwrap_or_default(), size, hash.as_mut())?;
            if let Some(hash) = hash {
                index.insert(hash.finish(), start);
            }
            entries.insert(start, Entry { base, data, size });
        }
        if reader.at != content.len() {
            return Err(PackError::Broken);
        }
        (self.entries, self.index) = (entries, index);
        Ok(())
    }

    /// Unpacks without keeping; answers how many packed bytes that took.
    fn pass(&self, packed: &[u8], size: u64, mut hash: Option<&mut Hash>) -> Result<usize, PackError> {
        let mut decoder = ZlibDecoder::new(packed);
        let mut chunk = [0; 16 << 10];
        let mut total = 0;
        loop {
            let read = decoder.read(&mut chunk).map_err(|_| PackError::Broken)?;
            if read == 0 {
                break;
            }
            total += read as u64;
            self.charge(read as u64)?;
            if total > size {
                return Err(PackError::Broken);
            }
            if let Some(hash) = hash.as_deref_mut() {
                hash.update(chunk.get(..read).unwrap_or_default());
            }
        }
        if total != size {
            return Err(PackError::Broken);
        }
        Ok(packed.len() - decoder.into_inner().len())
    }

    /// Names the objects that are differences to others: each one once, as soon as what it builds on has a name. Trying all
    /// that wait again and again would cost a server's pack of chains, last one first, the square of its size.
    fn name_deltas(&mut self, format: Format) -> Result<(), PackError> {
        let mut by_place: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut by_name: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        for (at, entry) in &self.entries {
            match &entry.base {
                Base::Whole(_) => {}
                Base::At(base) => by_place.entry(*base).or_default().push(*at),
                Base::Named(base) => by_name.entry(*base).or_default().push(*at),
            }
        }
        if by_place.keys().any(|base| !self.entries.contains_key(base)) {
            return Err(PackError::Broken);
        }
        let whole = self.entries.iter().filter(|(_, entry)| matches!(entry.base, Base::Whole(_)));
        let mut ready: Vec<usize> = whole.filter_map(|(at, _)| by_place.remove(at)).flatten().collect();
        ready.extend(self.index.keys().filter_map(|id| by_name.remove(id)).flatten());
        // The one found last comes first, so that what it builds on is still kept.
        while let Some(at) = ready.pop() {
            let (kind, data) = match self.unpack(at) {
                Ok(object) => object,
                // Nothing that a chart is made of, and neither is what builds on it.
                Err(PackError::Object(_)) => continue,
                Err(error) => return Err(error),
            };
            let mut hash = Hash::of(format, kind, data.len() as u64);
            hash.update(&data);
            let id = hash.finish();
            self.index.insert(id, at);
            ready.extend(by_place.remove(&at).into_iter().flatten());
            ready.extend(by_name.remove(&id).into_iter().flatten());
        }
        if by_name.is_empty() { Ok(()) } else { Err(PackError::Base) }
    }

    fn unpack(&self, at: usize) -> Result<Object, PackError> {
        let mut chain = Vec::new();
        let mut next = at;
        let (kind, mut data) = loop {
            if let Some(known) = self.cache.borrow().kept.get(&next) {
                break known.clone();
            }
            self.charge(STEP)?;
            let entry = self.entries.get(&next).ok_or(PackError::Broken)?;
            match &entry.base {
                Base::Whole(kind) => break (*kind, self.inflate(entry)?),
                Base::At(base) => {
                    chain.push(entry);
                    next = *base;
                }
                Base::Named(base) => {
                    chain.push(entry);
                    next = *self.index.get(base).ok_or(PackError::Base)?;
                }
            }
            if chain.len() > CHAIN {
                return Err(PackError::Broken);
            }
        };
        for entry in chain.into_iter().rev() {
            let delta = self.inflate(entry)?;
            data = apply(&data, &delta, self.limits.object_bytes)?.into();
            self.charge(data.len() as u64)?;
        }
        self.cache.borrow_mut().keep(at, kind, &data);
        Ok((kind, data))
    }

    fn inflate(&self, entry: &Entry) -> Result<Arc<[u8]>, PackError> {
        let most = self.limits.object_bytes;
        if usize::try_from(entry.size).map_or(true, |size| size > most) {
            return Err(PackError::Object(most));
        }
        self.charge(entry.size)?;
        let mut data = Vec::new();
        let packed = self.bytes.get(entry.data..).ok_or(PackError::Broken)?;
        ZlibDecoder::new(packed).take(entry.size).read_to_end(&mut data).map_err(|_| PackError::Broken)?;
        Ok(data.into())
    }

    fn charge(&self, bytes: u64) -> Result<(), PackError> {
        let total = self.work.get().saturating_add(bytes);
        self.work.set(total);
        if total > self.limits.work_bytes { Err(PackError::Work(self.limits.work_bytes)) } else { Ok(()) }
    }
}

#[derive(Default)]
struct Cache {
    kept: BTreeMap<usize, Object>,
    order: VecDeque<usize>,
    bytes: usize,
}

impl Cache {
    fn keep(&mut self, at: usize, kind: Kind, data: &Arc<[u8]>) {
        if data.len() > CACHED_BYTES / 4 || self.kept.contains_key(&at) {
            return;
        }
        self.bytes += data.len();
        self.kept.insert(at, (kind, Arc::clone(data)));
        self.order.push_back(at);
        while self.bytes > CACHED_BYTES {
            let Some((_, gone)) = self.order.pop_front().and_then(|at| self.kept.remove(&at)) else { return };
            self.bytes -= gone.len();
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], PackError> {
        let taken = self.bytes.get(self.at..self.at.saturating_add(count)).ok_or(PackError::Broken)?;
        self.at += count;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, PackError> {
        self.take(1)?.first().copied().ok_or(PackError::Broken)
    }

    fn number(&mut self) -> Result<u32, PackError> {
        let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| PackError::Broken)?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// Kind and size of an entry.
    fn head(&mut self) -> Result<(u8, u64), PackError> {
        let first = self.byte()?;
        let (kind, low) = ((first >> 4) & 7, u64::from(first & 15));
        if first & 0x80 == 0 {
            return Ok((kind, low));
        }
        let high = self.varint()?.checked_mul(16).ok_or(PackError::Broken)?;
        Ok((kind, high | low))
    }

    /// Groups of seven bits, the lowest first.
    fn varint(&mut self) -> Result<u64, PackError> {
        let mut value = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(PackError::Broken)
    }

    /// The place of a base, as a distance back from `start`.
    fn back(&mut self, start: usize) -> Result<usize, PackError> {
        let mut byte = self.byte()?;
        let mut distance = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.byte()?;
            distance = distance
                .checked_add(1)
                .and_then(|distance| distance.checked_mul(128))
                .ok_or(PackError::Broken)?
                | usize::from(byte & 0x7f);
        }
        start.checked_sub(distance).filter(|base| *base < start).ok_or(PackError::Broken)
    }
}

/// What a delta makes of its base.
fn apply(base: &[u8], delta: &[u8], most: usize) -> Result<Vec<u8>, PackError> {
    let mut reader = Reader { bytes: delta, at: 0 };
    let (from, to) = (reader.varint()?, reader.varint()?);
    if from != base.len() as u64 {
        return Err(PackError::Broken);
    }
    let size = usize::try_from(to).ok().filter(|size| *size <= most).ok_or(PackError::Object(most))?;
    let mut out = Vec::new();
    while reader.at < delta.len() {
        let code = reader.byte()?;
        let piece = match code {
            0 => return Err(PackError::Broken),
            1..=0x7f => reader.take(usize::from(code))?,
            _ => {
                let mut field = |bits: std::ops::Range<u8>| {
                    let mut value = 0;
                    for (place, bit) in bits.enumerate() {
                        if code & (1 << bit) != 0 {
                            value |= usize::from(reader.byte()?) << (8 * place);
                        }
                    }
                    Ok::<_, PackError>(value)
                };
                let (offset, length) = (field(0..4)?, field(4..7)?);
                let length = if length == 0 { 0x10000 } else { length };
                base.get(offset..offset.saturating_add(length)).ok_or(PackError::Broken)?
            }
        };
        if out.len() + piece.len() > size {
            return Err(PackError::Broken);
        }
        out.extend_from_slice(piece);
    }
    if out.len() == size { Ok(out) } else { Err(PackError::Broken) }
}

#[cfg(test)]
mod tests;
