//! The messages between the harness and the init, over a socket or two pipes.
//!
//! A message is a frame: the payload's length (8 bytes, little-endian), then the payload in the format of `postcard`.
//! Every reader sets a maximum length of the payload. A frame that is longer, incomplete or invalid is an error.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Exec;

/// Maximum bytes of a request: one file to write, or all files to put into a workspace.
pub const LONGEST_REQUEST: u64 = 1 << 30;
/// Maximum bytes of a request's other parts: arguments, variables and paths.
pub const ENVELOPE: u64 = 16 << 20;
/// Maximum memory reserved for a payload before it has arrived.
const RESERVED: u64 = 8 << 20;

/// A path, argument or name, sent as raw bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsBytes(#[serde(with = "serde_bytes")] Vec<u8>);

impl OsBytes {
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os_str())
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for OsBytes {
    fn from(text: &T) -> Self {
        Self(text.as_ref().as_bytes().to_vec())
    }
}

impl std::fmt::Debug for OsBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_os_str().fmt(f)
    }
}

/// The place where an init runs, which determines what it has to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Surroundings {
    /// On the host; moves into its own namespaces.
    Namespaces,
    /// On the host; confined only by landlock.
    Host,
    /// On the host; not confined.
    Unconfined,
    /// The first process of a container that an engine has built.
    Container,
}

/// The source of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkspaceSource {
    /// An overlay to mount.
    Overlay {
        lower: OsBytes,
        upper: OsBytes,
        work: OsBytes,
        /// The root of a separate file system that holds only `upper` and `work`, if there is one.
        disk: Option<OsBytes>,
    },
    /// A folder of the host.
    Folder(OsBytes),
    /// The workspace is part of the container's image.
    Image,
}

/// The limits that the init sets or watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitLimits {
    pub memory: u64,
    pub processes: u64,
    pub file_size: u64,
    pub disk: u64,
    pub cpu_seconds: u64,
    /// CPU time of all processes together, in thousandths of a CPU; `None` for no limit. The harness sets this limit
    /// through a cgroup. The init needs the number because waiting for this limit is no delay by other processes.
    pub milli_cpus: Option<u64>,
}

/// The first message: the sandbox to set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub place: Surroundings,
    /// Host user and group of the sandbox's processes, if the init starts as root.
    pub owner: Option<(u32, u32)>,
    pub source: WorkspaceSource,
    pub read_only: Vec<OsBytes>,
    /// Folders and files to hide although they are inside shown folders. With namespaces, an empty folder or file is
    /// mounted over each. Without namespaces, the sandbox gets no permission to read them.
    pub masked: Vec<OsBytes>,
    /// Device files of the host that the sandbox shows in addition to the usual ones.
    pub devices: Vec<OsBytes>,
    /// Files that become read-only, as paths in the workspace.
    pub sealed: Vec<OsBytes>,
    pub variables: BTreeMap<String, String>,
    pub limits: InitLimits,
    /// The files through which the init enters its control groups.
    pub procs_files: Vec<OsBytes>,
    /// Whether a cgroup limits memory, so that the address space need not be limited.
    pub memory_cgroup: bool,
    /// Whether a cgroup limits processes, so that the user's processes need not be counted.
    pub processes_cgroup: bool,
    /// A private folder for temporary files on the host, for a sandbox without its own view of the file system.
    pub scratch: Option<OsBytes>,
}

/// The work of a child process of the init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitJob {
    /// Run a program.
    Exec { argv: Vec<OsBytes>, cwd: OsBytes, variables: BTreeMap<String, String> },
    /// Print a regular file of at most `limit` bytes.
    Read { path: OsBytes, limit: u64 },
    /// Write standard input to a file.
    Write { path: OsBytes },
    /// Print a folder's entries.
    List { path: OsBytes },
    /// Write and remove the files listed on standard input.
    Lay,
    /// Kill all other processes, then list the workspace's entries. If standard input contains paths, list only the
    /// paths among them that exist.
    Survey,
    /// Same as [`InitJob::Survey`], but all other processes are only stopped. They continue after [`InitJob::Collect`].
    Look,
    /// Print the contents of the files listed on standard input.
    Collect,
}

/// A message from the harness to the init, sent after [`Setup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitRequest {
    /// Run a job.
    Run {
        job: InitJob,
        wall: Duration,
        patience: Duration,
        grace: Duration,
        output: u64,
        #[serde(with = "serde_bytes")]
        stdin: Vec<u8>,
    },
    /// Kill the running job, because the disk is full.
    Stop,
    /// End the running job as if its time limit had come.
    Expire,
    /// Listen on the sandbox's own loopback, and relay the connections while jobs run.
    Listen,
    /// A message about a relayed connection.
    Relayed(Relayed),
}

