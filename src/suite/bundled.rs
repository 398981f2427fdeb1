//! The suites inside the program: the bundled suite, unpacked once into the user's data folder, and the starter suite
//! of `autoexperiment init`. `build.rs` packs them.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use crate::error::{Error, FailureKind, Result};
use crate::files::{Temporary, hex, sweep};

/// Name prefix of folders in which a suite is being unpacked.
const UNPACKING: &str = ".unpacking-";

/// A suite as an archive inside the program.
#[derive(Debug, Clone, Copy)]
pub struct PackedSuite(&'static [u8]);

/// The bundled suite.
pub const BUNDLED: PackedSuite = PackedSuite(&SUITE);
/// A suite with one small paper, as the start of a user's own suite.
pub const STARTER: PackedSuite = PackedSuite(include_bytes!(concat!(env!("OUT_DIR"), "/starter.tar.gz")));

/// The archive of the bundled suite, in a separate linker section. The module `sandbox` recognises program files that
/// contain a suite by the name of this section, and hides them from agents.
#[allow(unsafe_code, reason = "the name of a section is the linker's business alone")]
#[unsafe(link_section = ".autoexperiment")]
static SUITE: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/suite.tar.gz")).len()] =
    *include_bytes!(concat!(env!("OUT_DIR"), "/suite.tar.gz"));

/// Returns the bundled suite's folder, unpacking it if needed. The folder is read-only, its name contains the archive's
/// digest, and its files are compared with the archive each time.
///
/// # Errors
/// Kind `Place` if no data folder is known or the suite cannot be unpacked; `Suite` if it has been changed; `Machine`
/// if it cannot be read.
pub fn bundled() -> Result<PathBuf> {
    BUNDLED.unpacked_in(&default_data()?.join("suites"))
}

/// Whether this is the folder of a bundled suite, from this version of the program or another.
#[must_use]
pub fn is_bundled(suite: &Path) -> bool {
    default_data().is_ok_and(|data| suite.starts_with(data.join("suites")))
}

/// Returns the folder for data that must not be lost with the cache: `AUTOEXPERIMENT_DATA`, or `autoexperiment` in the
/// user's data folder.
///
/// # Errors
/// Kind `Place` if none of the environment variables for it is set.
fn default_data() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = variable("AUTOEXPERIMENT_DATA")
        .or_else(|| variable("XDG_DATA_HOME").map(|data| data.join("autoexperiment")))
        .or_else(|| variable("HOME").map(|home| home.join(".local/share/autoexperiment")))
        .ok_or_else(|| {
            Error::new(FailureKind::Place, "no folder is known for the bundled suite")
                .hint("set `AUTOEXPERIMENT_DATA` to a folder, or set `HOME`")
        })?;
    std::path::absolute(&folder).map_err(|error| Error::io("resolve", &folder, error))
}

impl PackedSuite {
    /// Returns the archive's digest: SHA-256, 64 hex digits.
    #[must_use]
    pub fn digest(self) -> String {
        hex(&Sha256::digest(self.0))
    }

    /// Returns the folder in `place` with this archive's files, unpacking them if needed. The folder appears complete
    /// or not at all: a killed process leaves a temporary folder that the next one removes, and if two processes unpack
    /// at the same time, one uses the other's folder.
    ///
    /// # Errors
    /// Returns the errors of [`bundled`].
    pub fn unpacked_in(self, place: &Path) -> Result<PathBuf> {
        let folder = place.join(format!("{}-{}", env!("CARGO_PKG_VERSION"), &self.digest()[..16]));
        if !folder.is_dir() {
            self.place(place, &folder).map_err(|error| {
                let failed = Error::io("unpack the bundled suite to", &folder, error);
                Error { kind: FailureKind::Place, ..failed }.hint(
                    "set `AUTOEXPERIMENT_DATA` to a folder that can be written to, or name another suite with `--suite DIR`",
                )
            })?;
        }
        if let Some(what) = self.difference(&folder).map_err(|error| Error::io("read", &folder, error))? {
            return Err(Error::suite(format!("the bundled suite has been changed: {what}")).at(folder, None).hint(
                "remove the folder, and it is unpacked again; to change papers, make a copy with `autoexperiment init \
                 --bundled DIR`",
            ));
        }
        Ok(folder)
    }

