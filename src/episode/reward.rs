//! The reward of an episode, and the facts about the attempt that a learner may see.

use serde_json::{Map, Value, json};

use crate::agent::End;
use crate::run::{AttemptRecord, Reward};
use crate::score::Verdict;

/// Reward of a finished attempt; `None` if it was lost to infrastructure, so that it says nothing about the learner.
#[must_use]
pub fn reward(kind: Reward, record: &AttemptRecord) -> Option<f64> {
    if record.is_infrastructure() {
        return None;
    }
    Some(match kind {
        Reward::Pass => f64::from(u8::from(record.pass)),
        Reward::Share => share(record),
    })
}

/// Share of an attempt's checks that pass, from 0 to 1; less than 1 unless the attempt passes. A check passes if its
/// verified result is right and, if the agent had to report it, the reported result, too. Without verification, only
/// reported results count. For kinds of tasks with partial credit, the share of verified checks is multiplied by the
/// verified score, or by the reported score if that is lower, and the check that the score rates is not counted. If the
/// report fails and has no score, the share is 0.
#[must_use]
pub fn share(record: &AttemptRecord) -> f64 {
    if record.pass {
        return 1.0;
    }
    let reported = record.reported.as_ref();
    let Some(verdict) = record.verified.as_ref().or(reported) else { return 0.0 };
    let (score, (passed, checks)) = match verdict.score {
        Some(_) if reported.is_some_and(|reported| !reported.pass && reported.score.is_none()) => return 0.0,
        Some(score) => {
            let limit = reported.and_then(|reported| reported.score).unwrap_or(1.0);
            (score.min(limit).clamp(0.0, 1.0), counts(verdict, None))
        }
        None => (1.0, counts(verdict, reported)),
    };
    let rated = verdict.rated.as_ref();
    let rated = rated.and_then(|name| verdict.experiments.iter().find(|check| check.experiment == *name));
    let (passed, checks) = match rated {
        Some(check) if score < 1.0 => (passed - usize::from(check.pass), checks - 1),
        _ => (passed, checks),
    };
    // All checks can pass although the attempt fails, for example by the published rule. The attempt's verdict then
    // counts as one more check, which fails.
    let checks = if passed == checks && score >= 1.0 { checks + 1 } else { checks };
    if checks == 0 { score } else { score * passed as f64 / checks as f64 }
}

/// Numbers of passed checks and of all checks.
fn counts(verdict: &Verdict, reported: Option<&Verdict>) -> (usize, usize) {
    let is_reported = |id: &str| {
        let found = reported.and_then(|verdict| verdict.experiments.iter().find(|one| one.experiment == id));
        found.is_none_or(|one| one.pass)
    };
    let passed = verdict.experiments.iter().filter(|one| one.pass && is_reported(&one.experiment)).count();
    (passed, verdict.experiments.len())
}

/// Whether a limit, and not the client, ended the episode.
#[must_use]
pub const fn is_truncated(end: End) -> bool {
    matches!(end, End::StepLimit | End::TimeLimit | End::CostLimit | End::TokenLimit | End::DiskLimit)
}

