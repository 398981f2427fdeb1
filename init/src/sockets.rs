//! How much memory waits in the sockets of a network namespace, as the kernel counts it. It belongs to no process.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

/// Kinds of messages and requests, which `libc` lacks.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UDIAG_SHOW_MEMINFO: u32 = 0x20;
const UNIX_DIAG_MEMINFO: u16 = 5;
const INET_DIAG_SKMEMINFO: u16 = 7;
const NDIAG_PROTO_ALL: u8 = 255;
const NDIAG_SHOW_MEMINFO: u32 = 1;
const NETLINK_DIAG_MEMINFO: u16 = 0;
/// The head of each message.
const HEAD: usize = 16;
/// Where the default limit of a socket cannot be read.
const USUAL: u64 = 212_992;
/// A connection of TCP that cannot be seen may hold so much: twice the kernel's usual limits for what it sends and receives.
const CONNECTION: u64 = 20 << 20;

/// A family of sockets to ask for: the request, the size of a reply before its attributes, and the attribute that counts.
struct Family {
    request: Vec<u8>,
    body: usize,
    attribute: u16,
    /// Whether its sockets may hold much more than those of other families.
    is_tcp: bool,
}

/// The sockets of the network namespace in which this was opened.
pub(super) struct Sockets {
    asked: File,
    used: File,
    families: Vec<Family>,
    most: u64,
}

/// What was found.
#[derive(Default)]
struct Found {
    bytes: u64,
    sockets: u64,
    is_without_tcp: bool,
}

/// Bytes that one socket may have sent, where it cannot ask for more than others have. To be asked before the host's
/// `/proc` is covered, because only the host knows it.
pub(super) fn most_of_one() -> u64 {
    // The kernel takes a last message that is as large again, and what holds the messages counts, too.
    4 * setting("wmem_default")
}

/// The same for a socket of a pair that is a stream.
pub(super) fn most_of_a_pair() -> u64 {
    // A message is at most half as large as what may wait.
    setting("wmem_default") * 3 / 2
}

fn setting(name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(USUAL)
}

impl Sockets {
    /// Opens what commands may not. `most`: what each socket counts for that is used and cannot be seen.
    pub(super) fn open(most: u64) -> io::Result<Self> {
        let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let asked = File::from(socket(kind.0, kind.1, kind.2, SockProtocol::NetlinkSockDiag)?);
        let used = File::open("/proc/self/net/sockstat")?;
        Ok(Self { asked, used, families: families(), most })
    }

    /// Bytes in all sockets together. One whose owner has closed it lives on while what it sent waits, and can no longer be
    /// seen: each of these counts for as much as it may hold.
    pub(super) fn bytes(&mut self) -> u64 {
        let used = self.used();
        let mut found = Found::default();
        for family in &self.families {
            // The kernel may not know how to list a family. Its sockets are then hidden ones.
            if list(&mut self.asked, family, &mut found).is_err() {
                found.is_without_tcp |= family.is_tcp;
            }
        }
        let most = if found.is_without_tcp { self.most.max(CONNECTION) } else { self.most };
        found.bytes + used.saturating_sub(found.sockets) * most
    }

    /// How many there are: "sockets: used 7".
    fn used(&self) -> u64 {
        let mut text = [0; 64];
        let count = self.used.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..count]);
        text.strip_prefix("sockets: used ").and_then(|rest| rest.lines().next()?.trim().parse().ok()).unwrap_or(0)
    }
}

fn families() -> Vec<Family> {
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
        Family { request: unix, body: 16, attribute: UNIX_DIAG_MEMINFO, is_tcp: false },
        Family { request: netlink, body: 28, attribute: NETLINK_DIAG_MEMINFO, is_tcp: false },
    ];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
            let mut request = vec![family as u8, protocol as u8, 1 << (INET_DIAG_SKMEMINFO - 1), 0];
            request.extend(all_states);
            request.extend([0; 48]);
            let is_tcp = protocol == libc::IPPROTO_TCP;
            families.push(Family { request, body: 72, attribute: INET_DIAG_SKMEMINFO, is_tcp });
        }
    }
    families
}

/// Adds up what the kernel says about the sockets of a family.
fn list(asked: &mut File, family: &Family, found: &mut Found) -> io::Result<()> {
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

/// The first message: its kind, what it holds, and what follows it.
fn next(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    Some((kind, bytes.get(HEAD..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The number that these bytes begin with.
fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.first_chunk().copied()?))
}

impl Found {
    /// Counts a socket whose memory is told; others are among the hidden.
    fn add(&mut self, family: &Family, body: &[u8]) {
        let mut rest = body.get(family.body..).unwrap_or_default();
        while let Some([a, b, c, d]) = rest.first_chunk() {
            let (length, kind) = (usize::from(u16::from_ne_bytes([*a, *b])), u16::from_ne_bytes([*c, *d]));
            let Some(value) = rest.get(4..length) else { return };
            if kind == family.attribute {
                let field = |index: usize| value.get(4 * index..).and_then(number).map_or(0, u64::from);
                // Received; sent, or waiting to be; reserved; options; waiting for who is reading.
                self.bytes += field(0) + field(2).max(field(5)) + field(4) + field(6) + field(7);
                // The kernel's own sockets for netlink, which are not used by anybody, have no number.
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
    fn what_waits_in_a_socket_is_counted_and_what_is_closed_no_longer() {
        use std::net::{TcpListener, TcpStream};
        let mut sockets = Sockets::open(most_of_one()).unwrap();
        let families = families();
        let mut total = |place: usize| {
            let mut found = Found::default();
            list(&mut sockets.asked, &families[place], &mut found).ok().map(|()| (found.bytes, found.sockets))
        };
        // Of this machine, and first of IPv4. Other tests have sockets, too, but hold next to nothing in them.
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
