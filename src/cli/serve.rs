//! `autoexperiment serve`: hands out episodes to learners.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::episodes::{EpisodeOptions, announce, check_token, close};
use super::exit::ProgramExit;
use super::model::parse_time;
use super::naming::distinct_folders;
use super::signals::stop_on_signals;
use crate::episode::curriculum::KnownDifficulty;
use crate::error::{Error, Result};
use crate::openenv::access::ServeAddress;
use crate::openenv::{OpenEnvServer, PATIENCE, ServeOptions};
use crate::report::{self, Labels, Merged};
use crate::run::family::Families;
use crate::run::{CurriculumSettings, Outcome};
use crate::stats::Intervals;

/// Hand out episodes to learners over OpenEnv's protocol
///
/// A learner resets a session to get a task and a sandbox, calls tools in the sandbox, and submits an answer. The
/// learner's code is then run again, the results are compared with gold, and the reward follows from the comparison.
/// Each episode is an attempt of the agent `serve:CLIENT`, stored like any other: `report` shows the run while it
/// grows. Ctrl-C ends the server.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Serve samples of kmeanspp with one to three masked functions, at ws://127.0.0.1:8000/ws:
    autoexperiment serve -p kmeanspp -n 1..3 --port 8000
  Reward each right check, in 64 sandboxes at once:
    autoexperiment serve -p kmeanspp -n 1..3 --reward share --jobs 64
  Keep half of the last 50 episodes successful, by drawing harder samples as the learner grows:
    autoexperiment serve -n 1..8 --curriculum 0.5 --window 50
  Serve other machines, which must send the token:
    autoexperiment serve --listen 0.0.0.0:8000 --token \"$(openssl rand -hex 16)\"
  Continue the newest run after the server was stopped or killed:
    autoexperiment serve --resume latest
  See what was learnt so far:
    autoexperiment report latest")]
pub struct Arguments {
    #[command(flatten)]
    episodes: EpisodeOptions,
    /// Keep the success of the last episodes at this rate by drawing n and functions of fitting difficulty.
    #[arg(long, value_name = "TARGET", value_parser = parse_target, conflicts_with = "resume", help_heading = "Curriculum")]
    curriculum: Option<f64>,
    /// Number of episodes over which the curriculum measures success.
    #[arg(long, value_name = "EPISODES", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "resume", help_heading = "Curriculum")]
    window: u32,
    /// Begin the curriculum with the difficulty of functions in this stored run, as estimated by `report difficulty`.
    /// Can be repeated. This option is not stored, so name the same runs again with `--resume`.
    #[arg(long = "difficulty", value_name = "RUN", help_heading = "Curriculum")]
    difficulty: Vec<String>,
    /// Port on 127.0.0.1; 0 for any free port.
    #[arg(long, default_value_t = 8000, conflicts_with_all = ["listen", "socket"], help_heading = "Connections")]
    port: u16,
    /// Address to listen on. An address that other machines can reach needs `--token`.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "socket", help_heading = "Connections")]
    listen: Option<SocketAddr>,
    /// Unix socket to listen on, instead of a port.
    #[arg(long, value_name = "PATH", help_heading = "Connections")]
    socket: Option<PathBuf>,
    /// Secret that clients must send as `Authorization: Bearer TOKEN` or `?token=TOKEN`.
    #[arg(long, env = "AUTOEXPERIMENT_TOKEN", hide_env_values = true, help_heading = "Connections")]
    token: Option<String>,
    /// Time after which an unfinished call is answered with `pending`. The client then calls the tool `wait` until the
    /// result is there. OpenEnv's clients give up after 60 s.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Connections")]
    patience: Option<f64>,
    /// End when standard input ends, as it does when the process that writes to it has ended.
    #[arg(long, help_heading = "Connections")]
    until_eof: bool,
}

pub async fn run(arguments: &Arguments) -> Result<ProgramExit> {
    let address = match (&arguments.listen, &arguments.socket) {
        (_, Some(path)) => ServeAddress::Unix(path.clone()),
        (Some(address), None) => ServeAddress::Tcp(*address),
        (None, None) => ServeAddress::Tcp((Ipv4Addr::LOCALHOST, arguments.port).into()),
    };
    check_token(arguments.token.as_deref())?;
    let is_open = matches!(&address, ServeAddress::Tcp(address) if !address.ip().is_loopback());
    if is_open && arguments.token.is_none() {
        return Err(Error::usage("the address can be reached from other machines")
            .hint("give a secret with `--token`, which clients must send, or listen on 127.0.0.1"));
    }
    if !arguments.difficulty.is_empty() && arguments.curriculum.is_none() && !arguments.episodes.is_resumed() {
        return Err(Error::usage("`--difficulty` needs a curriculum").hint("add `--curriculum TARGET`, such as 0.5"));
    }
    let window = arguments.window as usize;
    let curriculum = arguments.curriculum.map(|target| CurriculumSettings { target, window });
    let known = known_difficulty(&arguments.difficulty, arguments.episodes.runs())?;
    let stop = stop_on_signals();
    if arguments.until_eof {
        let stop = stop.clone();
        std::thread::spawn(move || {
            // Stop after a read error, too, because the end of the input could no longer be noticed.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.cancel();
        });
    }
    let opened = arguments.episodes.open(curriculum, known, &stop).await?;
    let Some(host) = opened else { return Ok(ProgramExit::Interrupted) };
    let patience = arguments.patience.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let options = ServeOptions {
        address,
        token: arguments.token.clone(),
        patience: patience.unwrap_or(PATIENCE),
        idle: arguments.episodes.idle(),
    };
    let bound = OpenEnvServer::bind(host.clone(), options, stop.clone()).await;
    let served = match bound {
        Ok(server) => {
            announce(&server.address)?;
            let (jobs, _) = host.load();
            talk!("at most {jobs} episodes at once, stored in `{}`; Ctrl-C ends it", host.store().folder().display());
            server.serve(stop.clone()).await
        }
        Err(error) => Err(error),
    };
    stop.cancel();
    let closed = close(&host).await;
    served.and(closed)
}

/// Estimates the difficulty of functions from stored runs.
fn known_difficulty(named: &[String], runs: &Path) -> Result<KnownDifficulty> {
    if named.is_empty() {
        return Ok(KnownDifficulty::default());
    }
    let merged = Merged::read(&distinct_folders(named, runs)?, &Labels::new(&[]))?;
    let records: Vec<Outcome> = merged.runs.into_iter().flat_map(|run| run.records).collect();
    let families = Families::standard();
    let withheld = |record: &Outcome| {
        families.get(&record.family).ok().and_then(|family| family.withheld(&family.sample(&record.sample).ok()?))
    };
    let found = report::difficulty(&records, Intervals::default().level, withheld, |_, _| None);
    if found.functions.is_empty() {
        talk!(
            "warning: these runs do not show which functions are hard, so the curriculum begins without this knowledge"
        );
    }
    let slopes: Vec<f64> =
        found.declines.iter().map(|decline| -decline.slope).filter(|slope| slope.is_finite()).collect();
    let slope = (!slopes.is_empty()).then(|| slopes.iter().sum::<f64>() / slopes.len() as f64);
    let units = found.functions.into_iter().filter(|one| one.difficulty.is_finite());
    Ok(KnownDifficulty { slope, units: units.map(|one| ((one.paper, one.function), one.difficulty)).collect() })
}

/// Parses a success rate: more than 0 and less than 1.
fn parse_target(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|target| *target > 0.0 && *target < 1.0);
    parsed.ok_or_else(|| format!("`{text}` is not a success rate to keep: give a number between 0 and 1, such as 0.5"))
}
