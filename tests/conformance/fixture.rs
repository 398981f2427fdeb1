//! The fixture of a case: sandboxes over a fresh workspace, host files that must stay hidden, and helpers.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use autoexperiment::sandbox::{Backend, Command, Exec, ExecLimits, Exit, Fault, Sandbox, SandboxLimits, Spec};
use autoexperiment::workspace::{Disk, Layers, LayersKind};

/// Result of a case; the error says what went wrong.
pub type Outcome = Result<(), String>;
/// A case's body.
pub type Body = for<'a> fn(&'a mut Fixture<'_>) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A case: its name, a sentence in snake case, and its body.
pub struct Case {
    pub name: &'static str,
    pub body: Body,
}

/// Declares cases: `cases! { a_sentence(fixture) { ... } ... }`.
#[macro_export]
macro_rules! cases {
    ($($name:ident($fixture:ident) $body:block)*) => {
        pub const CASES: &[$crate::conformance::fixture::Case] = &[$(
            $crate::conformance::fixture::Case {
                name: stringify!($name),
                body: |$fixture| Box::pin(async move { $body #[allow(unreachable_code)] Ok(()) }),
            }
        ),*];
    };
}

/// Fails the case unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

pub struct Fixture<'b> {
    pub backend: &'b dyn Backend,
    /// A host folder that no agent may see, with `gold.json`, `original.py`, `home/secret`.
    pub host: tempfile::TempDir,
    /// A string in the environment of every sandbox, by which its processes are found on the host.
    pub marker: String,
    /// Limits of the sandboxes started from now on.
    pub limits: SandboxLimits,
    /// Path of this program.
    pub exe: PathBuf,
    workspaces: u32,
    /// Disks of the workspaces so far, if the backend makes any.
    disks: Vec<Disk>,
    /// Whether the harness measures the use of the disk, even if the kernel could enforce the limit.
    pub is_measured: bool,
}

/// A sandbox of a case.
pub struct Inside {
    pub sandbox: Box<dyn Sandbox>,
    pub exe: PathBuf,
    /// The host folder that contains the workspace's changes once the sandbox is destroyed.
    pub written: PathBuf,
}

pub const MIB: u64 = 1 << 20;

impl<'b> Fixture<'b> {
    pub fn new(backend: &'b dyn Backend, marker: String, exe: PathBuf) -> Self {
        let host = tempfile::Builder::new().prefix("conformance-").tempdir().unwrap();
        fs::create_dir(host.path().join("home")).unwrap();
        for name in ["gold.json", "original.py", "home/secret"] {
            fs::write(host.path().join(name), "TOP SECRET").unwrap();
        }
        let limits = SandboxLimits {
            memory: 512 * MIB,
            processes: 64,
            file_size: 64 * MIB,
            disk: 48 * MIB,
            cpu_seconds: 60,
            cpus: None,
        };
        Self { backend, host, marker, limits, exe, workspaces: 0, disks: Vec::new(), is_measured: false }
    }

    /// Makes a workspace with `hello.txt`, `folder/inner.txt` and `run.sh`.
    pub fn layers(&mut self) -> (Layers, PathBuf) {
        self.workspaces += 1;
        let base = self.host.path().join(format!("workspace{}", self.workspaces));
        let owner = self.backend.owner();
        let give = |path: &Path| {
            if let Some((uid, gid)) = owner {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        };
        let folder = |name: &str| {
            let path = base.join(name);
            fs::create_dir_all(&path).unwrap();
            give(&path);
            path
        };
        let fill = |path: &Path| {
            fs::create_dir(path.join("folder")).unwrap();
            fs::write(path.join("hello.txt"), "hello").unwrap();
            fs::write(path.join("folder/inner.txt"), "inner").unwrap();
            for name in ["folder", "hello.txt", "folder/inner.txt"] {
                give(&path.join(name));
            }
        };
        match self.backend.layers() {
            LayersKind::Overlay => {
                let lower = folder("lower");
                fill(&lower);
                let disk = if self.is_measured { None } else { self.backend.disk(self.limits.disk, &base).unwrap() };
                let place = disk.as_ref().map(|disk| disk.place().clone());
                let written = |name: &str| {
                    let Some(place) = &place else { return folder(name) };
                    let path = place.root.join(name);
                    fs::create_dir(&path).unwrap();
                    give(&path);
                    path
                };
                let (upper, work) = (written("upper"), written("work"));
                self.disks.extend(disk);
                (Layers::Overlay { lower, upper: upper.clone(), work, disk: place }, upper)
            }
            LayersKind::Copy => {
                let dir = folder("copy");
                fill(&dir);
                (Layers::Copy { dir: dir.clone() }, dir)
            }
            LayersKind::Image => {
                let (tree, upper) = (folder("tree"), folder("upper"));
                fill(&tree);
                // All cases have the same tree, and therefore the same image.
                (Layers::Image { tree, digest: "conformance".into(), upper: upper.clone() }, upper)
            }
        }
    }

    pub fn spec(&mut self) -> (Spec, PathBuf) {
        let (layers, written) = self.layers();
        let variables = BTreeMap::from([("MARKER".to_owned(), self.marker.clone())]);
        (
            Spec {
                layers,
                read_only: vec![self.exe.clone()],
                hidden: Vec::new(),
                sealed: Vec::new(),
                variables,
                limits: self.limits,
                gpu: None,
            },
            written,
        )
    }

    pub async fn start(&mut self) -> Result<Inside, String> {
        let (spec, written) = self.spec();
        let sandbox = self.backend.start(&spec).await.map_err(|error| format!("{error}"))?;
        Ok(Inside { sandbox, exe: self.exe.clone(), written })
    }
}

pub fn limits(seconds: f64) -> ExecLimits {
    ExecLimits {
        wall: Duration::from_secs_f64(seconds),
        patience: Duration::ZERO,
        grace: Duration::from_millis(200),
        output: 10_000,
    }
}

impl Inside {
    /// Runs a command; a refusal or loss fails the case.
    pub async fn exec(&mut self, command: Command, limits: ExecLimits) -> Result<Exec, String> {
        self.sandbox.exec(&command, &limits).await.map_err(|fault| format!("{fault:?}"))
    }

    /// Runs a script for at most 20 s.
    pub async fn sh(&mut self, script: &str) -> Result<Exec, String> {
        self.exec(Command::shell(script), limits(20.0)).await
    }

    /// Runs a script and returns its trimmed output, of both streams.
    pub async fn say(&mut self, script: &str) -> Result<String, String> {
        let done = self.sh(script).await?;
        let text = [done.stdout, done.stderr].concat();
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// Runs a hostile action of this program (see `hostile.rs`) inside the sandbox.
    pub async fn hostile(&mut self, arguments: &[&str], limits: ExecLimits) -> Result<Exec, String> {
        let mut argv = vec![self.exe.clone().into(), "hostile".into()];
        argv.extend(arguments.iter().map(Into::into));
        self.exec(Command { argv, ..Command::default() }, limits).await
    }

    /// Checks that a hostile action is denied: it prints `denied` and why, or `escaped`.
    pub async fn denied(&mut self, arguments: &[&str]) -> Outcome {
        let done = self.hostile(arguments, limits(20.0)).await?;
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        if said.starts_with("denied") && !said.contains("escaped") {
            Ok(())
        } else {
            Err(format!("{arguments:?}: {:?} {said}", done.exit))
        }
    }

    /// Checks that the sandbox still works.
    pub async fn works(&mut self) -> Outcome {
        let said = self.say("echo fine").await?;
        if said == "fine" { Ok(()) } else { Err(format!("the sandbox no longer works: {said}")) }
    }

    pub async fn read(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        self.sandbox.read(Path::new(path), MIB).await
    }

    pub async fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.sandbox.write(Path::new(path), bytes).await
    }

    pub async fn end(self) -> Outcome {
        self.sandbox.destroy().await.map_err(|fault| format!("{fault:?}"))
    }
}

/// Whether a command was stopped or failed.
pub fn failed(exit: Exit) -> bool {
    exit != Exit::Code(0)
}

/// Whether a file operation was refused, and neither succeeded nor ended the sandbox.
pub fn refused<T>(result: &Result<T, Fault>) -> bool {
    matches!(result, Err(Fault::Refused(_)))
}
