//! Verdicts on a program, from what was recorded of it: strict ones, and the published measures beside them.
//!
//! Strict: the program is of the kind asked for, ends with exit code 0 within its time, has set the right arguments, and
//! gives the right result. Which arguments it has set is read from what the repo's own parser gave; where no parser was
//! asked, from the result; where the result says nothing, from the text. The verdict names which.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::errors::{ErrorKind, classify};
use super::gold::GoldRun;
use super::manifest::Instruction;
use super::observe::{Call, Observed};
use super::program::{Found, find};
use crate::sandbox::Exit;
use crate::score::ml_bench::{Argument, StaticCheck, shipped_check, shipped_ran, strict_check};
use crate::score::{ExperimentVerdict, Rule, Tolerance, ValueVerdict, Verdict, score_experiment};

/// The check that verification makes.
pub const RUN: &str = "run";

/// What it is known from which arguments a program has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The arguments that the repo's parser gave.
    Namespace,
    /// The result.
    Outcome,
    /// The program's text.
    Text,
}

impl Basis {
    const ALL: [Self; 3] = [Self::Namespace, Self::Outcome, Self::Text];

    const fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Outcome => "outcome",
            Self::Text => "text",
        }
    }
}

/// The judge of one instruction's programs.
pub struct Judge<'a> {
    /// The instruction.
    pub instruction: &'a Instruction,
    /// What the right program gives.
    pub gold: &'a GoldRun,
    /// What the program has to set.
    pub asked: Vec<Argument>,
    /// Strict, or as published.
    pub rule: Rule,
}

/// What is known of the arguments that a program has set.
struct Arguments {
    basis: Basis,
    pass: bool,
    /// By the place of the asked argument.
    hits: Vec<bool>,
    values: Vec<ValueVerdict>,
}

