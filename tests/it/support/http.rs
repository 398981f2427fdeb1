//! A small HTTP server for a folder, so that downloads in tests are real. It counts requests, and can stop in the
//! middle of a file.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server on a free port of this machine, stopped when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    root: PathBuf,
    /// Text in the paths of files of which only the first half is sent.
    held: Option<&'static str>,
    requests: Mutex<Vec<String>>,
    down: AtomicBool,
}

impl Server {
    pub fn of(root: &Path) -> Self {
        Self::holding(root, None)
    }

    /// Creates a server that never sends the second half of a file whose name contains this text.
    pub fn holding(root: &Path, held: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Shared { root: root.to_owned(), held, requests: Mutex::default(), down: AtomicBool::new(false) });
        let own = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own.down.load(Ordering::SeqCst) {
                    return;
                }
                let own = own.clone();
                // A client that goes away is not an error of the server.
                std::thread::spawn(move || drop(own.answer(&stream)));
            }
        });
        Self { address, shared }
    }

    /// Returns the server's URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of files that were sent (completely or in part) whose path contains `part`.
    pub fn sent(&self, part: &str) -> usize {
        self.shared.requests.lock().unwrap().iter().filter(|path| path.contains(part)).count()
    }

    /// Waits until a file whose path contains `part` is requested.
    pub fn wait_for(&self, part: &str) {
        let begun = Instant::now();
        while self.sent(part) == 0 {
            assert!(begun.elapsed() < Duration::from_mins(1), "nobody asked for `{part}`");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.down.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn answer(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut out = stream;
        let Ok(body) = fs::read(self.root.join(path.trim_start_matches('/'))) else {
            return out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
        if method == "HEAD" {
            return Ok(());
        }
        self.requests.lock().unwrap().push(path.to_owned());
        if self.held.is_some_and(|held| path.contains(held)) {
            out.write_all(&body[..body.len() / 2])?;
            while !self.down.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(20));
            }
            return stream.shutdown(Shutdown::Both);
        }
        out.write_all(&body)
    }
}
