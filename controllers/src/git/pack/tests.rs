use std::io::Write as _;

use super::*;

const LIMITS: GitLimits =
    GitLimits { pack_bytes: 1 << 20, objects: 100, object_bytes: 100_000, work_bytes: 1 << 20, entries: 100 };

fn packed(data: &[u8]) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(data).unwrap();
    zlib.finish().unwrap()
}

/// An entry of a kind that unpacks to `data`; `between` is what stands before the data, such as the base of a delta.
fn entry(kind: u8, between: &[u8], data: &[u8]) -> Vec<u8> {
    let mut size = data.len();
    let mut bytes = vec![(kind << 4) | u8::try_from(size & 15).unwrap()];
    size >>= 4;
    while size > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push(u8::try_from(size & 0x7f).unwrap());
        size >>= 7;
    }
    bytes.extend_from_slice(between);
    bytes.extend(packed(data));
    bytes
}

fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PACK\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    bytes.extend(entries.concat());
    let mut hash = Format::Sha1.hash();
    hash.update(&bytes);
    bytes.extend(hex::decode(hash.finish().to_string()).unwrap());
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Pack, PackError> {
    Pack::read(bytes, Format::Sha1, &LIMITS)
}

fn blob(data: &[u8]) -> Id {
    let mut hash = Hash::of(Format::Sha1, Kind::Blob, data.len() as u64);
    hash.update(data);
    hash.finish()
}

fn name(id: Id) -> Vec<u8> {
    hex::decode(id.to_string()).unwrap()
}

/// Copies the first five bytes of a base of eleven, and adds `!`.
const DELTA: [u8; 6] = [11, 6, 0b1001_0000, 5, 1, b'!'];

#[test]
fn objects_whole_and_as_differences_are_found_by_their_names() {
    let base = entry(3, &[], b"hello world");
    let by_place = entry(6, &[u8::try_from(base.len()).unwrap()], &DELTA);
    // Builds on a name that comes later.
    let by_name = entry(7, &name(blob(b"hello world")), &DELTA);
    for entries in [vec![base.clone(), by_place], vec![by_name, base]] {
        let pack = read(pack(&entries)).unwrap();
        let (kind, data) = pack.get(blob(b"hello!")).unwrap().unwrap();
        assert_eq!((kind, &*data), (Kind::Blob, &b"hello!"[..]));
        assert!(pack.has(blob(b"hello world")) && !pack.has(blob(b"other")));
    }
}

