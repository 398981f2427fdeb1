//! Verdicts on a program, by the strict or the published rule, based on the record of its run. The verdicts also
//! contain the published measures.
//!
//! The strict rule requires that the program is of the requested kind, exits with code 0 within its time limit, sets
//! the right arguments, and gives the right result. The arguments are judged by the first of these that was recorded
//! for the right program: calls of the repo's own parser, calls of functions, started programs. If nothing of this kind
//! was recorded for the judged program, the arguments are judged by the result or, if the instruction expects no
//! result, by the program's text. The verdict names the source.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::argv;
use super::calls::{Leeway, compare, equal, holds_object, is_same, value};
use super::changed_run::{self, CHANGED_RUN, score_outcome};
use super::errors::{ErrorKind, classify};
use super::gold::GoldRun;
use super::manifest::Instruction;
use super::observe::{ParserCall, ProgramRecord, package};
use super::program::{AnswerProgram, answer_object, find};
use crate::sandbox::Exit;
use crate::score::ml_bench::{Argument, StaticCheck, read_arguments, shipped_check, shipped_ran, strict_check};
use crate::score::{ExperimentVerdict, Rule, ValueVerdict, Verdict};
use crate::suite::ResultRule;

/// Id of the check that verification runs.
pub const RUN: &str = "run";

/// Reads the record of the program's run from the results of verification; `None` if the program was not run.
pub(super) fn run_record(results: &Map<String, Value>) -> Option<ProgramRecord> {
    serde_json::from_value(results.get(RUN)?.get("result")?.clone()).ok()
}

/// Whether the program's first run ended with exit code 0. Looks only at the check [`RUN`]; the results of other checks
/// do not matter.
pub(super) fn gave_results(results: &Map<String, Value>) -> bool {
    run_record(results).is_some_and(|observed| observed.exit == Exit::Code(0))
}

/// The source of a program's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentSource {
    /// The arguments parsed by the repo's parser.
    Namespace,
    /// The arguments of the program's calls of functions.
    Calls,
    /// The arguments of the programs that the program started.
    Programs,
    /// The program's result, used if nothing was recorded about the arguments and the instruction expects a result.
    Outcome,
    /// The program's source text, used if nothing was recorded about the arguments and the instruction expects no
    /// result.
    Text,
}

impl ArgumentSource {
    const ALL: [Self; 5] = [Self::Namespace, Self::Calls, Self::Programs, Self::Outcome, Self::Text];

    const fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Calls => "calls",
            Self::Programs => "programs",
            Self::Outcome => "outcome",
            Self::Text => "text",
        }
    }
}

/// Scoring of programs for one instruction.
pub struct InstructionJudge<'a> {
    /// The instruction.
    pub instruction: &'a Instruction,
    /// The results of the right program.
    pub gold: &'a GoldRun,
    /// The arguments that the task asks for.
    pub asked: Vec<Argument>,
    /// Strict or published scoring.
    pub rule: Rule,
    /// Whether the program's text decides about arguments of which nothing is recorded. This is false while gold is
    /// recorded, when copies of the right program with one changed argument are judged. Such a copy must be rejected
    /// because of what it does, and not because of its text.
    pub reads_text: bool,
}

/// The verdict on a program's arguments.
struct Arguments {
    basis: ArgumentSource,
    pass: bool,
    /// Reason why the arguments are wrong, as a part of a sentence.
    reason: &'static str,
    /// Whether each requested argument is right, by its index.
    hits: Vec<bool>,
    values: Vec<ValueVerdict>,
}

