//! Container engines that a test starts and may kill. They have their own folders and socket, so other containers on
//! the machine are not affected.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Makes a test for each engine from functions that take the engine's kind. The tests are in modules named after the
/// engines.
macro_rules! on_engines {
    (docker: $($docker:ident),+; podman: $($podman:ident),+ $(;)?) => {
        mod docker {
            $(#[test]
            #[ignore = "starts a Docker of its own, which takes root and a minute"]
            fn $docker() {
                super::$docker(crate::support::engine::Kind::Docker);
            })+
        }

        mod podman {
            $(#[test]
            #[ignore = "starts a podman of its own, which takes root and a minute"]
            fn $podman() {
                super::$podman(crate::support::engine::Kind::Podman);
            })+
        }
    };
}
pub(crate) use on_engines;

/// Name of the base image.
pub const BASE: &str = "localhost/autoexperiment/base:1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docker,
    Podman,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Returns the name of the environment variable that makes the program use an engine of this kind.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Docker => "DOCKER_HOST",
            Self::Podman => "CONTAINER_HOST",
        }
    }
}

/// An engine that a test has started.
pub struct Engine {
    pub kind: Kind,
    folder: tempfile::TempDir,
    /// Folder of images and containers.
    data: PathBuf,
    /// Docker's containerd, started separately, as a service manager does. If the daemon started containerd itself,
    /// killing the daemon would also end containerd.
    containerd: Option<Child>,
    process: Mutex<Option<Child>>,
    /// Additional arguments of the daemon.
    options: Vec<String>,
}

impl Engine {
    pub fn start(kind: Kind) -> Self {
        Self::start_with(kind, None, &[])
    }

    /// Same as [`Self::start`], with the data in another folder and with additional arguments.
    pub fn start_with(kind: Kind, data: Option<&Path>, options: &[&str]) -> Self {
        assert!(nix::unistd::getuid().is_root(), "{} of a test's own needs root", kind.name());
        let folder = tempfile::tempdir().unwrap();
        let data = data.map_or_else(|| folder.path().join("data"), Path::to_path_buf);
        let options = options.iter().map(ToString::to_string).collect();
        let mut engine = Self { kind, folder, data, containerd: None, process: Mutex::default(), options };
        if kind == Kind::Docker {
            engine.start_containerd();
        } else {
            // Use locks in files, because those in shared memory are shared by all podmans of a machine.
            fs::write(engine.path("conf"), "[engine]\nlock_type = \"file\"\n").unwrap();
        }
        engine.go().unwrap_or_else(|said| panic!("{} does not start here: {said}", kind.name()));
        engine
    }

