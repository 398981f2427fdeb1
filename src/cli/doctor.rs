//! `autoexperiment doctor`: what works on this machine, and how to get the rest.

use super::shared::{PlaceOptions, SuiteOptions, print, print_json};
use crate::error::{Error, Result};
use crate::report::clean;
use crate::run::machine::private;
use crate::sandbox::{SandboxKind, choose, doctor};
use crate::suite::Suite;

/// Show what works on this machine, and how to get the rest
///
/// Ends with exit code 5 if attempts cannot be sandboxed here.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment doctor\n  autoexperiment doctor --json")]
pub struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let (cache, suite) = (arguments.places.cache()?, arguments.suite.folder()?);
    let mut hidden = private(&cache, &arguments.places.scratch());
    // A folder without a suite needs no hiding.
    hidden.extend(Suite::open(&suite).is_ok().then_some(suite));
    let findings = doctor::examine(None, &cache, &hidden).await;
    if arguments.json {
        print_json(&findings)?;
    } else {
        for finding in &findings {
            let mark = if finding.ok { "ok     " } else { "missing" };
            print(&format!("{mark}  {}: {}\n", finding.name, clean(&finding.detail)))?;
            if let Some(remedy) = &finding.remedy {
                print(&format!("         {}\n", clean(remedy)))?;
            }
        }
    }
    choose(SandboxKind::Local, None)
        .await
        .map(|_| ())
        .map_err(|error| Error::machine("attempts cannot be sandboxed on this machine").because(error))
}
