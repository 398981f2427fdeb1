//! A small HTTP server that answers as it is told, well or badly, and keeps what it was asked.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One answer to one connection.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// A status, more headers and a JSON body.
    Json(u16, Vec<(&'static str, String)>, Value),
    /// These bytes as they stand, then the end.
    Raw(Vec<u8>),
    /// Nothing, for ever.
    Hang,
    /// A good head, then a byte of an endless body every 20 ms.
    Drip,
    /// The end, without a byte.
    Close,
}

impl Answer {
    /// A good answer.
    pub(super) fn ok(body: Value) -> Self {
        Self::Json(200, Vec::new(), body)
    }

    /// A bad one.
    pub(super) fn status(status: u16, body: Value) -> Self {
        Self::Json(status, Vec::new(), body)
    }
}

/// What the server was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Method, path and headers, as they came.
    pub(super) head: String,
    /// The body.
    pub(super) body: Value,
    /// When.
    pub(super) at: Instant,
}

/// A running server. It stops with the test's runtime.
pub(super) struct Server {
    /// Its address, without a path.
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Server {
    /// Starts a server that gives these answers in turn, and the last one from then on.
    pub(super) async fn start(answers: Vec<Answer>) -> Self {
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

    /// Gives this answer from now on.
    pub(super) fn says(&self, answer: Answer) {
        *self.answers.lock().unwrap() = vec![answer];
    }

    /// Everything it was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, log: Arc<Mutex<Vec<Asked>>>) {
    let (head, body) = read_request(&mut stream).await;
    log.lock().unwrap().push(Asked {
        head,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        at: Instant::now(),
    });
    match answer {
        Answer::Json(status, headers, body) => {
            let body = body.to_string();
            let more: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let more = more.concat();
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{more}connection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await.unwrap();
        }
        Answer::Raw(bytes) => stream.write_all(&bytes).await.unwrap_or_default(),
        Answer::Hang => tokio::time::sleep(Duration::from_hours(1)).await,
        Answer::Drip => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Answer::Close => {}
    }
}

/// The head as text and the body's bytes.
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
