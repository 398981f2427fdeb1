//! The kernel's report of the machine's memory.

use std::path::Path;

/// The report on Linux.
pub const MEMORY_REPORT: &str = "/proc/meminfo";

/// Returns an entry of the report, such as `MemAvailable`, in bytes; `None` if it is missing.
pub fn reported_memory(report: &Path, entry: &str) -> Option<u64> {
    let text = std::fs::read_to_string(report).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(entry)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_kernels_report() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("meminfo");
        std::fs::write(&file, "MemTotal:       24679000 kB\nMemAvailable:    2048 kB\n").unwrap();
        assert_eq!(reported_memory(&file, "MemAvailable"), Some(2 << 20));
        std::fs::write(&file, "MemTotal:       24679000 kB\n").unwrap();
        assert_eq!(reported_memory(&file, "MemAvailable"), None);
    }
}
