//! Packs the files of a folder as a chart: the same bytes for the same files, today and with the next version of every
//! library, because pins are digests of these bytes. So nothing is compressed (compressors change what they make), and
//! what surrounds the files is written here.

use std::collections::BTreeMap;
use std::sync::Arc;

use flate2::Crc;

use super::{ChartError, too_large};

/// The folder that archives of charts have around their files; its name means nothing.
const TOP: &str = "chart";
const BLOCK: usize = 512;
/// Largest stored block of the deflate format.
const STORED: usize = 0xffff;

/// Packs files by their paths.
pub fn pack(files: &BTreeMap<String, Arc<[u8]>>, most: usize) -> Result<Vec<u8>, ChartError> {
    Ok(gzip(&tar_of(files, most)?))
}

/// The archive of these files before it is compressed: the same bytes for the same files.
pub fn tar_of(files: &BTreeMap<String, Arc<[u8]>>, most: usize) -> Result<Vec<u8>, ChartError> {
    let mut tar = Vec::new();
    for (path, data) in files {
        let name = format!("{TOP}/{path}");
        if name.len() > 100 {
            // The way that every reader of tar knows: the name is the content of an entry before.
            let mut long = name.clone().into_bytes();
            long.push(0);
            entry(&mut tar, "././@LongLink", b'L', &long);
        }
        entry(&mut tar, &name, b'0', data);
        if tar.len() > most {
            return Err(too_large(&format!("the folder has more than {most} bytes")));
        }
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    Ok(tar)
}

fn entry(tar: &mut Vec<u8>, name: &str, kind: u8, data: &[u8]) {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (to, from) in header.iter_mut().skip(at).zip(text) {
            *to = *from;
        }
    };
    put(0, name.as_bytes().get(..100).unwrap_or(name.as_bytes()));
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", data.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    // The old form of GNU tar, which long names belong to.
    put(257, b"ustar  \0");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let mut put = |at: usize, text: &[u8]| {
        for (to, from) in header.iter_mut().skip(at).zip(text) {
            *to = *from;
        }
    };
    put(148, format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(&header);
    tar.extend_from_slice(data);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}

/// The gzip format around blocks that are stored as they are.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + content.len() / 1000 + 64);
    out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    let last = content.len().saturating_sub(1) / STORED;
    for (number, block) in content.chunks(STORED).enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(number == last));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    let mut crc = Crc::new();
    crc.update(content);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn files(all: &[(&str, &[u8])]) -> BTreeMap<String, Arc<[u8]>> {
        all.iter().map(|(name, data)| ((*name).to_owned(), Arc::from(*data))).collect()
    }

    #[test]
    fn the_bytes_never_change() {
        let chart = b"apiVersion: v2\nname: web\nversion: 1.4.0\n";
        let packed =
            pack(&files(&[("Chart.yaml", chart), ("templates/a.yaml", b"a: 1\n")]), 1 << 20).unwrap();
        // Pins of deployments that run are digests of these bytes: this one is never to be edited.
        let golden = "sha256:2d286c4c9009bf5bb7a06aa1ccaf9ff4757e1a096ec75927b5eaeb957fdad298";
        assert_eq!(super::super::super::digest(&packed), golden);
    }

    #[test]
    fn other_readers_of_tar_and_gzip_read_the_same_files() {
        let long = format!("templates/{}/{}.yaml", "a".repeat(90), "b".repeat(90));
        let large: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let wanted = files(&[("Chart.yaml", b"x"), (&long, b"long"), ("large", &large), ("none", b"")]);
        let packed = pack(&wanted, 1 << 20).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*packed));
        let mut found = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().trim_start_matches("chart/").to_owned();
            let mut data = Vec::new();
            entry.read_to_end(&mut data).unwrap();
            found.insert(name, Arc::from(data));
        }
        assert_eq!(found, wanted);
        assert_eq!(pack(&wanted, 1000).unwrap_err().reason(), "ChartTooLarge");
    }
}