/// An event of a relayed connection, in either direction. The init numbers the connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relayed {
    /// A process inside has connected.
    Opened(u64),
    /// Bytes of the connection. At most [`RELAY_WINDOW`] bytes may be in flight.
    Bytes(u64, #[serde(with = "serde_bytes")] Vec<u8>),
    /// Number of further bytes that have reached their reader, so that the sender may send as many more.
    Acknowledged(u64, u64),
    /// This side of the connection sends no more bytes.
    Closed(u64),
}

/// Bytes of one relayed connection that may be in flight in each direction.
pub const RELAY_WINDOW: usize = 256 << 10;

/// Maximum bytes of one message of relayed data, small enough for readers that accept only short replies.
pub const RELAY_PART: usize = 32 << 10;

/// Bytes that have been read but not acknowledged. Every message wakes the other side, so bytes are acknowledged in
/// large amounts, but early enough that the sender always has at least half of its window.
#[derive(Debug, Default)]
pub struct Unacknowledged(u64);

impl Unacknowledged {
    /// Counts more bytes as read, and returns the acknowledgement that is due now.
    pub fn add(&mut self, connection: u64, count: usize) -> Option<Relayed> {
        self.0 += count as u64;
        (self.0 >= RELAY_WINDOW as u64 / 2).then(|| Relayed::Acknowledged(connection, std::mem::take(&mut self.0)))
    }
}

/// A message from the init to the harness.
#[derive(Debug, Serialize, Deserialize)]
pub enum InitReply {
    /// The sandbox is set up.
    Ready,
    /// The sandbox could not be set up, or can no longer be relied on.
    Failed(String),
    /// A job is done.
    Done(Exec),
    /// A job could not be started because of its command.
    Refused(String),
    /// The init listens on this port of 127.0.0.1.
    Listening(u16),
    /// A message about a relayed connection, at any time while a job runs.
    Relayed(Relayed),
    /// The running job gets this much time beyond its limit, because other processes kept the processors busy.
    Later(Duration),
}

fn invalid(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a garbled message: {why}"))
}