impl Judge<'_> {
    /// What can be said of an answer without running anything: whether there is one, and whether its program is of the
    /// kind asked for.
    #[must_use]
    pub fn reported(&self, answer: Option<&str>) -> Verdict {
        let Some(answer) = answer else {
            return Verdict { reason: Some("no answer".to_owned()), ..Verdict::default() };
        };
        let Found::Program(program) = find(answer, self.instruction.kind) else {
            // The program is in a file, which verification reads.
            return Verdict { pass: true, unchecked: true, ..Verdict::default() };
        };
        let text = if answer.trim_start().starts_with('{') { &program.code } else { answer };
        let shipped = shipped_check(text, &self.asked, self.instruction.kind);
        let strict = strict_check(text, &self.asked, self.instruction.kind);
        let is_kind = program.kind == self.instruction.kind;
        let mut measures = shipped_measures(&shipped);
        measures.insert("text_arguments".to_owned(), number(strict.has_arguments()));
        // The published rule compares the text of the answer; ours can only say that there is a program to run.
        let is_published = self.rule == Rule::Reference;
        let pass = if is_published { shipped.passes() } else { is_kind };
        let reason = (!pass).then(|| "the answer is not a program of the kind asked for".to_owned());
        Verdict { pass, measures, reason, unchecked: pass && !is_published, ..Verdict::default() }
    }

    /// What came of the program when we ran it: `{"run": {"result": ...}}`, or `"error"` where there was nothing to run.
    #[must_use]
    pub fn verified(&self, results: &Map<String, Value>) -> Verdict {
        let run = results.get(RUN);
        let read = run.and_then(|run| serde_json::from_value::<Observed>(run.get("result")?.clone()).ok());
        let Some(observed) = read else {
            let error = run.and_then(|run| run.get("error")).and_then(Value::as_str);
            return self.nothing(error.unwrap_or("the program was not run"));
        };
        let shipped = shipped_check(&observed.code, &self.asked, self.instruction.kind);
        let ran = shipped_ran(match observed.exit {
            Exit::Code(code) => Some(code),
            Exit::TimedOut => None,
            Exit::Signal(signal) => Some(128 + signal),
            Exit::DiskFull => Some(1),
        });
        let text = strict_check(&observed.code, &self.asked, self.instruction.kind).arguments;
        let is_kind = observed.kind == self.instruction.kind;
        let ended = observed.exit == Exit::Code(0);
        let outcome = self.instruction.expect.outcome.then(|| self.outcome(&observed));
        let is_outcome = outcome.as_ref().is_none_or(|outcome| outcome.pass);
        let arguments = self.arguments(&observed, &text, is_outcome);
        let pass = is_kind && ended && arguments.pass && is_outcome;
        let hits = arguments.hits.iter().filter(|hit| **hit).count();
        let all = self.asked.len();
        let share = match (arguments.basis, arguments.pass) {
            (_, true) => 1.0,
            (Basis::Outcome, false) => 0.0,
            (_, false) => hits as f64 / all.max(1) as f64,
        };
        let error = (!pass).then(|| classify(&observed, is_kind, text.contains(&false)));

        let mut measures = shipped_measures(&shipped);
        let is_shipped = shipped.passes() && ran;
        for (name, value) in [
            ("shipped_ran", number(ran)),
            ("shipped", number(is_shipped)),
            ("kind", number(is_kind)),
            ("ran", number(ended)),
            ("arguments", number(arguments.pass)),
            ("parameters", all as f64),
            ("parameters_hit", hits as f64),
        ] {
            measures.insert(name.to_owned(), value);
        }
        if outcome.is_some() {
            measures.insert("outcome".to_owned(), number(is_outcome));
        }
        add_basis(&mut measures, Some(arguments.basis));
        add_error(&mut measures, error);

        let fragment = |pass: bool, reason: String| (!pass).then_some(reason);
        let mut checks = vec![
            check("kind", is_kind, fragment(is_kind, format!("it is {:?}", observed.kind).to_lowercase())),
            check("exit", ended, fragment(ended, exit(observed.exit, &observed.stderr))),
            ExperimentVerdict {
                values: arguments.values,
                ..check(
                    &format!("arguments by {}", arguments.basis.name()),
                    arguments.pass,
                    fragment(arguments.pass, "not those that were asked for".to_owned()),
                )
            },
        ];
        checks.extend(outcome);
        Verdict {
            pass: if self.rule == Rule::Reference { is_shipped } else { pass },
            score: Some(if ended && is_kind { share } else { 0.0 }),
            measures,
            reason: error.map(|error| error.name().replace('_', " ")),
            experiments: checks,
            ..Verdict::default()
        }
    }

    /// The verdict on an attempt that left no program.
    fn nothing(&self, reason: &str) -> Verdict {
        let mut measures = shipped_measures(&shipped_check("", &self.asked, self.instruction.kind));
        for name in ["shipped_kind", "shipped_arguments", "shipped_ran", "shipped", "kind", "ran", "arguments"] {
            measures.insert(name.to_owned(), 0.0);
        }
        measures.insert("parameters".to_owned(), self.asked.len() as f64);
        measures.insert("parameters_hit".to_owned(), 0.0);
        if self.instruction.expect.outcome {
            measures.insert("outcome".to_owned(), 0.0);
        }
        add_basis(&mut measures, None);
        add_error(&mut measures, None);
        Verdict { score: Some(0.0), measures, reason: Some(reason.to_owned()), ..Verdict::default() }
    }

    fn outcome(&self, observed: &Observed) -> ExperimentVerdict {
        let tolerance = Tolerance { relative: self.instruction.expect.tolerance, ..Tolerance::default() };
        let gold = self.gold.outcome.as_ref().unwrap_or(&Value::Null);
        let verdict = score_experiment("outcome", gold, observed.outcome.as_ref(), &tolerance);
        let reason = verdict.reason.clone().or_else(|| observed.no_outcome.clone());
        ExperimentVerdict { reason: reason.filter(|_| !verdict.pass), ..verdict }
    }

    fn arguments(&self, observed: &Observed, text: &[bool], is_outcome: bool) -> Arguments {
        if let Some(gold) = &self.gold.call {
            let calls = observed.calls.iter().filter(|call| call.file == gold.file);
            if let Some(best) = calls.max_by_key(|call| self.agreement(gold, call)) {
                return self.by_namespace(gold, best, text);
            }
        }
        let (basis, pass) = if self.instruction.expect.outcome {
            (Basis::Outcome, is_outcome)
        } else {
            (Basis::Text, text.iter().all(|hit| *hit))
        };
        let hits: Vec<bool> = text.iter().map(|hit| *hit || pass).collect();
        let values = self.asked.iter().zip(&hits).map(|(argument, &hit)| {
            value(&argument.name, json!(argument.value), hit.then(|| json!(argument.value)), hit)
        });
        Arguments { basis, pass, values: values.collect(), hits }
    }

    /// Number of arguments that a call has as the right one has them.
    fn agreement(&self, gold: &Call, call: &Call) -> usize {
        gold.parsed.iter().filter(|(name, right)| self.agrees(name, right, call)).count()
    }

    fn agrees(&self, name: &str, right: &Value, call: &Call) -> bool {
        self.instruction.expect.free.iter().any(|free| free == name)
            || call.parsed.get(name).is_some_and(|got| equal(right, got))
    }

    fn by_namespace(&self, gold: &Call, call: &Call, text: &[bool]) -> Arguments {
        let mut hits = Vec::with_capacity(self.asked.len());
        let mut values = Vec::new();
        let mut named = Vec::new();
        for (argument, &written) in self.asked.iter().zip(text) {
            let key = argument.name.replace('-', "_");
            let (right, got) = (gold.parsed.get(&key), call.parsed.get(&key));
            let hit = right.map_or(written, |right| self.agrees(&key, right, call));
            hits.push(hit);
            values.push(value(
                &argument.name,
                right.cloned().unwrap_or_else(|| json!(argument.value)),
                got.cloned(),
                hit,
            ));
            named.push(key);
        }
        let others = gold.parsed.iter().filter(|(name, _)| !named.contains(name));
        let changed: Vec<ValueVerdict> = others
            .filter(|(name, right)| !self.agrees(name, right, call))
            .map(|(name, right)| value(name, right.clone(), call.parsed.get(name).cloned(), false))
            .collect();
        let whole = changed.is_empty() && call.rest.is_empty();
        let pass = whole && self.agreement(gold, call) == gold.parsed.len();
        values.extend(changed);
        Arguments { basis: Basis::Namespace, pass, hits, values }
    }
}

