//! Pass rates on tasks published before and after a model's knowledge cutoff.
//!
//! A task published before the cutoff may have been in the training data. If only the month of a date is known, a
//! publication counts as on the first day of the month and a cutoff as on the last day, so that a task in doubt counts
//! as seen.

use serde::Serialize;

use super::clean::clean;
use super::leaderboard::leaderboard;
use super::names::short_name;
use super::summary::{SummaryOptions, summarise};
use super::terminal::{percent_with_interval, plain_table, too_few_legend, trimmed, wrap};
use crate::run::Outcome;
use crate::stats::{FEWEST_SAMPLES, Interval};
use crate::suite::PartialDate;

/// A task's publication date relative to the model's knowledge cutoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicationTiming {
    /// Published on or before the cutoff.
    Before,
    /// Published after the cutoff.
    After,
    /// The task has no date or the model has no known cutoff.
    Unknown,
}

impl PublicationTiming {
    const ALL: [Self; 3] = [Self::Before, Self::After, Self::Unknown];

    /// Compares a task's publication date with a model's cutoff.
    #[must_use]
    pub fn relative_to_cutoff(since: Option<PartialDate>, cutoff: Option<PartialDate>) -> Self {
        match (since, cutoff) {
            (Some(since), Some(cutoff)) if since.first() > cutoff.last() => Self::After,
            (Some(_), Some(_)) => Self::Before,
            _ => Self::Unknown,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Unknown => "unknown",
        }
    }
}

/// The pass rate of an agent and model on the samples of one [`PublicationTiming`] group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByDate {
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// The model's knowledge cutoff, if known.
    pub cutoff: Option<String>,
    /// Whether the tasks of these samples were published before or after the model's knowledge cutoff.
    pub public: PublicationTiming,
    /// Number of samples in the group.
    pub samples: usize,
    /// Number of attempts, without those lost to failures of the infrastructure.
    pub attempts: usize,
    /// pass@1.
    pub pass: Option<f64>,
    /// Confidence interval of `pass`.
    pub interval: Option<Interval>,
}

/// Computes one row for each agent and model and each non-empty group of samples. `cutoff` looks up the cutoff of a
/// model by the labels of an agent and its model, `since` the publication date of a record's item.
pub fn by_date(
    records: &[Outcome],
    options: &SummaryOptions,
    cutoff: impl Fn(&str, &str) -> Option<PartialDate>,
    since: impl Fn(&Outcome) -> Option<PartialDate>,
) -> Vec<ByDate> {
    let ends = |agent: &str, model: Option<&str>| cutoff(agent, model?);
    let mut rows = Vec::new();
    for public in PublicationTiming::ALL {
        let is = |record: &&Outcome| {
            let ends = ends(&record.agent, record.model.as_deref());
            PublicationTiming::relative_to_cutoff(since(record), ends) == public
        };
        let some: Vec<Outcome> = records.iter().filter(is).cloned().collect();
        for place in leaderboard(&summarise(&some, options), &[]) {
            rows.push(ByDate {
                cutoff: ends(&place.agent, place.model.as_deref()).map(|when| when.to_string()),
                agent: place.agent,
                model: place.model,
                public,
                samples: place.samples,
                attempts: place.attempts,
                pass: place.pass,
                interval: place.interval,
            });
        }
    }
    rows.sort_by(|a, b| (&a.agent, &a.model, a.public).cmp(&(&b.agent, &b.model, b.public)));
    rows
}

/// Formats the rows as a table with a legend.
#[must_use]
pub fn by_date_console(rows: &[ByDate], options: &SummaryOptions, notes: &[String]) -> String {
    let mut table = plain_table();
    table.set_header(["agent", "cutoff", "public", "samples", "attempts", "pass@1"]);
    for row in rows {
        table.add_row([
            short_name(&row.agent, row.model.as_deref()),
            row.cutoff.clone().unwrap_or_else(|| "unknown".to_owned()),
            row.public.name().to_owned(),
            row.samples.to_string(),
            row.attempts.to_string(),
            percent_with_interval(row.pass, row.interval),
        ]);
    }
    let legend = format!(
        "pass@1 in percent with its {:.0}% interval ({}). public: whether the task's text or code was public before the \
         model's knowledge cutoff, so that it may have been in the training data, or only after it. unknown: the suite has no \
         date for the task, or the model has no known cutoff (`--cutoff MODEL=DATE` gives one).",
        100.0 * options.intervals.level,
        options.intervals.legend()
    );
    let mut below = vec![wrap(&legend, "")];
    if rows.iter().any(|row| row.pass.is_some() && row.interval.is_none()) {
        below.push(wrap(&too_few_legend(FEWEST_SAMPLES, options.intervals), ""));
    }
    below.extend(notes.iter().map(|note| wrap(&format!("- {}", clean(note)), "  ")));
    format!("{}\n\n{}\n", trimmed(table, &[0]), below.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::masked;

    #[test]
    fn rates_are_split_at_each_models_cutoff_with_unknown_dates_separate() {
        let record = |model: Option<&str>, paper: &str, i: u32, passes: u32| Outcome {
            pass: i < passes,
            end: End::Answered,
            model: model.map(Into::into),
            ..Outcome::blank("react", &masked(&format!("{paper}_{i}")), 0)
        };
        let all: Vec<Outcome> = [Some("new"), Some("old"), Some("nobody's")]
            .into_iter()
            .flat_map(|model| {
                let of = move |paper: &'static str, passes| (0..10).map(move |i| record(model, paper, i, passes));
                of("early", 9).chain(of("late", 3)).chain(of("undated", 5))
            })
            .collect();
        let date = |text: &str| text.parse::<PartialDate>().ok();
        let cutoff = |agent: &str, model: &str| match (agent, model) {
            ("react", "new") => date("2025-06"),
            ("react", "old") => date("2023-10"),
            _ => None,
        };
        let since = |record: &Outcome| match &*record.paper {
            "early" => date("2024-03-01"),
            // The date is in the month of the cutoff of the model `new`, so this model may have read the task.
            "late" => date("2025-06"),
            _ => None,
        };
        let options = SummaryOptions { ks: vec![1], ..SummaryOptions::default() };
        let rows = by_date(&all, &options, cutoff, since);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.model.as_deref().unwrap(), row.public, row.samples, row.pass.unwrap()))
            .collect();
        let expected = [
            ("new", PublicationTiming::Before, 20, 0.6),
            ("new", PublicationTiming::Unknown, 10, 0.5),
            ("nobody's", PublicationTiming::Unknown, 30, 17.0 / 30.0),
            ("old", PublicationTiming::After, 20, 0.6),
            ("old", PublicationTiming::Unknown, 10, 0.5),
        ];
        for (row, expected) in told.iter().zip(expected) {
            assert_eq!((row.0, row.1, row.2), (expected.0, expected.1, expected.2), "{told:?}");
            assert!((row.3 - expected.3).abs() < 1e-9, "{told:?}");
        }
        assert_eq!(told.len(), expected.len());
        assert!(rows[0].interval.is_some_and(|it| it.low < 0.6 && 0.6 < it.high));
        let text = by_date_console(&rows, &options, &[]);
        assert!(text.contains("2023-10") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