/// Appends a message's frame.
pub fn put(to: &mut Vec<u8>, message: &impl Serialize) -> io::Result<()> {
    let start = to.len();
    let mut whole = std::mem::take(to);
    whole.extend_from_slice(&[0; 8]);
    *to = postcard::to_extend(message, whole).map_err(invalid)?;
    let length = (to.len() - start - 8) as u64;
    to[start..start + 8].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Decodes a payload, which must contain exactly one message.
pub fn decode<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> io::Result<T> {
    match postcard::take_from_bytes(payload).map_err(invalid)? {
        (message, []) => Ok(message),
        (_, rest) => Err(invalid(format!("{} bytes too many", rest.len()))),
    }
}

/// Appends one item to a list whose length is not known in advance.
pub fn put_item(to: &mut Vec<u8>, item: &impl Serialize) -> io::Result<()> {
    *to = postcard::to_extend(item, std::mem::take(to)).map_err(invalid)?;
    Ok(())
}

/// Takes the next item from a list that [`put_item`] wrote; `None` at its end.
pub fn next_item<'a, T: Deserialize<'a>>(list: &mut &'a [u8]) -> io::Result<Option<T>> {
    if list.is_empty() {
        return Ok(None);
    }
    let (item, rest) = postcard::take_from_bytes(list).map_err(invalid)?;
    *list = rest;
    Ok(Some(item))
}

/// Reads a payload's length from its frame. A length above `most` is an error.
pub fn length(head: [u8; 8], most: u64) -> io::Result<usize> {
    let length = u64::from_le_bytes(head);
    if length > most {
        return Err(invalid(format!("{length} bytes where at most {most} are expected")));
    }
    usize::try_from(length).map_err(invalid)
}

/// Waits for one message of at most `most` bytes. Returns `None` if the stream ends first.
pub fn receive<T: DeserializeOwned>(mut from: impl Read, most: u64) -> io::Result<Option<T>> {
    let mut head = Vec::with_capacity(8);
    from.by_ref().take(8).read_to_end(&mut head)?;
    let head: [u8; 8] = match head.try_into() {
        Ok(head) => head,
        Err(torn) if torn.is_empty() => return Ok(None),
        Err(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
    };
    let length = length(head, most)? as u64;
    // Reserve little memory at first: a wrong length must not reserve memory for bytes that never arrive.
    let mut payload = Vec::with_capacity(length.min(RESERVED) as usize);
    if from.take(length).read_to_end(&mut payload)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(&payload).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exit;
    use proptest::prelude::*;

    fn frame(message: &impl Serialize) -> Vec<u8> {
        let mut frame = Vec::new();
        put(&mut frame, message).unwrap();
        frame
    }

    fn arrived<T: DeserializeOwned>(frame: &[u8]) -> io::Result<Option<T>> {
        receive(frame, 1 << 20)
    }

    fn setup() -> Setup {
        Setup {
            place: Surroundings::Namespaces,
            owner: Some((7, 8)),
            source: WorkspaceSource::Overlay {
                lower: "/l".into(),
                upper: OsStr::from_bytes(b"/\xff").into(),
                work: "/w".into(),
                disk: Some("/proc/1/fd/9".into()),
            },
            read_only: vec!["/opt/python".into()],
            sealed: Vec::new(),
            masked: vec!["/opt/python/suite".into()],
            devices: vec!["/dev/nvidia0".into()],
            procs_files: vec!["/sys/fs/cgroup/pids/x/tasks".into()],
            variables: [("A".to_owned(), "b".to_owned())].into(),
            limits: InitLimits {
                memory: 1 << 32,
                processes: 256,
                file_size: 1 << 30,
                disk: 1 << 32,
                cpu_seconds: 3600,
                milli_cpus: Some(1500),
            },
            memory_cgroup: true,
            processes_cgroup: false,
            scratch: None,
        }
    }

    proptest! {
        #[test]
        fn a_command_of_any_bytes_arrives_as_it_was_sent(
            argv in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..5),
            variables in prop::collection::btree_map(".*", ".*", 0..4),
            stdin in prop::collection::vec(any::<u8>(), 0..200),
            wall in any::<u64>(),
        ) {
            let argv = argv.into_iter().map(OsBytes).collect();
            let job = InitJob::Exec { argv, cwd: "a b".into(), variables };
            let wall = Duration::from_secs(wall);
            let request = InitRequest::Run { job, wall, patience: wall / 7, grace: wall / 2, output: 77, stdin };
            prop_assert_eq!(arrived(&frame(&request)).unwrap(), Some(request));
        }

        #[test]
        fn a_result_of_any_bytes_arrives_as_it_was_sent(
            stdout in prop::collection::vec(any::<u8>(), 0..200), code in any::<i32>(), cut in any::<u64>(),
        ) {
            let (exit, wall, cpu) = (Exit::Code(code), Duration::MAX, Duration::ZERO);
            let exec = Exec { exit, stdout, stderr: b"\xff".to_vec(), cut, wall, starved: wall / 3, cpu, peak_memory: u64::MAX };
            let Ok(Some(InitReply::Done(same))) = arrived(&frame(&InitReply::Done(exec.clone()))) else { panic!("not done") };
            prop_assert_eq!(format!("{same:?}"), format!("{exec:?}"));
        }

        #[test]
        fn a_relayed_connections_bytes_arrive_as_they_were_sent(
            id in any::<u64>(), count in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let all = [Relayed::Opened(id), Relayed::Bytes(id, bytes), Relayed::Acknowledged(id, count), Relayed::Closed(id)];
            for relayed in all {
                let request = InitRequest::Relayed(relayed.clone());
                prop_assert_eq!(arrived(&frame(&request)).unwrap(), Some(request));
                let reply = frame(&InitReply::Relayed(relayed.clone()));
                prop_assert!(matches!(arrived(&reply), Ok(Some(InitReply::Relayed(same))) if same == relayed));
            }
        }

        #[test]
        fn garbage_is_an_error_and_never_a_crash(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (decode::<Setup>(&bytes), decode::<InitRequest>(&bytes), decode::<InitReply>(&bytes));
            let _ = (arrived::<Setup>(&bytes), next_item::<InitRequest>(&mut &bytes[..]));
        }

        #[test]
        fn a_torn_message_is_an_error(cut in 1_usize..1000) {
            let whole = frame(&setup());
            let torn = &whole[..whole.len().saturating_sub(cut)];
            prop_assert!(torn.is_empty() || arrived::<Setup>(torn).is_err());
            prop_assert!(decode::<Setup>(&whole[8..whole.len() - cut.min(whole.len() - 8)]).is_err());
        }
    }

    #[test]
    fn a_setup_arrives_unchanged_and_the_end_of_the_stream_gives_none() {
        let setup = setup();
        assert_eq!(arrived(&frame(&setup)).unwrap(), Some(setup));
        assert!(arrived::<Setup>(b"").unwrap().is_none());
    }

    #[test]
    fn a_false_length_is_refused_without_reserving_memory() {
        let promise = |length: u64| [&length.to_le_bytes()[..], b"little"].concat();
        let error = arrived::<InitRequest>(&promise(u64::MAX)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        let error = receive::<InitRequest>(&promise(LONGEST_REQUEST)[..], LONGEST_REQUEST).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
        // A list that claims to have more entries than fit in memory.
        let job = [&[0_u8, 0][..], &[0xff; 9], &[1]].concat();
        assert!(decode::<InitRequest>(&job).is_err());
    }

    #[test]
    fn bytes_behind_a_message_are_an_error() {
        let mut payload = frame(&InitRequest::Stop)[8..].to_vec();
        assert_eq!(decode::<InitRequest>(&payload).unwrap(), InitRequest::Stop);
        payload.push(0);
        assert!(decode::<InitRequest>(&payload).is_err());
    }
}
