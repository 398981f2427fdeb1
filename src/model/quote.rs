//! What a call may cost, as far as that is known before it is made: what is reserved for it, and how long its reply may be
//! for the money that is left.

use std::io::Write;

use super::Request;

/// Bytes of a request to a token, at least: English and code have about four, tables of numbers and other scripts fewer.
const BYTES: usize = 3;

/// Tokens that a picture is taken for: what the providers count for one of a screen's size, whatever its bytes are.
const PICTURE: u64 = 1600;

/// Tokens that no picture is charged more than: some small models count one for fifty thousand.
const LARGEST_PICTURE: u64 = 100_000;

/// Tokens without which no reply says anything; some providers take no smaller bound.
pub(super) const LEAST_REPLY: u32 = 16;

/// A reply longer than this is not to be expected of any model: one that may be so long is not bounded.
pub(crate) const LONGEST_REPLY: u32 = 1 << 17;

/// What a call may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quote {
    /// Dollars that the call costs in any case: for what is read, as estimated from its bytes, or for a written reply.
    pub read: f64,
    /// Dollars for each token that is written; 0 where the length of a reply decides nothing.
    pub token: f64,
    /// The fewest tokens that a reply must be allowed.
    pub least: u32,
    /// Tokens that a reply may have beyond those asked for, because the model thinks first.
    pub thoughts: u32,
}

/// No reply can be had for the money that is left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDear;

impl Quote {
    /// The most tokens that a reply may have for so many dollars; `None` where no bound is needed.
    ///
    /// # Errors
    /// When they are too few for any reply.
    pub(crate) fn affordable(&self, dollars: f64) -> Result<Option<u32>, TooDear> {
        if self.token <= 0.0 {
            return Ok(None);
        }
        let tokens = (dollars - self.read) / self.token;
        if tokens < f64::from(self.least.max(1)) {
            return Err(TooDear);
        }
        Ok((tokens < f64::from(LONGEST_REPLY)).then_some(tokens as u32))
    }

    /// The most dollars that the call can cost, where it asks for at most so many tokens and can pay for so many.
    #[must_use]
    pub(crate) fn most(&self, asked: Option<u32>, affordable: Option<u32>) -> f64 {
        let asked = asked.map(|tokens| tokens.saturating_add(self.thoughts));
        let tokens = [asked, affordable].into_iter().flatten().min().unwrap_or(LONGEST_REPLY);
        self.read + self.token * f64::from(tokens.min(LONGEST_REPLY))
    }
}

/// How many tokens a request has, as estimated from its bytes: rather too many than too few.
pub(super) fn tokens_read(request: &Request) -> u64 {
    let (bytes, pictures) = measured(request);
    bytes.div_ceil(BYTES) as u64 + pictures * PICTURE
}

/// Tokens that a request cannot have more of, whatever its language: no token is shorter than a byte.
pub(super) fn most_read(request: &Request) -> u64 {
    let (bytes, pictures) = measured(request);
    bytes as u64 + pictures * LARGEST_PICTURE
}

/// Bytes of a request's text, and its pictures.
fn measured(request: &Request) -> (usize, u64) {
    struct Counted(usize);
    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Cannot fail: nothing here refuses to be written as JSON.
    let _ = serde_json::to_writer(&mut counted, &(&request.messages, &request.tools));
    let images = request.messages.iter().flat_map(|message| &message.images);
    let (count, bytes) = images.fold((0, 0), |(count, bytes), image| (count + 1, bytes + image.data.len()));
    (counted.0.saturating_sub(bytes), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_may_be_as_long_as_the_money_lasts_and_no_shorter_than_it_must_be() {
        let quote = Quote { read: 0.25, token: 0.125, least: 2, thoughts: 3 };
        assert_eq!(quote.affordable(1.0), Ok(Some(6)));
        assert_eq!(quote.affordable(0.5), Ok(Some(2)));
        assert_eq!(quote.affordable(0.49), Err(TooDear));
        assert_eq!(quote.affordable(1e9), Ok(None), "nobody writes so much");
        assert!((quote.most(None, Some(6)) - 1.0).abs() < 1e-12);
        assert!((quote.most(Some(3), None) - 1.0).abs() < 1e-12, "thoughts come on top of what is asked for");
        assert!((quote.most(Some(9), Some(6)) - 1.0).abs() < 1e-12, "what can be paid for is the end of it");
        // What is free, or costs what it costs, is not bounded, with no money at all.
        for free in [Quote::default(), Quote { read: 3.0, ..Quote::default() }] {
            assert_eq!(free.affordable(0.0), Ok(None));
        }
    }
}
