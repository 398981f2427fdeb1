//! Starts jobs: a command as a new program, work on files as a fork of the init.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{ForkResult, fork};

use super::confine::Confinement;
use super::launch::{Launch, c_string};
use super::oom::OomScore;
use super::pipes::{non_blocking, pipe};
use super::tree::{self, FileTime};
use super::wire::{InitJob, OsBytes, Setup, put_item};
use crate::{files, processes};

/// Number of tries to start a process while the system's limit on processes is reached. `BETWEEN_TRIES` is the time
/// between tries.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

/// Settings that are common to all jobs.
pub(super) struct Starter {
    workdir: PathBuf,
    variables: BTreeMap<String, String>,
    /// Confinement of each child, if the init itself is not confined.
    confinement: Option<Arc<Confinement>>,
    oom_score: Option<OomScore>,
    null: OwnedFd,
    /// The sandbox's own limit of processes and threads.
    processes: u64,
    /// Limit of each program's address space in bytes, if no cgroup limits memory. The init itself may be larger than
    /// that.
    address_space: Option<u64>,
    /// The sandbox's own limit of CPUs.
    cpus: Option<f64>,
    /// Whether a command has been started. Until then, only programs outside the sandbox can have used up the machine's
    /// memory or open files.
    has_begun: Cell<bool>,
}

/// The reason why a job did not start.
pub(super) enum NotStarted {
    /// The command is wrong.
    Refused(String),
    /// The machine's limit on processes is reached, although the sandbox has not used up its own limit, or the machine
    /// has no memory or open file left before the sandbox's first command.
    NoProcess(String),
}

impl From<String> for NotStarted {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// A job that has started.
pub(super) struct StartedJob {
    pub(super) pid: i32,
    /// The pipe of the command's input, and the bytes to write to it.
    pub(super) stdin: Option<(PipeWriter, Vec<u8>)>,
    /// Standard output and standard error.
    pub(super) outputs: [PipeReader; 2],
}

impl Starter {
    pub(super) fn new(
        workdir: PathBuf,
        variables: BTreeMap<String, String>,
        confinement: Option<Confinement>,
        oom_score: Option<OomScore>,
        setup: &Setup,
    ) -> io::Result<Self> {
        let address_space = Some(setup.limits.memory).filter(|_| !setup.memory_cgroup);
        let processes = setup.limits.processes;
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?.into();
        Ok(Self {
            workdir,
            variables,
            confinement: confinement.map(Arc::new),
            oom_score,
            null,
            processes,
            address_space,
            cpus: setup.limits.milli_cpus.map(|cpus| cpus as f64 / 1000.0),
            has_begun: Cell::new(false),
        })
    }

    /// The sandbox's own limit of CPUs.
    pub(super) fn cpus(&self) -> Option<f64> {
        self.cpus
    }

    /// Whether each child gives up its rights on its own, because the init keeps its rights.
    pub(super) fn confines(&self) -> bool {
        self.confinement.is_some()
    }

    /// Starts a job. `since` is the time at which the sandbox began. Jobs that list the workspace need it to recognise
    /// files written since then.
    pub(super) fn start(
        &self,
        job: &InitJob,
        stdin: Vec<u8>,
        since: Option<FileTime>,
    ) -> Result<StartedJob, NotStarted> {
        let no_pipe = |error: io::Error| self.not_started("the sandbox has no pipe left", &error);
        let (stdout, stdout_end) = pipe().map_err(no_pipe)?;
        let (stderr, stderr_end) = pipe().map_err(no_pipe)?;
        let (pid, stdin) = match job {
            InitJob::Exec { argv, cwd, variables } => {
                let (end, stdin) = if stdin.is_empty() {
                    (self.null.try_clone().map_err(no_pipe)?, None)
                } else {
                    let (end, pipe) = io::pipe().map_err(no_pipe)?;
                    non_blocking(&pipe).map_err(no_pipe)?;
                    (end.into(), Some((pipe, stdin)))
                };
                (self.spawn(argv, cwd.as_path(), variables, [end, stdout_end.into(), stderr_end.into()])?, stdin)
            }
            _ => (self.fork_for(job, &stdin, since, stdout_end, stderr_end)?, None),
        };
        self.has_begun.set(self.has_begun.get() || matches!(job, InitJob::Exec { .. }));
        Ok(StartedJob { pid, stdin, outputs: [stdout, stderr] })
    }

