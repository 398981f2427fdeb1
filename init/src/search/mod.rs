//! Searches all that a process can read for secret texts: files, environments, other processes' memory and open files,
//! sockets. Finds text as it is, compressed (gzip, zlib, zip, zstd, xz or bzip2, at any offset), in base64, and in
//! several such layers.

mod unpack;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::descriptors;
use crate::needles::{NeedleHits, RollingHash, WINDOW, WantedSecrets};

/// Maximum number of nested layers of compression or encoding.
const DEPTH: u32 = 3;
/// Maximum bytes of a file in memory at once, and overlap of consecutive pieces in bytes. Packed text is unpacked only
/// from the piece in which it begins.
const PIECE: usize = 32 << 20;
const OVERLAP: usize = 1 << 20;
/// Maximum bytes that one packed stream is unpacked to.
const UNPACKED: u64 = 64 << 20;
/// Time to wait for a socket to send data.
const SOCKET: Duration = Duration::from_millis(100);
/// The kernel's own file systems, which contain no stored text.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Searches everything within the time limit.
#[must_use]
pub fn search(wanted: &WantedSecrets) -> NeedleHits {
    let mut search = NeedleSearch::new(wanted);
    search.is_stopped = false;
    search.processes();
    // Begin with the attempt's own places: they are small, and the system's folders may take all of the time.
    for own in std::env::current_dir().into_iter().chain(["/tmp".into(), "/dev/shm".into()]) {
        search.tree(&own);
    }
    for root in &wanted.roots {
        search.tree(root);
    }
    search.tree(Path::new("/"));
    search.found.is_complete = !search.is_stopped;
    search.found
}

/// Searches bytes as if they were the content of a file. Returns the numbers of the secrets found.
#[must_use]
pub fn search_bytes(wanted: &WantedSecrets, bytes: &[u8]) -> Vec<u32> {
    let mut search = NeedleSearch::new(wanted);
    search.bytes("", bytes, 0);
    search.found.hits.into_iter().map(|(secret, _)| secret).collect()
}

struct NeedleSearch<'a> {
    wanted: &'a WantedSecrets,
    table: BTreeMap<u64, Vec<u32>>,
    /// One bit for each possible prefix of a hash, set if the table contains a hash with that prefix.
    filter: Vec<u64>,
    seen: BTreeSet<(u64, u64)>,
    hits: BTreeSet<(u32, String)>,
    until: Instant,
    is_stopped: bool,
    found: NeedleHits,
}

/// Number of leading bits of a hash that form its prefix, the index in the filter.
const FILTER: u32 = 20;

impl<'a> NeedleSearch<'a> {
    fn new(wanted: &'a WantedSecrets) -> Self {
        let table = wanted.by_hash();
        let mut filter = vec![0_u64; 1 << (FILTER - 6)];
        for hash in table.keys() {
            let place = hash >> (64 - FILTER);
            filter[(place >> 6) as usize] |= 1 << (place & 63);
        }
        Self {
            wanted,
            table,
            filter,
            seen: BTreeSet::new(),
            hits: BTreeSet::new(),
            until: Instant::now() + Duration::from_secs(wanted.seconds.max(1)),
            is_stopped: false,
            found: NeedleHits::default(),
        }
    }

    fn is_late(&mut self) -> bool {
        self.is_stopped |= Instant::now() >= self.until;
        self.is_stopped
    }

    /// Searches a folder. Links are not followed, because their targets are searched at their own paths.
    fn tree(&mut self, root: &Path) {
        let mut open = vec![root.to_owned()];
        while let Some(path) = open.pop() {
            if self.is_late() {
                return;
            }
            if KERNEL.iter().any(|kernel| path == Path::new(kernel)) {
                continue;
            }
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let kind = about.file_type();
            if !kind.is_symlink() && !self.seen.insert((about.dev(), about.ino())) {
                continue;
            }
            if kind.is_dir() {
                let mut inside: Vec<PathBuf> =
                    fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
                // The last entry is searched first, so put manually installed software after the system's.
                inside.sort_by_key(|path| (path.ends_with("local") || path.ends_with("bin"), path.clone()));
                open.extend(inside);
            } else if kind.is_file() {
                self.file(&path);
            } else if kind.is_socket() {
                self.socket(&path);
            }
        }
    }

    fn file(&mut self, path: &Path) {
        if let Ok(file) = File::open(path) {
            self.pieces(&path.display().to_string(), &file);
        }
    }

