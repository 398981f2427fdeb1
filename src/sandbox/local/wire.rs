//! What harness and init say to each other over their socket or pipes: frames of a length and a payload, hand-coded so that
//! a command's bytes are never escaped or copied more than once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sandbox::{Exec, Exit, SandboxLimits};
use crate::workspace::Layers;

/// Where an init finds itself, and what it has to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) enum Place {
    /// On the host, to move into namespaces of its own.
    Namespaces,
    /// On the host, which landlock alone hides from its children.
    Host,
    /// The first process of a container that somebody else has built.
    Container,
}

/// The first message: what the init is to become.
#[derive(Debug, Clone)]
pub(in crate::sandbox) struct Setup {
    /// Own namespaces, landlock alone, or a container.
    pub(in crate::sandbox) place: Place,
    /// The host user whom the sandbox's processes are to be, when the init starts as root.
    pub(in crate::sandbox) owner: Option<(u32, u32)>,
    pub(in crate::sandbox) layers: Layers,
    pub(in crate::sandbox) read_only: Vec<PathBuf>,
    pub(in crate::sandbox) variables: BTreeMap<String, String>,
    pub(in crate::sandbox) limits: SandboxLimits,
    /// The files through which the init enters its groups.
    pub(in crate::sandbox) doors: Vec<PathBuf>,
    /// Whether a cgroup limits memory, so that the address space need not be limited.
    pub(in crate::sandbox) memory_cgroup: bool,
    /// Whether a cgroup limits processes, so that the user's need not be counted.
    pub(in crate::sandbox) processes_cgroup: bool,
    /// A private folder for temporary files on the host, where there is no own file system view.
    pub(in crate::sandbox) scratch: Option<PathBuf>,
}

/// What a forked child of the init is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) enum Job {
    /// Run a program.
    Exec { argv: Vec<OsString>, cwd: PathBuf, variables: BTreeMap<String, String> },
    /// Print a regular file of at most so many bytes.
    Read { path: PathBuf, limit: u64 },
    /// Write standard input to a file.
    Write { path: PathBuf },
    /// Print a folder's entries.
    List { path: PathBuf },
    /// Write and remove files as standard input says.
    Lay,
    /// Kill everything else and print what the workspace holds, or which of the paths on standard input.
    Survey,
    /// Print the files that standard input names.
    Collect,
}

/// From the harness to the init, after [`Setup`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) enum Request {
    /// Run a job.
    Run { job: Job, wall: Duration, grace: Duration, output: usize, stdin: Vec<u8> },
    /// Kill what runs: the disk is full.
    Stop,
    /// End what runs as at its time limit.
    Expire,
    /// Listen on the sandbox's own loopback, and relay the connections while jobs run.
    Listen,
    /// About a relayed connection.
    Line(Line),
}

/// What passes of a relayed connection, in either direction. The number is the init's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox) enum Line {
    /// A process inside has connected.
    Opened(u64),
    /// Bytes, at most [`LINE_WINDOW`] of which may be on their way.
    Bytes(u64, Vec<u8>),
    /// So many bytes have reached their end, and make room for others.
    Taken(u64, u64),
    /// This side sends no more.
    HungUp(u64),
}

/// Bytes of one relayed connection that may be on their way in each direction.
pub(in crate::sandbox) const LINE_WINDOW: usize = 256 << 10;

/// Most bytes of one message: small enough to pass while the shortest of replies is waited for.
pub(in crate::sandbox) const LINE_PART: usize = 32 << 10;

/// Bytes that have been taken and not been told of yet. Told in large parts, for every message wakes the other side; so
/// at least half of a window is always there for who sends.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct Untold(u64);

impl Untold {
    /// So many more are taken; what the other side is to be told now.
    pub(in crate::sandbox) fn take(&mut self, line: u64, count: usize) -> Option<Line> {
        self.0 += count as u64;
        (self.0 >= LINE_WINDOW as u64 / 2).then(|| Line::Taken(line, std::mem::take(&mut self.0)))
    }
}

/// From the init to the harness.
#[derive(Debug)]
pub(in crate::sandbox) enum Reply {
    /// Set up.
    Ready,
    /// Could not be set up, or can no longer be relied on.
    Failed(String),
    /// A job is done.
    Done(Exec),
    /// A job could not be begun, by fault of its command.
    Refused(String),
    /// Listens on this port of 127.0.0.1.
    Listening(u16),
    /// About a relayed connection, at any time while a job runs.
    Line(Line),
}

