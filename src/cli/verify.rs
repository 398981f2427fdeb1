//! `autoexperiment verify`: measures how far a paper can be trusted.

use std::sync::Arc;

use super::progress::Progress;
use super::run::MachineOptions;
use super::shared::{SuiteOptions, print, table};
use crate::audit::verify::{Measures, Verified, verify};
use crate::audit::{Bench, Effort};
use crate::error::{Error, Result};
use crate::run::event::Observer;
use crate::run::ready::{Machine, ReadyPaper};
use crate::suite::{LoadedPaper, Protocol, Suite};

/// Measure how far papers can be trusted: which experiment needs which function
///
/// Writes `dependencies.json` of each paper. What was measured once is not measured again while nothing changes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment verify kmeanspp\n  autoexperiment verify --jobs 8")]
pub struct Arguments {
    /// Papers [default: all].
    papers: Vec<String>,
    /// Run every experiment for every function, masked alone, in place of a traced run that tells which of these
    /// could matter.
    #[arg(long)]
    every_pair: bool,
    /// Experiments that run at once [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
    /// Measure anew what is known from earlier.
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.open()?;
    let papers = suite.select(&arguments.papers)?;
    let machine = Arc::new(arguments.machine.open().await?);
    let progress = Progress::new(false);
    let mut faults: Vec<Error> = Vec::new();
    for id in &papers {
        match one(arguments, &suite, id, &machine, &progress).await {
            Ok((loaded, verified)) => {
                progress.finish();
                show(&loaded, &verified)?;
            }
            Err(errors) => {
                for error in errors {
                    super::render(&error);
                    faults.push(error);
                }
            }
        }
    }
    match faults.first() {
        None => Ok(()),
        Some(first) => Err(Error::new(first.kind, format!("{} fault(s) in {} paper(s)", faults.len(), papers.len()))),
    }
}

async fn one(
    arguments: &Arguments,
    suite: &Suite,
    id: &str,
    machine: &Arc<Machine>,
    observer: &dyn Observer,
) -> Result<(LoadedPaper, Verified), Vec<Error>> {
    let single = |error| vec![error];
    let loaded = LoadedPaper::load(suite, id).map_err(single)?;
    let ready = ReadyPaper::prepare(loaded, Protocol::Curtailed, machine, observer).await.map_err(single)?;
    let jobs = arguments
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize);
    let bench = Bench::new(ready, Arc::clone(machine), jobs, arguments.fresh).map_err(single)?;
    let effort = if arguments.every_pair { Effort::EveryPair } else { Effort::Traced };
    let verified = verify(bench, Measures { effort }, observer).await?;
    let loaded = LoadedPaper::load(suite, id).map_err(single)?;
    Ok((loaded, verified))
}

fn show(loaded: &LoadedPaper, verified: &Verified) -> Result<()> {
    let rows = loaded
        .paper
        .functions
        .iter()
        .enumerate()
        .map(|(place, function)| vec![function.at.clone(), loaded.tests(&[place]).len().to_string()]);
    print(&table(&["function", "tests"], &[1], rows))?;
    for note in &verified.matrix.notes {
        talk!("note: paper `{}`, {note}", loaded.paper.id);
    }
    talk!(
        "runs {} made {} cpu {:.2} written {:?}",
        verified.matrix.runs,
        verified.made,
        verified.cpu,
        verified.written
    );
    Ok(())
}