    fn spawn(
        &self,
        argv: &[OsBytes],
        cwd: &Path,
        variables: &BTreeMap<String, String>,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> Result<i32, NotStarted> {
        let Some((name, arguments)) = argv.split_first() else { return Err("an empty command".to_owned().into()) };
        let name = name.as_os_str();
        // Collect the path again, because joining an empty path leaves a trailing slash.
        let folder: PathBuf = self.workdir.join(cwd).components().collect();
        let path = variables.get("PATH").or_else(|| self.variables.get("PATH")).map_or("", String::as_str);
        let program =
            find(name, path, &folder).ok_or_else(|| format!("no program `{}` in PATH", name.to_string_lossy()))?;
        let result = match &self.confinement {
            None => self.launch(&program, argv, &folder, variables, [&stdin, &stdout, &stderr]),
            Some(confinement) => {
                let mut command = Command::new(program);
                command.arg0(name).args(arguments.iter().map(OsBytes::as_os_str)).env_clear();
                command.envs(&self.variables).envs(variables).env("PWD", &folder).current_dir(&folder);
                command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
                command.process_group(0);
                if let Some(limit) = self.address_space {
                    // SAFETY: the closure makes one system call.
                    unsafe { command.pre_exec(move || Ok(setrlimit(Resource::RLIMIT_AS, limit, limit)?)) };
                }
                let confinement = confinement.clone();
                // SAFETY: the init has one thread, so the child may allocate and take locks.
                unsafe { command.pre_exec(move || confinement.apply()) };
                self.persistently(|| Ok(command.spawn()?.id() as i32))
            }
        };
        match result {
            Ok(pid) => Ok(pid),
            Err(_) if !folder.is_dir() => Err(format!("no folder `{}`", cwd.display()).into()),
            Err(error) => Err(self.not_started(&format!("cannot run `{}`", name.to_string_lossy()), &error)),
        }
    }

    /// Starts a program in a child that needs no confinement of its own.
    fn launch(
        &self,
        program: &Path,
        argv: &[OsBytes],
        folder: &Path,
        variables: &BTreeMap<String, String>,
        streams: [&OwnedFd; 3],
    ) -> io::Result<i32> {
        let own = self.variables.iter().filter(|(name, _)| !variables.contains_key(*name)).chain(variables);
        let mut environment: Vec<_> =
            own.filter(|(name, _)| *name != "PWD").map(|(name, value)| c_string(format!("{name}={value}"))).collect();
        let mut pwd = OsString::from("PWD=");
        pwd.push(folder);
        environment.push(c_string(pwd));
        let launch = Launch {
            program: c_string(program)?,
            arguments: argv.iter().map(|argument| c_string(argument.as_os_str())).collect::<io::Result<_>>()?,
            environment: environment.into_iter().collect::<io::Result<_>>()?,
            folder: c_string(folder)?,
            streams: streams.map(AsFd::as_fd),
            address_space: self.address_space,
        };
        self.persistently(|| launch.start())
    }

    /// Starts a process with the commands' OOM score. If other programs have used up the machine's limit on processes,
    /// tries again a little later.
    fn persistently<T>(&self, mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut start = || OomScore::raised(self.oom_score.as_ref(), &mut start);
        for _ in 0..TRIES {
            match start() {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && !self.is_crowded() => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                result => return result,
            }
        }
        start()
    }

    /// Whether the sandbox has used up at least half of its own limit of processes. If no process can be started
    /// although this is false, other programs have used up the machine's limit on processes.
    fn is_crowded(&self) -> bool {
        let own = std::process::id() as i32;
        let all = if own == 1 { processes::table().into_keys().collect() } else { processes::below(own) };
        processes::threads(all) >= self.processes / 2
    }

    fn not_started(&self, what: &str, error: &io::Error) -> NotStarted {
        if error.raw_os_error() == Some(libc::EAGAIN) && !self.is_crowded() {
            return NotStarted::NoProcess(format!(
                "{what}: no process is left on this machine, by a limit that is not the sandbox's (pids.max of a group \
                 around it, or ulimit -u)"
            ));
        }
        if !self.has_begun.get() && matches!(error.raw_os_error(), Some(libc::ENFILE | libc::ENOMEM | libc::EIO)) {
            return NotStarted::NoProcess(format!("{what}, and no command has run in this sandbox: {error}"));
        }
        NotStarted::Refused(format!("{what}: {error}"))
    }

    /// Runs a file job in a forked child of the init. The child already has the input in memory.
    fn fork_for(
        &self,
        job: &InitJob,
        input: &[u8],
        since: Option<FileTime>,
        stdout: PipeWriter,
        mut stderr: PipeWriter,
    ) -> Result<i32, NotStarted> {
        // SAFETY: the init has one thread, so the child may allocate and take locks. Outside of this function, the
        // child only runs the end of `OomScore::raised`, which writes to an open file.
        let forked = self.persistently(|| Ok(unsafe { fork() }?));
        match forked {
            Err(error) => Err(self.not_started("the sandbox has no process left", &error)),
            Ok(ForkResult::Parent { child }) => Ok(child.as_raw()),
            Ok(ForkResult::Child) => {
                let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
                let confined = self.confinement.as_ref().map_or(Ok(()), |confinement| confinement.apply());
                let result = confined.and_then(|()| self.file_job(job, input, since, stdout));
                let code = match result {
                    Ok(()) => 0,
                    Err(error) => {
                        let _ = stderr.write_all(error.to_string().as_bytes());
                        1
                    }
                };
                // SAFETY: this ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(code) }
            }
        }
    }

    fn at(&self, path: &OsBytes) -> PathBuf {
        self.workdir.join(path.as_path())
    }

    fn file_job(&self, job: &InitJob, input: &[u8], since: Option<FileTime>, mut stdout: PipeWriter) -> io::Result<()> {
        match job {
            InitJob::Read { path, limit } => stdout.write_all(&files::read(&self.at(path), *limit)?),
            InitJob::Write { path } => files::write(&self.at(path), input),
            InitJob::List { path } => {
                let mut list = Vec::new();
                put_item(&mut list, &files::list(&self.at(path))?)?;
                stdout.write_all(&list)
            }
            InitJob::Lay => tree::lay::lay(&self.workdir, input),
            InitJob::Survey | InitJob::Look => {
                if input.is_empty() {
                    tree::survey::survey(&self.workdir, since, tree::survey::SurveyLimits::default(), &mut stdout)
                } else {
                    tree::survey::survey_known(&self.workdir, since, input, &mut stdout)
                }
            }
            InitJob::Collect => tree::collect::collect(&self.workdir, input, &mut stdout),
            InitJob::Exec { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Finds a program: a name with a slash is a path, and any other name is looked for in PATH.
fn find(name: &OsStr, path: &str, folder: &Path) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(folder.join(name));
    }
    std::env::split_paths(path).map(|place| folder.join(place).join(name)).find(|candidate| {
        candidate.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_failed_if_it_has_no_open_file_or_memory_left_before_the_first_command() {
        let starter = Starter {
            workdir: "/".into(),
            variables: BTreeMap::new(),
            confinement: None,
            oom_score: None,
            null: std::fs::File::open("/dev/null").unwrap().into(),
            processes: 256,
            address_space: None,
            cpus: None,
            has_begun: Cell::new(false),
        };
        let is_refused = |error: i32| {
            matches!(starter.not_started("x", &io::Error::from_raw_os_error(error)), NotStarted::Refused(_))
        };
        let errors = [libc::ENFILE, libc::ENOMEM, libc::EIO, libc::ENOENT, libc::EACCES];
        assert_eq!(errors.map(is_refused), [false, false, false, true, true]);
        // After a command was started, processes that it left running may cause these errors, so the machine is not
        // blamed.
        starter.has_begun.set(true);
        assert_eq!(errors.map(is_refused), [true; 5]);
    }
}
