//! Ends containers that an engine has forgotten. If a daemon is killed while it starts a container, the daemon does not
//! know the container after a restart: the container's supervisor (containerd's shim, podman's conmon), its processes
//! and their control groups remain, and nothing else ends them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use autoexperiment_init::processes::{self, Identity};

/// The supervisors' programs, each with the option that precedes the container's id.
const SUPERVISORS: [(&str, &[u8]); 2] = [("containerd-shim", b"-id"), ("conmon", b"-c")];
/// Time to wait for a supervisor that is already exiting.
const MOMENT: Duration = Duration::from_secs(2);
/// Maximum depth at which the control groups of containers are nested.
const DEPTH: usize = 6;

/// Ends the remains of one of this program's containers that the engine has forgotten: its supervisor, the supervisor's
/// descendants, and processes in the container's control groups even if the supervisor has ended. Does nothing if
/// nothing remains, or if the engine is on another machine or belongs to another user.
pub(super) async fn end(id: &str) {
    if remains(id).is_empty() {
        return;
    }
    tokio::time::sleep(MOMENT).await;
    if !remains(id).is_empty() {
        processes::kill_all(|| remains(id));
        tokio::time::sleep(MOMENT / 4).await;
        remove_groups(Path::new("/sys/fs/cgroup"), id);
    }
}

/// Finds living processes of the container with this id: its supervisors, their descendants, and the members of its
/// control groups.
fn remains(id: &str) -> BTreeSet<Identity> {
    let mut found = BTreeSet::new();
    for (pid, process) in processes::table() {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let is_supervisor = is_supervisor(&read("cmdline"), id);
        if !process.zombie && (is_supervisor || is_member(&read("cgroup"), id)) {
            found.insert(process.identity);
        }
        if is_supervisor {
            found.extend(processes::descendants(pid, &BTreeSet::new()));
        }
    }
    found
}

/// Whether `groups`, a process's `/proc/PID/cgroup`, names a group of the container. This also works from inside a
/// cgroup namespace, where groups outside are shown by relative paths that still contain their names.
fn is_member(groups: &[u8], id: &str) -> bool {
    let is_its = |line: &[u8]| line.windows(id.len()).any(|part| part == id.as_bytes());
    !id.is_empty() && groups.split(|byte| *byte == b'\n').any(is_its)
}

/// Removes the empty control groups whose names contain the container's id.
fn remove_groups(root: &Path, id: &str) {
    let is_its = |entry: &walkdir::DirEntry| entry.file_name().to_string_lossy().contains(id);
    let walk = walkdir::WalkDir::new(root).max_depth(DEPTH).contents_first(true).into_iter().flatten();
    for entry in walk.filter(|entry| entry.file_type().is_dir() && is_its(entry)) {
        // Removing a group that is not empty fails, and the group stays.
        let _ = std::fs::remove_dir(entry.path());
    }
}

/// Whether `line` is the command line of the container's supervisor. Each word of `line` ends with a zero byte.
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
    fn a_process_is_a_containers_supervisor_only_if_its_program_and_its_container_id_fit() {
        let line = b"/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0abc\0-address\0/run/x.sock\0";
        assert!(is_supervisor(line, "abc"));
        assert!(!is_supervisor(line, "abcd") && !is_supervisor(line, "moby"));
        assert!(is_supervisor(b"/usr/bin/conmon\0--api-version\x001\0-c\0abc\0-u\0abc\0", "abc"));
        assert!(!is_supervisor(b"/bin/grep\0containerd-shim\0-id\0abc\0", "abc"));
        assert!(!is_supervisor(b"", "abc"));
    }

    #[test]
    fn processes_in_the_control_groups_of_a_container_belong_to_the_container() {
        let groups = b"9:pids:/libpod_parent/libpod-abc\n0::/libpod_parent/libpod-abc\n";
        assert!(is_member(groups, "abc"));
        assert!(!is_member(groups, "abd") && !is_member(groups, "") && !is_member(b"", "abc"));
    }

    /// Imitates what remains if podman is killed while it starts a container: a process without a supervisor in the
    /// container's control group.
    #[tokio::test]
    async fn a_process_without_a_supervisor_is_ended_with_its_group() {
        let Some(place) = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|place| {
            place.join("cgroup.procs").exists() && std::fs::create_dir(place.join("autoexperiment-probe")).is_ok()
        }) else {
            eprintln!("skipped: this user may make no control group");
            return;
        };
        std::fs::remove_dir(place.join("autoexperiment-probe")).unwrap();
        let id = format!("{:064x}", u64::from(std::process::id()) << 32 | 0xab);
        let group = place.join(format!("libpod-{id}"));
        std::fs::create_dir(&group).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        std::fs::write(group.join("cgroup.procs"), child.id().to_string()).unwrap();
        // The test started the process, so the test must reap it.
        let ended = std::thread::spawn(move || child.wait().unwrap());
        end(&id).await;
        assert!(!ended.join().unwrap().success());
        assert!(!group.exists(), "its group is left");
        end(&id).await;
    }

    #[test]
    fn only_empty_control_groups_of_the_given_container_are_removed() {
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
