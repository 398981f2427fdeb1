//! Evidence that a repo's instructions are sound: the right programs pass, and doing nothing or forging results fails.

use super::context::LAYERS;
use crate::run::AttemptRecord;
use crate::run::soundness::{Soundness, why};

/// The n of the samples that are attempted. At this n, agents get only the instruction, without documentation.
pub const LEAST: usize = LAYERS.len() - 1;

/// Evaluates attempts by `gold`, `noop` and `forger` at a repo.
#[must_use]
pub fn judge(repo: &str, records: &[AttemptRecord]) -> Soundness {
    let mut proof = Soundness::new(repo);
    for record in records {
        let sample = &record.sample;
        match record.agent.as_str() {
            "gold" => {
                proof.count(record, |proof| &mut proof.gold);
                if !record.pass {
                    proof.unreached(format!("the right program of `{sample}` fails: {}", why(record)));
                }
            }
            agent => {
                proof.count(record, if agent == "noop" { |proof| &mut proof.noop } else { |proof| &mut proof.forger });
                if record.pass {
                    proof.fault(format!("agent `{agent}` passes `{sample}`, but must fail"));
                }
            }
        }
    }
    proof
}
