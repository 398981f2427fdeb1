//! Options for working on a run together with other processes.

use std::time::Duration;

use super::model::parse_time;
use crate::error::Result;
use crate::run::shared::Shard;
use crate::session::Shards;

/// Which part of a run this process makes.
#[derive(clap::Args)]
pub struct ShardOptions {
    /// Work on the run of this name together with other processes, on this machine or on others that share its folder, as
    /// shard I of N. Each begins with its own part and then takes what nobody has begun or what a dead one has left. Also
    /// taken from `AUTOEXPERIMENT_SHARD`, or in a Slurm job array from its task.
    #[arg(long, value_name = "I/N", help_heading = "Several machines")]
    shard: Option<Shard>,
    /// Time without a sign of life after which a shard counts as dead and others take over its work. Decided when the run
    /// is planned.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_timeout, help_heading = "Several machines")]
    claim_timeout: f64,
    /// Work on although sandboxes on this machine are of another strength than where the run began.
    #[arg(long, help_heading = "Several machines")]
    mixed_sandboxes: bool,
}

impl ShardOptions {
    /// What is asked for, here or by the environment. That a run of its own runs in a job array asks for nothing: only one
    /// with a name is shared.
    pub fn given(&self, is_named: bool) -> Result<Option<Shards>> {
        let environment = |name: &str| {
            let is_slurm = name.starts_with("SLURM_");
            std::env::var(name).ok().filter(|_| is_named || !is_slurm)
        };
        let shard = match self.shard {
            Some(shard) => Some(shard),
            None => Shard::from_environment(environment)?,
        };
        Ok(shard.map(|shard| Shards { shard, ..self.only() }))
    }

    /// Whether sandboxes may be of another strength.
    pub const fn is_mixed(&self) -> bool {
        self.mixed_sandboxes
    }

    /// The only shard, of a run that others may work on too.
    pub fn only(&self) -> Shards {
        Shards {
            shard: Shard::ONLY,
            claim_timeout: Duration::from_secs_f64(self.claim_timeout),
            mixed_sandboxes: self.mixed_sandboxes,
        }
    }
}

/// A time that leaves room for several signs of life.
fn parse_timeout(text: &str) -> Result<f64, String> {
    let seconds = parse_time(text)?;
    if (1.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("give a time from 1 s to a day".to_owned()) }
}
