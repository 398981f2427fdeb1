//! Runs the cases for each backend, as root and as an ordinary user, and prints the results.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Backend, ConfinementMode, ContainerBackend, EngineKind, LocalBackend, MachineReport};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::fixture::{Case, Fixture};
use super::{
    confinement, exclusion, files, harness, hoards, kernel, leftovers, listener, probes, processes, resources, search,
    terminals, visibility,
};

const ENOUGH: Duration = Duration::from_mins(5);
/// Maximum number of cases that run at once; most cases spend most of their time waiting for a time limit.
const AT_ONCE: usize = 3;
/// Environment variable that is set for the copy of this program that runs as an ordinary user.
const ORDINARY: &str = "CONFORMANCE_EXE";
const ORDINARY_USER: u32 = 65534;
/// Environment variable that is set on machines that cannot mount overlays.
const WITHOUT_OVERLAY: &str = "AUTOEXPERIMENT_WITHOUT_OVERLAY";

fn all() -> impl Iterator<Item = &'static Case> {
    let tables = [
        confinement::CASES,
        exclusion::CASES,
        files::CASES,
        hoards::CASES,
        kernel::CASES,
        leftovers::CASES,
        listener::CASES,
        probes::CASES,
        processes::CASES,
        resources::CASES,
        search::CASES,
        terminals::CASES,
        visibility::CASES,
    ];
    tables.into_iter().flatten()
}

/// Returns why a backend cannot meet a case, and what the case's error then contains. Other errors are failures.
fn weaker(backend: &str, case: &str) -> Option<(&'static str, &'static str)> {
    Some(match (backend, case) {
        ("landlock", "shared_memory_is_private_to_a_sandbox_and_usable") => {
            ("/dev/shm is refused, because it cannot be private", "not usable")
        }
        ("landlock", "the_host_s_processes_are_invisible") => {
            ("there is no pid namespace", "its existence can be seen")
        }
        ("landlock", "a_sandbox_cannot_see_another_s_processes") => (
            "each command is a landlock domain of its own, so even its own earlier processes are out of reach",
            "it was killed",
        ),
        ("landlock", "a_loopback_of_its_own_works") => {
            ("all sockets are refused, for want of a network namespace", "Operation not permitted")
        }
        ("landlock", "the_host_s_files_do_not_even_exist") => {
            ("landlock hides contents and listings, not existence", "there")
        }
        ("landlock", "the_user_inside_has_a_name_and_a_writable_home") => {
            ("the user's number is one of the host's", "named")
        }
        ("landlock", "writing_where_a_command_may_not_is_refused") => {
            ("permissions that could lock files outside are not set", "a closed folder")
        }
        ("landlock", "an_interpreter_that_lives_in_a_home_works") => (
            "the permissions of the host's own folders hold, and a home may be closed",
            "is closed to the sandbox's user",
        ),
        ("landlock", "a_process_may_set_its_own_limits_by_its_number") => {
            ("a filter cannot tell its own number from another's, and no pid namespace hides the others", "refused")
        }
        ("landlock", "memory_in_sockets_under_way_is_limited") => (
            "without a network namespace and a memory cgroup, sockets in messages that nobody has read cannot be seen",
            "passed: Code(0) refused at",
        ),
        (
            "landlock",
            "a_program_gets_a_terminal_and_can_make_it_the_one_that_controls_its_session"
            | "a_session_with_its_own_terminal_ends_with_its_command_s_time_limit"
            | "requests_that_reach_beyond_a_terminal_are_refused",
        ) => ("the host's terminals are not shown, and without namespaces there are no others", "no terminal"),
        _ => return None,
    })
}

/// Finds the processes on the host with the marker in their environment or arguments.
pub fn survivors(marker: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() || name == own {
            continue;
        }
        let file = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        if holds(&file("environ")) || holds(&file("cmdline")) {
            found.push(format!("{name} {}", String::from_utf8_lossy(&file("cmdline")).replace('\0', " ")));
        }
    }
    found
}

