//! How this program writes files: JSON lines that are only appended to ([`Appender`], [`json_lines`]), and files that
//! appear whole or not at all ([`WholeFile`], [`write_whole`], [`write_durably`], [`write_once`]). And how a digest is
//! made and written ([`Parts`], [`hex`]), values kept by their digest ([`Kept`]), names of files that fit ([`bounded`]), what
//! the time is ([`now`]), folders that a kill leaves behind ([`Temporary`]), whether a folder can be used at all
//! ([`usable`]), types stored as text (`stored_as_text`), and TOML with all of its faults ([`from_toml`]).

mod clock;
mod digest;
mod failpoint;
mod kept;
mod lines;
mod name;
mod once;
mod temporary;
mod text;
mod toml;
pub mod usable;
mod whole;

pub use clock::now;
pub use digest::{Parts, hex};
pub(crate) use failpoint::write_all;
pub use kept::Kept;
pub use lines::{Appender, JsonLine, json_lines};
pub use name::{bounded, may_be_bounded};
pub use once::write_once;
pub use temporary::{Temporary, sweep};
pub(crate) use text::stored_as_text;
pub use toml::{from_toml, line_naming};
pub use whole::{WholeFile, write_durably, write_whole};
