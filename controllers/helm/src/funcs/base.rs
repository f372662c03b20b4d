//! Base64 and base32 as Go decodes them: line breaks are skipped, complaints name the byte.

const DIGITS64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The padded standard alphabet.
pub(super) fn decode64(text: &[u8]) -> Result<Vec<u8>, String> {
    let corrupt = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut input = text.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r')).peekable();
    while input.peek().is_some() {
        let (mut group, mut count) = (0_u32, 0);
        while count < 4 {
            // The text ends inside a group.
            let Some((at, byte)) = input.next() else { return corrupt(text.len() - count) };
            if let Some(digit) = digit(DIGITS64, *byte) {
                group = (group << 6) | digit;
                count += 1;
                continue;
            }
            if *byte != b'=' || count < 2 {
                return corrupt(at);
            }
            if count == 2 {
                match input.next() {
                    Some((_, b'=')) => {}
                    Some((at, _)) => return corrupt(at),
                    None => return corrupt(text.len()),
                }
            }
            if let Some((at, _)) = input.next() {
                return corrupt(at);
            }
            group <<= 6 * (4 - count);
            out.extend_from_slice(group.to_be_bytes().get(1..count).unwrap_or_default());
            return Ok(out);
        }
        out.extend_from_slice(group.to_be_bytes().get(1..).unwrap_or_default());
    }
    Ok(out)
}

fn digit(digits: &[u8], byte: u8) -> Option<u32> {
    digits.iter().position(|digit| *digit == byte).and_then(|place| u32::try_from(place).ok())
}

/// The padded standard alphabet. Complaints count bytes without line breaks.
pub(super) fn decode32(text: &[u8]) -> Result<Vec<u8>, String> {
    let corrupt = |at: usize| Err(format!("illegal base32 data at input byte {at}"));
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    let mut at = 0;
    while at < text.len() {
        let (mut group, mut count) = (0_u64, 0);
        while count < 8 {
            let Some(byte) = text.get(at) else { return corrupt(at - count) };
            at += 1;
            let left = text.len() - at;
            if *byte == b'=' && count >= 2 && left < 8 {
                if left + count < 7 {
                    return corrupt(text.len());
                }
                let padding = text.get(at..).unwrap_or_default().iter().take(7 - count);
                if let Some(k) = padding.into_iter().position(|byte| *byte != b'=') {
                    return corrupt(text.len() - left + k - 1);
                }
                if matches!(count, 1 | 3 | 6) {
                    return corrupt(at - 1);
                }
                group <<= 5 * (8 - count);
                let whole = count * 5 / 8;
                out.extend_from_slice(group.to_be_bytes().get(3..3 + whole).unwrap_or_default());
                return Ok(out);
            }
            let Some(digit) = digit(DIGITS32, *byte) else { return corrupt(at - 1) };
            group = (group << 5) | u64::from(digit);
            count += 1;
        }
        out.extend_from_slice(group.to_be_bytes().get(3..).unwrap_or_default());
    }
    Ok(out)
}

pub(super) fn encode32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut group = [0_u8; 8];
        for (slot, byte) in group.iter_mut().skip(3).zip(chunk) {
            *slot = *byte;
        }
        let value = u64::from_be_bytes(group);
        let digits = (chunk.len() * 8).div_ceil(5);
        for i in 0..8 {
            let digit = usize::try_from((value >> (35 - 5 * i)) & 31).unwrap_or(0);
            out.push(if i < digits { char::from(DIGITS32.get(digit).copied().unwrap_or(b'A')) } else { '=' });
        }
    }
    out
}