struct Writer(Vec<u8>);

impl Writer {
    /// Starts with room for the frame's length.
    fn new() -> Self {
        Self(vec![0; 8])
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64).0.extend_from_slice(bytes);
        self
    }

    fn path(&mut self, path: &Path) -> &mut Self {
        self.bytes(path.as_os_str().as_bytes())
    }

    fn paths(&mut self, paths: &[PathBuf]) -> &mut Self {
        self.number(paths.len() as u64);
        paths.iter().fold(self, |to, path| to.path(path))
    }

    fn time(&mut self, time: Duration) -> &mut Self {
        self.number(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    fn map(&mut self, map: &BTreeMap<String, String>) -> &mut Self {
        self.number(map.len() as u64);
        for (key, value) in map {
            self.bytes(key.as_bytes()).bytes(value.as_bytes());
        }
        self
    }

    /// The frame of a message that is nothing but its kind.
    fn alone(mut self, kind: u64) -> Vec<u8> {
        self.number(kind);
        self.frame()
    }

    fn frame(mut self) -> Vec<u8> {
        let length = self.0.len() as u64 - 8;
        self.0[..8].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a garbled message")
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> io::Result<u64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(garbled)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| garbled())?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(garbled)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| garbled())
    }

    fn os(&mut self) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.bytes()?.to_vec()))
    }

    fn path(&mut self) -> io::Result<PathBuf> {
        self.os().map(PathBuf::from)
    }

    fn paths(&mut self) -> io::Result<Vec<PathBuf>> {
        (0..self.number()?).map(|_| self.path()).collect()
    }

    fn time(&mut self) -> io::Result<Duration> {
        self.number().map(Duration::from_nanos)
    }

    fn map(&mut self) -> io::Result<BTreeMap<String, String>> {
        (0..self.number()?).map(|_| Ok((self.text()?, self.text()?))).collect()
    }
}

impl Setup {
    pub(in crate::sandbox) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::new();
        to.number(match self.place {
            Place::Host => 0,
            Place::Namespaces => 1,
            Place::Container => 2,
        });
        let (has_owner, (uid, gid)) = (self.owner.is_some(), self.owner.unwrap_or_default());
        to.number(u64::from(has_owner)).number(uid.into()).number(gid.into());
        match &self.layers {
            Layers::Overlay { lower, upper, work } => to.number(0).path(lower).path(upper).path(work),
            Layers::Copy { dir } => to.number(1).path(dir),
            // What it is made of lies on the host, and is no business of the container's.
            Layers::Image { .. } => to.number(2),
        };
        to.paths(&self.read_only).paths(&self.doors);
        // How many CPUs there are is the group's to limit, not the init's.
        let SandboxLimits { memory, processes, file_size, disk, cpu_seconds, cpus: _ } = self.limits;
        to.map(&self.variables);
        to.number(memory).number(processes).number(file_size).number(disk).number(cpu_seconds);
        to.number(u64::from(self.memory_cgroup)).number(u64::from(self.processes_cgroup));
        to.path(self.scratch.as_deref().unwrap_or(Path::new("")));
        to.frame()
    }

    pub(in crate::sandbox) fn decode(payload: &[u8]) -> io::Result<Self> {
        let mut from = Reader(payload);
        let place = match from.number()? {
            0 => Place::Host,
            1 => Place::Namespaces,
            _ => Place::Container,
        };
        let (has_owner, uid, gid) = (from.number()?, from.number()? as u32, from.number()? as u32);
        let layers = match from.number()? {
            0 => Layers::Overlay { lower: from.path()?, upper: from.path()?, work: from.path()? },
            1 => Layers::Copy { dir: from.path()? },
            _ => Layers::Image { tree: PathBuf::new(), digest: String::new(), upper: PathBuf::new() },
        };
        let (read_only, doors) = (from.paths()?, from.paths()?);
        Ok(Self {
            place,
            owner: (has_owner != 0).then_some((uid, gid)),
            layers,
            read_only,
            doors,
            variables: from.map()?,
            limits: SandboxLimits {
                memory: from.number()?,
                processes: from.number()?,
                file_size: from.number()?,
                disk: from.number()?,
                cpu_seconds: from.number()?,
                cpus: None,
            },
            memory_cgroup: from.number()? != 0,
            processes_cgroup: from.number()? != 0,
            scratch: Some(from.path()?).filter(|path| !path.as_os_str().is_empty()),
        })
    }
}

