//! Evidence that a repo's instructions are sound: the right programs pass, and doing nothing or forging results fails.

use super::context::LAYERS;
use crate::run::AttemptRecord;
use crate::run::soundness::{Soundness, why};

/// The value of n of the samples that are attempted. n says how much documentation agents get; at this n, they get only
/// the instruction.
pub const LEAST: usize = LAYERS.len() - 1;

/// Evaluates attempts of the agents `gold`, `noop` and `forger` at a repo's instructions.
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
