//! `autoexperiment verify --family NAME`: checks that right solutions of a family's tasks pass, and that wrong and
//! forged ones fail.

use std::fmt::Write;
use std::time::Instant;

use serde_json::json;

use super::progress::ProgressDisplay;
use super::shared::{print, print_json, table};
use crate::error::{Error, FailureKind, Result};
use crate::run::family::Families;
use crate::run::soundness::{ConstantChanges, PassCount, Soundness, SoundnessFault};
use crate::soundness::{ProofSetup, SoundnessScope, items, prove};

/// Faults found, over all papers or tasks.
#[derive(Default)]
pub(super) struct VerificationFaults {
    first: Option<FailureKind>,
    items: Vec<String>,
}

impl VerificationFaults {
    /// Prints and counts the faults of one item.
    pub fn add(&mut self, item: &str, errors: &[Error]) {
        for error in errors {
            super::render(error);
            self.first.get_or_insert(error.kind);
        }
        if !errors.is_empty() {
            self.items.push(format!("`{item}`"));
        }
    }

    /// Returns the command's result: an error that names the faulty items, if any. `all` is the number of items that
    /// were checked, and `what` names their kind.
    pub fn end(self, all: usize, what: &str) -> Result<()> {
        match self.first {
            None => Ok(()),
            Some(kind) => {
                let (count, names) = (self.items.len(), self.items.join(", "));
                Err(Error::new(kind, format!("errors in {count} of {all} {what}: {names}"))
                    .hint("see the errors above for each; the others were measured"))
            }
        }
    }
}

pub async fn run(place: &ProofSetup, family: &str, asked: &[String], scope: &SoundnessScope, json: bool) -> Result<()> {
    let items = items(&place.suite, family, asked)?;
    let words = Families::standard().words([family]).unwrap_or_default();
    let (mut faults, mut documents) = (VerificationFaults::default(), Vec::new());
    for id in &items {
        let (progress, begun) = (ProgressDisplay::new(false), Instant::now());
        let proof = prove(place, family, id, scope, &progress).await;
        progress.finish();
        match proof {
            Ok(proof) => {
                if !json {
                    print(&console(&proof, words.unit))?;
                }
                let seconds = begun.elapsed().as_secs_f64();
                talk!("{id}: {} attempts, {:.0} s of them in {seconds:.0} s", made(&proof), proof.seconds);
                let errors: Vec<Error> = proof.faults.iter().map(|fault| fault_error(id, fault)).collect();
                documents.push(json!(proof));
                faults.add(id, &errors);
            }
            Err(error) if error.kind == FailureKind::Interrupted => return Err(error),
            Err(error) => {
                documents.push(json!({ "item": id, "errors": [error.to_string()] }));
                faults.add(id, &[error]);
            }
        }
    }
    if json {
        print_json(&documents)?;
    }
    faults.end(items.len(), &format!("{}s", words.item))
}

fn made(proof: &Soundness) -> usize {
    proof.gold.made + proof.noop.made + proof.forger.made + proof.units.len() + proof.trials.len()
}

fn fault_error(item: &str, fault: &SoundnessFault) -> Error {
    let what = format!("`{item}`: {}", fault.what);
    if fault.baseline { Error::new(FailureKind::Baseline, what) } else { Error::suite(what) }
}

/// Formats the results for a task: how many attempts of each agent passed, and which checks fail if a part (`unit`) of
/// the right solution is left out.
fn console(proof: &Soundness, unit: &str) -> String {
    let share = |PassCount { passed, made }: PassCount| format!("{passed} of {made}");
    let verdict = if proof.faults.is_empty() { "sound" } else { "wrong" };
    let passes = [("gold", proof.gold), ("noop", proof.noop), ("forger", proof.forger)];
    let passes: Vec<String> = passes.map(|(name, tally)| format!("{name} passes {}", share(tally))).into();
    let changes = proof.changes.map_or_else(String::new, |changes| {
        let ConstantChanges { made, unnoticed, harmless } = changes;
        format!("; of {made} changed constants {unnoticed} unnoticed, {harmless} harmless")
    });
    let passes = if proof.gold.made == 0 { String::new() } else { format!("; {}", passes.join(", ")) };
    let mut text = format!("{}: {verdict}{passes}{changes}\n", crate::report::clean(&proof.item));
    if !proof.units.is_empty() {
        let rows = proof.units.iter().map(|unit| {
            let loses = if unit.loses.is_empty() { "nothing".to_owned() } else { unit.loses.join(", ") };
            vec![unit.unit.clone(), loses]
        });
        text += &table(&[&format!("without {unit}"), "fails"], &[], rows);
    }
    if !proof.trials.is_empty() {
        let passed = proof.trials.iter().filter(|trial| trial.pass).count();
        let _ = writeln!(text, "{} changed solutions were tried, {passed} pass", proof.trials.len());
        let rows = proof.trials.iter().map(|trial| {
            let clean = |text: &str| crate::report::clean(text);
            vec![clean(&trial.name), if trial.pass { "passes" } else { "fails" }.to_owned(), clean(&trial.why)]
        });
        text += &table(&["solution", "verdict", "why"], &[], rows);
    }
    text
}
