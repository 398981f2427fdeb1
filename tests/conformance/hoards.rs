//! Memory that belongs to no process: data that waits in sockets and pipes, and objects in the kernel's own tables.

use std::io::{self, IoSlice, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::ExitCode;
use std::time::Duration;

use autoexperiment::sandbox::Exit;
use nix::libc;
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};

use super::fixture::{Inside, MIB, Outcome, limits};
use crate::ensure;

/// Maximum bytes that a test requests, so that a failing test does not take the machine down.
const MOST: usize = 1 << 30;
/// Time for which the memory is kept: long enough for the init to check the memory several times.
const KEPT: Duration = Duration::from_secs(4);

crate::cases! {
    memory_in_sockets_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        for way in ["pairs", "closed", "datagrams", "waiting"] {
            inside.cannot_hoard(way).await?;
        }
        inside.end().await?;
    }

    memory_in_sockets_under_way_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        inside.cannot_hoard("passed").await?;
        inside.end().await?;
    }

    memory_in_connections_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        for way in ["loopback", "packets"] {
            inside.cannot_hoard(way).await?;
        }
        inside.end().await?;
    }

    memory_in_pipes_and_tables_is_limited(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        for way in ["pipes", "given-pages", "semaphores"] {
            inside.cannot_hoard(way).await?;
        }
        inside.end().await?;
    }

    a_hundred_busy_sockets_do_not_exceed_the_memory_limit(fixture) {
        fixture.limits.memory = 128 * MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["hoard", "pairs", "8"], limits(20.0)).await?;
        ensure!(done.stdout.starts_with(b"held"), "{done:?}");
        inside.end().await?;
    }
}

