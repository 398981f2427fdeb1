//! A run as two tables: one row per attempt, and one row per value of a verdict. CSV, Parquet and JSON lines have the
//! same rows and column names.
//!
//! The two structs define the tables: columns, their order and types follow from their JSON schemas, which are stored
//! in `schemas/`. Never rename a column; add new ones at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::column::{ExportTable, cells, columns};
#[cfg(feature = "parquet")]
use super::parquet;
use super::{ExportSource, jsonl};
use crate::error::Result;
use crate::files::WholeFile;
use crate::run::{AttemptRecord, measured};
use crate::score::Verdict;

/// A row of the table of attempts. Each record of the store is a row. An attempt that was lost to infrastructure and
/// made again has several records.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptRow {
    /// The run's name.
    pub run: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name, null for agents without one.
    pub model: Option<String>,
    /// The paper's id.
    pub paper: String,
    /// The sample's id, such as `kmeanspp_0,3`.
    pub sample: String,
    /// Number of masked functions.
    pub n: u64,
    /// Number of the attempt at its sample, from 0.
    pub attempt: u64,
    /// Whether pass rates use the record: of an attempt's records, the last one that was not lost or stopped.
    pub counts: bool,
    /// Start of the attempt (UTC).
    pub started: jiff_timestamp::Time,
    /// Why the attempt stopped, such as `answered` or `step_limit`.
    pub end: String,
    /// Details about the end.
    pub end_detail: Option<String>,
    /// Whether the attempt passes, by the report and, if the run verifies, by verification; null if lost or stopped.
    pub pass: Option<bool>,
    /// Whether the answer agrees with gold; null if the answer was not scored.
    pub reported: Option<bool>,
    /// Whether the results of the attempt's code, run again, agree with gold; null if the code was not run again.
    pub verified: Option<bool>,
    /// Whether the results that the agent reported are right but verification failed.
    pub unsupported: bool,
    /// Number of steps: model replies or, of an agent without a model, the calls that it made.
    pub steps: u64,
    /// Number of replies that could not be parsed.
    pub format_errors: u64,
    /// Cost in dollars.
    pub cost: f64,
    /// Input tokens, including those from the provider's cache.
    pub input_tokens: u64,
    /// Output tokens, including reasoning tokens.
    pub output_tokens: u64,
    /// Seconds of tool time.
    pub tool_seconds: f64,
    /// Seconds spent waiting for the model.
    pub model_seconds: f64,
    /// Seconds of verification.
    pub verify_seconds: f64,
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// Number of files that the agent changed.
    pub changed_files: u64,
    /// Number of changed files that verification ignored, such as protected files.
    pub ignored_files: u64,
    /// The sandbox backend.
    pub sandbox: String,
    /// Input tokens from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens spent on reasoning.
    pub reasoning_tokens: u64,
    /// The agent's answer as written.
    pub answer: Option<String>,
    /// The kind of task.
    pub family: String,
    /// Completed share of the task from 0 to 1, in families (kinds of task) with partial credit.
    pub score: Option<f64>,
    /// Whether the attempt was lost to infrastructure.
    pub lost: bool,
    /// Lines of code that the sample withholds; null if unknown.
    pub lines: Option<u64>,
    /// Number of verification checks whose result came from the cache.
    pub cached_checks: u64,
    /// Number of replies that came from `--model-cache` and cost nothing.
    pub cached_replies: u64,
    /// The graphics processor reserved for the attempt with `--gpus each`.
    pub gpu: Option<String>,
    /// Additional measures of the family (kind of task). Each name begins with `reported_` or `verified_`. Null if the
    /// attempt lacks the measure.
    #[serde(flatten)]
    pub measures: BTreeMap<String, Option<f64>>,
}