impl InstructionJudge<'_> {
    /// Scores an answer without running anything: checks that there is an answer, and that its program is of the
    /// requested kind.
    #[must_use]
    pub fn reported(&self, answer: Option<&str>) -> Verdict {
        let Some(answer) = answer else {
            return Verdict { reason: Some("no answer".to_owned()), ..Verdict::default() };
        };
        let AnswerProgram::Program(program) = find(answer, self.instruction.kind) else {
            // The program is in a file. Only verification reads this file, so nothing can be scored here.
            return Verdict { pass: true, unchecked: true, ..Verdict::default() };
        };
        let text = if answer_object(answer).is_some() { &program.code } else { answer };
        let shipped = shipped_check(text, &self.asked, self.instruction.kind);
        let strict = strict_check(text, &self.asked, self.instruction.kind);
        let is_kind = program.kind == self.instruction.kind;
        let mut measures = shipped_measures(&shipped);
        measures.insert("text_arguments".to_owned(), number(strict.has_arguments()));
        // The published rule scores the text of the answer. The strict rule scores the program's run, so here it only
        // requires a program of the right kind.
        let is_published = self.rule == Rule::Reference;
        let pass = if is_published { shipped.passes() } else { is_kind };
        let reason = (!pass).then(|| "the answer is not a program of the kind asked for".to_owned());
        Verdict { pass, measures, reason, unchecked: pass && !is_published, ..Verdict::default() }
    }

    /// Scores the program's run: `{"run": {"result": ...}}`, or `"error"` if there was nothing to run. The result of
    /// the second run, if there was one, has the id [`CHANGED_RUN`].
    #[must_use]
    pub fn verified(&self, results: &Map<String, Value>) -> Verdict {
        let Some(mut observed) = run_record(results) else {
            let error = results.get(RUN).and_then(|run| run.get("error")).and_then(Value::as_str);
            return self.nothing(error.unwrap_or("the program was not run"));
        };
        if let Some(changed) = results.get(CHANGED_RUN) {
            let error = changed.get("error").and_then(Value::as_str).unwrap_or("no result");
            observed.shifted = Some(changed.get("result").cloned().ok_or_else(|| error.to_owned()));
        }
        let shipped = shipped_check(&observed.code, &self.asked, self.instruction.kind);
        let ran = shipped_ran(match observed.exit {
            Exit::Code(code) => Some(code),
            Exit::TimedOut => None,
            Exit::Signal(signal) => Some(128 + signal),
            Exit::DiskFull => Some(1),
        });
        let text = if self.reads_text {
            strict_check(&observed.code, &self.asked, self.instruction.kind).arguments
        } else {
            vec![true; self.asked.len()]
        };
        let is_kind = observed.kind == self.instruction.kind;
        let ended = observed.exit == Exit::Code(0);
        let outcome = self.instruction.expect.outcome.then(|| self.outcome(&observed));
        let is_outcome = outcome.as_ref().is_none_or(|outcome| outcome.pass);
        let arguments = self.arguments(&observed, &text, is_outcome);
        let shift = self.gold.shift.as_ref();
        let changed = shift.and_then(|shift| changed_run::verdict(shift, &observed, &self.instruction.expect));
        let is_changed = changed.as_ref().is_none_or(|changed| changed.pass);
        let pass = is_kind && ended && arguments.pass && is_outcome && is_changed;
        let hits = arguments.hits.iter().filter(|hit| **hit).count();
        let all = self.asked.len();
        let share = match (arguments.basis, arguments.pass) {
            (_, true) => 1.0,
            (ArgumentSource::Outcome, false) => 0.0,
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
        let rated = format!("arguments by {}", arguments.basis.name());
        let mut checks = vec![
            check("kind", is_kind, fragment(is_kind, format!("it is {:?}", observed.kind).to_lowercase())),
            check("exit", ended, fragment(ended, exit(observed.exit, &observed.stderr))),
            ExperimentVerdict {
                values: arguments.values,
                ..check(&rated, arguments.pass, fragment(arguments.pass, arguments.reason.to_owned()))
            },
        ];
        checks.extend(outcome.into_iter().chain(changed));
        Verdict {
            pass: if self.rule == Rule::Reference { is_shipped } else { pass },
            score: Some(if ended && is_kind { share } else { 0.0 }),
            rated: Some(rated),
            measures,
            reason: error.map(|error| error.name().replace('_', " ")),
            experiments: checks,
            ..Verdict::default()
        }
    }

    /// Returns the verdict on an attempt that left no program.
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

    fn outcome(&self, observed: &ProgramRecord) -> ExperimentVerdict {
        let gold = self.gold.outcome.as_ref().unwrap_or(&Value::Null);
        let verdict = score_outcome("outcome", gold, observed.outcome.as_ref(), &self.instruction.expect);
        let reason = verdict.reason.clone().or_else(|| observed.no_outcome.clone());
        ExperimentVerdict { reason: reason.filter(|_| !verdict.pass), ..verdict }
    }

    fn arguments(&self, observed: &ProgramRecord, text: &[bool], is_outcome: bool) -> Arguments {
        let gold = self.gold;
        let requires_calls = gold.functions.iter().any(|one| one.is_required(self.leeway()));
        if observed.record_too_large {
            let basis = if self.instruction.expect.outcome { ArgumentSource::Outcome } else { ArgumentSource::Text };
            let reason = "the record of the program's calls is too large (above 4 MiB) to be compared";
            return Arguments { basis, pass: false, reason, values: self.by_text(text), hits: text.to_vec() };
        }
        if !gold.calls.is_empty() {
            let is_asked = |call: &&ParserCall| gold.calls.iter().any(|right| right.file == call.file);
            let asked: Vec<&ParserCall> = observed.calls.iter().filter(is_asked).collect();
            if !asked.is_empty() {
                return self.by_namespace(observed, &asked, text);
            }
            // A package may have several commands with the same effect, so accept its other commands, too.
            let others: Vec<ParserCall> = observed.calls.iter().filter_map(|call| self.as_gold(call)).collect();
            if !others.is_empty() {
                return self.by_namespace(observed, &others.iter().collect::<Vec<_>>(), text);
            }
        } else if requires_calls {
            if let Some(found) = self.by_calls(observed, text) {
                return found;
            }
        } else if gold.started.iter().any(|right| observed.started.iter().any(|got| got.program == right.program)) {
            return self.by_programs(observed, text);
        }
        let all = text.iter().all(|hit| *hit);
        // Whether the record shows that the program made none of the calls that every right program has to make.
        // Records of earlier versions cannot show this, because they do not contain the program's calls of functions.
        let unasked = observed.functions.is_some() && (requires_calls || !gold.calls.is_empty());
        let (basis, pass, reason) = match (self.instruction.expect.outcome, unasked) {
            (true, true) => {
                (ArgumentSource::Outcome, false, "the program made none of the calls that the gold program makes")
            }
            (true, false) => {
                (ArgumentSource::Outcome, is_outcome && all, "the arguments are not those that were asked for")
            }
            (false, true) => {
                (ArgumentSource::Text, false, "the program made none of the calls that the gold program makes")
            }
            (false, false) => (ArgumentSource::Text, all, "the arguments are not those that were asked for"),
        };
        Arguments { basis, pass, reason, values: self.by_text(text), hits: text.to_vec() }
    }

    /// Judges the requested arguments by the program's text.
    fn by_text(&self, text: &[bool]) -> Vec<ValueVerdict> {
        let values = self.asked.iter().zip(text);
        let values = values.map(|(argument, &hit)| {
            value(&argument.name, json!(argument.value), hit.then(|| json!(argument.value)), hit)
        });
        values.collect()
    }

    /// Converts a parser call of another command to a call of the right program's command. Arguments that the other
    /// command does not have get the values that they have in the right program's call. Returns `None` if the commands
    /// are not in the same package, or if the other command lacks a requested argument that the right program's command
    /// has.
    fn as_gold(&self, call: &ParserCall) -> Option<ParserCall> {
        let knows = |gold: &&ParserCall| {
            let asked = self.asked.iter().map(|argument| argument.name.replace('-', "_"));
            let mut asked = asked.filter(|name| gold.parsed.contains_key(name));
            package(&gold.file).is_some()
                && package(&gold.file) == package(&call.file)
                && asked.all(|name| call.parsed.contains_key(&name))
        };
        let gold = self.gold.calls.iter().find(knows)?;
        let mut parsed = gold.parsed.clone();
        parsed.extend(call.parsed.iter().map(|(name, value)| (name.clone(), value.clone())));
        Some(ParserCall { file: gold.file.clone(), parsed, rest: call.rest.clone() })
    }

    /// Whether a program, which was stopped after its parser had parsed arguments for the first time, has the right
    /// arguments.
    #[must_use]
    pub fn parsed(&self, observed: &ProgramRecord) -> bool {
        let calls: Vec<&ParserCall> = observed.calls.iter().collect();
        self.gold.calls.iter().all(|gold| calls.iter().any(|call| self.is_same_call(gold, call)))
    }

    /// Judges the arguments that the program passed to the functions that gold calls. Returns `None` if it called none
    /// of these functions, or if its calls were not recorded.
    fn by_calls(&self, observed: &ProgramRecord, text: &[bool]) -> Option<Arguments> {
        let found = compare(&self.gold.functions, observed.recorded_calls()?, self.leeway());
        if found.values.is_empty() {
            return None;
        }
        let printed = |value: &Value| read_arguments(&json!({ "v": value })).unwrap_or_default().pop();
        let is_argument =
            |argument: &Argument, value: &Value| printed(value).is_some_and(|it| it.value == argument.value);
        // The program may have the effect of an expected call without making the call. Then the call's constants must
        // at least be in the program's text.
        let written = found.absent.iter().flat_map(|one| one.set.iter().filter(|(name, _)| *name != "self"));
        let is_asked = |part: &&Value| self.asked.iter().any(|argument| is_argument(argument, part));
        let written = written.flat_map(|(name, right)| {
            // If the constant is a list, only those of its elements that the task asks for must be in the text. The
            // program may read the other elements from a file or compute them.
            let parts = parts(right).filter(|part| !right.is_array() || is_asked(part));
            parts.map(move |part| (name, part))
        });
        let written = written.filter(|(_, right)| right.is_number() || right.is_string()).all(|(name, right)| {
            let constant = read_arguments(&json!({ name.as_str(): right })).unwrap_or_default();
            strict_check(&observed.code, &constant, self.instruction.kind).has_arguments()
        });
        let is_wrong = |argument: &Argument| {
            found.values.iter().filter(|value| !value.pass).any(|value| {
                let (Some(right), Some(Value::Object(got))) = (value.gold.as_object(), &value.got) else {
                    return false;
                };
                right.iter().any(|(name, right)| {
                    is_argument(argument, right) && !got.get(name).is_some_and(|got| equal(right, got))
                })
            })
        };
        // A requested number that the right program passes to no call, such as a limit used in a comparison, must be in
        // the program's text.
        let is_passed = |argument: &Argument| {
            let mut set = self.gold.functions.iter().flat_map(|one| one.set.values());
            set.any(|value| is_argument(argument, value) || parts(value).any(|part| is_argument(argument, part)))
        };
        let kept = self
            .asked
            .iter()
            .zip(text)
            .all(|(argument, &hit)| hit || argument.value.parse::<f64>().is_err() || is_passed(argument));
        let hits = self.asked.iter().zip(text).map(|(argument, &hit)| hit && !is_wrong(argument)).collect();
        // If the program does not make an expected call, only a result can show that the program has the same effect.
        let is_shown = self.instruction.expect.outcome || found.absent.is_empty();
        let pass = found.agrees() && written && kept && is_shown;
        let reason = "the calls are not those that were asked for";
        Some(Arguments { basis: ArgumentSource::Calls, pass, reason, values: found.values, hits })
    }

    /// Judges the programs that a script started. Each program that the right program starts must be started with the
    /// same arguments, and must not be started with other arguments as well.
    fn by_programs(&self, observed: &ProgramRecord, text: &[bool]) -> Arguments {
        let is_right = |right: &argv::StartedProgram| observed.started.iter().any(|got| argv::is_same(right, got));
        let mut values: Vec<ValueVerdict> = self
            .gold
            .started
            .iter()
            .map(|right| {
                let got = observed.started.iter().find(|got| got.program == right.program);
                value(&right.program, json!(right.arguments), got.map(|got| json!(got.arguments)), is_right(right))
            })
            .collect();
        if values.iter().all(|value| value.pass) {
            let others = observed.started.iter().filter(|got| {
                let mut rights = self.gold.started.iter().filter(|right| right.program == got.program).peekable();
                rights.peek().is_some() && !rights.any(|right| argv::is_same(right, got))
            });
            let path = |got: &argv::StartedProgram| format!("another `{}`", got.program);
            values.extend(others.map(|got| value(&path(got), Value::Null, Some(json!(got.arguments)), false)));
        }
        let pass = values.iter().all(|value| value.pass);
        Arguments {
            basis: ArgumentSource::Programs,
            pass,
            reason: "the started programs are not those that were asked for",
            values,
            hits: text.to_vec(),
        }
    }

    /// Returns the number of arguments of a call that agree with the right call.
    fn agreement(&self, gold: &ParserCall, call: &ParserCall) -> usize {
        gold.parsed.iter().filter(|(name, right)| self.agrees(name, right, call)).count()
    }

    fn agrees(&self, name: &str, right: &Value, call: &ParserCall) -> bool {
        let leeway = self.leeway();
        // A real command line gives an object only where the right program's command line gives one, too. Other objects
        // come from a program that calls the parser itself.
        let is_possible = |got: &Value| holds_object(right) || !holds_object(got);
        self.is_result(right)
            || leeway.has(name)
            || call.parsed.get(name).is_some_and(|got| is_possible(got) && is_same(right, got, name, leeway))
    }

    /// Whether a value is the path of the file from which the result is read. In that case, the result itself shows
    /// that the file was written, by whatever means.
    fn is_result(&self, right: &Value) -> bool {
        let Some(right) = right.as_str().filter(|_| self.instruction.expect.outcome) else { return false };
        let Instruction { files, result, path, .. } = self.instruction;
        // `file` is relative to the folder in which the program runs. The recorded path `right` may be relative to this
        // folder or to the repo's root.
        let is_path = |file: &str| file == right || Path::new(path).join(file) == Path::new(right);
        match result {
            ResultRule::JsonFile(file) if files.is_empty() => is_path(file),
            _ => files.iter().any(|file| is_path(file)),
        }
    }

    fn leeway(&self) -> Leeway<'_> {
        self.instruction.expect.leeway()
    }

    /// Judges the arguments by parser calls. Each parser call of the right program is compared with the program's
    /// closest one. The program must not make further parser calls.
    fn by_namespace(&self, observed: &ProgramRecord, calls: &[&ParserCall], text: &[bool]) -> Arguments {
        let closest = |gold: &ParserCall| {
            calls.iter().filter(|call| call.file == gold.file).max_by_key(|call| self.agreement(gold, call)).copied()
        };
        let pairs: Vec<(&ParserCall, Option<&ParserCall>)> =
            self.gold.calls.iter().map(|gold| (gold, closest(gold))).collect();
        let mut hits = Vec::with_capacity(self.asked.len());
        let mut values = Vec::new();
        let mut named = Vec::new();
        for (argument, &written) in self.asked.iter().zip(text) {
            let key = argument.name.replace('-', "_");
            // The right program may be a script that runs several commands, and the instruction is about the last one.
            // So use the last of the right program's parser calls that has the argument.
            let pair = pairs.iter().rev().find(|(gold, _)| gold.parsed.contains_key(&key));
            let right = pair.and_then(|(gold, _)| gold.parsed.get(&key));
            let call = pair.and_then(|(_, call)| *call);
            let hit = right.map_or(written, |right| call.is_some_and(|call| self.agrees(&key, right, call)));
            hits.push(hit);
            let right = right.cloned().unwrap_or_else(|| json!(argument.value));
            values.push(value(&argument.name, right, call.and_then(|call| call.parsed.get(&key)).cloned(), hit));
            named.push(key);
        }
        for (gold, call) in &pairs {
            let Some(call) = call else {
                values.push(value(&gold.file, Value::Object(gold.parsed.clone()), None, false));
                continue;
            };
            let changed = gold.parsed.iter().filter(|(name, right)| !self.agrees(name, right, call));
            values.extend(
                changed
                    .filter(|(name, _)| !named.contains(name))
                    .map(|(name, right)| value(name, right.clone(), call.parsed.get(name).cloned(), false)),
            );
        }
        let others = calls.iter().filter(|call| !self.gold.calls.iter().any(|gold| self.is_same_call(gold, call)));
        let others: Vec<ValueVerdict> = others
            .map(|call| value("another call", Value::Null, Some(Value::Object(call.parsed.clone())), false))
            .collect();
        let made = self.gold.calls.iter().all(|gold| calls.iter().any(|call| self.is_same_call(gold, call)));
        let mut pass = made && others.is_empty();
        if pass && let Some(got) = observed.recorded_calls() {
            let found = compare(&self.gold.functions, got, self.leeway());
            pass = found.agrees() && found.absent.is_empty();
            values.extend(found.values);
        }
        values.extend(others.into_iter().filter(|_| made));
        Arguments {
            basis: ArgumentSource::Namespace,
            pass,
            reason: "the arguments are not those that were asked for",
            hits,
            values,
        }
    }

    fn is_same_call(&self, gold: &ParserCall, call: &ParserCall) -> bool {
        gold.file == call.file && call.rest.is_empty() && self.agreement(gold, call) == gold.parsed.len()
    }
}

