//! `autoexperiment init`: writes a new suite.

use std::path::{Path, PathBuf};

use super::shared::described;
use crate::error::{Error, Result};
use crate::files::Temporary;
use crate::suite::{BUNDLED, STARTER};

/// Write a suite of your own
///
/// Writes the folders of a suite with one small example paper that needs nothing but Python, and a README that says how
/// to continue. With `--bundled`, writes a copy of the bundled suite instead.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment init mysuite\n  autoexperiment init --bundled all\n  cd mysuite && autoexperiment check"
)]
pub struct Arguments {
    /// Folder to write to, which may exist [default: this folder].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Copy the bundled suite.
    #[arg(long)]
    bundled: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.as_deref().unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error))?;
    if folder.exists() && !folder.is_dir() {
        return Err(Error::usage(format!("`{}` is not a folder", folder.display()))
            .hint("name a new folder, as in `autoexperiment init mysuite`"));
    }
    let (suite, what, paper) = if arguments.bundled {
        (BUNDLED, "a copy of the bundled suite", "kmeanspp")
    } else {
        (STARTER, "a suite with the paper `example`", "example")
    };
    let failed = |error| Error::io("write to", &folder, error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // Unpack into a temporary folder, then move the parts to their places.
    let temporary = Temporary::create(&folder, ".init-", 0o755).map_err(failed)?;
    suite.unpack(temporary.path()).map_err(failed)?;
    let parts = std::fs::read_dir(temporary.path()).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(failed)?;
    for part in &parts {
        let place = folder.join(part.file_name());
        if place.symlink_metadata().is_ok() {
            return Err(Error::usage(format!("`{}` exists", place.display()))
                .hint("name a new folder, as in `autoexperiment init mysuite`"));
        }
    }
    for part in &parts {
        std::fs::rename(part.path(), folder.join(part.file_name())).map_err(failed)?;
    }
    talk!("wrote {what} to {}", described(&folder));
    talk!("next, in this folder:");
    talk!("  autoexperiment check");
    talk!("  autoexperiment run -p {paper} -n 1 --limit 2 --agent gold --agent noop");
    Ok(())
}
