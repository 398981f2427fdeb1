//! Control groups, version 1 or 2, through plain files. Each sandbox gets groups that limit its memory, its processes
//! and its CPU time, below the harness's own group, so that limits set from outside continue to apply. Without write
//! access, no control groups are used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use autoexperiment_init::processes;

use crate::files::{MEMORY_REPORT, reported_memory};
use crate::sandbox::{EvidenceKind, OutOfMemory, SandboxLimits};

const PREFIX: &str = "autoexperiment.";
/// Length in microseconds of the periods over which CPU time is limited; the kernel's own default.
const PERIOD: u64 = 100_000;

/// Folders in which the groups of sandboxes can be made, per controller.
#[derive(Debug, Clone, Default)]
pub(super) struct Parents {
    memory: Option<(PathBuf, CgroupVersion)>,
    processes: Option<(PathBuf, CgroupVersion)>,
    cpu: Option<(PathBuf, CgroupVersion)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    One,
    Two,
}

/// The groups of a sandbox, removed when dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    folders: Vec<PathBuf>,
    procs_files: Vec<PathBuf>,
    /// The group that limits memory.
    memory: Option<(PathBuf, CgroupVersion)>,
}

impl Cgroup {
    /// Returns an empty list of groups, with which nothing is limited.
    pub(super) fn none() -> Self {
        Self { folders: Vec::new(), procs_files: Vec::new(), memory: None }
    }
}

impl Parents {
    /// Finds out in which groups this process can make child groups, by making one and removing it again. Also kills
    /// the processes that dead harnesses left in their groups, and removes these groups.
    pub(super) fn find() -> Self {
        let parents = Self { memory: usable("memory"), processes: usable("pids"), cpu: usable("cpu") };
        // Begin with the groups that limit the number of processes: in them, forking can be forbidden before the
        // remaining processes are killed.
        for (parent, _) in parents.processes.iter().chain(&parents.memory).chain(&parents.cpu) {
            sweep(parent);
        }
        parents
    }

    pub(super) fn memory(&self) -> bool {
        self.memory.is_some()
    }

    pub(super) fn processes(&self) -> bool {
        self.processes.is_some()
    }

    pub(super) fn cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Describes which version of control groups limits memory, processes and CPU time.
    pub(super) fn describe(&self) -> String {
        let version = |parent: &Option<(PathBuf, CgroupVersion)>| match parent {
            None => "no",
            Some((_, CgroupVersion::One)) => "v1",
            Some((_, CgroupVersion::Two)) => "v2",
        };
        let (memory, processes, cpu) = (version(&self.memory), version(&self.processes), version(&self.cpu));
        format!("memory: {memory}, processes: {processes}, cpu: {cpu}")
    }

    /// Makes a sandbox's groups. The sandbox's init is in these groups, too, so the groups allow its `own` processes in
    /// addition to the limit on the commands' processes.
    pub(super) fn create(&self, limits: &SandboxLimits, own: u64) -> io::Result<Cgroup> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let harness = std::process::id();
        let begun = processes::started(harness as i32).unwrap_or(0);
        let (namespace, count) = (pid_namespace(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PREFIX}{harness}.{begun}.{namespace}.{count}");
        let mut group = Cgroup::none();
        if let Some((parent, version)) = &self.memory {
            let folder = group.add(parent, *version, &name)?;
            let file = if *version == CgroupVersion::One { "memory.limit_in_bytes" } else { "memory.max" };
            fs::write(folder.join(file), limits.memory.to_string())?;
            group.memory = Some((folder.clone(), *version));
            SANDBOXES.fetch_add(1, Ordering::Relaxed);
            // Limit swap as well, so that the memory limit cannot be evaded by swapping.
            let (file, most) = if *version == CgroupVersion::One {
                ("memory.memsw.limit_in_bytes", limits.memory)
            } else {
                ("memory.swap.max", 0)
            };
            let _ = fs::write(folder.join(file), most.to_string());
        }
        if let Some((parent, version)) = &self.processes {
            let folder = group.add(parent, *version, &name)?;
            fs::write(folder.join("pids.max"), (limits.processes + own).to_string())?;
        }
        if let Some(cpus) = limits.cpus {
            let Some((parent, version)) = &self.cpu else {
                return Err(io::Error::other("no writable cpu control group, which a limit of CPUs needs"));
            };
            let folder = group.add(parent, *version, &name)?;
            let quota = (cpus * PERIOD as f64).round() as u64;
            if *version == CgroupVersion::One {
                fs::write(folder.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())?;
            } else {
                fs::write(folder.join("cpu.max"), format!("{quota} {PERIOD}"))?;
            }
        }
        Ok(group)
    }
}

