//! The init: the program that runs as the first process of every sandbox. Its executable is embedded in the harness's
//! own executable, and is started from a file in memory that cannot be changed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::files::Temporary;

/// Prefix of the sandboxes' temporary folders. A harness that is killed leaves its folders behind, and the next harness
/// removes them.
pub(super) const PREFIX: &str = "autoexperiment-sandbox-";

/// The init's executable file, built by `build.rs`.
pub(super) static BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sandbox-init"));

/// Location of the init's file, valid while this process lives.
enum InitFile {
    Memory(File),
    Disk(Temporary),
}

impl InitFile {
    fn path(&self) -> PathBuf {
        match self {
            // Use the process id instead of `self`, because other processes are given this path, too.
            Self::Memory(file) => format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
            Self::Disk(folder) => folder.path().join("autoexperiment-init"),
        }
    }
}

/// Returns the init's path, for processes of this user.
///
/// # Errors
/// Returns an error if programs can be started neither from memory nor from the folder for temporary files.
pub(super) fn path() -> io::Result<PathBuf> {
    static PROGRAM: Mutex<Option<InitFile>> = Mutex::new(None);
    let mut program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
    if program.is_none() {
        *program = Some(in_memory().or_else(|_| on_disk())?);
    }
    program.as_ref().map(InitFile::path).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn in_memory() -> io::Result<InitFile> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 lack the flag that makes a file in memory executable; on them, such files are always
    // executable.
    let file: OwnedFd =
        memfd_create("autoexperiment", flags | MemfdFlags::EXEC).or_else(|_| memfd_create("autoexperiment", flags))?;
    let mut file = File::from(file);
    file.write_all(BYTES)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    tried(InitFile::Memory(file))
}

fn on_disk() -> io::Result<InitFile> {
    let folder = Temporary::create(&std::env::temp_dir(), PREFIX, 0o755)?;
    let path = folder.path().join("autoexperiment-init");
    std::fs::write(&path, BYTES)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    tried(InitFile::Disk(folder))
}

/// Checks that the program starts: without input it exits at once, with success.
fn tried(program: InitFile) -> io::Result<InitFile> {
    let status =
        Command::new(program.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(program) } else { Err(io::Error::other(format!("its trial run ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_program_of_sandboxes_is_immutable_in_memory_and_can_be_stored_on_disk() {
        let memory = in_memory().unwrap();
        assert!(File::options().write(true).open(memory.path()).and_then(|mut file| file.write_all(b"x")).is_err());
        assert_eq!(std::fs::read(memory.path()).unwrap(), BYTES);
        on_disk().unwrap();
    }

    #[test]
    fn the_executable_of_the_sandboxes_init_is_small_and_contains_no_part_of_a_suite() {
        assert!(BYTES.starts_with(b"\x7fELF"));
        assert!(BYTES.len() < 3 << 20, "{} bytes", BYTES.len());
        let holds = |text: &str| BYTES.windows(text.len()).any(|window| window == text.as_bytes());
        for text in ["gold.json", "paper.toml", "kmeanspp", "rattler", "genai", "tokio"] {
            assert!(!holds(text), "{text}");
        }
        // The suites in the harness's executable are gzip archives. Without a gzip header, the init cannot contain
        // them.
        assert!(!BYTES.windows(4).any(|window| window == [0x1f, 0x8b, 8, 0]), "an archive");
    }
}
