//! The course of a curriculum: success and difficulty in consecutive windows of episodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::clean;
use super::terminal::{plain_table, trimmed};
use crate::run::{CurriculumSettings, Outcome};

/// Maximum number of rows of the table of a course. If the course has more windows of episodes, each row covers several
/// windows.
const MOST_ROWS: usize = 20;

/// Columns of the table that shows the course of a curriculum.
pub(super) const COLUMNS: [&str; 4] = ["episodes", "success %", "mean n", "largest n"];

/// A run with a curriculum.
#[derive(Debug, Clone)]
pub struct CurriculumRun {
    /// Name of the run.
    pub run: String,
    /// Labels of the run's agents and models, which no other requested run has.
    pub labels: BTreeSet<(Arc<str>, Option<Arc<str>>)>,
    /// The curriculum's settings.
    pub settings: CurriculumSettings,
}

/// Success and difficulty over the course of a run with a curriculum.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CurriculumCourse {
    /// Name of the run.
    pub run: String,
    /// Success rate at which the curriculum tries to keep the learner.
    pub target: f64,
    /// Number of episodes over which the curriculum measures success.
    pub window: usize,
    /// Success and difficulty in consecutive parts of the run. A part covers the episodes of one or more whole windows;
    /// only the last part may be shorter.
    pub parts: Vec<CurriculumPart>,
}

/// Consecutive episodes of a curriculum.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CurriculumPart {
    /// Number of the first episode, from 1.
    pub first: usize,
    /// Number of the last episode.
    pub last: usize,
    /// Share of the episodes that passed.
    pub success: f64,
    /// Mean n of the episodes.
    pub mean_n: f64,
    /// Largest n of the episodes.
    pub largest_n: usize,
}

impl CurriculumRun {
    /// Computes the course of the curriculum, with the episodes in the order in which their samples were drawn; `None`
    /// if no episode has ended. Lost attempts are left out.
    pub(super) fn course(&self, records: &[Outcome]) -> Option<CurriculumCourse> {
        let counts = |record: &&Outcome| record.curriculum.is_some() && !record.is_infrastructure();
        let own = records.iter().filter(|record| self.labels.contains(&(record.agent.clone(), record.model.clone())));
        let mut drawn: Vec<&Outcome> = own.filter(counts).collect();
        drawn.sort_by_key(|record| record.curriculum);
        let CurriculumSettings { target, window } = self.settings;
        let row = window.max(1) * drawn.len().div_ceil(window.max(1)).div_ceil(MOST_ROWS).max(1);
        let part = |(place, episodes): (usize, &[&Outcome])| {
            let count = episodes.len() as f64;
            CurriculumPart {
                first: place * row + 1,
                last: place * row + episodes.len(),
                success: episodes.iter().filter(|record| record.pass).count() as f64 / count,
                mean_n: episodes.iter().map(|record| record.n as f64).sum::<f64>() / count,
                largest_n: episodes.iter().map(|record| record.n).max().unwrap_or(0),
            }
        };
        let parts: Vec<_> = drawn.chunks(row).enumerate().map(part).collect();
        (!parts.is_empty()).then(|| CurriculumCourse { run: self.run.clone(), target, window, parts })
    }
}

impl CurriculumCourse {
    /// Returns a row for each part, with the cells of [`COLUMNS`].
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |part: &CurriculumPart| {
            vec![
                format!("{}–{}", part.first, part.last),
                format!("{:.1}", 100.0 * part.success),
                format!("{:.1}", part.mean_n),
                part.largest_n.to_string(),
            ]
        };
        self.parts.iter().map(row).collect()
    }

    /// Heading of the table.
    pub(super) fn heading(&self) -> String {
        format!("Curriculum of run {}: success to be kept at {:.1}%", self.run, 100.0 * self.target)
    }
}

/// Formats a course as a table for a terminal.
pub(super) fn curriculum_console(course: &CurriculumCourse) -> String {
    let mut table = plain_table();
    table.set_header(COLUMNS);
    table.add_rows(course.rows());
    format!("{}\n{}", clean(&course.heading()), trimmed(table, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::{MASKED, Sample};

    fn episode(draw: Option<u64>, n: usize, pass: bool) -> Outcome {
        let sample = Sample::new(MASKED, "a", "a", format!("a_{n}"), n);
        let mut record = Outcome::blank("serve:x", &sample, 0);
        (record.curriculum, record.pass, record.end) = (draw, pass, End::Answered);
        record
    }

    fn course(window: usize, records: &[Outcome]) -> Option<CurriculumCourse> {
        let settings = CurriculumSettings { target: 0.5, window };
        CurriculumRun { run: "r".into(), labels: [("serve:x".into(), None)].into(), settings }.course(records)
    }

    #[test]
    fn a_curriculums_course_contains_its_drawn_episodes_in_order_without_lost_episodes() {
        let mut lost = episode(Some(4), 9, false);
        lost.end = End::SandboxLost;
        let mut of_another_run = episode(Some(0), 9, false);
        of_another_run.agent = "other: serve:x".into();
        let records = [
            episode(Some(2), 2, true),
            episode(None, 9, true),
            episode(Some(0), 1, true),
            lost,
            of_another_run,
            episode(Some(1), 1, false),
            episode(Some(3), 4, true),
        ];
        let found = course(2, &records).unwrap();
        let parts: Vec<_> = found.parts.iter().map(|part| (part.first, part.last, part.success, part.mean_n)).collect();
        assert_eq!(parts, [(1, 2, 0.5, 1.0), (3, 4, 1.0, 3.0)]);
        let shown = curriculum_console(&found);
        assert!(shown.contains("at 50.0%") && shown.contains("3–4"), "{shown}");
        assert_eq!(course(2, &records[1..2]), None);
    }

    #[test]
    fn a_long_curriculum_is_shown_in_few_rows() {
        let records: Vec<_> = (0..10_000).map(|draw| episode(Some(draw), 1, draw % 2 == 0)).collect();
        let parts = course(50, &records).unwrap().parts;
        assert_eq!((parts.len(), parts.last().unwrap().last), (20, 10_000));
    }
}
