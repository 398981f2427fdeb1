//! Formats what `verify` measured of one paper, for a terminal and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::shared::{clean_lines, table};
use crate::audit::mutation;
use crate::audit::verify::PaperMeasurement;
use crate::masked::gold::power;
use crate::report::clean;
use crate::suite::{FunctionEvidence, GoldResult, LoadedPaper, Paper, PaperEvidence};

/// Describes, in one line, how likely a solution with a wrong value is to pass in experiments that vary on purpose
/// (tolerance `stochastic`); `None` if there are no such experiments.
pub(super) fn power_line(paper: &Paper, gold: &BTreeMap<String, GoldResult>) -> Option<String> {
    let power = power(paper, gold);
    let parts: Vec<String> =
        power.iter().map(|(bias, chance)| format!("{:.0}% if it is off by {bias}", 100.0 * chance)).collect();
    let told = format!(
        "{}: experiments that vary on purpose: a right solution passes with at least 95% probability; a solution with \
         one wrong value passes verification with {} (simulated; in standard deviations of gold's repeats)\n",
        paper.id,
        parts.join(", ")
    );
    (!power.is_empty()).then_some(told)
}

/// Formats the numbers of a paper's maskable functions and regions (marked parts of the code).
fn count(paper: &Paper) -> String {
    let (functions, regions) = (paper.functions.len(), paper.units.len() - paper.functions.len());
    match (functions, regions) {
        (functions, 0) => format!("{functions} functions"),
        (0, regions) => format!("{regions} regions"),
        (functions, regions) => format!("{functions} functions, {regions} regions"),
    }
}

/// Formats a table of the functions, followed by the problems that were found. If `survivors`, shows the mutants that
/// no experiment noticed, as diffs. `loaded` is the paper with the new matrix of which experiments depend on which
/// functions.
pub fn console(loaded: &LoadedPaper, verified: &PaperMeasurement, survivors: bool) -> String {
    let paper = &loaded.paper;
    let mut text = format!("{}: {}, {} experiments\n", paper.id, count(paper), paper.experiments.len());
    let none = FunctionEvidence::default();
    let rows = paper.units.iter().enumerate().map(|(place, function)| {
        let evidence = verified.evidence.as_ref().and_then(|evidence| evidence.functions.get(&function.at));
        let known = evidence.unwrap_or(&none);
        let figure = |value: usize| if evidence.is_some() { value.to_string() } else { "-".to_owned() };
        vec![
            function.at.clone(),
            loaded.tests(&[place]).len().to_string(),
            figure(known.mutants),
            figure(known.killed),
            figure(known.equivalent),
            known.score().map_or_else(|| "-".to_owned(), |score| format!("{score:.2}")),
            verified.leaks.functions.get(place).map_or_else(String::new, |leak| format!("{:.2}", leak.containment)),
            verified.leaks.functions.get(place).map(|leak| leak.place.clone()).unwrap_or_default(),
        ]
    });
    text += &table(&HEADER, &[1, 2, 3, 4, 5, 6], rows);
    if let Some(score) = score(verified) {
        let _ = writeln!(text, "mutation score: {score:.3}");
    }
    text += &verified.evidence.as_ref().map(|evidence| kinds(loaded, evidence)).unwrap_or_default();
    for function in named(loaded, &verified.matrix.inessential()) {
        let _ = writeln!(text, "not essential (no experiment changes without it): {}", clean(&function));
    }
    text += &swallowed(&named(loaded, &verified.matrix.swallowed()), paper.units.len());
    let all = verified.mutations.iter().flat_map(|it| it.survivors.iter().map(move |survivor| (it, survivor)));
    let survived = all.clone().count();
    if survivors {
        for (mutation, survivor) in all {
            let diff = clean_lines(&survivor.diff);
            let _ = write!(text, "\nsurvivor {} of {}\n{diff}", clean(&survivor.id), clean(&mutation.at));
        }
    } else if survived > 0 {
        let _ = writeln!(text, "mutants that no experiment notices: {survived} (`--survivors` shows them)");
    }
    for mutation in &verified.mutations {
        for id in &mutation.wrongly_marked {
            let _ = writeln!(text, "marked as equivalent, but killed: {} of {}", clean(id), clean(&mutation.at));
        }
    }
    text
}

/// Names the functions whose masking changes values of experiments but stops no experiment with an error, because other
/// code catches the error. If this is true of all functions, the commands are the reason: test runners, for example,
/// count failures instead of stopping at an error.
fn swallowed(functions: &[String], all: usize) -> String {
    match functions {
        [] => String::new(),
        every if every.len() == all && all > 1 => format!(
            "masking any of the {all} functions changes values instead of causing an error: the experiments continue \
             after an error, as test runners do\n"
        ),
        some => {
            let named: Vec<String> = some.iter().map(|function| clean(function)).collect();
            format!(
                "masking one of these functions changes values instead of causing an error, so something catches the \
                 error: {}\n",
                named.join(", ")
            )
        }
    }
}

