//! A helper for tests' model servers, which answer only requests to the model and ignore all other connections.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// Returns the connections with a POST request, in turn. A connection without a request only checks that the server is
/// there, and a GET request asks for the list of models, which this server does not have.
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