/// A row of the table of values: one gold value and the value that one verdict found for it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ValueRow {
    /// The run's name.
    pub run: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name, null for agents without one.
    pub model: Option<String>,
    /// The paper's id.
    pub paper: String,
    /// The sample's id.
    pub sample: String,
    /// Number of masked functions.
    pub n: u64,
    /// Number of the attempt at its sample, from 0.
    pub attempt: u64,
    /// Whether pass rates use the attempt's record.
    pub counts: bool,
    /// `reported` or `verified`.
    pub source: String,
    /// The experiment's id.
    pub experiment: String,
    /// Path of the value in the result, such as `k=10.mean`; empty for a bare number.
    pub value: String,
    /// The gold value; null if it is not a number.
    pub gold: Option<f64>,
    /// The value found; null if it is missing or not a number.
    pub got: Option<f64>,
    /// Relative error, or absolute error if gold is 0; null if it cannot be computed.
    pub error: Option<f64>,
    /// Whether the value is within its tolerance.
    pub pass: bool,
    /// Reason why the value fails or, if there is none, why the experiment or the whole verdict fails.
    pub reason: Option<String>,
    /// The gold value as JSON if it is not a number.
    pub gold_json: Option<String>,
    /// The value found as JSON if it is not a number.
    pub got_json: Option<String>,
}

/// Serialises times in tables.
pub mod jiff_timestamp {
    use super::{JsonSchema, Serialize};

    /// A time in UTC, serialised as RFC 3339.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(transparent)]
    pub struct Time(pub jiff::Timestamp);

    impl JsonSchema for Time {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Time".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!({ "type": "string", "format": "date-time" })
        }
    }
}

/// A file format for tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values.
    Csv,
    /// Parquet.
    Parquet,
    /// JSON lines.
    Jsonl,
}

impl TableFormat {
    /// File name extension of the format.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl",
        }
    }
}

/// Writes both tables into the folder `path`, as `attempts` and `values` with the format's extension. A path with that
/// extension is a single file, which gets the table of attempts.
///
/// Records are read and written one at a time: memory grows only by about 200 bytes per record.
///
/// # Errors
/// Kind `Store` if a record is gone; kind `Machine` if a file cannot be written.
pub fn export(source: &ExportSource, format: TableFormat, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let extension = format.extension();
    if path.extension().is_some_and(|given| given == extension) {
        return Ok(vec![save(attempts(source), format, path)?]);
    }
    let file = |name: &str| path.join(format!("{name}.{extension}"));
    Ok(vec![save(attempts(source), format, &file("attempts"))?, save(values(source), format, &file("values"))?])
}

pub(super) fn save<R: Serialize + JsonSchema>(
    table: ExportTable<'_, R>,
    format: TableFormat,
    path: &Path,
) -> Result<PathBuf> {
    match format {
        TableFormat::Csv => save_csv(table, path),
        #[cfg(feature = "parquet")]
        TableFormat::Parquet => parquet::save(table, path),
        #[cfg(not(feature = "parquet"))]
        TableFormat::Parquet => Err(crate::error::Error::left_out("Parquet", "parquet")),
        TableFormat::Jsonl => jsonl::save(table, path),
    }
}

/// Returns the table of attempts.
#[must_use]
pub fn attempts(source: &ExportSource) -> ExportTable<'_, AttemptRow> {
    let measures = source.measures();
    let names = measures.clone();
    let rows = source.records().map(move |record| record.map(|record| attempt_row(&source.run.run, record, &names)));
    ExportTable { name: "attempts", rows: Box::new(rows), measures }
}

