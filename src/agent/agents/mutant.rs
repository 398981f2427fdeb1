//! `mutant:P`: restores each masked function correctly with probability 1-P, and otherwise with one small change (a
//! mutant). If the experiments notice every mutant, the agent's pass rate with n masked functions is (1-P)^n. This
//! known value is used to check the statistics from end to end.

use std::path::PathBuf;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::agent::{Agent, AttemptEnd, Context, End, Event, Replication, Task, experiment};
use crate::code::{Module, MutantKind, Selector};
use crate::error::Result;
use crate::model::Role;
use crate::sample::MASKED;

/// The `mutant:P` agent.
#[derive(Debug)]
pub struct Mutants {
    name: String,
    probability: f64,
}

impl Mutants {
    /// Creates the agent; `probability` is the probability of a mutant, from 0 to 1.
    pub const fn new(name: String, probability: f64) -> Self {
        Self { name, probability }
    }

    /// Returns the file with its functions restored or mutated, and a note about each function.
    fn restore(&self, task: &Replication, path: &PathBuf, bytes: &[u8], seed: u64) -> Result<(Vec<u8>, Vec<String>)> {
        let module = Module::parse(path.clone(), bytes.to_vec())?;
        let (mut bodies, mut said) = (Vec::new(), Vec::new());
        for function in &task.functions {
            let file = match &function.region {
                Some(region) => region.file.clone(),
                None => function.at.parse::<Selector>()?.file,
            };
            if file != *path {
                continue;
            }
            if share(seed, "wrong", &function.at) >= self.probability {
                said.push(format!("`{}` is right", function.at));
                continue;
            }
            let index = function.selector().ok().map(|selector| module.find(&selector.name)).transpose()?;
            let body = match (&function.region, index) {
                (Some(region), _) => region.range.clone(),
                (None, Some(index)) => module.functions()[index].body.clone(),
                (None, None) => continue,
            };
            let equivalent = task.paper.units.iter().find(|it| it.at == function.at).map(|it| &it.equivalent);
            let marked = |id: &str| equivalent.is_some_and(|marks| marks.iter().any(|mark| mark.mutant == id));
            let mut mutants = index.map_or_else(|| Ok(Vec::new()), |index| module.mutants(index))?;
            // Use only the kinds of mutants that this agent has had from the beginning. With newer kinds, a seed would
            // no longer give the same attempts as before.
            mutants.retain(|it| {
                body.start <= it.range.start
                    && it.range.end <= body.end
                    && !marked(&it.id)
                    && it.kind < MutantKind::Argument
            });
            let place = (share(seed, "which", &function.at) * mutants.len() as f64) as usize;
            if let Some(mutant) = mutants.get(place) {
                let text = module.mutant_text(mutant);
                let end = text.len() - (bytes.len() - body.end);
                said.push(format!("`{}` is the mutant `{}`", function.at, mutant.id));
                bodies.push((body.clone(), text[body.start..end].to_vec()));
            } else {
                // The function has no mutants; use a body that does nothing as the wrong solution.
                said.push(format!("`{}` has no mutant, so a body that does nothing is used instead", function.at));
                let nothing = match &function.region {
                    Some(_) => {
                        let text = &bytes[body.clone()];
                        let indent = text.iter().take_while(|byte| b" \t".contains(byte)).count();
                        [&text[..indent], b"pass"].concat()
                    }
                    None => b" return None".to_vec(),
                };
                bodies.push((body, nothing));
            }
        }
        bodies.sort_by_key(|(range, _)| range.start);
        let (mut text, mut at) = (Vec::with_capacity(bytes.len()), 0);
        for (range, body) in bodies {
            text.extend_from_slice(&bytes[at..range.start]);
            text.extend_from_slice(&body);
            at = range.end;
        }
        text.extend_from_slice(&bytes[at..]);
        Ok((text, said))
    }
}

/// Derives a number between 0 and 1 from the attempt's seed, `what` and `name`. The seed depends on the run's seed, the
/// sample and the attempt.
pub fn share(seed: u64, what: &str, name: &str) -> f64 {
    let digest = Sha256::new()
        .chain_update(what)
        .chain_update([0])
        .chain_update(seed.to_le_bytes())
        .chain_update(name)
        .finalize();
    let bits = digest.iter().take(6).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    bits as f64 / (1_u64 << 48) as f64
}

#[async_trait]
impl Agent for Mutants {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn only(&self) -> Option<&'static str> {
        Some(MASKED)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let Some(task) = task.part::<Replication>() else { return Replication::missing(self.name()) };
        let seed = context.sampling.seed.unwrap_or_default();
        let mut files = Vec::new();
        for (path, bytes) in &task.originals {
            match self.restore(task, path, bytes, seed) {
                Ok((bytes, said)) => {
                    let content = said.join("\n");
                    context.trajectory.push(&Event::Message { role: Role::Assistant, content, call_id: None });
                    files.push((path.clone(), bytes));
                }
                Err(error) => return End::GaveUp.because(error.to_string()),
            }
        }
        match experiment::write_all(&files, context).await {
            Ok(()) => experiment::report(&task.checks(), context).await,
            Err(ended) => ended,
        }
    }
}