impl Request {
    pub(in crate::sandbox) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::new();
        let (job, wall, grace, output, stdin) = match self {
            Self::Run { job, wall, grace, output, stdin } => (job, wall, grace, output, stdin),
            Self::Stop => return to.alone(9),
            Self::Expire => return to.alone(10),
            Self::Listen => return to.alone(11),
            Self::Line(line) => {
                line.encode(&mut to);
                return to.frame();
            }
        };
        match job {
            Job::Exec { argv, cwd, variables } => {
                to.number(0).number(argv.len() as u64);
                for argument in argv {
                    to.bytes(argument.as_bytes());
                }
                to.path(cwd).map(variables);
            }
            Job::Read { path, limit } => _ = to.number(1).path(path).number(*limit),
            Job::Write { path } => _ = to.number(2).path(path),
            Job::List { path } => _ = to.number(3).path(path),
            Job::Lay => _ = to.number(4),
            Job::Survey => _ = to.number(5),
            Job::Collect => _ = to.number(6),
        }
        to.time(*wall).time(*grace).number(*output as u64).bytes(stdin);
        to.frame()
    }

    pub(in crate::sandbox) fn decode(payload: &[u8]) -> io::Result<Self> {
        let mut from = Reader(payload);
        let job = match from.number()? {
            0 => Job::Exec {
                argv: (0..from.number()?).map(|_| from.os()).collect::<io::Result<_>>()?,
                cwd: from.path()?,
                variables: from.map()?,
            },
            1 => Job::Read { path: from.path()?, limit: from.number()? },
            2 => Job::Write { path: from.path()? },
            3 => Job::List { path: from.path()? },
            4 => Job::Lay,
            5 => Job::Survey,
            6 => Job::Collect,
            9 => return Ok(Self::Stop),
            10 => return Ok(Self::Expire),
            11 => return Ok(Self::Listen),
            kind => return Line::decode(kind, &mut from).map(Self::Line),
        };
        let (wall, grace, output) = (from.time()?, from.time()?, from.number()? as usize);
        Ok(Self::Run { job, wall, grace, output, stdin: from.bytes()?.to_vec() })
    }
}

impl Reply {
    pub(in crate::sandbox) fn encode(&self) -> Vec<u8> {
        let mut to = Writer::new();
        match self {
            Self::Ready => _ = to.number(0),
            Self::Failed(why) => _ = to.number(1).bytes(why.as_bytes()),
            Self::Refused(why) => _ = to.number(2).bytes(why.as_bytes()),
            Self::Listening(port) => _ = to.number(4).number(u64::from(*port)),
            Self::Line(line) => line.encode(&mut to),
            Self::Done(exec) => {
                let (kind, number) = match exec.exit {
                    Exit::Code(code) => (0, code),
                    Exit::Signal(signal) => (1, signal),
                    Exit::TimedOut => (2, 0),
                    Exit::DiskFull => (3, 0),
                };
                to.number(3).number(kind).number(number as u64).bytes(&exec.stdout).bytes(&exec.stderr);
                to.number(exec.cut).time(exec.wall).time(exec.cpu).number(exec.peak_memory);
            }
        }
        to.frame()
    }

    pub(in crate::sandbox) fn decode(payload: &[u8]) -> io::Result<Self> {
        let mut from = Reader(payload);
        Ok(match from.number()? {
            0 => Self::Ready,
            1 => Self::Failed(from.text()?),
            2 => Self::Refused(from.text()?),
            3 => Self::Done(Exec {
                exit: match (from.number()?, from.number()? as i32) {
                    (0, code) => Exit::Code(code),
                    (1, signal) => Exit::Signal(signal),
                    (2, _) => Exit::TimedOut,
                    (3, _) => Exit::DiskFull,
                    _ => return Err(garbled()),
                },
                stdout: from.bytes()?.to_vec(),
                stderr: from.bytes()?.to_vec(),
                cut: from.number()?,
                wall: from.time()?,
                cpu: from.time()?,
                peak_memory: from.number()?,
            }),
            4 => Self::Listening(from.number()? as u16),
            kind => Self::Line(Line::decode(kind, &mut from)?),
        })
    }
}

