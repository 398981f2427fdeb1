//! `--sandbox none`: plain processes on the host, for machines on which nothing better works and for tests of other
//! parts. Time limits, output limits and clean-up work as in other sandboxes, but nothing is confined.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

use super::cgroup;
use super::client::{Leftovers, LocalSandbox, spawn};
use crate::error::{Error, Result};
use crate::files::Temporary;
use crate::sandbox::program::PREFIX;
use crate::sandbox::{Backend, Gpu, Sandbox, Spec};
use crate::workspace::{Layers, LayersKind};
use autoexperiment_init::wire::{Setup, Surroundings, WorkspaceSource};

/// Starts sandboxes that confine nothing.
#[derive(Debug, Default)]
pub struct Unconfined;

#[async_trait]
impl Backend for Unconfined {
    fn name(&self) -> &'static str {
        "none"
    }

    fn layers(&self) -> LayersKind {
        LayersKind::Copy
    }

    fn owner(&self) -> Option<(u32, u32)> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        vec![
            "NO SANDBOX: what the agent writes runs as you, reads and changes all your files, gold results and \
             original code included, and reaches the network"
                .into(),
            "NO SANDBOX: memory, processes and disk are not limited".into(),
        ]
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let Layers::Copy { dir } = &spec.layers else {
            return Err(Error::internal("sandbox `none` was given an overlay, which it cannot mount"));
        };
        let dir: PathBuf = dir.canonicalize().map_err(|error| Error::io("open the workspace", dir, error))?;
        // The folder is next to the workspace, so that it is removed with the workspace if this process is killed.
        let beside = dir.parent().unwrap_or(&dir);
        let home =
            Temporary::create(beside, PREFIX, 0o700).map_err(|error| Error::io("create a folder in", beside, error))?;
        let (socket, child) = spawn(self.name(), false)?;
        let setup = Setup {
            place: Surroundings::Unconfined,
            owner: None,
            source: WorkspaceSource::Folder(dir.as_path().into()),
            read_only: Vec::new(),
            masked: Vec::new(),
            devices: Vec::new(),
            variables: spec.variables.clone().into_iter().chain(spec.gpu.as_ref().map(Gpu::variable)).collect(),
            sealed: Vec::new(),
            limits: spec.limits.into(),
            procs_files: Vec::new(),
            // Say that control groups limit memory and processes, although nothing does. Otherwise the init would limit
            // the address space of each command.
            memory_cgroup: true,
            processes_cgroup: true,
            scratch: Some(home.path().into()),
        };
        let leftovers = Leftovers { cgroup: cgroup::Cgroup::none(), scratch: Some(home) };
        LocalSandbox::new(socket, child, leftovers, dir, Duration::MAX)
            .on_the_host_s_network()
            .started(self.name(), &setup)
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use autoexperiment_init::processes;

    use super::*;
    use crate::sandbox::{Command, EntryKind, ExecLimits, Exit, Fault, FolderEntry};

    fn limits(milliseconds: u64) -> ExecLimits {
        ExecLimits {
            wall: Duration::from_millis(milliseconds),
            patience: Duration::ZERO,
            grace: Duration::from_millis(200),
            output: 1000,
        }
    }

    async fn sandbox(dir: &Path) -> Box<dyn Sandbox> {
        let spec = Spec {
            layers: Layers::Copy { dir: dir.to_path_buf() },
            read_only: Vec::new(),
            sealed: Vec::new(),
            hidden: Vec::new(),
            variables: [("COLOUR".to_owned(), "blue".to_owned())].into(),
            limits: crate::sandbox::SandboxLimits::default(),
            gpu: None,
        };
        Unconfined.start(&spec).await.unwrap()
    }

    #[tokio::test]
    async fn a_command_sees_its_input_and_only_the_variables_that_were_given() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let mut command = Command::shell("cat; echo $COLOUR $CARGO_HOME; echo bad >&2; exit 3");
        command.stdin = vec![b'x'; 200_000];
        let done = sandbox.exec(&command, &ExecLimits { output: 400_000, ..limits(5000) }).await.unwrap();
        assert_eq!(done.exit, Exit::Code(3));
        assert_eq!(done.stdout, [vec![b'x'; 200_000], b"blue\n".to_vec()].concat());
        assert_eq!(done.stderr, b"bad\n");
    }

    #[tokio::test]
    async fn a_time_limit_kills_processes_that_left_the_group_and_ignore_sigterm() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60; true' & sleep 60; true";
        let mut command = Command::shell(script);
        command.variables.insert("WHO".into(), "stubborn".into());
        let done = sandbox.exec(&command, &limits(300)).await.unwrap();
        assert_eq!(done.exit, Exit::TimedOut);
        assert!(done.wall < Duration::from_secs(5), "took {:?}", done.wall);
        assert!(processes::marked("WHO=stubborn").is_empty());
    }

    #[tokio::test]
    async fn a_background_process_outlives_its_command_but_not_the_sandbox() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        let mut command = Command::shell("setsid sleep 60 & echo started");
        command.variables.insert("WHO".into(), "background".into());
        let done = sandbox.exec(&command, &limits(5000)).await.unwrap();
        assert_eq!(done.stdout, b"started\n");
        // While a process begins to execute a program, its environment variables cannot be read for a moment. So try
        // several times.
        let mut waits = 0;
        while processes::marked("WHO=background").is_empty() {
            waits += 1;
            assert!(waits < 100, "no background process");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sandbox.destroy().await.unwrap();
        assert!(processes::marked("WHO=background").is_empty());
    }

    #[tokio::test]
    async fn files_are_written_with_their_folders_read_up_to_a_limit_and_listed() {
        let dir = tempfile::tempdir().unwrap();
        let mut sandbox = sandbox(dir.path()).await;
        sandbox.write(Path::new("a/b.txt"), b"longer").await.unwrap();
        sandbox.write(Path::new("a/b.txt"), b"hello").await.unwrap();
        assert_eq!(sandbox.read(Path::new("a/b.txt"), 5).await.unwrap(), b"hello");
        assert!(matches!(sandbox.read(Path::new("a/b.txt"), 4).await, Err(Fault::Refused(_))));
        assert!(matches!(sandbox.read(Path::new("a"), 9).await, Err(Fault::Refused(_))));
        let listed = sandbox.list(Path::new("a")).await.unwrap();
        assert_eq!(listed, [FolderEntry { name: "b.txt".into(), kind: EntryKind::File, size: 5 }]);
    }
}