    /// Searches an open file from its beginning.
    fn pieces(&mut self, name: &str, file: &File) {
        self.found.files += 1;
        let mut at = 0;
        loop {
            let mut piece = Vec::new();
            let Ok(count) = read_at(file, at, PIECE, &mut piece) else { return };
            self.bytes(name, &piece, 0);
            if count < PIECE || self.is_late() {
                return;
            }
            at += (PIECE - OVERLAP) as u64;
        }
    }

    fn socket(&mut self, path: &Path) {
        let Ok(mut socket) = UnixStream::connect(path) else { return };
        self.found.files += 1;
        let mut said = vec![0; 1 << 16];
        let _ = socket.set_read_timeout(Some(SOCKET));
        if let Ok(count) = socket.read(&mut said) {
            self.bytes(&path.display().to_string(), &said[..count], 0);
        }
    }

    /// Searches the arguments, environments and open files of processes, and the memory of all but this one.
    fn processes(&mut self) {
        let own = std::process::id();
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids: BTreeSet<u32> =
            pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).chain([own]).collect();
        for pid in &pids {
            self.process(*pid);
        }
        for pid in pids.into_iter().filter(|pid| *pid != own) {
            self.memory(pid);
        }
    }

    fn process(&mut self, pid: u32) {
        for part in ["cmdline", "environ"] {
            let path = format!("/proc/{pid}/{part}");
            if let Ok(bytes) = fs::read(&path) {
                self.found.files += 1;
                self.bytes(&path, &bytes, 0);
            }
        }
        if pid == std::process::id() {
            return self.own_descriptors();
        }
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            if fs::metadata(entry.path()).is_ok_and(|about| about.is_file()) {
                self.file(&entry.path());
            }
        }
    }

    /// Searches the files that this process has open, which it can read even if it may not open them by path.
    fn own_descriptors(&mut self) {
        for (number, file) in descriptors::duplicates() {
            if file.metadata().is_ok_and(|about| about.is_file()) {
                self.pieces(&format!("descriptor {number}"), &file);
            }
        }
    }

    fn memory(&mut self, pid: u32) {
        let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else { return };
        let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return };
        self.found.files += 1;
        for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with('r'))) {
            let Some((from, to)) = line.split(' ').next().and_then(|range| range.split_once('-')) else { continue };
            let (Ok(mut from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
            while from < to && !self.is_late() {
                let mut piece = Vec::new();
                let size = PIECE.min((to - from) as usize);
                if read_at(&memory, from, size, &mut piece).is_err() {
                    break;
                }
                self.bytes(&format!("memory of process {pid}"), &piece, 0);
                from += size as u64;
            }
        }
    }

    /// Searches bytes, and the packed text in them.
    fn bytes(&mut self, name: &str, bytes: &[u8], depth: u32) {
        self.found.bytes += bytes.len() as u64;
        let mut seen: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let mut packed = Vec::new();
        let mut rolling = RollingHash::start();
        for (at, byte) in bytes.iter().copied().enumerate() {
            let leaves = if at < WINDOW { 0 } else { bytes[at - WINDOW] };
            rolling = rolling.next(byte, leaves);
            let hash = rolling.value();
            let place = hash >> (64 - FILTER);
            if self.filter[(place >> 6) as usize] >> (place & 63) & 1 == 1
                && let Some(secrets) = self.table.get(&hash)
            {
                for secret in secrets {
                    seen.entry(*secret).or_default().insert(hash);
                }
            }
            if depth < DEPTH && unpack::may_begin(byte) && unpack::begins(&bytes[at..]) {
                packed.push(at);
            }
        }
        for (secret, windows) in seen {
            if self.wanted.is_enough(secret, windows.len()) && self.hits.insert((secret, name.to_owned())) {
                self.found.hits.push((secret, name.to_owned()));
            }
        }
        if depth == DEPTH {
            return;
        }
        for at in packed {
            if self.is_late() {
                return;
            }
            let unpacked = unpack::unpacked(&bytes[at..], UNPACKED);
            if unpacked.len() >= WINDOW {
                self.bytes(name, &unpacked, depth + 1);
            }
        }
        for decoded in unpack::base64(bytes) {
            self.bytes(name, &decoded, depth + 1);
        }
    }
}

