//! Finds the shared libraries that a program of the host needs. For an interpreter, this includes the libraries of its
//! modules.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of files per call of `ldd`.
const AT_ONCE: usize = 50;

/// Returns the full paths of the libraries of these programs, as the host's loader finds them, and of the loader
/// itself. Empty for static programs, and if there is no `ldd`.
pub(super) fn find_libraries(programs: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for some in programs.chunks(AT_ONCE) {
        let said = Command::new("ldd").args(some).env("LC_ALL", "C").stdin(Stdio::null()).output();
        let Ok(said) = said else { break };
        found.extend(said.stdout.split(|byte| *byte == b'\n').filter_map(library));
    }
    found
}

/// Parses a line of ldd: `name => /path (0x...)` or `/path (0x...)`.
fn library(line: &[u8]) -> Option<PathBuf> {
    let line = line.trim_ascii();
    let end = line.windows(4).rposition(|four| four == b" (0x")?;
    let line = &line[..end];
    let start = line.windows(4).position(|four| four == b" => ").map_or(0, |place| place + 4);
    Some(PathBuf::from(OsStr::from_bytes(&line[start..]))).filter(|path| path.is_absolute())
}

/// Returns the programs and modules of an interpreter below `folder`: the ELF files in `bin` and `lib-dynload`.
pub(super) fn programs(folder: &Path) -> Vec<PathBuf> {
    let is_place = |path: &Path| {
        path.parent().and_then(Path::file_name).is_some_and(|name| name == "bin" || name == "lib-dynload")
    };
    let walk = walkdir::WalkDir::new(folder).max_depth(4).into_iter().flatten();
    walk.map(walkdir::DirEntry::into_path).filter(|path| (is_place(path) || path == folder) && is_elf(path)).collect()
}

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_lines_of_ldd() {
        let read = |line: &str| library(line.as_bytes()).map(|path| path.display().to_string());
        assert_eq!(read("\tlibm.so.6 => /lib/libm.so.6 (0x00007f)").as_deref(), Some("/lib/libm.so.6"));
        assert_eq!(read("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)").as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(read("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(read("\tlibx.so => not found"), None);
        assert_eq!(read("\tstatically linked"), None);
    }

    #[test]
    fn this_program_s_own_libraries_are_found() {
        let own = std::env::current_exe().unwrap();
        assert!(programs(&own).contains(&own));
        let found = find_libraries(&[own]);
        assert!(found.iter().all(|path| path.is_file()), "{found:?}");
    }
}