    /// Unpacks into a temporary folder and renames it to `folder`.
    fn place(self, place: &Path, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(place)?;
        sweep(place, UNPACKING);
        let temporary = Temporary::create(place, UNPACKING, 0o755)?;
        let inside = temporary.path().join("suite");
        self.unpack(&inside)?;
        seal(&inside)?;
        match fs::rename(&inside, folder) {
            // Another process has unpacked the same files in the meantime.
            Err(_) if folder.is_dir() => unseal(&inside),
            renamed => renamed.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o555))),
        }
    }

    /// Writes the archive's files to this folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn unpack(self, folder: &Path) -> io::Result<()> {
        for entry in tar::Archive::new(GzDecoder::new(self.0)).entries()? {
            let mut entry = entry?;
            let path = folder.join(entry.path()?);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            io::copy(&mut entry, &mut File::create(&path)?)?;
        }
        Ok(())
    }

    /// Returns the first difference between the folder and the archive, if any, as a part of a sentence.
    fn difference(self, folder: &Path) -> io::Result<Option<String>> {
        let (mut packed, mut there) = (0, 0);
        for entry in tar::Archive::new(GzDecoder::new(self.0)).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            match fs::read(folder.join(&path)) {
                Ok(now) if now == bytes => packed += 1,
                Ok(_) => return Ok(Some(format!("`{}` differs from the archive", path.display()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Some(format!("`{}` is missing", path.display())));
                }
                Err(error) => return Err(error),
            }
        }
        for entry in walkdir::WalkDir::new(folder) {
            there += usize::from(!entry?.file_type().is_dir());
        }
        Ok((there != packed).then(|| format!("it holds {there} files instead of {packed}")))
    }
}

/// Makes everything in a folder read-only, except the folder itself, which is about to be renamed.
fn seal(folder: &Path) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(folder).min_depth(1).contents_first(true) {
        let entry = entry?;
        let mode = if entry.file_type().is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Makes folders writable again, so that they can be removed.
fn unseal(folder: &Path) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_unpacked_once_read_only_and_a_change_of_it_is_found() {
        let place = tempfile::tempdir().unwrap();
        let folder = STARTER.unpacked_in(place.path()).unwrap();
        assert!(folder.join("papers/example/paper.toml").is_file());
        assert_eq!(fs::metadata(folder.join("papers")).unwrap().permissions().mode() & 0o777, 0o555);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert_eq!(STARTER.unpacked_in(place.path()).unwrap(), folder);

        unseal(&folder).unwrap();
        fs::write(folder.join("papers/more"), "x").unwrap();
        let error = STARTER.unpacked_in(place.path()).unwrap_err();
        assert!(error.message.contains("it holds"), "{error}");
        fs::remove_file(folder.join("papers/more")).unwrap();
        let text = folder.join("papers/example/paper.md");
        fs::set_permissions(&text, Permissions::from_mode(0o644)).unwrap();
        fs::write(&text, "x").unwrap();
        let error = STARTER.unpacked_in(place.path()).unwrap_err();
        assert!(error.message.contains("`papers/example/paper.md` differs from the archive"), "{error}");
        fs::remove_file(&text).unwrap();
        assert!(STARTER.unpacked_in(place.path()).unwrap_err().message.contains("is missing"));
        assert!(error.hint.unwrap().contains("init --bundled"));
    }

    #[test]
    fn threads_that_unpack_at_once_get_the_same_complete_folder_and_leftovers_of_a_killed_process_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let dead = place.path().join(".unpacking-dead/suite");
        fs::create_dir_all(&dead).unwrap();
        STARTER.unpack(&dead).unwrap();
        seal(&dead).unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
        File::open(place.path().join(".unpacking-dead")).unwrap().set_modified(old).unwrap();
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| STARTER.unpacked_in(place.path()).unwrap())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(folders.iter().all(|folder| *folder == folders[0]));
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [folders[0].clone()]);
        unseal(&folders[0]).unwrap();
    }
}
