//! A small HTTP server that gives prescribed answers, good or bad, and records requests.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The answer to one connection.
#[derive(Debug, Clone)]
pub(super) enum CannedAnswer {
    /// A status, extra headers and a JSON body.
    Json(u16, Vec<(&'static str, String)>, Value),
    /// Raw bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// No byte is sent, and the connection stays open.
    Hang,
    /// Valid HTTP headers, then an endless body of which one byte is sent every 20 ms.
    Drip,
    /// The connection is closed without a byte.
    Close,
}

impl CannedAnswer {
    /// Returns a successful answer.
    pub(super) fn ok(body: Value) -> Self {
        Self::Json(200, Vec::new(), body)
    }

    /// Returns an answer with this status.
    pub(super) fn status(status: u16, body: Value) -> Self {
        Self::Json(status, Vec::new(), body)
    }
}

/// A recorded request.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    /// Method, path and headers, in lower case.
    pub(super) head: String,
    pub(super) body: Value,
    /// Time of arrival.
    pub(super) at: Instant,
}

/// A running server; it stops when the test's runtime ends.
pub(super) struct TestServer {
    /// Address without a path.
    pub(super) url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    answers: Arc<Mutex<Vec<CannedAnswer>>>,
}

impl TestServer {
    /// Starts a server that gives these answers in turn, repeating the last.
    pub(super) async fn start(answers: Vec<CannedAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let answers = Arc::new(Mutex::new(answers));
        let left = Arc::clone(&answers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut left = left.lock().unwrap();
                let answer = if left.len() > 1 { left.remove(0) } else { left[0].clone() };
                tokio::spawn(serve(stream, answer, Arc::clone(&log)));
            }
        });
        Self { url, asked, answers }
    }

    /// Replaces the answers: from now on, every request gets this one.
    pub(super) fn answer_with(&self, answer: CannedAnswer) {
        *self.answers.lock().unwrap() = vec![answer];
    }

    /// Returns all requests so far.
    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answer: CannedAnswer, log: Arc<Mutex<Vec<ReceivedRequest>>>) {
    let (head, body) = read_request(&mut stream).await;
    log.lock().unwrap().push(ReceivedRequest {
        head,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at: Instant::now(),
    });
    match answer {
        CannedAnswer::Json(status, headers, body) => {
            let body = body.to_string();
            let more: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let more = more.concat();
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await.unwrap();
        }
        CannedAnswer::Raw(bytes) => stream.write_all(&bytes).await.unwrap_or_default(),
        CannedAnswer::Hang => tokio::time::sleep(Duration::from_hours(1)).await,
        CannedAnswer::Drip => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        CannedAnswer::Close => {}
    }
}

/// Reads the head as lower-case text, and the body's bytes.
async fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "the request ends early");
        bytes.extend_from_slice(&piece[..length]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let expected: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.trim().parse().unwrap());
        if bytes.len() >= end + 4 + expected {
            return (head, bytes[end + 4..].to_vec());
        }
    }
}
