//! Where a server listens and whom it serves. Without a token only this machine's programs are served: requests must
//! name a local host and must not come from a page in a browser.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use nix::sys::stat::{Mode, fchmod};
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, UnixListener, UnixSocket};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeAddress {
    /// A TCP address; port 0 is a free port.
    Tcp(SocketAddr),
    /// A Unix socket, which only this user can connect to.
    Unix(PathBuf),
}

/// A socket that a server listens on.
pub enum BoundAddress {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A Unix socket, whose file is removed at the end.
    Unix(UnixListener, RemovedSocket),
}

/// A socket's file, removed at the end.
pub struct RemovedSocket(PathBuf);

impl Drop for RemovedSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Condition under which requests are admitted, see [`admit`].
pub struct Access {
    /// Secret that clients must send; `None` admits only programs on this machine.
    pub token: Option<String>,
}

#[derive(Deserialize)]
pub struct TokenQuery {
    token: Option<String>,
}

impl BoundAddress {
    /// Serves until `stop` is cancelled.
    ///
    /// # Errors
    /// Kind `Machine` if the server fails.
    pub async fn serve(self, router: Router, stop: CancellationToken) -> Result<()> {
        let stopped = stop.cancelled_owned();
        let served = match self {
            Self::Tcp(listener) => axum::serve(listener, router).with_graceful_shutdown(stopped).await,
            Self::Unix(listener, _removed) => axum::serve(listener, router).with_graceful_shutdown(stopped).await,
        };
        served.map_err(|error| Error::machine("the server failed").because(error))
    }

    /// Begins to listen. Also returns the address for clients.
    ///
    /// # Errors
    /// Kind `Usage` if other machines can reach the address and there is no token; `Machine` if listening on it fails.
    pub async fn listen(address: ServeAddress, has_token: bool) -> Result<(Self, String)> {
        match address {
            ServeAddress::Tcp(address) => {
                if !address.ip().is_loopback() && !has_token {
                    return Err(Error::usage(format!("`{address}` can be reached from other machines"))
                        .hint("give a secret with `--token`, which clients must send, or listen on 127.0.0.1"));
                }
                let failed = |error| {
                    Error::machine(format!("failed to listen on `{address}`"))
                        .because(error)
                        .hint("choose another address with `--listen`, or port 0 for a free one")
                };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                Ok((Self::Tcp(listener), format!("http://{bound}")))
            }
            ServeAddress::Unix(path) => {
                let listener = unix_listener(&path)?;
                let shown = format!("unix:{}", path.display());
                Ok((Self::Unix(listener, RemovedSocket(path)), shown))
            }
        }
    }
}

/// Maximum number of connections that wait to be accepted.
const WAITING: u32 = 1024;

/// Listens on a Unix socket that only this user can connect to.
fn unix_listener(path: &Path) -> Result<UnixListener> {
    let failed = |error: std::io::Error| {
        Error::machine(format!("failed to listen on `{}`", path.display()))
            .because(error)
            .hint("choose a path that does not exist yet, in a folder that you can write to")
    };
    let socket = UnixSocket::new_stream().map_err(failed)?;
    // Set the permissions before `bind`, which gives them to the socket's file on Linux. So other users can never
    // connect, not even for a moment.
    let permissions = Mode::S_IRUSR | Mode::S_IWUSR;
    fchmod(&socket, permissions).map_err(|error| failed(error.into()))?;
    socket.bind(path).map_err(failed)?;
    socket.listen(WAITING).map_err(failed)
}

/// Admits requests that contain the token. If the server has no token, admits requests from this machine's programs.
pub async fn admit(
    State(access): State<Arc<Access>>,
    query: Query<TokenQuery>,
    request: Request,
    next: Next,
) -> Response {
    let is_admitted = match &access.token {
        Some(token) => is_same(token, sent_token(request.headers(), query.token.as_deref()).unwrap_or_default()),
        None => is_local(request.headers()),
    };
    if is_admitted {
        next.run(request).await
    } else {
        let (status, what) = match access.token {
            Some(_) => (StatusCode::UNAUTHORIZED, "the token is missing or wrong"),
            None => (StatusCode::FORBIDDEN, "only programs of this machine are served"),
        };
        refuse(status, what).into_response()
    }
}

fn sent_token<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Option<&'a str> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.and_then(|value| value.strip_prefix("Bearer ")).or(query)
}

/// Whether two texts are equal. The time of the comparison depends only on their lengths, so that it does not reveal
/// the secret.
fn is_same(secret: &str, sent: &str) -> bool {
    secret.len() == sent.len() && secret.bytes().zip(sent.bytes()).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

/// Whether a request names this machine as its host and does not come from a page in a browser. Only browsers send the
/// header `Origin`.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())).map_or(host, |it| it.0);
    let is_local = matches!(name, "127.0.0.1" | "localhost" | "[::1]" | "");
    is_local && !headers.contains_key(header::ORIGIN)
}

/// Response that refuses a request, in the same JSON form as the refusals of OpenEnv's own servers.
pub struct Refusal {
    status: StatusCode,
    detail: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "detail": self.detail }))).into_response()
    }
}

/// Refuses a request.
pub fn refuse(status: StatusCode, detail: impl Into<String>) -> Refusal {
    Refusal { status, detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn requests_from_web_pages_or_for_foreign_host_names_do_not_count_as_local() {
        for host in ["127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:9"] {
            assert!(is_local(&headers(&[(header::HOST, host)])), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:8000", "10.0.0.3:8000"] {
            assert!(!is_local(&headers(&[(header::HOST, host)])), "{host}");
        }
        assert!(!is_local(&headers(&[(header::HOST, "localhost"), (header::ORIGIN, "https://evil.example")])));
        assert!(!is_local(&headers(&[(header::HOST, "localhost"), (header::ORIGIN, "null")])));
    }

    #[test]
    fn a_token_is_read_from_the_header_or_the_query_and_must_equal_the_secret() {
        let sent = headers(&[(header::AUTHORIZATION, "Bearer secret")]);
        assert_eq!(sent_token(&sent, None), Some("secret"));
        assert_eq!(sent_token(&HeaderMap::new(), Some("other")), Some("other"));
        assert!(is_same("secret", "secret"));
        for wrong in ["", "secre", "secret1", "Secret"] {
            assert!(!is_same("secret", wrong), "{wrong}");
        }
    }
}