/// Same as [`console`], for a paper that was verified earlier, from the stored measurements.
pub fn stored(loaded: &LoadedPaper, evidence: &PaperEvidence) -> String {
    let paper = &loaded.paper;
    let mut text = format!("{}: {}, {} experiments\n", paper.id, count(paper), paper.experiments.len());
    let none = FunctionEvidence::default();
    let rows = paper.units.iter().enumerate().map(|(place, function)| {
        let known = evidence.functions.get(&function.at).unwrap_or(&none);
        vec![
            function.at.clone(),
            loaded.tests(&[place]).len().to_string(),
            known.mutants.to_string(),
            known.killed.to_string(),
            known.equivalent.to_string(),
            known.score().map_or_else(|| "-".to_owned(), |score| format!("{score:.2}")),
            format!("{:.2}", known.containment),
            known.contained_in.clone(),
        ]
    });
    text += &table(&HEADER, &[1, 2, 3, 4, 5, 6], rows);
    if let Some(score) = evidence_score(evidence) {
        let _ = writeln!(text, "mutation score: {score:.3}");
    }
    text += &kinds(loaded, evidence);
    let survivors: usize = evidence.functions.values().map(|function| function.survivors.len()).sum();
    if survivors > 0 {
        let _ = writeln!(text, "mutants that no experiment notices: {survivors} (`--survivors` shows them)");
    }
    text
}

/// Formats a table of the mutants by kind.
fn kinds(loaded: &LoadedPaper, evidence: &PaperEvidence) -> String {
    let tallies = mutation::by_kind(loaded, evidence).unwrap_or_default();
    let rows = tallies.iter().map(|(kind, tally)| {
        let figures = [tally.made, tally.killed, tally.equivalent].map(|figure| figure.to_string());
        std::iter::once(kind.name().to_owned()).chain(figures).collect()
    });
    table(&["kind of mutant", "mutants", "killed", "equivalent"], &[1, 2, 3], rows)
}

const HEADER: [&str; 8] = ["function", "tests", "mutants", "killed", "equivalent", "score", "containment", "in"];

/// Same as [`console`], as JSON.
pub fn as_json(loaded: &LoadedPaper, verified: &PaperMeasurement) -> Value {
    let functions = loaded.paper.units.iter().enumerate().map(|(place, function)| {
        let evidence = verified.evidence.as_ref().and_then(|evidence| evidence.functions.get(&function.at));
        let mutation = verified.mutations.iter().find(|mutation| mutation.at == function.at);
        let experiments = loaded.tests(&[place]);
        json!({
            "at": function.at,
            "tests": experiments.iter().map(|&test| &loaded.paper.experiments[test].id).collect::<Vec<_>>(),
            "evidence": evidence,
            "score": evidence.and_then(FunctionEvidence::score),
            "mutation": mutation,
        })
    });
    let findings = verified.leaks.findings.iter().map(|it| json!({ "kind": it.kind, "message": it.error.to_string() }));
    let threads: Vec<String> = verified.threads.as_ref().err().into_iter().flatten().map(ToString::to_string).collect();
    json!({
        "paper": loaded.paper.id,
        "functions": functions.collect::<Vec<_>>(),
        "mutation_score": score(verified),
        "mutants_by_kind": verified.evidence.as_ref().and_then(|evidence| mutation::by_kind(loaded, evidence).ok()),
        "not_essential": named(loaded, &verified.matrix.inessential()),
        "swallowed": named(loaded, &verified.matrix.swallowed()),
        "leaks": verified.leaks.functions,
        "leaking_pairs": verified.leaks.pairs,
        "leak_findings": findings.collect::<Vec<_>>(),
        "two_threads": verified.threads.as_ref().ok(),
        "two_threads_errors": threads,
        "notes": verified.matrix.notes,
        "masked_runs": verified.matrix.runs,
        "trials_made": verified.made,
        "cpu_seconds": verified.cpu,
        "matrix_cpu_seconds": verified.matrix_cpu,
        "written": verified.written,
    })
}

/// Returns the share of mutants that are killed, among the paper's mutants that are not equivalent.
pub fn score(verified: &PaperMeasurement) -> Option<f64> {
    if !verified.mutations.is_empty() {
        return mutation::score(&verified.mutations);
    }
    evidence_score(verified.evidence.as_ref()?)
}

/// Same as [`score`], from measurements that were stored earlier.
pub(super) fn evidence_score(evidence: &PaperEvidence) -> Option<f64> {
    let functions = &evidence.functions;
    let real: usize = functions.values().map(|it| it.mutants - it.equivalent.min(it.mutants)).sum();
    let killed: usize = functions.values().map(|it| it.killed).sum();
    (real > 0).then(|| killed as f64 / real as f64)
}

fn named(loaded: &LoadedPaper, functions: &[usize]) -> Vec<String> {
    functions.iter().map(|&function| loaded.paper.units[function].at.clone()).collect()
}