fn attempt_row(run: &str, (record, counts): (AttemptRecord, bool), measures: &[String]) -> AttemptRow {
    let pass = |verdict: &Option<Verdict>| verdict.as_ref().map(|verdict| verdict.pass);
    AttemptRow {
        run: run.to_owned(),
        measures: measured(&record, measures),
        score: record.score(),
        lost: record.is_infrastructure() && !record.is_stopped(),
        unsupported: record.is_unsupported(),
        n: record.n as u64,
        attempt: u64::from(record.attempt),
        counts: counts && !record.is_infrastructure(),
        started: jiff_timestamp::Time(record.started),
        end: serde_json::to_value(record.end).ok().and_then(|end| end.as_str().map(str::to_owned)).unwrap_or_default(),
        pass: (!record.is_infrastructure()).then_some(record.pass),
        reported: pass(&record.reported),
        verified: pass(&record.verified),
        steps: u64::from(record.steps),
        format_errors: u64::from(record.format_errors),
        cost: record.cost,
        input_tokens: record.usage.input,
        output_tokens: record.usage.output,
        tool_seconds: record.tool_seconds,
        model_seconds: record.model_seconds,
        verify_seconds: record.verify_seconds,
        wall_seconds: record.wall_seconds,
        changed_files: record.changed.len() as u64,
        ignored_files: record.ignored.len() as u64,
        cached_tokens: record.usage.cached,
        reasoning_tokens: record.usage.reasoning,
        lines: record.lines.map(|lines| lines as u64),
        cached_checks: record.cached_checks.len() as u64,
        cached_replies: u64::from(record.cached_replies),
        gpu: record.gpu,
        agent: record.agent,
        model: record.model,
        paper: record.paper,
        sample: record.sample,
        end_detail: record.end_detail,
        sandbox: record.sandbox,
        answer: record.answer,
        family: record.family,
    }
}

/// Returns the table of scored values: one row for each value in each attempt's verdicts.
#[must_use]
pub fn values(source: &ExportSource) -> ExportTable<'_, ValueRow> {
    // Only one record's rows are in memory at a time.
    let rows = source.records().flat_map(|record| match record {
        Ok((record, counts)) => value_rows(&source.run.run, &record, counts).into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    ExportTable { name: "values", rows: Box::new(rows), measures: Vec::new() }
}

fn value_rows(run: &str, record: &AttemptRecord, counts: bool) -> Vec<ValueRow> {
    let mut rows = Vec::new();
    let verdicts = [("reported", &record.reported), ("verified", &record.verified)];
    for (name, verdict) in verdicts.into_iter().filter_map(|(name, verdict)| Some((name, verdict.as_ref()?))) {
        for experiment in &verdict.experiments {
            rows.extend(experiment.values.iter().map(|value| {
                let reasons = [&value.reason, &experiment.reason, &verdict.reason];
                let reason = reasons.into_iter().flatten().next().filter(|_| !value.pass || !experiment.pass);
                let json = |value: &Value| (!value.is_number()).then(|| value.to_string());
                ValueRow {
                    run: run.to_owned(),
                    agent: record.agent.clone(),
                    model: record.model.clone(),
                    paper: record.paper.clone(),
                    sample: record.sample.clone(),
                    n: record.n as u64,
                    attempt: u64::from(record.attempt),
                    counts: counts && !record.is_infrastructure(),
                    source: name.to_owned(),
                    experiment: experiment.experiment.clone(),
                    value: value.path.clone(),
                    gold: value.gold.as_f64(),
                    got: value.got.as_ref().and_then(Value::as_f64),
                    error: value.error.filter(|error| error.is_finite()),
                    pass: value.pass,
                    reason: reason.cloned(),
                    gold_json: json(&value.gold),
                    got_json: value.got.as_ref().and_then(json),
                }
            }));
        }
    }
    rows
}

/// Writes CSV (RFC 4180): a heading line, empty cells for null, and text that no spreadsheet runs as a formula.
fn save_csv<R: Serialize + JsonSchema>(table: ExportTable<'_, R>, path: &Path) -> Result<PathBuf> {
    let mut destination = WholeFile::create_with_folders(path)?;
    let mut line = heading::<R>(&table.measures)?;
    for row in table.rows {
        destination = destination.filled(line.as_bytes())?;
        line.clear();
        add_row(&mut line, &row?)?;
    }
    destination.filled(line.as_bytes())?.finish()
}

/// Returns the heading line of a table.
fn heading<R: JsonSchema>(measures: &[String]) -> Result<String> {
    let columns = columns::<R>()?.into_iter().map(|column| column.name);
    let mut line = String::new();
    crate::report::csv_line(&mut line, columns.chain(measures.iter().cloned()));
    Ok(line)
}

/// Appends the line of a row.
fn add_row<R: Serialize>(text: &mut String, row: &R) -> Result<()> {
    let cells = cells(row)?;
    let cells = cells.values().map(|cell| match cell {
        Value::Null => String::new(),
        Value::String(text) => crate::report::cell(text),
        other => other.to_string(),
    });
    crate::report::csv_line(text, cells);
    Ok(())
}

/// Selects the table of attempts or the table of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableRows {
    /// One row per attempt.
    Attempts,
    /// One row per value of a verdict.
    Values,
}

