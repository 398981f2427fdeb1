//! The cost of a call, estimated before it is made: how much to reserve, and how long a reply the remaining money buys.

use std::io::Write;

use super::Request;

/// Assumed bytes per token. The number is low, so that estimates of tokens are usually too high. English and code have
/// about four bytes per token; tables of numbers and non-Latin scripts have fewer.
const BYTES: usize = 3;

/// Estimated tokens of a picture. Providers count about this many for a picture of screen size, regardless of its
/// bytes.
const PICTURE: u64 = 1600;

/// Upper bound on the tokens of a picture: some small models count fifty thousand.
const LARGEST_PICTURE: u64 = 100_000;

/// Minimum tokens of a useful reply. Some providers do not accept a smaller maximum length.
pub(super) const LEAST_REPLY: u32 = 16;

/// Tokens of the longest reply that any model may write. If the remaining money buys this many, the length of the reply
/// need not be limited.
pub(crate) const LONGEST_REPLY: u32 = 1 << 17;

/// The estimated cost of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quote {
    /// The part of the cost, in dollars, that does not depend on the reply's length: the cost of the prompt, estimated
    /// from its bytes, or the cost of a reply with a fixed price.
    pub read: f64,
    /// Dollars per token of the reply; 0 if the cost does not depend on the reply's length.
    pub token: f64,
    /// Minimum tokens that the reply must be allowed.
    pub least: u32,
    /// Tokens of thinking that a reply may have in addition to its requested maximum length.
    pub thoughts: u32,
}

/// The error if the remaining money does not buy any reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoAffordableReply;

impl Quote {
    /// Returns the maximum number of tokens that a reply may have for this money; `None` if the length of the reply
    /// need not be limited.
    ///
    /// # Errors
    /// If the money is not enough for any reply.
    pub(crate) fn affordable(&self, dollars: f64) -> Result<Option<u32>, NoAffordableReply> {
        if self.token <= 0.0 {
            return Ok(None);
        }
        let tokens = (dollars - self.read) / self.token;
        if tokens < f64::from(self.least.max(1)) {
            return Err(NoAffordableReply);
        }
        Ok((tokens < f64::from(LONGEST_REPLY)).then_some(tokens as u32))
    }

    /// Returns the maximum cost in dollars of a call whose reply has at most `asked` tokens (plus thoughts) and at most
    /// `affordable` tokens.
    #[must_use]
    pub(crate) fn most(&self, asked: Option<u32>, affordable: Option<u32>) -> f64 {
        let asked = asked.map(|tokens| tokens.saturating_add(self.thoughts));
        let tokens = [asked, affordable].into_iter().flatten().min().unwrap_or(LONGEST_REPLY);
        self.read + self.token * f64::from(tokens.min(LONGEST_REPLY))
    }
}

/// Estimates the tokens of a request from its bytes. The estimate is usually too high.
pub(super) fn tokens_read(request: &Request) -> u64 {
    let (bytes, pictures) = measured(request);
    bytes.div_ceil(BYTES) as u64 + pictures * PICTURE
}

/// Returns an upper bound on the tokens of a request in any language: no token is shorter than a byte.
pub(super) fn most_read(request: &Request) -> u64 {
    let (bytes, pictures) = measured(request);
    bytes as u64 + pictures * LARGEST_PICTURE
}

/// Counts the bytes of a request's text and tools, and its pictures.
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
    // Cannot fail: these types always serialise, and the writer returns no errors.
    let _ = serde_json::to_writer(&mut counted, &(&request.messages, &request.tools));
    let images = request.messages.iter().flat_map(|message| &message.images);
    let (count, bytes) = images.fold((0, 0), |(count, bytes), image| (count + 1, bytes + image.data.len()));
    (counted.0.saturating_sub(bytes), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_reply_is_bounded_by_the_money_and_has_a_minimum() {
        let quote = Quote { read: 0.25, token: 0.125, least: 2, thoughts: 3 };
        assert_eq!(quote.affordable(1.0), Ok(Some(6)));
        assert_eq!(quote.affordable(0.5), Ok(Some(2)));
        assert_eq!(quote.affordable(0.49), Err(NoAffordableReply));
        assert_eq!(quote.affordable(1e9), Ok(None), "no reply is that long");
        assert!((quote.most(None, Some(6)) - 1.0).abs() < 1e-12);
        assert!((quote.most(Some(3), None) - 1.0).abs() < 1e-12, "thoughts are added to the requested tokens");
        assert!((quote.most(Some(9), Some(6)) - 1.0).abs() < 1e-12, "the affordable tokens are the limit");
        // The reply of a call that is free or has a fixed cost need not be limited, even if no money is left.
        for free in [Quote::default(), Quote { read: 3.0, ..Quote::default() }] {
            assert_eq!(free.affordable(0.0), Ok(None));
        }
    }
}