impl Inside {
    /// Checks that a program cannot hold more than the memory limit for long: either the program is killed, or the
    /// kernel refuses it the memory.
    async fn cannot_hoard(&mut self, way: &str) -> Outcome {
        let done = self.hostile(&["hoard", way, "300"], limits(60.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let got = said.trim().strip_prefix("refused at ").map(|number| number.parse::<u64>().unwrap_or(u64::MAX));
        ensure!(
            matches!(done.exit, Exit::Signal(_)) || got.is_some_and(|got| got <= 128),
            "{way}: {:?} {said} {}",
            done.exit,
            String::from_utf8_lossy(&done.stderr)
        );
        self.works().await
    }
}

/// Takes `megabytes` of memory in this way, keeps it for a while, and prints the amount, or the amount at which it was
/// refused.
pub fn act(way: &str, megabytes: usize) -> ExitCode {
    let wanted = (megabytes << 20).min(MOST);
    let mut hoard = Hoard { held: 0, kept: Vec::new(), files: Vec::new() };
    let mut result = Ok(());
    while result.is_ok() && hoard.held < wanted {
        result = hoard.more(way);
    }
    std::thread::sleep(KEPT);
    match result {
        Ok(()) => println!("held {}", hoard.held >> 20),
        Err(_) => println!("refused at {}", hoard.held >> 20),
    }
    ExitCode::SUCCESS
}

struct Hoard {
    held: usize,
    kept: Vec<Box<dyn std::any::Any>>,
    files: Vec<OwnedFd>,
}

impl Hoard {
    fn more(&mut self, way: &str) -> io::Result<()> {
        match way {
            "pairs" => {
                let (one, other) = pair(SockType::Stream)?;
                self.held += fill(&one) + fill(&other);
                self.files.extend([one, other]);
            }
            // Data stays in the socket when its sender is gone.
            "closed" => {
                let (one, other) = pair(SockType::Stream)?;
                self.held += fill(&one);
                self.files.push(other);
            }
            "datagrams" => {
                let (one, other) = pair(SockType::Datagram)?;
                self.held += fill(&one);
                self.files.push(other);
            }
            // Sockets that are only referred to by messages that nobody reads.
            "passed" => {
                let (from, to) = pair(SockType::Stream)?;
                for _ in 0..50 {
                    let (one, other) = pair(SockType::Stream)?;
                    self.held += fill(&one) + fill(&other);
                    let passed: [RawFd; 2] = [one.as_raw_fd(), other.as_raw_fd()];
                    let rights = [ControlMessage::ScmRights(&passed)];
                    sendmsg::<()>(from.as_raw_fd(), &[IoSlice::new(b"x")], &rights, MsgFlags::empty(), None)?;
                }
                self.files.extend([from, to]);
            }
            // Connections that have not been accepted.
            "waiting" => {
                use std::os::linux::net::SocketAddrExt;
                use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
                let address = SocketAddr::from_abstract_name(format!("hoard{}", self.held))?;
                let listener = UnixListener::bind_addr(&address)?;
                for _ in 0..100 {
                    let stream = UnixStream::connect_addr(&address)?;
                    stream.set_nonblocking(true)?;
                    self.held += fill(&OwnedFd::from(stream));
                }
                self.files.push(listener.into());
            }
            "loopback" => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let stream = TcpStream::connect(listener.local_addr()?)?;
                stream.set_nonblocking(true)?;
                self.held += fill(&OwnedFd::from(stream.try_clone()?));
                self.kept.push(Box::new((listener, stream)));
            }
            "packets" => {
                let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
                for _ in 0..4 {
                    // Packets that do not fit are dropped.
                    self.held += one.send_to(&vec![1; 50_000], other.local_addr()?)?;
                }
                self.files.push(other.into());
            }
            "pipes" => {
                let (reader, mut writer) = io::pipe()?;
                rustix::io::ioctl_fionbio(&writer, true)?;
                while let Ok(count) = writer.write(&[1; 4096]) {
                    self.held += count;
                }
                self.files.push(reader.into());
            }
            // A pipe that holds one byte of a huge page keeps the whole page in memory.
            "given-pages" => self.held += given_page(&mut self.files)?,
            "semaphores" => {
                // SAFETY: the call takes no pointers.
                if unsafe { libc::semget(libc::IPC_PRIVATE, 32_000, libc::IPC_CREAT | 0o600) } < 0 {
                    return Err(io::Error::last_os_error());
                }
                self.held += 32_000 * 64;
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }
}

/// Moves one byte of each of several huge pages into a pipe and frees the pages. Returns the number of bytes that the
/// pipe then keeps.
///
/// # Errors
/// If the kernel has no huge page to give: the pipe would keep a small page then, and the number would be wrong.
fn given_page(files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    const HUGE: usize = 2 << 20;
    let (reader, writer) = io::pipe()?;
    let mut kept = 0;
    for _ in 0..2 {
        // SAFETY: the mapping is private to this function, and as long as the bytes that are written to it.
        unsafe {
            let (flags, rights) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            let memory = libc::mmap(std::ptr::null_mut(), 2 * HUGE, rights, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let huge = memory.byte_add(memory.align_offset(HUGE));
            libc::madvise(huge, HUGE, libc::MADV_HUGEPAGE);
            std::ptr::write_bytes(huge.cast::<u8>(), 1, HUGE);
            // If this call succeeds, the memory is one huge page, even if it was not one before.
            if libc::madvise(huge, HUGE, libc::MADV_COLLAPSE) < 0 {
                return Err(io::Error::last_os_error());
            }
            let piece = libc::iovec { iov_base: huge, iov_len: 1 };
            let given = libc::vmsplice(writer.as_raw_fd(), &raw const piece, 1, libc::SPLICE_F_NONBLOCK);
            let error = io::Error::last_os_error();
            libc::munmap(memory, 2 * HUGE);
            if given < 0 {
                return Err(error);
            }
        }
        kept += HUGE;
    }
    files.push(reader.into());
    Ok(kept)
}

fn pair(kind: SockType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_NONBLOCK)?)
}

/// Writes as much as fits, and returns the number of bytes.
fn fill(socket: &OwnedFd) -> usize {
    let block = vec![1; 32 << 10];
    let mut sent = 0;
    while let Ok(count) = nix::unistd::write(socket, &block) {
        sent += count;
    }
    sent
}
