//! The local sandbox as the runner uses it: it is chosen by name, examined by `doctor`, and lost when its init is
//! killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autoexperiment::error::FailureKind;
use autoexperiment::sandbox::{
    Backend, Command, ConfinementMode, ExecLimits, Fault, Gpu, Gpus, LocalBackend, Sandbox, SandboxKind, SandboxLimits,
    Spec, choose, choose_with, doctor, patience,
};
use autoexperiment::workspace::Layers;

const LIMITS: ExecLimits = ExecLimits {
    wall: Duration::from_secs(30),
    patience: Duration::ZERO,
    grace: Duration::from_millis(100),
    output: 1000,
};

/// Starts a sandbox that uses landlock alone, which works nearly everywhere.
async fn sandbox(dir: &Path) -> Box<dyn Sandbox> {
    let backend = LocalBackend::with_mode(ConfinementMode::Landlock);
    if let Some((uid, gid)) = backend.owner() {
        std::os::unix::fs::chown(dir, Some(uid), Some(gid)).unwrap();
    }
    let spec = plain(dir.to_path_buf(), None);
    backend.start(&spec).await.unwrap()
}

/// Returns the first process of the sandbox in which this command runs. It is a child of this process and an ancestor
/// of the command.
fn init_above(command: &str) -> Option<i32> {
    let own = std::process::id().cast_signed();
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let mut pid = running(command)?;
    while parent(pid)? != own {
        pid = parent(pid)?;
    }
    Some(pid)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_init_was_killed_is_lost_and_stays_lost() {
    let dir = tempfile::tempdir().unwrap();
    let mut sandbox = sandbox(dir.path()).await;
    let begun = Instant::now();
    let killer = std::thread::spawn(|| {
        let init = loop {
            if let Some(init) = init_above("sleep\x0063.25") {
                break nix::unistd::Pid::from_raw(init);
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        nix::sys::signal::kill(init, nix::sys::signal::Signal::SIGKILL).unwrap();
    });
    let result = sandbox.exec(&Command::shell("sleep 63.25; true"), &LIMITS).await;
    killer.join().unwrap();
    assert!(matches!(result, Err(Fault::Lost(_))), "{result:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "took {:?}", begun.elapsed());
    assert!(matches!(sandbox.exec(&Command::shell("true"), &LIMITS).await, Err(Fault::Lost(_))));
    assert!(matches!(sandbox.read(Path::new("x"), 10).await, Err(Fault::Lost(_))));
    assert!(matches!(sandbox.list(Path::new(".")).await, Err(Fault::Lost(_))));
    sandbox.destroy().await.unwrap();
    assert_eq!(running("sleep\x0063.25"), None, "what the sandbox ran outlived its init");
}

/// Returns a process whose command line begins with this text.
fn running(command: &str) -> Option<i32> {
    let list = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = list.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(command)))
}

/// Returns the specification of a sandbox over this folder, without further files, and with a device if one is given.
fn plain(dir: PathBuf, gpu: Option<Gpu>) -> Spec {
    Spec {
        layers: Layers::Copy { dir },
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu,
    }
}

#[tokio::test]
async fn a_missing_workspace_is_named() {
    let backend = LocalBackend::with_mode(ConfinementMode::Namespaces);
    let spec = plain(PathBuf::from("/nowhere/at/all"), None);
    let error = backend.start(&spec).await.map(drop).unwrap_err();
    assert_eq!(error.kind, FailureKind::Infrastructure);
    let at_fault = error.message.contains("/nowhere/at/all");
    // Where namespaces are not allowed, the start fails before it reaches the workspace.
    assert!(at_fault || error.message.contains("unshare"), "{error}");
}

#[tokio::test]
async fn backends_are_chosen_by_name_and_the_backend_none_warns() {
    let none = choose(SandboxKind::Unconfined).await.map_err(|error| error.to_string()).unwrap();
    assert!(none.warnings().iter().all(|warning| warning.contains("NO SANDBOX")) && !none.warnings().is_empty());
    match choose(SandboxKind::Local).await {
        Ok(local) => assert!(["local", "landlock"].contains(&local.name())),
        Err(error) => assert!(error.hint.is_some_and(|hint| hint.contains("--sandbox none"))),
    }
}

#[tokio::test]
async fn all_graphics_processors_can_be_requested_only_for_containers() {
    let error = choose_with(SandboxKind::Local, Some(Gpus::All)).await.map(drop).unwrap_err();
    assert_eq!(error.kind, FailureKind::Usage);
    assert!(error.hint.is_some_and(|hint| hint.contains("--sandbox docker")));
    assert!(choose_with(SandboxKind::Unconfined, Some(Gpus::Each(None))).await.is_ok());
    assert_eq!(("all".parse(), "2".parse()), (Ok(Gpus::All), Ok(Gpus::Count(2))));
    assert_eq!(("each".parse(), "each:2".parse()), (Ok(Gpus::Each(None)), Ok(Gpus::Each(Some(2)))));
    for wrong in ["0", "-1", "some", "", "each:", "each:0", "each:all"] {
        assert!(wrong.parse::<Gpus>().is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_sandbox_shows_its_assigned_device_and_names_it_to_commands() {
    // This machine may have no graphics processor, so use another device that sandboxes do not contain by default.
    let others = ["/dev/kmsg", "/dev/fuse", "/dev/console", "/dev/loop-control"];
    let device = others.into_iter().find(|path| Path::new(path).exists()).unwrap();
    let gpu = Gpu { visible: "0".to_owned(), name: "3".to_owned(), devices: vec![PathBuf::from(device)] };
    for (gpu, expected) in [(None, "none\n"), (Some(gpu), "0 shown\n")] {
        let dir = tempfile::tempdir().unwrap();
        let backend = LocalBackend::probe().await.unwrap();
        if let Some((uid, gid)) = backend.owner() {
            std::os::unix::fs::chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        if backend.name() != "local" {
            println!("skipped: no namespaces here, so every device is shown");
            return;
        }
        let spec = plain(dir.path().to_path_buf(), gpu);
        let mut sandbox = backend.start(&spec).await.unwrap();
        let script =
            format!("[ -c {device} ] && echo $CUDA_VISIBLE_DEVICES shown || echo ${{CUDA_VISIBLE_DEVICES-none}}");
        let said = sandbox.exec(&Command::shell(&script), &LIMITS).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
        sandbox.destroy().await.unwrap();
    }
}

#[test]
fn an_unresponsive_engine_is_reported_with_its_name_and_a_remedy() {
    for (engine, variable, remedy) in
        [("docker", "DOCKER_HOST", "`dockerd &`"), ("podman", "CONTAINER_HOST", "podman system service")]
    {
        let mut command = std::process::Command::new(crate::support::PROGRAM);
        command.args(["image", "list", "--engine", engine]).env(variable, "unix:///nowhere/engine.sock");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("/nowhere/engine.sock") && said.contains(remedy), "{said}");
    }
}

#[tokio::test]
async fn the_doctor_has_a_remedy_for_every_failed_check() {
    let findings = doctor::examine(Path::new("/tmp"), Path::new("/tmp"), &[], &[]).await;
    for finding in &findings {
        println!("{} {}: {} {:?}", finding.ok, finding.name, finding.detail, finding.remedy);
        assert_eq!(finding.remedy.is_none(), finding.ok, "{finding:?}");
        assert!(!finding.detail.is_empty(), "{finding:?}");
    }
    // The doctor's findings must agree with the sandbox that is chosen.
    let overlay = findings.iter().find(|finding| finding.name == "overlay workspaces").unwrap();
    if let Ok(backend) = LocalBackend::probe().await {
        assert_eq!(backend.mode() == ConfinementMode::Overlay, overlay.ok);
    }
}

/// Processes that keep the processors busy until this is dropped.
struct Crowd(Vec<std::process::Child>);

impl Crowd {
    fn of(count: usize) -> Self {
        // The kernel may divide processors evenly among sessions, and each sandbox is a session, so start each busy
        // process in its own session.
        let busy = || std::process::Command::new("setsid").args(["sh", "-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..count).map(|_| busy()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// On a machine with 12 busy processes, runs several commands at once that are fast enough alone, and commands that
/// never end. `AUTOEXPERIMENT_COMMANDS` sets the number of each.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs minutes and an otherwise idle machine, whose processors it takes"]
async fn on_a_busy_machine_fast_commands_finish_and_endless_ones_are_stopped() {
    let count: usize = std::env::var("AUTOEXPERIMENT_COMMANDS").map_or(6, |count| count.parse().unwrap());
    let work = |rounds: f64| format!("i=0; while [ $i -lt {rounds:.0} ]; do i=$((i+1)); done");
    let wall = Duration::from_millis(1600);
    let limits = ExecLimits { wall, patience: patience(wall), ..LIMITS };
    let one = |command: String| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let done = sandbox.exec(&Command::shell(&command), &limits).await.unwrap();
        sandbox.destroy().await.unwrap();
        done
    };
    let crowd = Crowd::of(12);
    // Work that takes 30% of its time limit if it has a processor to itself, however fast the processor is. On a
    // crowded processor the same work takes more CPU time, because other processes use its caches, so it is measured
    // while the crowd runs. The time limit and its extension on a busy machine (`patience`) together are enough even if
    // the work gets only a twentieth of a processor.
    let sample = one(work(1e5)).await.cpu;
    let work = work(1e5 * 0.3 * wall.as_secs_f64() / sample.as_secs_f64());
    let (mut longest, mut crowded_out) = (Duration::ZERO, 0);
    let rounds = count.div_ceil(4);
    for _ in 0..rounds {
        let right = futures_util::future::join_all((0..4).map(|_| one(work.clone()))).await;
        for done in right {
            assert!(done.success(), "{done:?}");
            longest = longest.max(done.wall);
            crowded_out += usize::from(done.wall > wall);
        }
        let endless = futures_util::future::join_all((0..4).map(|_| one("while :; do :; done".to_owned()))).await;
        for done in endless {
            assert!(done.exit == autoexperiment::sandbox::Exit::TimedOut, "{done:?}");
            assert!(done.cpu > wall / 2 || done.wall >= wall + limits.patience, "{done:?}");
        }
    }
    // A sleeping command does not wait for a processor, so its time limit is not extended on a busy machine.
    let asleep = one("sleep 60".to_owned()).await;
    assert!(asleep.exit == autoexperiment::sandbox::Exit::TimedOut && asleep.wall < 3 * wall, "{asleep:?}");
    drop(crowd);
    println!("{crowded_out} of {} took longer than their limit, the longest {longest:?}", 4 * rounds);
    assert!(crowded_out > 0, "the machine was not crowded");
}
