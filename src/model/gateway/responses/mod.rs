//! Reads and writes OpenAI's Responses API.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::{ResponseItems, body, error_events};
