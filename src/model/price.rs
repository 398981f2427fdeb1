//! The cost of calls: from the list prices of `genai-prices`, or from the user's `--price`.
//!
//! An unknown price is reported as an error before anything is spent, because no call may be silently free.

use genai_prices::{Calculator, PriceRequest, UsageKey};

use super::Usage;
use super::quote::{LEAST_REPLY, Quote};
use crate::error::{Error, FailureKind, Result};

/// The unit of list prices, in tokens.
const MILLION: f64 = 1e6;

/// Minimum tokens for thinking. If the remaining money does not pay for them, the model is not called.
const LEAST_THOUGHTS: u32 = 1024;

/// How calls of one model are priced.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Price {
    /// The user's dollars per million tokens. If the user gives no cache prices, cached tokens cost as much as other
    /// tokens.
    Given {
        /// Price of tokens read.
        input: f64,
        /// Price of tokens written.
        output: f64,
        /// Price of tokens read from the cache.
        cached: f64,
        /// Price of tokens written to the cache.
        cache_written: f64,
    },
    /// The provider's current list price, including its cache prices.
    Listed {
        /// The provider's name in the price list.
        provider: &'static str,
        /// The model's name.
        model: String,
    },
}

impl Price {
    /// Creates the user's price: dollars per million tokens read and written, and for reading from and writing to the
    /// cache.
    ///
    /// # Errors
    /// Kind `Usage` if a price is negative or not a number.
    pub(super) fn given(input: f64, output: f64, cache: Option<(f64, f64)>) -> Result<Self> {
        let (cached, cache_written) = cache.unwrap_or((input, input));
        if [input, output, cached, cache_written].iter().all(|price| price.is_finite() && *price >= 0.0) {
            Ok(Self::Given { input, output, cached, cache_written })
        } else {
            Err(Error::usage(format!("`--price {input},{output},{cached},{cache_written}` is not a price"))
                .hint("give dollars per million tokens read and written, as in `--price 0.15,0.60`"))
        }
    }

    /// Looks up the list price of a provider's model.
    ///
    /// # Errors
    /// Kind `Model` if the list does not contain the model, or contains it with a price of 0.
    pub(super) fn listed(provider: &'static str, model: &str) -> Result<Self> {
        let price = Self::Listed { provider, model: model.to_owned() };
        let probe = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        let unknown = || {
            Error::new(FailureKind::Model, format!("the price of `{model}` is unknown"))
                .hint("check the model's name, or give dollars per million tokens read and written, as in `--price 0.15,0.60`")
        };
        match price.cost(&probe) {
            Ok(cost) if cost > 0.0 => Ok(price),
            Ok(_) => Err(unknown()),
            Err(error) => Err(unknown().because(error)),
        }
    }

    /// Returns the cost of these tokens in dollars.
    ///
    /// # Errors
    /// If the list has no price for them.
    pub(super) fn cost(&self, usage: &Usage) -> Result<f64, genai_prices::Error> {
        // Some providers report cached tokens that exceed all tokens read; cap them.
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        match self {
            Self::Given { input, output, cached: read, cache_written: write } => {
                let cost = (usage.input - cached - written) as f64 * input + cached as f64 * read;
                Ok((cost + written as f64 * write + usage.output as f64 * output) / MILLION)
            }
            Self::Listed { provider, model } => {
                let tokens = genai_prices::Usage::from([
                    (UsageKey::INPUT_TOKENS, usage.input as f64),
                    (UsageKey::CACHE_READ_TOKENS, cached as f64),
                    (UsageKey::CACHE_WRITE_TOKENS, written as f64),
                    (UsageKey::OUTPUT_TOKENS, usage.output as f64),
                ]);
                let request = PriceRequest::new(model, &tokens).with_provider_id(provider);
                Ok(Calculator::bundled().calculate(&request)?.total_price)
            }
        }
    }

    /// Estimates the cost of a call that reads `input` tokens, and whose reply may have `thoughts` tokens of thinking
    /// in addition to its requested maximum length.
    ///
    /// # Errors
    /// If the list cannot price these tokens.
    pub(super) fn quote(&self, input: u64, thoughts: u32) -> Result<Quote, genai_prices::Error> {
        let at = |cache_written, output| self.cost(&Usage { input, cache_written, output, ..Usage::default() });
        let read = at(0, 0)?;
        let token = (at(0, MILLION as u64)? - read) / MILLION;
        // The provider may charge more for tokens that it also writes to its cache; quote the higher price.
        Ok(Quote {
            read: read.max(at(input, 0)?),
            token,
            least: thoughts.min(LEAST_THOUGHTS).saturating_add(LEAST_REPLY),
            thoughts,
        })
    }

    /// Whether the user's prices are all zero.
    pub(super) fn is_free(&self) -> bool {
        match self {
            Self::Given { input, output, cached, cache_written } => {
                [input, output, cached, cache_written].into_iter().all(|dollars| *dollars == 0.0)
            }
            Self::Listed { .. } => false,
        }
    }
}