/// One of the tables as CSV, made record by record, so that it need not fit in memory.
pub struct CsvTable {
    /// Which table.
    pub rows: TableRows,
    /// Sorted names of all measures of the attempts.
    pub measures: Vec<String>,
}

impl CsvTable {
    /// Returns the heading line.
    ///
    /// # Errors
    /// Returns the errors of [`columns`].
    pub fn heading(&self) -> Result<String> {
        match self.rows {
            TableRows::Attempts => heading::<AttemptRow>(&self.measures),
            TableRows::Values => heading::<ValueRow>(&[]),
        }
    }

    /// Appends the lines of one record of this run; `counts` says whether pass rates use the record.
    ///
    /// # Errors
    /// Kind `Internal` for a row that cannot be written.
    pub fn add(&self, text: &mut String, run: &str, record: AttemptRecord, counts: bool) -> Result<()> {
        match self.rows {
            TableRows::Attempts => add_row(text, &attempt_row(run, (record, counts), &self.measures)),
            TableRows::Values => value_rows(run, &record, counts).iter().try_for_each(|row| add_row(text, row)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{full_lost, full_record, hostile};

    fn table(rows: TableRows, records: Vec<AttemptRecord>) -> (::csv::StringRecord, Vec<::csv::StringRecord>) {
        let table = CsvTable { rows, measures: Vec::new() };
        let mut text = table.heading().unwrap();
        for record in records {
            table.add(&mut text, "r", record, true).unwrap();
        }
        for bad in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}', '\r'] {
            assert!(!text.contains(bad), "{bad:?} in {text:?}");
        }
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        (reader.headers().unwrap().clone(), reader.records().map(Result::unwrap).collect())
    }

    #[test]
    fn no_cell_of_text_is_a_formula_and_numbers_stay_numbers() {
        for rows in [TableRows::Attempts, TableRows::Values] {
            let (_, found) = table(rows, vec![hostile()]);
            for cell in found.iter().flatten().filter(|cell| cell.parse::<f64>().is_err()) {
                assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
            }
        }
        let (heading, rows) = table(TableRows::Values, vec![hostile()]);
        let column = |name: &str| heading.iter().position(|cell| cell == name).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[1][column("got")], &rows[1][column("pass")]), ("-1.5", "true"));
    }

    #[test]
    fn rows_have_the_cells_of_their_columns_in_the_same_order() {
        fn keys(row: &impl Serialize) -> Vec<String> {
            serde_json::to_value(row).unwrap().as_object().unwrap().keys().cloned().collect()
        }
        fn names<R: JsonSchema>() -> Vec<String> {
            columns::<R>().unwrap().into_iter().map(|column| column.name).collect()
        }
        let record = hostile();
        assert_eq!(keys(&value_rows("r", &record, true)[0]), names::<ValueRow>());
        let mut with_measures = names::<AttemptRow>();
        with_measures.extend(["a".to_owned(), "b".to_owned()]);
        let measures = ["a".to_owned(), "b".to_owned()];
        assert_eq!(keys(&attempt_row("r", (record, true), &measures)), with_measures);
    }

    #[test]
    fn a_lost_attempt_neither_passes_nor_fails() {
        let records = vec![full_record("react", 1, 0, 0, true), full_lost("react", 1, 1, 0)];
        let (heading, rows) = table(TableRows::Attempts, records);
        let column = |name: &str| heading.iter().position(|cell| cell == name).unwrap();
        let cells = |row: usize| ["counts", "pass", "lost"].map(|name| rows[row][column(name)].to_owned());
        assert_eq!(cells(0), ["true", "true", "false"]);
        assert_eq!(cells(1), ["false", "", "true"]);
    }
}
