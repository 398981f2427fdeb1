//! Keeps the beginning and the end of a stream of any length in bounded memory.

use std::collections::VecDeque;

/// Collects bytes up to a limit. If the stream is longer, its middle is replaced by a note that says how many bytes
/// were cut.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    cut: u64,
}

impl Capture {
    /// Creates a capture that keeps at most `limit` bytes: the first half and the last half.
    pub fn new(limit: usize) -> Self {
        let head_limit = limit.div_ceil(2);
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit: limit - head_limit, cut: 0 }
    }

    /// Adds the stream's next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.head_limit - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        // Only the last bytes fit into the tail.
        let skipped = rest.len().saturating_sub(self.tail_limit);
        let rest = &rest[skipped..];
        let overflow = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..overflow);
        self.tail.extend(rest);
        self.cut += (skipped + overflow) as u64;
    }

    /// Returns the bytes that were kept, with a note in place of the middle, and the number of bytes that were cut.
    pub fn finish(self) -> (Vec<u8>, u64) {
        let mut bytes = self.head;
        if self.cut > 0 {
            bytes.extend_from_slice(format!("\n[... {} bytes cut ...]\n", self.cut).as_bytes());
        }
        let (front, back) = self.tail.as_slices();
        bytes.extend_from_slice(front);
        bytes.extend_from_slice(back);
        (bytes, self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::Capture;

    fn capture(limit: usize, pieces: &[&[u8]]) -> (String, u64) {
        let mut capture = Capture::new(limit);
        for piece in pieces {
            capture.push(piece);
        }
        let (bytes, cut) = capture.finish();
        (String::from_utf8(bytes).unwrap(), cut)
    }

    #[test]
    fn short_output_is_captured_unchanged() {
        assert_eq!(capture(10, &[b"abc", b"defg", b"hij"]), ("abcdefghij".into(), 0));
    }

    #[test]
    fn the_middle_is_cut_and_counted_however_the_bytes_arrive() {
        let expected = ("abc\n[... 20 bytes cut ...]\nxyz".to_owned(), 20);
        let letters: Vec<u8> = (b'a'..=b'z').collect();
        assert_eq!(capture(6, &[&letters]), expected);
        assert_eq!(capture(6, &letters.chunks(1).collect::<Vec<_>>()), expected);
        assert_eq!(capture(6, &letters.chunks(5).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_limit_of_zero_cuts_the_whole_text() {
        assert_eq!(capture(0, &[b"abc"]), ("\n[... 3 bytes cut ...]\n".into(), 3));
    }
}
