//! `autoexperiment mcp`: lets an assistant attempt samples.

use std::net::SocketAddr;

use super::episodes::{EpisodeOptions, announce, check_token, close};
use super::exit::ProgramExit;
use super::signals::stop_on_signals;
use crate::episode::curriculum::KnownDifficulty;
use crate::error::{Error, Result};
use crate::mcp::McpServer;
use crate::openenv::access::ServeAddress;
use crate::run::ClientName;

/// Variable with the secret that clients over HTTP must send.
const TOKEN: &str = "AUTOEXPERIMENT_TOKEN";

/// Let an assistant attempt samples over MCP
///
/// The assistant lists papers, draws samples, opens attempts, acts in their sandboxes, submits and reads verdicts. It
/// never sees gold. Attempts are stored like any other, as those of the agent `serve:CLIENT`. Serves one assistant,
/// which starts this program itself, over stdin and stdout, or several over HTTP with `--listen`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  In an assistant's settings, as the command of a server:
    autoexperiment mcp -p kmeanspp -n 1..3
  Over HTTP, at http://127.0.0.1:8000/mcp:
    autoexperiment mcp -n 1..3 --listen 127.0.0.1:8000
  With a shell as the only tool:
    autoexperiment mcp -p kmeanspp --tools bash")]
pub struct Arguments {
    #[command(flatten)]
    episodes: EpisodeOptions,
    /// Name of the assistant in reports.
    #[arg(long, value_name = "NAME", default_value = "mcp", help_heading = "Connections")]
    client: ClientName,
    /// Serve streamable HTTP at this address, instead of stdin and stdout. Beyond this machine only with `--token`.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Connections")]
    listen: Option<SocketAddr>,
    /// Secret that clients over HTTP must send as `Authorization: Bearer TOKEN` [env: AUTOEXPERIMENT_TOKEN, which only
    /// counts with `--listen`].
    // Not `env = ...`, because a variable that is set for `serve` would then demand `--listen`.
    #[arg(long, requires = "listen", help_heading = "Connections")]
    token: Option<String>,
}

impl Arguments {
    /// The secret that clients over HTTP must send.
    fn token(&self) -> Result<Option<String>> {
        if self.listen.is_none() || self.token.is_some() {
            return Ok(self.token.clone());
        }
        // Without a token, the server is open to everybody. So a token that cannot be read is an error.
        std::env::var_os(TOKEN)
            .map(|token| token.into_string().map_err(|_| Error::usage(format!("the variable `{TOKEN}` is not UTF-8"))))
            .transpose()
    }
}

pub async fn run(arguments: &Arguments) -> Result<ProgramExit> {
    let token = arguments.token()?;
    check_token(token.as_deref())?;
    let stop = stop_on_signals();
    let opened = arguments.episodes.open(None, KnownDifficulty::default(), &stop).await?;
    let Some(host) = opened else { return Ok(ProgramExit::Interrupted) };
    let server = McpServer::new(host.clone(), arguments.client.clone());
    let served = match arguments.listen {
        None => {
            let served = server.serve_stdio(stop.clone()).await;
            // The assistant has left, so its attempts are ending as given up. Wait for their verdicts: stopping the
            // host now would record them as cancelled, and the assistant could choose which attempts count.
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = host.all_ended() => {}
            }
            served
        }
        Some(address) => server.serve_http(ServeAddress::Tcp(address), token, stop.clone(), announce).await,
    };
    stop.cancel();
    let closed = close(&host).await;
    served.and(closed)
}
