//! OpenAI's responses, read and written.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::{Items, body, error_events};