/// Whether two arguments are the same: numbers by value, whether they are whole or not.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        _ => one == other,
    }
}

fn check(id: &str, pass: bool, reason: Option<String>) -> ExperimentVerdict {
    ExperimentVerdict { experiment: id.to_owned(), pass, reason, values: Vec::new(), warnings: Vec::new() }
}

fn value(path: &str, gold: Value, got: Option<Value>, pass: bool) -> ValueVerdict {
    ValueVerdict { path: path.to_owned(), gold, got, error: None, pass, reason: None }
}

fn exit(exit: Exit, stderr: &str) -> String {
    let how = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::TimedOut => "timed out".to_owned(),
        Exit::DiskFull => "wrote more than the disk limit".to_owned(),
    };
    match stderr.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{how}: {}", last.trim()),
        None => how,
    }
}

fn number(truth: bool) -> f64 {
    f64::from(truth)
}

fn shipped_measures(shipped: &StaticCheck) -> BTreeMap<String, f64> {
    BTreeMap::from([
        ("shipped_arguments".to_owned(), number(shipped.has_arguments())),
        ("shipped_kind".to_owned(), number(shipped.kind)),
        ("shipped_parameters_hit".to_owned(), shipped.arguments.iter().filter(|hit| **hit).count() as f64),
    ])
}

fn add_basis(measures: &mut BTreeMap<String, f64>, basis: Option<Basis>) {
    measures.extend(Basis::ALL.map(|it| (format!("by_{}", it.name()), number(Some(it) == basis))));
}

fn add_error(measures: &mut BTreeMap<String, f64>, error: Option<ErrorKind>) {
    measures.extend(ErrorKind::ALL.map(|it| (format!("error_{}", it.name()), number(Some(it) == error))));
}