    fn start_containerd(&mut self) {
        let log = fs::File::create(self.path("containerd.log")).unwrap();
        let mut command = Command::new("containerd");
        command.arg("--root").arg(self.path("containerd")).arg("--state").arg(self.path("state"));
        command.arg("--address").arg(self.path("containerd.sock"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.containerd = Some(command.spawn().expect("`containerd` starts"));
        let begun = Instant::now();
        while !self.path("containerd.sock").exists() {
            assert!(begun.elapsed() < Duration::from_mins(1), "containerd does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn address(&self) -> String {
        format!("unix://{}", self.path("sock").display())
    }

    /// Returns the control group that contains all of Docker's containers.
    fn groups_parent(&self) -> String {
        let name = self.folder.path().file_name().unwrap_or_default().to_string_lossy().replace('.', "");
        format!("/autoexperiment-test-{name}")
    }

    /// Returns the control groups of containers: for Docker those of this engine, for podman those of all podmans of
    /// the machine.
    pub fn groups(&self) -> BTreeSet<PathBuf> {
        let parent = self.groups_parent();
        let is_hex = |part: &str| part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_one = |path: &Path| match self.kind {
            Kind::Docker => path.to_string_lossy().contains(&format!("{parent}/")),
            Kind::Podman => path.file_name().is_some_and(|name| name.to_string_lossy().split('-').any(is_hex)),
        };
        let walk = walkdir::WalkDir::new("/sys/fs/cgroup").into_iter().filter_entry(|entry| entry.file_type().is_dir());
        walk.flatten().map(walkdir::DirEntry::into_path).filter(|path| is_one(path)).collect()
    }

    /// Returns podman with this engine's folders. They are given as options, because when a container ends, its monitor
    /// runs podman again with the same options.
    fn podman(&self) -> Command {
        let mut command = Command::new("podman");
        command.arg("--root").arg(&self.data).arg("--runroot").arg(self.path("run"));
        command.arg("--tmpdir").arg(self.path("tmp")).arg("--cgroup-manager=cgroupfs");
        command.env("CONTAINERS_CONF", self.path("conf"));
        // Podman's monitors leave files in their working folder.
        command.current_dir(self.folder.path());
        command
    }

    /// Starts the daemon, or returns why it does not start.
    pub fn go(&self) -> Result<(), String> {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        for name in ["pid", "sock"] {
            let _ = fs::remove_file(self.path(name));
        }
        let mut command = if self.kind == Kind::Docker {
            let mut command = Command::new("dockerd");
            command.arg("--data-root").arg(&self.data).arg("--exec-root").arg(self.path("exec"));
            command.arg("--pidfile").arg(self.path("pid")).arg("--containerd").arg(self.path("containerd.sock"));
            command.args(["--host", &self.address(), "--iptables=false", "--ip6tables=false"]);
            command.arg(format!("--cgroup-parent={}", self.groups_parent()));
            if !self.options.iter().any(|option| option.starts_with("--bip")) {
                command.arg("--bridge=none");
            }
            command
        } else {
            let mut command = self.podman();
            command.args(["system", "service", "--time=0", &self.address()]);
            command
        };
        command.args(&self.options).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        *self.process.lock().unwrap() = Some(command.spawn().expect("the engine's program starts"));
        let begun = Instant::now();
        while !self.cli(&["info"]).0 {
            let is_over = self.process.lock().unwrap().as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
            if is_over || begun.elapsed() > Duration::from_mins(1) {
                let said = fs::read_to_string(self.path("log")).unwrap();
                return Err(said.lines().rev().take(5).collect::<Vec<_>>().join(" / "));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Kills the daemon with `kill -9`, as if the machine had run out of memory.
    pub fn kill(&self) {
        let child = self.process.lock().unwrap().take();
        if let Some(mut child) = child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Runs the engine's own program. Returns whether it succeeded, and its output.
    pub fn cli(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(self.kind.name());
        match self.kind {
            Kind::Docker => command.args(["--host", &self.address()]),
            Kind::Podman => command.args(["--remote", "--url", &self.address()]),
        };
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Same as [`Self::cli`], but must succeed.
    pub fn say(&self, arguments: &[&str]) -> String {
        let (succeeded, said) = self.cli(arguments);
        assert!(succeeded, "{arguments:?}: {said}");
        said
    }

    /// Returns the ids of all running containers.
    pub fn running(&self) -> Vec<String> {
        self.cli(&["ps", "-q"]).1.lines().map(str::to_owned).collect()
    }

    /// Returns the first processes of all running containers.
    pub fn inits(&self) -> Vec<i32> {
        let (_, ids) = self.cli(&["ps", "-q"]);
        let mut arguments = vec!["inspect", "--format", "{{.State.Pid}}"];
        arguments.extend(ids.lines());
        if ids.is_empty() {
            return Vec::new();
        }
        self.cli(&arguments).1.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0).collect()
    }

    /// Returns the mounts of containers below the engine's folders. Leaves out the mounts with which Docker begins a
    /// container's layer, before there is a container: a daemon that is killed at that moment leaves such a mount
    /// behind, and nothing removes it.
    pub fn mounts(&self) -> Vec<String> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let places = [self.folder.path().display().to_string(), self.data.display().to_string()];
        let is_container = |line: &&str| {
            let is_below = places.iter().any(|place| line.contains(place));
            is_below && (line.contains("/merged ") || line.contains("/shm")) && !line.contains("-init/merged ")
        };
        mounts.lines().filter(is_container).map(ToOwned::to_owned).collect()
    }

    /// Returns the ids of all objects that an engine could accumulate: containers, images, volumes, networks.
    pub fn objects(&self) -> [BTreeSet<String>; 4] {
        [&["ps", "-aq"][..], &["image", "ls", "-aq"], &["volume", "ls", "-q"], &["network", "ls", "-q"]]
            .map(|arguments| self.say(arguments).lines().map(ToOwned::to_owned).collect())
    }

    /// Copies the base image from one of the usual engines, which saves making another.
    pub fn give_base(&self) {
        let file = self.path("base.tar");
        let saved = |engine: &str| {
            let _ = fs::remove_file(&file);
            let mut command = Command::new(engine);
            command.args(["save", "-o"]).arg(&file).arg(BASE).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if saved("docker") || saved("podman") {
            self.say(&["load", "-i", &file.display().to_string()]);
        }
        let _ = fs::remove_file(&file);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let stop = |child: &mut Child| {
            let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let _ = child.wait();
        };
        if let Some(mut child) = self.process.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            stop(&mut child);
        }
        if let Some(child) = &mut self.containerd {
            stop(child);
        }
        let walk = walkdir::WalkDir::new("/sys/fs/cgroup").max_depth(2).into_iter();
        for folder in walk.flatten().filter(|entry| entry.path().ends_with(&self.groups_parent()[1..])) {
            let _ = fs::remove_dir(folder.path());
        }
        // Podman leaves a mount in its folder. Unmount it, so that the folder can be removed.
        let _ = nix::mount::umount2(&self.data.join("overlay"), nix::mount::MntFlags::MNT_DETACH);
    }
}
