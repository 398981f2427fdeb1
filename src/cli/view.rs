//! `autoexperiment view`: shows runs in a browser, as they grow.

use std::path::PathBuf;

use super::naming::distinct_folders;
use super::report::{parse_k, parse_population};
use super::shared::print;
use crate::error::Result;
use crate::report::{Label, Labels};
use crate::run::family::Families;
use crate::stats::{Intervals, Population};
use crate::view::RunReader;
use crate::view::server::ViewServer;

/// Show runs in a browser, live
///
/// Serves the page of `report --html` at an address on this machine that nobody else can reach or guess, and updates it
/// while attempts finish. Changes nothing in the runs, except that it may save `outcomes.cache` in large ones. Press
/// Ctrl-C to stop.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment view 2026-11-21T10-30-00Z\n  autoexperiment view fixed dynamic --port 8000"
)]
pub struct Arguments {
    /// Runs: folders, or names under --runs; `latest` is the newest [default: latest].
    run: Vec<String>,
    /// Port to listen on; 0 for a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Values of k in pass@k [default: 1 and the number of attempts].
    #[arg(short, value_name = "K", value_delimiter = ',', value_parser = parse_k)]
    k: Vec<usize>,
    /// Scope of the intervals: these papers (`suite`), or papers like them (`papers`).
    #[arg(long, value_name = "SCOPE", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Show a run, an agent or a model under another name, such as `react=ReAct` or `by-n/react=ReAct`. Can be
    /// repeated.
    #[arg(long, value_name = "OLD=NEW")]
    label: Vec<Label>,
    /// Folder of the suite [default: each run's own].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let folders = distinct_folders(&arguments.run, &arguments.runs)?;
    let intervals = Intervals { population: arguments.intervals, ..Intervals::default() };
    let mut reader =
        RunReader::new(Families::standard(), folders, arguments.suite.clone(), arguments.k.clone(), intervals)
            .labelled(Labels::new(&arguments.label));
    // Read the runs before the server starts, so that an error in a label is shown here and not in the browser.
    let stamp = reader.stamp();
    let gathered = reader.gather()?;
    let server = ViewServer::bind(reader, Some((stamp, gathered)), arguments.port).await?;
    print(&format!("{}\n", server.address))?;
    talk!("open this address in a browser on this machine; Ctrl-C ends it");
    server
        .serve(async {
            // If Ctrl-C cannot be handled, serve until the process is killed.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await
}