impl Cgroup {
    /// Kills every process in the groups. No process can leave them.
    pub(super) fn kill(&self) {
        kill_all(&self.folders);
    }

    /// The files through which the sandbox's init, which has a single thread, moves itself into the groups.
    ///
    /// If a process moves another process, or has several threads, the kernel waits until no process is forking, which
    /// takes 20 ms. A process with a single thread that moves itself is moved at once. Both versions of control groups
    /// allow this.
    pub(super) fn procs_files(&self) -> &[PathBuf] {
        &self.procs_files
    }

    /// Whether [`Self::oom_kill`] can show that the kernel killed a process for lack of memory. This needs a group that
    /// limits memory.
    pub(super) fn counts_oom_kills(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns which limit made the kernel kill a process of the group for lack of memory, according to the group's own
    /// counters. A group that has used its [fair share](fair_share) of an outer limit counts as having exceeded its own
    /// limit: otherwise, attempts could provoke kills so that their failures count as lost. Returns `None` if there was
    /// no such kill, or if there is no memory group: then the attempt itself may have used up the machine's memory, and
    /// nothing shows which limit was exceeded.
    pub(super) fn oom_kill(&self) -> Option<OutOfMemory> {
        let (folder, version) = self.memory.as_ref()?;
        let file = folder.join(if *version == CgroupVersion::One { "memory.oom_control" } else { "memory.events" });
        // The kernel counts a kill in the group of the killed process, even if the limit of an outer group was
        // exceeded.
        if event(&file, "oom_kill") == 0 {
            return None;
        }
        let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        let (most, limit) = match version {
            // The same limit is set for memory alone and for memory and swap together, so take the larger of the two
            // maxima.
            CgroupVersion::One => (
                number("memory.max_usage_in_bytes").max(number("memory.memsw.max_usage_in_bytes")),
                number("memory.limit_in_bytes"),
            ),
            CgroupVersion::Two => (number("memory.peak"), number("memory.max")),
        };
        let is_own = match version {
            // Version 1 does not count how often a group's own limit was exceeded, but records the group's maximum
            // memory. The kernel counts memory in batches, so the recorded maximum may be up to 4 MiB below the limit.
            CgroupVersion::One => most.unwrap_or(u64::MAX).saturating_add(4 << 20) >= limit.unwrap_or(0),
            CgroupVersion::Two => event(&file, "oom") > 0,
        };
        let of_machine = reported_memory(Path::new(MEMORY_REPORT), "MemTotal");
        let around = memory_limit_around().into_iter().chain(of_machine).min().unwrap_or(u64::MAX);
        if is_own || most.or(limit).unwrap_or(u64::MAX) >= fair_share(around, SANDBOXES.load(Ordering::Relaxed)) {
            return Some(OutOfMemory::Own);
        }
        let megabytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), |bytes| (bytes >> 20).to_string());
        Some(OutOfMemory::Outer(EvidenceKind::OuterMemoryLimit.because(format!(
            "the kernel killed a process for a memory limit outside the sandbox; the sandbox itself had used at most \
             {} of its {} MiB",
            megabytes(most),
            megabytes(limit)
        ))))
    }

    fn add(&mut self, parent: &Path, version: CgroupVersion, name: &str) -> io::Result<PathBuf> {
        let folder = parent.join(name);
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder)?;
            self.procs_files.push(folder.join(if version == CgroupVersion::One { "tasks" } else { "cgroup.procs" }));
            self.folders.push(folder.clone());
        }
        Ok(folder)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if self.memory.is_some() {
            SANDBOXES.fetch_sub(1, Ordering::Relaxed);
        }
        for _ in 0..50 {
            // A group cannot be removed while its last process is still exiting, so try several times.
            self.folders.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
            if self.folders.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // A process is still alive. Kill it, because no process may outlive its sandbox.
        kill_all(&self.folders);
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Time limit for killing a group's processes. Only a process that the kernel cannot end, for example in the middle of
/// a disk access, takes that long.
const LONGEST_KILL: Duration = Duration::from_mins(1);

/// Kills all processes of one sandbox's groups. Forking is forbidden first, because otherwise a chain of processes,
/// each of which starts the next one and exits, would always be ahead of the list read here.
fn kill_all(folders: &[PathBuf]) {
    let begun = Instant::now();
    for folder in folders {
        // Ignore errors, because groups that do not limit processes have no `pids.max`, and version 1 and old kernels
        // have no `cgroup.kill`.
        let _ = fs::write(folder.join("pids.max"), "0");
        let _ = fs::write(folder.join("cgroup.kill"), "1");
    }
    while begun.elapsed() < LONGEST_KILL {
        let lists = folders.iter().filter_map(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
        let pids: Vec<i32> = lists.flat_map(|list| list.lines().flat_map(str::parse).collect::<Vec<_>>()).collect();
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number after `name` in a file of names and numbers; 0 if the name is missing.
fn event(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok()).unwrap_or(0)
}

/// Number of this process's sandboxes with a memory group.
static SANDBOXES: AtomicU64 = AtomicU64::new(0);

/// Memory in bytes from which a sandbox itself is to blame if an outer limit of `around` bytes is exceeded: half of an
/// equal share.
fn fair_share(around: u64, sandboxes: u64) -> u64 {
    around / sandboxes.max(1) / 2
}

/// Returns the lowest memory limit, in bytes, of the groups around this process. Limits of sandboxes, whose groups are
/// below this process's group, apply in addition. Returns `None` if there is no limit, or if it cannot be found out.
pub(super) fn memory_limit_around() -> Option<u64> {
    let (folder, version) = own_group("memory")?;
    lowest_memory_limit(&folder, version)
}

fn lowest_memory_limit(folder: &Path, version: CgroupVersion) -> Option<u64> {
    // Version 1 reports about 2^63 bytes if there is no limit.
    const NO_LIMIT: u64 = 1 << 60;
    let limit = match version {
        CgroupVersion::One => Some(event(&folder.join("memory.stat"), "hierarchical_memory_limit")),
        CgroupVersion::Two => folder
            .ancestors()
            .filter_map(|folder| fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok())
            .min(),
    };
    limit.filter(|bytes| (1..NO_LIMIT).contains(bytes))
}

/// Returns the folder of this process's own group that has the controller.
fn own_group(controller: &str) -> Option<(PathBuf, CgroupVersion)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let of = |wanted: &str| {
        groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|one| one == wanted).then(|| PathBuf::from(path))
        })
    };
    let place = |group: &Path, kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let mut front = front.split(' ').skip(3);
            let (root, point) = (front.next()?, front.next()?);
            let mut back = back.split(' ');
            let fits = back.next()? == kind && (option.is_empty() || back.nth(1)?.split(',').any(|one| one == option));
            let below = group.strip_prefix(root).or_else(|_| group.strip_prefix("/")).ok()?;
            fits.then(|| Path::new(point).join(below))
        })
    };
    if let Some(folder) = of(controller).and_then(|group| place(&group, "cgroup", controller)) {
        return Some((folder, CgroupVersion::One));
    }
    Some((place(&of("")?, "cgroup2", "")?, CgroupVersion::Two))
}

