//! The tools of SWE-agent (Yang et al., 2024): a file is shown through a movable window of lines and edited by line
//! range; edits that break the syntax are refused.

mod create;
mod edit;
mod find_file;
mod goto;
mod open;
mod scroll;
mod search_dir;
mod search_file;
pub(super) mod syntax;
#[cfg(test)]
mod tests;
mod window;

pub use create::Create;
pub use edit::SweEdit;
pub use find_file::FindFile;
pub use goto::Goto;
pub use open::OpenFile;
pub use scroll::Scroll;
pub use search_dir::SearchDir;
pub use search_file::SearchFile;
pub use window::Window;