/// Reads up to `most` bytes at an offset of a file. Returns the number of bytes.
fn read_at(file: &File, at: u64, most: usize, to: &mut Vec<u8>) -> io::Result<usize> {
    let length = file.metadata().map_or(0, |about| about.len()).saturating_sub(at);
    to.resize(if length == 0 { most.min(1 << 20) } else { most.min(length as usize) }, 0);
    let mut count = 0;
    while count < to.len() {
        match file.read_at(&mut to[count..], at + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if count == 0 => return Err(error),
            Err(_) => break,
        }
    }
    to.truncate(count);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SECRET: &[u8] = b"{\"Experiment 1\": {\"inertia of the seeding\": 0.482915637, \"silhouette\": 0.773102948, \
                            \"adjusted rand index\": 0.91824733, \"iterations until it stands\": 17}}";

    fn wanted() -> WantedSecrets {
        let mut wanted = WantedSecrets::within(60);
        assert_eq!(wanted.add(SECRET), Some(0));
        wanted
    }

    fn by(program: &str, arguments: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
        use std::process::{Command, Stdio};
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(bytes).ok()?;
        let done = child.wait_with_output().ok()?;
        (done.status.success() && !done.stdout.is_empty()).then_some(done.stdout)
    }

    #[test]
    fn a_secret_in_an_open_file_without_a_name_is_found() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(SECRET).unwrap();
        let wanted = wanted();
        let mut search = NeedleSearch::new(&wanted);
        search.own_descriptors();
        // Other tests of this process may also have the secret open, so look only for this file.
        let own = format!("descriptor {}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let found = search.found.hits.iter().filter(|(_, at)| *at == own).count();
        assert_eq!(found, 1, "{own}: {:?}", search.found.hits);
    }

    #[test]
    fn a_secret_is_found_in_every_form_at_any_offset_and_if_packed_twice() {
        let wanted = wanted();
        let python = |code: &str, bytes: &[u8]| {
            let script = format!(
                "import sys,gzip,zlib,lzma,bz2,base64,zipfile,io\nd=sys.stdin.buffer.read()\n{code}\nsys.stdout.buffer.write(r)"
            );
            by("python3", &["-c", &script], bytes)
        };
        let zip = "b=io.BytesIO()\nz=zipfile.ZipFile(b,'w',zipfile.ZIP_DEFLATED)\nz.writestr('a/gold.json',d)\nz.close()\nr=b.getvalue()";
        let forms = [
            ("gzip", "r=gzip.compress(d)"),
            ("zlib", "r=zlib.compress(d)"),
            ("zlib 9", "r=zlib.compress(d,9)"),
            ("xz", "r=lzma.compress(d)"),
            ("bz2", "r=bz2.compress(d)"),
            ("base64", "r=base64.b64encode(d)"),
            ("base64 in lines", "r=base64.encodebytes(d)"),
            ("base64 for addresses", "r=base64.urlsafe_b64encode(d)"),
            ("zip", zip),
        ];
        let mut packed: Vec<(&str, Vec<u8>)> = vec![("raw", SECRET.to_vec())];
        packed.extend(forms.map(|(name, code)| (name, python(code, SECRET).unwrap())));
        packed.extend(by("zstd", &["-c"], SECRET).map(|bytes| ("zstd", bytes)));
        for (name, bytes) in &packed {
            for before in [0, 3] {
                let placed = [&vec![b'.'; before][..], b"\n", bytes, b"\nthe end"].concat();
                assert_eq!(search_bytes(&wanted, &placed), [0], "{name} after {before}");
            }
            for (again, code) in [("gzip", "r=gzip.compress(d)"), ("base64", "r=base64.b64encode(d)"), ("zip", zip)] {
                let twice = python(code, &[b"some words\n", bytes.as_slice()].concat()).unwrap();
                assert_eq!(search_bytes(&wanted, &twice), [0], "{name} in {again}");
            }
        }
    }

    #[test]
    fn planted_secrets_are_found_in_files_open_files_and_environments() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("deep")).unwrap();
        fs::write(place.path().join("deep/innocent.bin"), [&[0; 5000], SECRET].concat()).unwrap();
        let wanted = wanted();
        let mut search = NeedleSearch::new(&wanted);
        search.tree(place.path());
        assert_eq!(search.found.hits.len(), 1);
        assert!(search.found.hits[0].1.ends_with("innocent.bin"));
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("NOTE", std::str::from_utf8(SECRET).unwrap())
            .spawn()
            .unwrap();
        // The kernel lets the parent continue before it has set up the new program's environment.
        let environment = format!("/proc/{}/environ", child.id());
        while fs::read(&environment).unwrap().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut search = NeedleSearch::new(&wanted);
        search.process(child.id());
        search.memory(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let seen: Vec<&str> = search.found.hits.iter().map(|(_, at)| at.as_str()).collect();
        assert!(seen.iter().any(|at| at.ends_with("environ")), "{seen:?}");
        assert!(seen.iter().any(|at| at.starts_with("memory")), "{seen:?}");
    }
}
