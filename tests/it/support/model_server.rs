//! Model servers of tests: what they are asked beside questions says nothing about attempts.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// The connections on which something is posted, in turn. One on which nothing is asked only shows that the server is
/// there, and this server has no list of models.
pub fn questions(listener: TcpListener) -> impl Iterator<Item = TcpStream> {
    std::iter::from_fn(move || {
        loop {
            let (mut stream, _) = listener.accept().ok()?;
            let mut first = [0; 4];
            match stream.peek(&mut first) {
                Ok(0) | Err(_) => {}
                Ok(_) if &first == b"GET " => {
                    let _ = crate::provider::read_request(&mut stream);
                    let head = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = stream.write_all(head.as_bytes());
                }
                Ok(_) => return Some(stream),
            }
        }
    })
}
