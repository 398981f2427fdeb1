//! The course of a curriculum: success and difficulty of one window of episodes after another.

use serde::Serialize;

use super::terminal::{decimal, percent, plain_table, trimmed};
use crate::run::{AttemptRecord, CurriculumSettings};

/// Rows of the table, at most; longer courses are shown by several windows a row.
const MOST_ROWS: usize = 20;

/// Consecutive episodes of a curriculum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurriculumPart {
    /// Number of the first episode, from 1.
    pub first: usize,
    /// Number of the last episode.
    pub last: usize,
    /// Share of the episodes that passed.
    pub success: f64,
    /// Mean of n.
    pub mean_n: f64,
    /// Largest n.
    pub largest_n: usize,
}

/// Computes the course of a curriculum from the records of its run, in the order of its draws. Lost attempts are left
/// out.
#[must_use]
pub fn curriculum_course(settings: CurriculumSettings, records: &[AttemptRecord]) -> Vec<CurriculumPart> {
    let mut drawn: Vec<&AttemptRecord> =
        records.iter().filter(|record| record.curriculum.is_some() && !record.is_infrastructure()).collect();
    drawn.sort_by_key(|record| record.curriculum);
    let window = settings.window.max(1);
    let windows = drawn.len().div_ceil(window).div_ceil(MOST_ROWS).max(1);
    let part = |(place, episodes): (usize, &[&AttemptRecord])| {
        let count = episodes.len() as f64;
        let first = place * window * windows + 1;
        CurriculumPart {
            first,
            last: first + episodes.len() - 1,
            success: episodes.iter().filter(|record| record.pass).count() as f64 / count,
            mean_n: episodes.iter().map(|record| record.n as f64).sum::<f64>() / count,
            largest_n: episodes.iter().map(|record| record.n).max().unwrap_or(0),
        }
    };
    drawn.chunks(window * windows).enumerate().map(part).collect()
}

/// Formats a course as a table; `None` if no episode has ended.
#[must_use]
pub fn curriculum_console(settings: CurriculumSettings, records: &[AttemptRecord]) -> Option<String> {
    let course = curriculum_course(settings, records);
    if course.is_empty() {
        return None;
    }
    let mut table = plain_table();
    table.set_header(["episodes", "success", "mean n", "largest n"]);
    for part in &course {
        table.add_row([
            format!("{}-{}", part.first, part.last),
            percent(Some(part.success)),
            decimal(Some(part.mean_n)),
            part.largest_n.to_string(),
        ]);
    }
    let heading = format!("Curriculum, to keep success at {} %", percent(Some(settings.target)));
    Some(format!("{heading}\n{}\n", trimmed(table, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::{MASKED, Sample};

    fn episode(draw: Option<u64>, n: usize, pass: bool) -> AttemptRecord {
        let sample = Sample::new(MASKED, "a", "a", format!("a_{n}"), n);
        let mut record = AttemptRecord::blank("serve:x", &sample, 0);
        (record.curriculum, record.pass, record.end) = (draw, pass, End::Answered);
        record
    }

    #[test]
    fn the_course_follows_the_draws_and_leaves_out_other_and_lost_episodes() {
        let settings = CurriculumSettings { target: 0.5, window: 2 };
        let mut lost = episode(Some(4), 9, false);
        lost.end = End::SandboxLost;
        let records = [
            episode(Some(2), 2, true),
            episode(None, 9, true),
            episode(Some(0), 1, true),
            lost,
            episode(Some(1), 1, false),
            episode(Some(3), 4, true),
        ];
        let course = curriculum_course(settings, &records);
        let parts: Vec<_> = course.iter().map(|part| (part.first, part.last, part.success, part.mean_n)).collect();
        assert_eq!(parts, [(1, 2, 0.5, 1.0), (3, 4, 1.0, 3.0)]);
        let shown = curriculum_console(settings, &records).unwrap();
        assert!(shown.contains("50.0 %") && shown.contains("3-4"), "{shown}");
        assert_eq!(curriculum_console(settings, &records[1..2]), None);
    }

    #[test]
    fn a_long_course_has_few_rows() {
        let records: Vec<_> = (0..10_000).map(|draw| episode(Some(draw), 1, draw % 2 == 0)).collect();
        let course = curriculum_course(CurriculumSettings { target: 0.5, window: 50 }, &records);
        assert_eq!((course.len(), course.last().unwrap().last), (20, 10_000));
    }
}
