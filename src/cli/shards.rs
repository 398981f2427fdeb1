//! Options for working on a run together with other processes.

use std::time::Duration;

use super::model::parse_time;
use crate::error::Result;
use crate::run::shared::Shard;
use crate::session::Shards;

/// Which part of a run this process makes.
#[derive(clap::Args)]
pub(super) struct ShardOptions {
    /// Work on the run of this name together with other processes, on this machine or on others that share its folder,
    /// as shard I of N. Each process begins with its own part and then takes attempts that no other has begun or that a
    /// dead one has left. Can also be given by `AUTOEXPERIMENT_SHARD`; in a Slurm job array, the default is the task's
    /// number.
    #[arg(long, value_name = "I/N", help_heading = "Several machines")]
    shard: Option<Shard>,
    /// Time without a sign of life after which a shard counts as dead and others take over its work. Set when the run
    /// is planned.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_timeout, help_heading = "Several machines")]
    claim_timeout: f64,
    /// Work on the run even if sandboxes on this machine give weaker or stronger protection than where the run began.
    #[arg(long, help_heading = "Several machines")]
    mixed_sandboxes: bool,
}

impl ShardOptions {
    /// Returns the shard given by the option or the environment. Slurm's variables count only for a run with a name: a
    /// job array may contain independent runs, and only a named run can be shared.
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

    /// Whether this machine's sandboxes may give weaker or stronger protection than those of the machine that began the
    /// run.
    pub(super) const fn is_mixed(&self) -> bool {
        self.mixed_sandboxes
    }

    /// Returns the settings of a process that begins a run alone. Other processes may join the run later.
    pub fn only(&self) -> Shards {
        Shards {
            shard: Shard::ONLY,
            claim_timeout: Duration::from_secs_f64(self.claim_timeout),
            mixed_sandboxes: self.mixed_sandboxes,
        }
    }
}

/// Parses the time after which a shard counts as dead; it must be long enough for several signs of life.
fn parse_timeout(text: &str) -> Result<f64, String> {
    let seconds = parse_time(text)?;
    if (1.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("give a time from 1 s to a day".to_owned()) }
}