impl Line {
    fn encode(&self, to: &mut Writer) {
        match self {
            Self::Opened(line) => _ = to.number(20).number(*line),
            Self::Bytes(line, bytes) => _ = to.number(21).number(*line).bytes(bytes),
            Self::Taken(line, count) => _ = to.number(22).number(*line).number(*count),
            Self::HungUp(line) => _ = to.number(23).number(*line),
        }
    }

    fn decode(kind: u64, from: &mut Reader<'_>) -> io::Result<Self> {
        let line = from.number()?;
        Ok(match kind {
            20 => Self::Opened(line),
            21 => Self::Bytes(line, from.bytes()?.to_vec()),
            22 => Self::Taken(line, from.number()?),
            23 => Self::HungUp(line),
            _ => return Err(garbled()),
        })
    }
}

/// A frame's payload length, refused above `limit` bytes.
pub(in crate::sandbox) fn length(head: [u8; 8], limit: u64) -> io::Result<usize> {
    let length = u64::from_le_bytes(head);
    if length > limit { Err(garbled()) } else { usize::try_from(length).map_err(|_| garbled()) }
}

/// Reads one frame's payload, blocking; `None` at the end of the stream.
pub(in crate::sandbox) fn receive(mut from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 8];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let mut payload = vec![0; length(head, u64::MAX)?];
    from.read_exact(&mut payload)?;
    Ok(Some(payload))
}

/// Sends a frame as one of the `encode` functions made it, blocking.
pub(in crate::sandbox) fn send(mut to: impl Write, frame: &[u8]) -> io::Result<()> {
    to.write_all(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payload(frame: &[u8]) -> &[u8] {
        assert_eq!(u64::from_le_bytes(frame[..8].try_into().unwrap()) as usize, frame.len() - 8);
        &frame[8..]
    }

    proptest! {
        #[test]
        fn a_command_of_any_bytes_arrives_as_it_was_sent(
            argv in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
            variables in prop::collection::btree_map(".*", ".*", 0..4),
            stdin in prop::collection::vec(any::<u8>(), 0..200),
            wall in 0_u64..1 << 40,
        ) {
            let argv = argv.into_iter().map(OsString::from_vec).collect();
            let job = Job::Exec { argv, cwd: PathBuf::from("a b"), variables };
            let wall = Duration::from_nanos(wall);
            let request = Request::Run { job, wall, grace: wall / 2, output: 77, stdin };
            prop_assert_eq!(Request::decode(payload(&request.encode())).unwrap(), request);
        }

        #[test]
        fn a_relayed_connections_bytes_arrive_as_they_were_sent(
            line in any::<u64>(), count in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for line in [Line::Opened(line), Line::Bytes(line, bytes), Line::Taken(line, count), Line::HungUp(line)] {
                let request = Request::Line(line.clone());
                prop_assert_eq!(Request::decode(payload(&request.encode())).unwrap(), request);
                let frame = Reply::Line(line.clone()).encode();
                prop_assert!(matches!(Reply::decode(payload(&frame)), Ok(Reply::Line(same)) if same == line));
            }
        }

        #[test]
        fn garbage_is_an_error_and_never_a_crash(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (Setup::decode(&bytes), Request::decode(&bytes), Reply::decode(&bytes));
        }
    }

    #[test]
    fn a_setup_arrives_as_it_was_sent() {
        let setup = Setup {
            place: Place::Namespaces,
            owner: Some((7, 8)),
            layers: Layers::Overlay { lower: "/l".into(), upper: "/u".into(), work: "/w".into() },
            read_only: vec!["/opt/python".into()],
            doors: vec!["/sys/fs/cgroup/pids/x/tasks".into()],
            variables: [("A".to_owned(), "b".to_owned())].into(),
            limits: SandboxLimits::default(),
            memory_cgroup: true,
            processes_cgroup: false,
            scratch: None,
        };
        let encoded = setup.encode();
        let decoded = Setup::decode(payload(&encoded)).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{setup:?}"));
    }
}
