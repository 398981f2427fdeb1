//! What shows that a repo's instructions are sound: the right programs pass, and neither nothing nor forgeries do.

use super::context::LAYERS;
use crate::run::AttemptRecord;
use crate::run::proof::{Proof, why};

/// The context at which it is shown: the instruction only.
pub const LEAST: usize = LAYERS.len() - 1;

/// What attempts by `gold`, `noop` and `forger` show of a repo.
#[must_use]
pub fn judge(repo: &str, records: &[AttemptRecord]) -> Proof {
    let mut proof = Proof::new(repo);
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
                    proof.fault(format!("`{agent}` passes `{sample}`"));
                }
            }
        }
    }
    proof
}