/// Returns a folder in which groups with this controller can be made: that of this process's own group or, with version
/// 2, possibly that of its parent group. Returns `None` if groups can be made in neither.
fn usable(controller: &str) -> Option<(PathBuf, CgroupVersion)> {
    let (own, version) = own_group(controller)?;
    if version == CgroupVersion::One {
        return can_make(&own, controller, version).then_some((own, version));
    }
    // A version 2 group that contains processes cannot have child groups with limits. In that case, make the groups of
    // sandboxes next to this process's group, in its parent.
    let above = own.parent().map(Path::to_path_buf);
    [Some(own), above]
        .into_iter()
        .flatten()
        .find(|folder| {
            let _ = fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"));
            can_make(folder, controller, CgroupVersion::Two)
        })
        .map(|folder| (folder, CgroupVersion::Two))
}

/// The number of this process's pid namespace.
fn pid_namespace() -> String {
    let name = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    name.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

fn can_make(parent: &Path, controller: &str, version: CgroupVersion) -> bool {
    let trial = parent.join(format!("{PREFIX}trial.{}.{controller}", std::process::id()));
    let file = match (controller, version) {
        ("memory", CgroupVersion::One) => "memory.limit_in_bytes",
        ("memory", CgroupVersion::Two) => "memory.max",
        ("cpu", CgroupVersion::One) => "cpu.cfs_period_us",
        ("cpu", CgroupVersion::Two) => "cpu.max",
        _ => "pids.max",
    };
    let made = fs::create_dir(&trial).is_ok() && fs::write(trial.join(file), "1000000").is_ok();
    let _ = fs::remove_dir(&trial);
    made
}

/// Kills the remaining processes of harnesses that are gone, and removes their groups.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let own = pid_namespace();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((pid, begun, namespace)) = name.to_str().and_then(|name| {
            let mut parts = name.strip_prefix(PREFIX)?.split('.');
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.to_owned()))
        }) else {
            continue;
        };
        // This process cannot see whether a harness in another pid namespace is alive, so keep its groups.
        if processes::started(pid) != Some(begun) && namespace == own {
            kill_all(&[entry.path()]);
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        folder.to_owned()
    }

    #[test]
    fn a_kill_for_lack_of_memory_is_an_outer_limits_only_if_the_group_was_within_its_own() {
        let base = tempfile::tempdir().unwrap();
        let kill = |version, files: &[(&str, &str)]| {
            let folder = tempfile::tempdir_in(base.path()).unwrap().keep();
            let mut cgroup = Cgroup::none();
            cgroup.memory = Some((group(&folder, files), version));
            SANDBOXES.fetch_add(1, Ordering::Relaxed);
            cgroup.oom_kill()
        };
        let is_outer = |kill| matches!(kill, Some(OutOfMemory::Outer(_)));
        let one = |kills, most, and_swap| {
            kill(
                CgroupVersion::One,
                &[
                    ("memory.oom_control", kills),
                    ("memory.limit_in_bytes", "100000000\n"),
                    ("memory.max_usage_in_bytes", most),
                    ("memory.memsw.max_usage_in_bytes", and_swap),
                ],
            )
        };
        assert_eq!(one("under_oom 0\noom_kill 0\n", "100000000\n", "0\n"), None);
        assert!(is_outer(one("oom_kill 2\n", "50000000\n", "50000000\n")));
        // With four sandboxes and an outer limit of 800, an equal share is 200, and half of it is 100.
        assert_eq!((fair_share(800, 4), fair_share(800, 0)), (100, 400));
        assert_eq!(one("oom_kill 2\n", "100000000\n", "100000000\n"), Some(OutOfMemory::Own));
        // Part of the sandbox's memory was swapped out, but memory and swap together reached the limit.
        assert_eq!(one("oom_kill 2\n", "50000000\n", "99999999\n"), Some(OutOfMemory::Own));
        let two = |events| kill(CgroupVersion::Two, &[("memory.events", events), ("memory.max", "1000\n")]);
        assert_eq!(two("oom 0\noom_kill 0\n"), None);
        assert_eq!(two("oom 1\noom_kill 1\n"), Some(OutOfMemory::Own));
        assert!(is_outer(two("oom 0\noom_kill 1\n")));
    }

    #[test]
    fn the_lowest_memory_limit_of_the_groups_around_is_found() {
        let base = tempfile::tempdir().unwrap();
        let outer = group(&base.path().join("a"), &[("memory.max", "5000\n"), ("memory.stat", "cache 1\n")]);
        let inner = group(&outer.join("b"), &[("memory.max", "max\n")]);
        assert_eq!(lowest_memory_limit(&inner, CgroupVersion::Two), Some(5000));
        assert_eq!(lowest_memory_limit(&outer, CgroupVersion::One), None);
        let limited = |bytes: u64| {
            let stat = format!("cache 1\nhierarchical_memory_limit {bytes}\n");
            lowest_memory_limit(&group(&base.path().join("c"), &[("memory.stat", &stat)]), CgroupVersion::One)
        };
        assert_eq!((limited(7000), limited(0x7fff_ffff_ffff_f000)), (Some(7000), None));
    }
}
