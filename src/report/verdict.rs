//! Formats the verdict of one attempt for a terminal, value by value.

use std::collections::HashMap;

use comfy_table::{Cell, CellAlignment};
use serde_json::Value;

use super::clean::{clean, middle_cut, short};
use super::end_name;
use super::terminal::{plain_table, trimmed};
use crate::run::AttemptRecord;
use crate::score::{ExperimentVerdict, ValueVerdict, Verdict};

/// Maximum length of untrusted text in a table cell.
const LONGEST: usize = 40;

/// Formats the verdict for a terminal, in lines of at most 100 columns: the attempt and its outcome, then for each
/// experiment its values with gold, the reported and the verified value, and their errors in percent of |gold|
/// (absolute and without a percent sign if gold is 0).
#[must_use]
pub fn verdict_lines(record: &AttemptRecord) -> Vec<String> {
    let outcome = match (record.is_infrastructure(), record.pass, record.is_unsupported()) {
        (true, ..) if record.is_stopped() => "stopped with the run",
        (true, ..) => "lost to infrastructure",
        (_, true, _) => "pass",
        (_, _, true) => "fail: reported rightly, but not supported by the code",
        _ => "fail",
    };
    let attempt =
        format!("{} attempt {} by {}", short(&record.sample, 60), record.attempt, middle_cut(&record.agent, 20));
    let mut lines = vec![format!("{attempt}: {outcome}")];
    let detail = record.end_detail.as_deref().map(|detail| format!(": {}", short(detail, 70))).unwrap_or_default();
    lines.push(format!("ended: {}{detail}", end_name(record.end).replace('_', " ")));
    lines.extend(record.gpu.iter().map(|gpu| format!("graphics processor: {}", short(gpu, 60))));
    for (source, verdict) in [("reported", &record.reported), ("verified", &record.verified)] {
        lines.push(format!("{source}: {}", outline(verdict.as_ref())));
        let warnings = verdict.iter().flat_map(|verdict| &verdict.warnings);
        lines.extend(warnings.map(|warning| format!("  warning: {}", short(warning, 85))));
    }
    for experiment in experiments(record) {
        let find = |verdict: &'_ Option<Verdict>| {
            verdict.as_ref().and_then(|v| v.experiments.iter().find(|e| e.experiment == experiment).cloned())
        };
        lines.push(String::new());
        lines.extend(experiment_lines(experiment, find(&record.reported).as_ref(), find(&record.verified).as_ref()));
    }
    lines
}

/// Formats a verdict as `pass` or `fail`, with the reason.
fn outline(verdict: Option<&Verdict>) -> String {
    match verdict {
        None => "not scored".to_owned(),
        Some(verdict) => pass_or_fail(verdict.pass, verdict.reason.as_deref()),
    }
}

fn pass_or_fail(pass: bool, reason: Option<&str>) -> String {
    let word = if pass { "pass" } else { "fail" };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {}", short(reason, 70)))
}

/// Ids of the experiments, in the order of the reported verdict or, if that has none, of the verified one.
fn experiments(record: &AttemptRecord) -> Vec<&str> {
    let verdict = record.reported.as_ref().filter(|verdict| !verdict.experiments.is_empty());
    let verdict = verdict.or(record.verified.as_ref());
    verdict.iter().flat_map(|verdict| &verdict.experiments).map(|experiment| experiment.experiment.as_str()).collect()
}

fn experiment_lines(
    id: &str,
    reported: Option<&ExperimentVerdict>,
    verified: Option<&ExperimentVerdict>,
) -> Vec<String> {
    let mut lines = vec![format!("experiment {}", short(id, 80))];
    for (source, verdict) in [("reported", reported), ("verified", verified)] {
        if let Some(verdict) = verdict {
            lines.push(format!("  {source}: {}", pass_or_fail(verdict.pass, verdict.reason.as_deref())));
            let warnings = verdict.warnings.iter();
            lines.extend(warnings.map(|warning| format!("  warning: {source}: {}", short(warning, 70))));
        }
    }
    let values = |verdict: Option<&ExperimentVerdict>| verdict.map(|v| v.values.clone()).unwrap_or_default();
    let (reported, verified) = (values(reported), values(verified));
    let leading = if reported.is_empty() { &verified } else { &reported };
    if leading.is_empty() {
        return lines;
    }
    let mut table = plain_table();
    let heading = ["value", "gold", "reported", "error", "verified", "error"];
    table.set_header(heading.iter().enumerate().map(|(column, name)| aligned(column, name)));
    let [reported, verified] = [&reported, &verified]
        .map(|values| values.iter().map(|value| (value.path.as_str(), value)).collect::<HashMap<_, _>>());
    for value in leading {
        let [first, second] = [&reported, &verified].map(|values| values.get(value.path.as_str()).copied());
        let path = if value.path.is_empty() { "(the result)".to_owned() } else { short(&value.path, LONGEST) };
        let cells = [path, plain(&value.gold), got(first), error(first), got(second), error(second)];
        table.add_row(cells.iter().enumerate().map(|(column, text)| aligned(column, text)));
    }
    lines.extend(trimmed(table, &[]).lines().map(str::to_owned));
    lines
}

fn aligned(column: usize, text: &str) -> Cell {
    Cell::new(text).set_alignment(if column == 0 { CellAlignment::Left } else { CellAlignment::Right })
}

/// The obtained value, or `-`.
fn got(value: Option<&ValueVerdict>) -> String {
    value.and_then(|value| value.got.as_ref()).map_or_else(|| "-".to_owned(), plain)
}

/// The value's error, or the reason why it has no error; a trailing `!` marks a failed value.
fn error(value: Option<&ValueVerdict>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let text = match (value.error, value.reason.as_deref()) {
        (Some(error), _) if value.gold.as_f64() == Some(0.0) => {
            if error == 0.0 {
                "0".to_owned()
            } else {
                format!("{error:.2e}")
            }
        }
        (Some(error), _) => format!("{:.2}%", 100.0 * error),
        (None, Some(reason)) => short(reason.split(": `").next().unwrap_or(reason), LONGEST),
        (None, None) => "equal".to_owned(),
    };
    if value.pass { text } else { format!("{text} !") }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => clean(&number.to_string()),
        Value::String(text) => short(text, LONGEST),
        other => short(&other.to_string(), LONGEST),
    }
}