#[test]
fn whatever_is_cut_off_or_changed_is_no_pack() {
    let whole = pack(&[entry(3, &[], b"hello world")]);
    for end in 0..whole.len() {
        assert_eq!(read(whole[..end].to_vec()).err(), Some(PackError::Broken), "{end}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        assert_eq!(read(changed).err(), Some(PackError::Broken), "{at}");
    }
    for (kind, between, data) in [
        (5, &[][..], &b"x"[..]),
        (0, &[], b"x"),
        // A base that is itself, or before the pack.
        (6, &[0], &DELTA),
        (6, &[100], &DELTA),
        (6, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &DELTA),
    ] {
        assert_eq!(
            read(pack(&[entry(kind, between, data)])).err(),
            Some(PackError::Broken),
            "{kind} {between:?}"
        );
    }
    let lost = entry(7, &name(blob(b"not here")), &DELTA);
    assert_eq!(read(pack(&[lost])).err(), Some(PackError::Base));
    let base = entry(3, &[], b"hello world");
    let back = [u8::try_from(base.len()).unwrap()];
    for delta in [
        &[12, 6, 0b1001_0000, 5, 1, b'!'][..],
        &[11, 7, 0b1001_0000, 5, 1, b'!'],
        &[11, 6, 0b1001_0000, 12, 1, b'!'],
        &[11, 6, 0b1001_0001, 255, 5, 1, b'!'],
        &[11, 6, 0, 1],
        &[11, 6, 0b1001_0000],
        &[11],
        &[],
    ] {
        let broken = pack(&[base.clone(), entry(6, &back, delta)]);
        assert_eq!(read(broken).err(), Some(PackError::Broken), "{delta:?}");
    }
}

#[test]
fn what_unpacks_to_too_much_is_given_up_and_large_objects_are_passed_over() {
    let zeros = vec![0; 900_000];
    let bomb = pack(&[entry(3, &[], &zeros), entry(3, &[], &zeros)]);
    assert!(bomb.len() < 20_000);
    assert_eq!(read(bomb).err(), Some(PackError::Work(1 << 20)));
    let large = read(pack(&[entry(3, &[], &zeros), entry(3, &[], b"small")])).unwrap();
    assert_eq!(large.get(blob(&zeros)).err(), Some(PackError::Object(100_000)));
    assert_eq!(&*large.get(blob(b"small")).unwrap().unwrap().1, b"small");
    let many = pack(&vec![entry(3, &[], b""); 101]);
    assert_eq!(read(many).err(), Some(PackError::Objects(100)));
    // A difference that makes much of little.
    let base = entry(3, &[], &vec![7; 60_000]);
    let mut delta = vec![0xe0, 0xd4, 3, 0x80, 0x8e, 0xce, 5];
    delta.extend([0b1011_0000, 0x60, 0xea].repeat(200));
    let mut distance = vec![u8::try_from(base.len() & 0x7f).unwrap()];
    let mut rest = base.len() >> 7;
    while rest > 0 {
        rest -= 1;
        distance.insert(0, 0x80 | u8::try_from(rest & 0x7f).unwrap());
        rest >>= 7;
    }
    let pack = read(pack(&[base, entry(6, &distance, &delta)])).unwrap();
    assert_eq!(pack.index.len(), 1, "too large to be used, and so without a name");
}

/// Chains of differences by name, each entry before the one it builds on; a chain's objects differ from those of others.
fn chains_last_first(chains: u32, links: u32) -> Vec<u8> {
    let mut entries = Vec::new();
    for chain in 0..chains {
        let text = |link: u32| format!("{chain:04}{link:07}").into_bytes();
        let mut one = vec![entry(3, &[], &text(0))];
        for link in 1..links {
            let mut delta = vec![11, 11, 11];
            delta.extend(text(link));
            one.push(entry(7, &name(blob(&text(link - 1))), &delta));
        }
        one.reverse();
        entries.extend(one);
    }
    pack(&entries)
}

#[test]
fn chains_in_reverse_order_are_resolved_link_by_link() {
    let bytes = chains_last_first(20, 500);
    let limits = GitLimits { objects: 10_000, work_bytes: 4 << 20, ..LIMITS };
    let pack = Pack::read(bytes, Format::Sha1, &limits).unwrap();
    assert_eq!(pack.index.len(), 10_000);
    // Each object is unpacked once (11 bytes, its difference 14, read and applied) and looked at once.
    assert!(pack.work.get() <= 10_000 * (STEP + 64), "{}", pack.work.get());
}

#[test]
fn looks_along_chains_of_small_objects_count_as_work() {
    let bytes = chains_last_first(1, 90);
    let pack = Pack::read(bytes, Format::Sha1, &LIMITS).unwrap();
    *pack.cache.borrow_mut() = Cache::default();
    let before = pack.work.get();
    pack.get(blob(b"00000000089")).unwrap().unwrap();
    assert!(pack.work.get() - before >= 89 * STEP);
}

#[test]
fn trees_that_unpack_to_more_than_may_be_kept_are_refused() {
    let trees = [entry(2, b"", &vec![b'a'; 60_000]), entry(2, b"", &vec![b'b'; 60_000])];
    let few = GitLimits { pack_bytes: 100_000, ..LIMITS };
    let pack_of = |trees: &[Vec<u8>]| Pack::read(pack(trees), Format::Sha1, &few).unwrap();
    assert_eq!(pack_of(&trees[..1]).trees().unwrap().len(), 1);
    assert_eq!(pack_of(&trees).trees().unwrap_err(), PackError::Work(100_000));
}
