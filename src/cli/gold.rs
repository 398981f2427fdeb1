//! `autoexperiment gold`: record what the unmasked repo gives.

use super::environment::EnvOptions;
use super::progress::Progress;
use super::run::MachineOptions;
use super::shared::{SuiteOptions, print, table};
use crate::error::Result;
use crate::run::gold::record;
use crate::run::ready::ReadyPaper;
use crate::suite::{LoadedPaper, Protocol};

/// Record gold: run the unmasked repo's experiments and keep their results, times and spread
///
/// Refuses results that are NaN or vary between repeats by more than their tolerance.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment gold kmeanspp\n  autoexperiment gold kmeanspp --full --repeats 1")]
pub struct Arguments {
    /// Papers.
    #[arg(required = true)]
    papers: Vec<String>,
    /// Runs of each experiment.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// The paper's full protocol in place of the curtailed one.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineOptions,
    #[command(flatten)]
    env: EnvOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.open()?;
    let protocol = if arguments.full { Protocol::Full } else { Protocol::Curtailed };
    let machine = arguments.machine.open(&arguments.env.options()).await?;
    let progress = Progress::new(false);
    for id in suite.select(&arguments.papers)? {
        let ready = ReadyPaper::prepare(LoadedPaper::load(&suite, &id)?, protocol, &machine, &progress).await?;
        let gold = record(&ready, protocol, arguments.repeats as usize, &machine, &progress).await?;
        let path = suite.paper_dir(&id).join("gold.json");
        gold.save(&path)?;
        progress.finish();
        let rows = gold.results.get(&protocol).into_iter().flatten().map(|(experiment, result)| {
            let seconds = result.seconds.iter().sum::<f64>() / result.seconds.len().max(1) as f64;
            vec![experiment.clone(), format!("{seconds:.2}"), format!("{:.1e}", result.spread)]
        });
        print(&table(&["experiment", "seconds", "spread"], &[1, 2], rows))?;
        talk!("wrote {}", path.display());
    }
    Ok(())
}
