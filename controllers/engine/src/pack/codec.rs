//! Writes index and frames as the bytes of a pack, and reads them back. The only file that knows where what stands.

use sha2::{Digest, Sha256};
use zstd::bulk::{Compressor, Decompressor};

use super::{Frame, Index, LARGEST_FRAME, PackError};

/// The magic without its number.
const MAGIC: &[u8] = b"EMCOPK";
/// The newest format, two digits: with pieces of manifests.
pub const FORMAT: u32 = 2;
/// The format without any.
const WHOLE: u32 = 1;
/// Magic, digest, length of the index.
pub const HEADER: usize = 8 + 32 + 4;
/// Compression level: the fourth part of the time of level 9 for a tenth more bytes.
const LEVEL: i32 = 6;

/// The bytes of a pack. Fails only for an index of 4 GiB.
pub fn encode(index: &Index, frames: &[Vec<u8>]) -> Result<Vec<u8>, PackError> {
    let corrupt = |error: &dyn std::fmt::Display| PackError::Corrupt(error.to_string());
    // An operator of before goes on reading all that it can.
    let format = if index.sets.iter().any(|part| part.piece.is_some()) { FORMAT } else { WHOLE };
    let index = serde_json::to_vec(index).map_err(|e| corrupt(&e))?;
    let length = u32::try_from(index.len()).map_err(|e| corrupt(&e))?;
    let mut body = Vec::with_capacity(4 + index.len() + frames.iter().map(Vec::len).sum::<usize>());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(&index);
    for frame in frames {
        body.extend_from_slice(frame);
    }
    let mut bytes = format!("EMCOPK{format:02}").into_bytes();
    bytes.extend_from_slice(&Sha256::digest(&body));
    bytes.append(&mut body);
    Ok(bytes)
}

/// Verifies the bytes of a pack and cuts them into index and frames.
pub fn decode(bytes: &[u8]) -> Result<(Index, Vec<Vec<u8>>), PackError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(PackError::NotAPack)?;
    let (number, rest) = rest.split_at_checked(2).ok_or(PackError::Torn)?;
    let number: u32 =
        std::str::from_utf8(number).ok().and_then(|n| n.parse().ok()).ok_or(PackError::NotAPack)?;
    if number == 0 {
        return Err(PackError::NotAPack);
    }
    if number > FORMAT {
        return Err(PackError::Newer(number));
    }
    let (digest, body) = rest.split_at_checked(32).ok_or(PackError::Torn)?;
    if Sha256::digest(body).as_slice() != digest {
        return Err(PackError::Torn);
    }
    let short = || PackError::Corrupt("it is shorter than its index says".to_owned());
    let (length, body) = body.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
    let (index, mut body) = body.split_at_checked(length).ok_or_else(short)?;
    let index: Index = super::parse(index)?;
    let mut frames = Vec::with_capacity(index.frames.len());
    for Frame { compressed, .. } in &index.frames {
        let (frame, rest) = body.split_at_checked(*compressed).ok_or_else(short)?;
        frames.push(frame.to_vec());
        body = rest;
    }
    if body.is_empty() {
        Ok((index, frames))
    } else {
        Err(PackError::Corrupt("it is longer than its index says".to_owned()))
    }
}

/// One frame, with the content of another frame as raw dictionary (empty = none).
pub fn compress(content: &[u8], dictionary: &[u8]) -> Result<Vec<u8>, PackError> {
    Compressor::with_dictionary(LEVEL, dictionary)
        .and_then(|mut compressor| compressor.compress(content))
        .map_err(|error| PackError::Corrupt(error.to_string()))
}

/// The content of a frame; never more than the length that the index states, and that never more than the limit.
pub fn decompress(frame: &[u8], raw: usize, dictionary: &[u8]) -> Result<Vec<u8>, PackError> {
    if raw > LARGEST_FRAME {
        return Err(PackError::Corrupt(format!(
            "a frame says it holds {raw} bytes; {LARGEST_FRAME} is the limit"
        )));
    }
    let content = Decompressor::with_dictionary(dictionary)
        .and_then(|mut decompressor| decompressor.decompress(frame, raw))
        .map_err(|error| PackError::Corrupt(error.to_string()))?;
    if content.len() == raw {
        Ok(content)
    } else {
        Err(PackError::Corrupt("a frame is shorter than it says".to_owned()))
    }
}