/// Returns the facts about an attempt that a learner may see. They contain no gold values, and no reasons of failures,
/// which could quote gold values.
#[must_use]
pub fn figures(record: &AttemptRecord) -> Map<String, Value> {
    let mut figures = Map::new();
    let mut put = |name: &str, value: Value| figures.insert(name.to_owned(), value);
    put("end", json!(record.end));
    put("truncated", json!(is_truncated(record.end)));
    put("steps", json!(record.steps));
    put("tool_seconds", json!(record.tool_seconds));
    put("verify_seconds", json!(record.verify_seconds));
    if record.is_infrastructure() {
        put("lost", json!(true));
        return figures;
    }
    put("pass", json!(record.pass));
    put("share", json!(share(record)));
    for (name, verdict) in [("reported", &record.reported), ("verified", &record.verified)] {
        let Some(verdict) = verdict else { continue };
        let (passed, checks) = counts(verdict, None);
        put(name, json!({ "pass": verdict.pass, "checks": checks, "passed": passed, "score": verdict.score }));
    }
    let measures = record.measures();
    if !measures.is_empty() {
        put("measures", json!(measures));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{MASKED, Sample};
    use crate::score::{ExperimentVerdict, ValueVerdict};

    fn verdict(passes: &[bool]) -> Verdict {
        let one = |(index, pass): (usize, &bool)| ExperimentVerdict {
            experiment: format!("e{index}"),
            pass: *pass,
            reason: None,
            values: vec![ValueVerdict {
                path: "mean".to_owned(),
                gold: json!(1234.5),
                got: None,
                error: None,
                pass: *pass,
                reason: Some("missing, gold is 1234.5".to_owned()),
            }],
            warnings: Vec::new(),
        };
        let experiments = passes.iter().enumerate().map(one).collect();
        Verdict { pass: passes.iter().all(|pass| *pass), experiments, ..Verdict::default() }
    }

    fn record(reported: &[bool], verified: Option<&[bool]>) -> AttemptRecord {
        let sample = Sample::new(MASKED, "a", "a", "a_0".to_owned(), 1);
        let (reported, verified) = (verdict(reported), verified.map(verdict));
        let pass = reported.pass && verified.as_ref().is_none_or(|verdict| verdict.pass);
        let mut record = AttemptRecord { verified, pass, ..AttemptRecord::blank("serve:x", &sample, 0) };
        record.reported = Some(reported);
        record.end = End::Answered;
        record
    }

    #[test]
    fn a_check_earns_its_share_only_if_report_and_code_are_right() {
        assert_eq!(reward(Reward::Share, &record(&[true; 4], Some(&[true, true, false, false]))), Some(0.5));
        assert_eq!(reward(Reward::Share, &record(&[false, true, true, true], Some(&[true; 4]))), Some(0.75));
        assert_eq!(
            reward(Reward::Share, &record(&[true; 4], Some(&[false; 4]))),
            Some(0.0),
            "a right report by itself"
        );
        assert_eq!(reward(Reward::Pass, &record(&[true; 4], Some(&[true, true, false, false]))), Some(0.0));
        assert_eq!(reward(Reward::Pass, &record(&[true], Some(&[true]))), Some(1.0));
    }

    #[test]
    fn a_right_score_earns_only_the_share_of_passed_checks() {
        let mut wrong_program = record(&[true], Some(&[true, false]));
        wrong_program.verified.as_mut().unwrap().score = Some(1.0);
        assert_eq!(reward(Reward::Share, &wrong_program), Some(0.5));
        wrong_program.reported.as_mut().unwrap().score = Some(0.5);
        assert_eq!(reward(Reward::Share, &wrong_program), Some(0.25));
        let mut wrong_kind = record(&[], Some(&[true, true]));
        wrong_kind.reported.as_mut().unwrap().pass = false;
        wrong_kind.verified.as_mut().unwrap().score = Some(1.0);
        wrong_kind.pass = false;
        assert_eq!(reward(Reward::Share, &wrong_kind), Some(0.0), "the report fails and has no score");
    }

    #[test]
    fn a_wrong_value_lowers_only_the_score_and_not_the_share_of_checks() {
        let mut one_wrong_value = record(&[false], Some(&[false, true, true]));
        let verified = one_wrong_value.verified.as_mut().unwrap();
        (verified.score, verified.rated) = (Some(0.75), Some("e0".to_owned()));
        assert_eq!(reward(Reward::Share, &one_wrong_value), Some(0.0), "a wrong report without score");
        one_wrong_value.reported.as_mut().unwrap().score = Some(0.75);
        assert_eq!(reward(Reward::Share, &one_wrong_value), Some(0.75));
        one_wrong_value.verified.as_mut().unwrap().experiments[1].pass = false;
        assert_eq!(reward(Reward::Share, &one_wrong_value), Some(0.375));
    }

    proptest::proptest! {
        #[test]
        fn an_attempt_that_fails_never_earns_the_full_share(
            reported in proptest::collection::vec(proptest::bool::ANY, 0..4),
            verified in proptest::option::of(proptest::collection::vec(proptest::bool::ANY, 0..4)),
            scores in proptest::array::uniform2(proptest::option::of(0.0..=1.0_f64)),
            is_scored_fully in proptest::bool::ANY,
        ) {
            let mut record = record(&reported, verified.as_deref());
            record.pass = false;
            let scores = scores.map(|score| score.map(|score| if is_scored_fully { 1.0 } else { score }));
            for (verdict, score) in [&mut record.reported, &mut record.verified].into_iter().zip(scores) {
                if let Some(verdict) = verdict {
                    verdict.score = score;
                }
            }
            let share = share(&record);
            proptest::prop_assert!((0.0..1.0).contains(&share), "{share}: {record:?}");
        }
    }

    #[test]
    fn a_lost_attempt_has_no_reward() {
        let mut lost = record(&[true], Some(&[true]));
        lost.end = End::SandboxLost;
        assert_eq!((reward(Reward::Pass, &lost), reward(Reward::Share, &lost)), (None, None));
        assert_eq!(figures(&lost)["lost"], true);
    }

    #[test]
    fn the_numbers_that_clients_see_contain_no_gold_value() {
        let figures = Value::Object(figures(&record(&[false], Some(&[true])))).to_string();
        assert!(!figures.contains("1234.5") && figures.contains("\"checks\":1"), "{figures}");
    }
}
