//! Base64, the encoding of bytes that are not UTF-8 in requests and answers.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as base64 with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity((bytes.len() + 2) / 3 * 4);
    for chunk in bytes.chunks(3) {
        let n = (chunk[0] as usize) << 16 | (*chunk.get(1).unwrap_or(&0) as usize) << 8 | *chunk.get(2).unwrap_or(&0) as usize;
        for i in 0..4 {
            let digit = ALPHABET[n >> (18 - 6 * i) & 63];
            out.push(if i <= chunk.len() { digit as char } else { '=' });
        }
    }
    out
}

/// Reads base64 with padding; None if it is invalid. Spaces are not skipped.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let digits = text.trim_end_matches('=').as_bytes();
    if bytes.len() % 4 != 0 || bytes.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut n = 0;
        for (i, b) in chunk.iter().enumerate() {
            n |= digit(*b)? << (18 - 6 * i);
        }
        // A digit has six bits: two digits are one byte, three are two.
        out.extend_from_slice(&n.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

/// The six bits of a character.
fn digit(b: u8) -> Option<u32> {
    let n = match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(n as u32)
}
