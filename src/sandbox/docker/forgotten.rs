//! Containers that an engine forgets. A Docker daemon that is killed while it starts one knows nothing of it when it comes
//! back, but containerd's supervisor of it lives on, and with it its control group. Nobody else will end them.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The supervisor's program.
const SUPERVISOR: &str = "containerd-shim";
/// What a supervisor that is on its way out may still need.
const MOMENT: Duration = Duration::from_secs(2);

/// Ends the supervisor of a container of this process's own which the engine says is no more. Containerd cleans up
/// behind it. Does nothing where the engine is on another machine, or belongs to somebody else.
pub(super) async fn end(id: &str) {
    if supervisors(id).is_empty() {
        return;
    }
    tokio::time::sleep(MOMENT).await;
    for pid in supervisors(id) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// Supervisors of the container with this id, which no other container has.
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
    name.starts_with(SUPERVISOR)
        && words.array_windows().any(|[option, value]| *option == b"-id" && *value == id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_supervisor_of_that_very_container_is_taken_for_it() {
        let line = b"/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0abc\0-address\0/run/x.sock\0";
        assert!(is_supervisor(line, "abc"));
        assert!(!is_supervisor(line, "abcd") && !is_supervisor(line, "moby"));
        assert!(!is_supervisor(b"/bin/grep\0containerd-shim\0-id\0abc\0", "abc"));
        assert!(!is_supervisor(b"", "abc"));
    }
}