/// Returns the elements of a list, or the value itself.
fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

fn check(id: &str, pass: bool, reason: Option<String>) -> ExperimentVerdict {
    ExperimentVerdict { experiment: id.to_owned(), pass, reason, values: Vec::new(), warnings: Vec::new() }
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

fn add_basis(measures: &mut BTreeMap<String, f64>, basis: Option<ArgumentSource>) {
    measures.extend(ArgumentSource::ALL.map(|it| (format!("by_{}", it.name()), number(Some(it) == basis))));
}

fn add_error(measures: &mut BTreeMap<String, f64>, error: Option<ErrorKind>) {
    measures.extend(ErrorKind::ALL.map(|it| (format!("error_{}", it.name()), number(Some(it) == error))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::ml_bench::ProgramKind;

    fn instruction(expect: &str) -> Instruction {
        let text = "id = 'a'\nkind = 'bash'\ntext = 'n is 3'\noracle = { file = 'a.md', heading = 'A' }\n\
                    gold = 'tool --n 3'\narguments = { n = 3 }\n[expect]\n";
        toml::from_str(&format!("{text}{expect}")).unwrap()
    }

    /// Makes gold from the fields that gold must have, and from these `entries`.
    fn gold(entries: &Value) -> GoldRun {
        let mut gold = json!({ "program": "tool --n 3", "seconds": [1.0], "changes": {} });
        gold.as_object_mut().unwrap().extend(entries.as_object().cloned().unwrap());
        serde_json::from_value(gold).unwrap()
    }

    fn record() -> ProgramRecord {
        ProgramRecord {
            code: "tool --n 3".to_owned(),
            kind: ProgramKind::Bash,
            exit: Exit::Code(0),
            seconds: 1.0,
            parses: true,
            stderr: String::new(),
            calls: Vec::new(),
            functions: Some(Vec::new()),
            objects: std::collections::BTreeSet::new(),
            used: std::collections::BTreeSet::new(),
            started: Vec::new(),
            outcome: Some(json!({ "x": 1 })),
            no_outcome: None,
            record_too_large: false,
            shifted: None,
        }
    }

    fn verdict(instruction: &Instruction, gold: &GoldRun, record: &ProgramRecord, changed: Option<Value>) -> Verdict {
        let asked = instruction.required_arguments().unwrap();
        let judge = InstructionJudge { instruction, gold, asked, rule: Rule::Strict, reads_text: true };
        let mut results = Map::from_iter([(RUN.to_owned(), json!({ "result": record }))]);
        results.extend(changed.map(|changed| (CHANGED_RUN.to_owned(), changed)));
        judge.verified(&results)
    }

    #[test]
    fn a_program_that_fails_gave_no_results_although_its_run_was_recorded() {
        let results = |exit: Exit| {
            let record = ProgramRecord { exit, ..record() };
            let second = json!({ "error": "the result differs" });
            Map::from_iter([(RUN.to_owned(), json!({ "result": record })), (CHANGED_RUN.to_owned(), second)])
        };
        assert!(gave_results(&results(Exit::Code(0))));
        assert!(!gave_results(&results(Exit::Code(1))) && !gave_results(&results(Exit::TimedOut)));
    }

    #[test]
    fn a_program_whose_second_run_has_no_result_or_another_one_fails() {
        let instruction = instruction("outcome = true");
        let parsed: Value = json!({ "file": "main.py", "parsed": { "n": 3 } });
        let shift = json!({ "shift": { "at": "main.py", "name": "n", "old": 3, "new": 4 }, "outcome": { "x": 2 } });
        let gold = gold(&json!({ "calls": [parsed], "shift": shift, "outcome": { "x": 1 } }));
        let record = ProgramRecord { calls: vec![serde_json::from_value(parsed).unwrap()], ..record() };
        let pass = |changed: Option<Value>| verdict(&instruction, &gold, &record, changed).pass;
        assert!(pass(Some(json!({ "result": { "x": 2 } }))));
        assert!(!pass(Some(json!({ "result": { "x": 1 } }))) && !pass(Some(json!({ "error": "exit code 1" }))));
        assert!(!pass(None), "the second run ended without a result");
        // Records of earlier versions contain the result of the second run.
        let earlier = ProgramRecord { shifted: Some(Ok(json!({ "x": 2 }))), ..record.clone() };
        assert!(verdict(&instruction, &gold, &earlier, None).pass);
    }

    #[test]
    fn a_known_result_fails_if_the_argument_to_change_is_an_object_or_parsed_by_another_command() {
        let instruction = instruction("outcome = true");
        let at = "site-packages/tool/main.py";
        let shift = |at: &str| json!({ "shift": { "at": at, "name": "n", "old": 3, "new": 4 }, "outcome": { "x": 2 } });
        let outcome = json!({ "x": 1 });
        let parsed = |file: &str, n: Value| -> ParserCall {
            serde_json::from_value(json!({ "file": file, "parsed": { "n": n } })).unwrap()
        };
        let parsing = gold(&json!({ "calls": [parsed(at, json!(3))], "shift": shift(at), "outcome": outcome }));
        let judged = |file: &str, n: Value, changed: Option<Value>| {
            let record = ProgramRecord { calls: vec![parsed(file, n)], ..record() };
            verdict(&instruction, &parsing, &record, changed).pass
        };
        let right = || Some(json!({ "result": { "x": 2 } }));
        for file in [at, "site-packages/tool/other.py"] {
            assert!(judged(file, json!(3), right()) && !judged(file, json!(3), None), "{file}");
            for n in [json!({ "object": "object" }), json!([3])] {
                assert!(!judged(file, n, None), "{file}");
            }
        }

        let call = |n: Value, direct: bool| json!({ "function": "a.py::f", "direct": direct, "within": !direct, "set": { "n": n } });
        let functions = json!([{ "function": "a.py::f", "set": { "n": 3 } }]);
        let calling = gold(&json!({ "functions": functions, "shift": shift("a.py::f"), "outcome": outcome }));
        let judged = |call: Value, changed: Option<Value>| {
            let functions = Some(vec![serde_json::from_value(call).unwrap()]);
            verdict(&instruction, &calling, &ProgramRecord { functions, ..record() }, changed)
        };
        assert!(judged(call(json!(3), true), right()).pass && !judged(call(json!(3), true), None).pass);
        for (n, direct) in [(json!({ "object": "object" }), true), (json!([3]), true), (json!([3]), false)] {
            let verdict = judged(call(n, direct), None);
            let mut reasons = verdict.experiments.iter().filter_map(|check| check.reason.as_deref());
            // Only what the program itself passes counts, not what the repo's code passes.
            assert_eq!(reasons.any(|reason| reason.contains("cannot be changed")), direct);
            assert!(!direct || !verdict.pass);
        }
    }

    #[test]
    fn a_script_that_starts_a_gold_program_again_with_other_arguments_fails() {
        let instruction = instruction("outcome = true");
        let started = |program: &str, arguments: &[&str]| argv::StartedProgram {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        };
        let right = started("tool", &["--n", "3"]);
        let gold = gold(&json!({ "started": [right], "outcome": { "x": 1 } }));
        for (other, passes) in [
            (started("cat", &["a.txt"]), true),
            (right.clone(), true),
            (started("tool", &["--n", "4"]), false),
            (started("tool", &[]), false),
        ] {
            for started in [[right.clone(), other.clone()], [other.clone(), right.clone()]] {
                let record = ProgramRecord { started: started.to_vec(), ..record() };
                assert_eq!(verdict(&instruction, &gold, &record, None).pass, passes, "{started:?}");
            }
        }
    }

    #[test]
    fn without_an_expected_result_a_program_must_make_a_gold_call_unless_its_arguments_are_free() {
        let gold = gold(&json!({ "functions": [{ "function": "a.py::f", "set": { "n": 3 } }] }));
        assert!(!verdict(&instruction(""), &gold, &record(), None).pass);
        assert!(verdict(&instruction("free = { n = 'any' }"), &gold, &record(), None).pass);
    }

    #[test]
    fn a_record_that_is_too_large_fails_with_this_reason() {
        let gold = gold(&json!({ "outcome": { "x": 1 } }));
        let instruction = instruction("outcome = true");
        assert!(verdict(&instruction, &gold, &record(), None).pass);
        let record = ProgramRecord { record_too_large: true, ..record() };
        let verdict = verdict(&instruction, &gold, &record, None);
        let reasons: Vec<&str> = verdict.experiments.iter().filter_map(|check| check.reason.as_deref()).collect();
        assert!(!verdict.pass && reasons.iter().any(|reason| reason.contains("too large")), "{reasons:?}");
    }
}
