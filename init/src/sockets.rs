//! Measures the memory of the data that waits in the sockets of a network namespace, as the kernel counts it. This
//! memory belongs to no process.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use nix::libc;
use nix::sys::socket::sockopt::{RcvBuf, SndBuf};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, getsockopt, setsockopt, socket};

/// Message types, flags and attributes of the kernel's socket diagnostics that `libc` does not define.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UDIAG_SHOW_MEMINFO: u32 = 0x20;
const UNIX_DIAG_MEMINFO: u16 = 5;
const INET_DIAG_SKMEMINFO: u16 = 7;
const NDIAG_PROTO_ALL: u8 = 255;
const NDIAG_SHOW_MEMINFO: u32 = 1;
const NETLINK_DIAG_MEMINFO: u16 = 0;
/// Length of a message's header.
const HEAD: usize = 16;
/// The usual default limit of a socket in bytes, used if the setting cannot be read.
const USUAL: u64 = 212_992;
/// Bytes that a hidden TCP connection may hold: twice the kernel's usual limits for sending and receiving.
const CONNECTION: u64 = 20 << 20;
/// Bytes beyond its limits that a socket may hold: the last message or packet, reserved pages, and options.
const BEYOND_LIMITS: u64 = 4 << 20;

/// A family of sockets to list: the request, the size of a reply before its attributes, and the attribute with the
/// memory.
struct SocketFamily {
    request: Vec<u8>,
    body: usize,
    attribute: u16,
    /// Whether sockets of this family may hold much more than those of other families.
    is_tcp: bool,
}

/// Access to the sockets of the network namespace in which this was opened.
pub(super) struct Sockets {
    asked: File,
    used: File,
    families: Vec<SocketFamily>,
    most: u64,
    /// Maximum bytes of any socket; `None` if the kernel does not report the limits. Read when first needed.
    largest: OnceCell<Option<u64>>,
}

/// Sum over the listed sockets.
#[derive(Default)]
struct SocketUsage {
    bytes: u64,
    sockets: u64,
    /// Whether the kernel could not list a family of TCP sockets, so that TCP sockets may be hidden.
    is_without_tcp: bool,
}

/// Returns the maximum bytes that one socket may have sent without the other side receiving them, provided that the
/// socket cannot raise its limit. Must be called before the host's `/proc` is covered, because only that one shows the
/// setting.
pub(super) fn most_of_one() -> u64 {
    // The kernel checks the limit before it queues a message, so the last message may exceed it by as much again. The
    // messages' own structures count, too.
    4 * setting("wmem_default")
}

/// Returns the maximum bytes that one of two connected stream sockets may have sent and the other not yet received.
pub(super) fn most_of_a_pair() -> u64 {
    // Here, too, the last message may exceed the limit, but a message of a stream socket is at most half as large as
    // the limit.
    setting("wmem_default") * 3 / 2
}

fn setting(name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(USUAL)
}

impl Sockets {
    /// Opens descriptors that commands may not open. `most` is the number of bytes that each hidden socket counts for.
    pub(super) fn open(most: u64) -> io::Result<Self> {
        let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let asked = File::from(socket(kind.0, kind.1, kind.2, SockProtocol::NetlinkSockDiag)?);
        let used = File::open("/proc/self/net/sockstat")?;
        Ok(Self { asked, used, families: families(), most, largest: OnceCell::new() })
    }

    /// Returns an upper bound for the bytes in all sockets together, if it is known. Unlike [`Self::bytes`], this reads
    /// only one short file; to list a namespace's connections, the kernel searches the connections of the whole
    /// machine.
    pub(super) fn at_most(&self) -> Option<u64> {
        let largest = (*self.largest.get_or_init(largest))?;
        Some(self.used()?.saturating_mul(largest.max(self.most).max(CONNECTION)))
    }

    /// Returns the bytes in all sockets together. After its owner has closed it, a socket is no longer listed, but it
    /// continues to exist until the data that it sent is received. Each of these hidden sockets counts as the maximum
    /// that it may hold.
    pub(super) fn bytes(&mut self) -> u64 {
        let used = self.used().unwrap_or(0);
        let mut found = SocketUsage::default();
        for family in &self.families {
            // If the kernel cannot list a family, its sockets count as hidden.
            if list(&mut self.asked, family, &mut found).is_err() {
                found.is_without_tcp |= family.is_tcp;
            }
        }
        let most = if found.is_without_tcp { self.most.max(CONNECTION) } else { self.most };
        found.bytes + used.saturating_sub(found.sockets) * most
    }

    /// Returns the number of sockets, including those that their owners have closed. Parses a line such as "sockets:
    /// used 7".
    fn used(&self) -> Option<u64> {
        let mut text = [0; 64];
        let count = self.used.read_at(&mut text, 0).ok()?;
        let text = String::from_utf8_lossy(&text[..count]);
        text.strip_prefix("sockets: used ")?.lines().next()?.trim().parse().ok()
    }
}

/// Returns the maximum bytes that a socket of this network namespace may hold: the data it has sent and received, and
/// as much again for data that arrives while its owner reads.
fn largest() -> Option<u64> {
    let automatic = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_ascii_whitespace().nth(2)?.parse::<u64>().ok()
    };
    // The machine's limit of a socket's buffers is not shown in this namespace. So make a socket, ask for more than any
    // limit allows, and read how much the kernel has granted.
    let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).ok()?;
    setsockopt(&socket, RcvBuf, &(1 << 30)).ok()?;
    setsockopt(&socket, SndBuf, &(1 << 30)).ok()?;
    let received = automatic("tcp_rmem")?.max(getsockopt(&socket, RcvBuf).ok()? as u64);
    let sent = automatic("tcp_wmem")?.max(getsockopt(&socket, SndBuf).ok()? as u64);
    Some(2 * (received + sent) + BEYOND_LIMITS)
}

