//! File handling: append-only JSON lines ([`Appender`], [`json_lines`]), files that appear completely or not at all
//! ([`WholeFile`], [`write_whole`], [`write_durably`], [`write_once`]), digests ([`PartsDigest`], [`hex`]), disk caches
//! ([`DiskCache`]), file names of bounded length ([`bounded`]), the current time ([`now`]), temporary folders that can
//! be cleaned up after a kill ([`Temporary`]), checks of folders ([`usable`]), texts in any usual encoding
//! ([`readable_text`]), the digest of this program (`executable_digest`), types stored as text (`stored_as_text`), and
//! TOML with all of its errors ([`from_toml`]), and the machine's memory (`reported_memory`).

mod clock;
mod decoded;
mod digest;
mod disk_cache;
mod executable;
mod failpoint;
mod lines;
mod memory;
mod name;
mod once;
mod temporary;
mod text;
mod toml;
pub mod usable;
mod whole;

pub use clock::now;
pub use decoded::{readable_text, without_utf16};
pub use digest::{PartsDigest, hex};
pub use disk_cache::DiskCache;
pub(crate) use executable::executable_digest;
pub(crate) use failpoint::write_all;
pub use lines::{Appender, JsonLine, json_lines};
pub(crate) use memory::{MEMORY_REPORT, reported_memory};
pub use name::{bounded, files_of_shards, may_be_bounded};
pub use once::write_once;
pub use temporary::{Temporary, sweep};
pub(crate) use text::stored_as_text;
pub use toml::{from_toml, line_naming, toml_string};
pub use whole::{WholeFile, write_durably, write_whole};
