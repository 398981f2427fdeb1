//! Containers that an engine forgets. A daemon that is killed while it starts one does not know, when it comes back, how
//! far it had come: the container's supervisor (containerd's shim, podman's conmon) lives on, what it holds ready to run
//! as well, and their control groups stay. Nobody else will end them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::sandbox::processes;

/// Supervisors' programs, and the option that says which container is theirs.
const SUPERVISORS: [(&str, &[u8]); 2] = [("containerd-shim", b"-id"), ("conmon", b"-c")];
/// What a supervisor that is on its way out may still need.
const MOMENT: Duration = Duration::from_secs(2);
/// How deep control groups of containers lie.
const DEPTH: usize = 6;

/// Ends the supervisor of one of this program's containers that the engine has forgotten, and all that it holds.
/// Does nothing if there is none, or if the engine is on another machine or belongs to another user.
pub(super) async fn end(id: &str) {
    if supervisors(id).is_empty() {
        return;
    }
    tokio::time::sleep(MOMENT).await;
    let left = supervisors(id);
    for &pid in &left {
        processes::kill_all(|| processes::descendants(pid, &BTreeSet::new()));
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    if !left.is_empty() {
        tokio::time::sleep(MOMENT / 4).await;
        remove_groups(Path::new("/sys/fs/cgroup"), id);
    }
}

/// Removes the empty control groups that bear the container's name.
fn remove_groups(root: &Path, id: &str) {
    let is_its = |entry: &walkdir::DirEntry| entry.file_name().to_string_lossy().contains(id);
    let walk = walkdir::WalkDir::new(root).max_depth(DEPTH).contents_first(true).into_iter().flatten();
    for entry in walk.filter(|entry| entry.file_type().is_dir() && is_its(entry)) {
        // A group that is not empty stays.
        let _ = std::fs::remove_dir(entry.path());
    }
}

/// Supervisors of the container with this id.
fn supervisors(id: &str) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_supervisor(&line, id)))
        .collect()
}

/// Whether a command line, its words ended by zeros, is that of the container's supervisor.
fn is_supervisor(line: &[u8], id: &str) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let program = words.first().and_then(|word| std::str::from_utf8(word).ok()).map(Path::new);
    let name = program.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    SUPERVISORS.iter().any(|(program, option)| {
        name.starts_with(program) && words.array_windows().any(|[one, next]| one == option && *next == id.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_supervisor_of_that_very_container_is_taken_for_it() {
        let line = b"/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0abc\0-address\0/run/x.sock\0";
        assert!(is_supervisor(line, "abc"));
        assert!(!is_supervisor(line, "abcd") && !is_supervisor(line, "moby"));
        assert!(is_supervisor(b"/usr/bin/conmon\0--api-version\x001\0-c\0abc\0-u\0abc\0", "abc"));
        assert!(!is_supervisor(b"/bin/grep\0containerd-shim\0-id\0abc\0", "abc"));
        assert!(!is_supervisor(b"", "abc"));
    }

    #[test]
    fn groups_of_other_containers_and_those_that_are_not_empty_stay() {
        let place = tempfile::tempdir().unwrap();
        for name in ["cpu/docker/abc", "cpu/docker/def", "cpu/libpod-abc", "pids/abc/inner"] {
            std::fs::create_dir_all(place.path().join(name)).unwrap();
        }
        remove_groups(place.path(), "abc");
        let is_there = |name: &str| place.path().join(name).exists();
        assert!(!is_there("cpu/docker/abc") && !is_there("cpu/libpod-abc"));
        assert!(is_there("cpu/docker/def") && is_there("pids/abc/inner"));
    }
}