fn families() -> Vec<SocketFamily> {
    let all_states = u32::MAX.to_ne_bytes();
    let mut unix = vec![libc::AF_UNIX as u8, 0, 0, 0];
    unix.extend(all_states);
    unix.extend(0_u32.to_ne_bytes());
    unix.extend(UDIAG_SHOW_MEMINFO.to_ne_bytes());
    unix.extend([0; 8]);
    let mut netlink = vec![libc::AF_NETLINK as u8, NDIAG_PROTO_ALL, 0, 0, 0, 0, 0, 0];
    netlink.extend(NDIAG_SHOW_MEMINFO.to_ne_bytes());
    netlink.extend([0; 8]);
    let mut families = vec![
        SocketFamily { request: unix, body: 16, attribute: UNIX_DIAG_MEMINFO, is_tcp: false },
        SocketFamily { request: netlink, body: 28, attribute: NETLINK_DIAG_MEMINFO, is_tcp: false },
    ];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
            let mut request = vec![family as u8, protocol as u8, 1 << (INET_DIAG_SKMEMINFO - 1), 0];
            request.extend(all_states);
            request.extend([0; 48]);
            let is_tcp = protocol == libc::IPPROTO_TCP;
            families.push(SocketFamily { request, body: 72, attribute: INET_DIAG_SKMEMINFO, is_tcp });
        }
    }
    families
}

/// Adds up the kernel's figures for the sockets of a family.
fn list(asked: &mut File, family: &SocketFamily, found: &mut SocketUsage) -> io::Result<()> {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut message = ((HEAD + family.request.len()) as u32).to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(&family.request);
    asked.write_all(&message)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = asked.read(&mut buffer)?;
        let mut rest = &buffer[..count];
        while let Some((kind, body, after)) = next(rest) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(()),
                libc::NLMSG_ERROR => return Err(io::ErrorKind::Unsupported.into()),
                _ => found.add(family, body),
            }
            rest = after;
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Splits off the first message: its type, its content, and the rest.
fn next(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    Some((kind, bytes.get(HEAD..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Returns the number that these bytes begin with.
fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.first_chunk().copied()?))
}

impl SocketUsage {
    /// Counts a socket if its memory is reported. Otherwise the socket counts as hidden.
    fn add(&mut self, family: &SocketFamily, body: &[u8]) {
        let mut rest = body.get(family.body..).unwrap_or_default();
        while let Some([a, b, c, d]) = rest.first_chunk() {
            let (length, kind) = (usize::from(u16::from_ne_bytes([*a, *b])), u16::from_ne_bytes([*c, *d]));
            let Some(value) = rest.get(4..length) else { return };
            if kind == family.attribute {
                let field = |index: usize| value.get(4 * index..).and_then(number).map_or(0, u64::from);
                // Sum of received bytes, the larger one of sent and queued bytes, reserved bytes, options, and the
                // backlog.
                self.bytes += field(0) + field(2).max(field(5)) + field(4) + field(6) + field(7);
                // The kernel's own netlink sockets have port 0 and are not included in the number of used sockets.
                let is_kernel_s = family.attribute == NETLINK_DIAG_MEMINFO && body.get(4..).and_then(number) == Some(0);
                self.sockets += u64::from(!is_kernel_s);
                return;
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_upper_bound_of_socket_data_is_above_its_measured_bytes_and_far_below_a_machines_memory() {
        let pairs: Vec<_> = (0..20).map(|_| UnixStream::pair().unwrap()).collect();
        let written: usize = pairs
            .iter()
            .map(|(one, _)| {
                one.set_nonblocking(true).unwrap();
                std::iter::from_fn(|| {
                    let mut one = one;
                    one.write(&vec![1; 32 << 10]).ok()
                })
                .sum::<usize>()
            })
            .sum();
        let mut sockets = Sockets::open(0).unwrap();
        let (bytes, bound) = (sockets.bytes(), sockets.at_most().unwrap());
        assert!(written as u64 <= bytes && bytes <= bound, "{written} {bytes} {bound}");
        let largest = largest().unwrap();
        assert!((1 << 20..1 << 31).contains(&largest), "{largest}");
    }

    #[test]
    fn unread_socket_data_counts_until_the_socket_is_closed() {
        use std::net::{TcpListener, TcpStream};
        let mut sockets = Sockets::open(most_of_one()).unwrap();
        let families = families();
        let mut total = |place: usize| {
            let mut found = SocketUsage::default();
            list(&mut sockets.asked, &families[place], &mut found).ok().map(|()| (found.bytes, found.sockets))
        };
        // Test with this machine's sockets. Other tests have sockets, too, but hardly any data in them.
        for place in [0, 2] {
            let Some((before, few)) = total(place) else {
                eprintln!("skipped: this kernel does not list such sockets");
                continue;
            };
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let connected = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut kept: Vec<Box<dyn std::any::Any>> = Vec::new();
            for _ in 0..200 {
                if place == 0 {
                    let (one, other) = UnixStream::pair().unwrap();
                    (&one).write_all(&vec![1; 100_000]).unwrap();
                    kept.push(Box::new((one, other)));
                } else {
                    let one = connected();
                    (&one).write_all(&vec![1; 40_000]).unwrap();
                    kept.push(Box::new((one, listener.accept().unwrap())));
                }
            }
            let (full, many) = total(place).unwrap();
            assert!(full >= before + 7_000_000 && many >= few + 200, "{before} {few}, {full} {many}");
            drop(kept);
            let (after, _) = total(place).unwrap();
            assert!(after < full - 4_000_000, "{before} {full} {after}");
        }
    }
}