/// Finds survivors, waiting up to two seconds for dying processes to end.
pub fn survivors_after_a_moment(marker: &str) -> Vec<String> {
    for _ in 0..100 {
        if survivors(marker).is_empty() {
            return Vec::new();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    survivors(marker)
}

async fn run_case(backend: &dyn Backend, case: &Case, exe: &Path) -> Result<(), String> {
    let marker = format!("marker-{}-{}-{}", backend.name(), std::process::id(), case.name);
    let mut fixture = Fixture::new(backend, marker.clone(), exe.to_path_buf());
    let enough = if exclusion::is_whole() { 12 * ENOUGH } else { ENOUGH };
    let result = match tokio::time::timeout(enough, (case.body)(&mut fixture)).await {
        Ok(result) => result,
        Err(_) => Err("took too long".into()),
    };
    let left = tokio::task::block_in_place(|| survivors_after_a_moment(&marker));
    result?;
    if left.is_empty() { Ok(()) } else { Err(format!("survivors: {left:?}")) }
}

async fn run_backend(backend: Arc<dyn Backend>, label: &str, words: &[&str], exe: &Path) -> Vec<String> {
    let begun = Instant::now();
    let (mut passed, mut failures, mut weak) = (0, Vec::new(), 0);
    // Without a cgroup and without a user namespace, all sandboxes share one limit of processes. They would disturb
    // each other, so only one case runs at a time.
    let share = backend.warnings().iter().any(|warning| warning.contains("share one limit"));
    let places = Arc::new(Semaphore::new(if share { 1 } else { AT_ONCE }));
    let mut tasks = JoinSet::new();
    for case in all().filter(|case| words.iter().all(|word| case.name.contains(word))) {
        let (backend, exe, places) = (backend.clone(), exe.to_path_buf(), places.clone());
        tasks.spawn(async move {
            let _place = places.acquire_owned().await;
            let begun = Instant::now();
            (case.name, run_case(&*backend, case, &exe).await, begun.elapsed())
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (name, result, took) = done.unwrap();
        match (result, weaker(backend.name(), name)) {
            (Ok(()), reason) => {
                passed += 1;
                if took > Duration::from_secs(4) {
                    println!("  slow: {label}: {name} took {took:?}");
                }
                if reason.is_some() {
                    println!("  stronger than expected: {label}: {name}");
                }
            }
            (Err(error), Some((reason, expected))) if error.contains(expected) => {
                weak += 1;
                println!("  weaker: {label}: {name}: {reason}");
            }
            (Err(error), known) => {
                let expected = known.map(|(_, expected)| format!(", which is known for `{expected}` alone"));
                println!("  FAILED: {label}: {name}: {error}{}", expected.unwrap_or_default());
                failures.push(format!("{label}: {name}"));
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{label}: {passed} passed, {weak} weaker, {} failed in {seconds:.1} s", failures.len());
    failures
}

/// Runs all cases whose name contains all words.
pub fn run(words: &[&str]) -> ExitCode {
    let (kinds, words): (Vec<&str>, Vec<&str>) = words
        .iter()
        .copied()
        .filter(|word| !word.starts_with('-'))
        .partition(|word| ["local", "docker", "podman"].contains(word));
    let is_wanted = |kind: &str| kinds.is_empty() || kinds.contains(&kind);
    let names: BTreeSet<_> = all().map(|case| case.name).collect();
    assert_eq!(names.len(), all().count(), "two cases of one name");
    let own = std::env::current_exe().unwrap();
    let who = if nix::unistd::getuid().is_root() { "root" } else { "ordinary user" };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut working, mut engines) = (Vec::new(), Vec::new());
    let mut failures = runtime.block_on(async {
        let report = MachineReport::collect().await;
        let mut failures = Vec::new();
        let modes = [
            (ConfinementMode::Overlay, "overlay", &report.overlay),
            (ConfinementMode::Namespaces, "namespaces", &report.namespaces),
            (ConfinementMode::Landlock, "landlock", &report.landlock),
        ];
        for (mode, name, works) in modes.into_iter().filter(|_| is_wanted("local")) {
            if works.is_ok() {
                working.push(mode);
            }
            if mode == ConfinementMode::Namespaces && report.overlay.is_ok() && words.is_empty() {
                continue; // like `Overlay`, except that the workspace is a copy
            }
            let label = format!("{name} as {who}");
            match works {
                Ok(()) => {
                    let backend = Arc::new(LocalBackend::with_mode(mode));
                    failures.extend(run_backend(backend, &label, &words, &own).await);
                }
                // A machine that cannot mount overlays fails this test, unless the variable [`WITHOUT_OVERLAY`] is set.
                Err(reason) if mode == ConfinementMode::Overlay && std::env::var_os(WITHOUT_OVERLAY).is_some() => {
                    println!("{label}: ignored, {WITHOUT_OVERLAY} is set: {reason}");
                }
                Err(reason) => {
                    println!("  FAILED: {label}: {reason}");
                    failures.push(label);
                }
            }
        }
        if std::env::var_os(ORDINARY).is_none() {
            for engine_kind in [EngineKind::Docker, EngineKind::Podman].into_iter().filter(|one| is_wanted(one.name()))
            {
                match ContainerBackend::open(engine_kind, None).await {
                    Ok(backend) => {
                        // Building the first image may take minutes, which must not count towards the time limit of a
                        // case.
                        let begun = Instant::now();
                        let mut folders = vec![own.clone()];
                        let mut built = backend.build(&folders, &[], None).await;
                        if let (Ok(_), Some((prefix, _))) = (&built, visibility::interpreter()) {
                            folders.push(prefix);
                            built = backend.build(&folders, &[], None).await;
                        }
                        if let Err(error) = built {
                            println!("  FAILED: {}: no image: {error:?}", engine_kind.name());
                            failures.push(format!("{}: images", engine_kind.name()));
                            continue;
                        }
                        engines.push(engine_kind);
                        println!("{}: images ready after {:.1} s", engine_kind.name(), begun.elapsed().as_secs_f64());
                        failures.extend(run_backend(Arc::new(backend), engine_kind.name(), &words, &own).await);
                    }
                    Err(error) => {
                        println!("  FAILED: {}: {error}", engine_kind.name());
                        failures.push(engine_kind.name().to_owned());
                    }
                }
            }
        }
        failures
    });
    failures.extend(harness::run(&words, &working, &engines));
    failures.extend(harness::starve(&words, &working));
    if !is_wanted("local") {
        // The user who starts containers makes no difference inside them, so they are not tested again as an ordinary
        // user.
    } else if nix::unistd::getuid().is_root() {
        failures.extend(as_ordinary_user(&own, &words));
    } else if std::env::var_os(ORDINARY).is_none() {
        println!("the runs as another user: ignored, need root");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a copy of this program, readable for everyone, as an ordinary user.
fn as_ordinary_user(own: &Path, words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("conformance");
    fs::copy(own, &copy).unwrap();
    let status = std::process::Command::new(copy)
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env(ORDINARY, "1")
        .envs([WITHOUT_OVERLAY, exclusion::WHICH].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .current_dir("/")
        .uid(ORDINARY_USER)
        .gid(ORDINARY_USER)
        .status()
        .unwrap();
    if status.success() { Vec::new() } else { vec!["as an ordinary user".into()] }
}
