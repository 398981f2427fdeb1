use serde_json::{Value, json};

use super::*;
use crate::agent::End;
use crate::model::Usage;
use crate::run::{AttemptRecord, Outcome, PlannedAttempts, VerdictSummary, counting};
use crate::score::{Expected, Rule, Tolerance, Verdict, score_answer};
use crate::stats::Intervals;

fn summary(pass: bool) -> VerdictSummary {
    VerdictSummary { pass, ..VerdictSummary::default() }
}

fn verdict(pass: bool) -> Verdict {
    Verdict { pass, ..Verdict::default() }
}

fn record(agent: &str, n: usize, sample: usize, attempt: u32, pass: bool) -> Outcome {
    (&full_record(agent, n, sample, attempt, pass)).into()
}

pub(crate) fn full_record(agent: &str, n: usize, sample: usize, attempt: u32, pass: bool) -> AttemptRecord {
    AttemptRecord {
        family: crate::sample::MASKED.to_owned(),
        agent: agent.into(),
        model: Some("gpt-x".into()),
        paper: format!("paper{}", sample % 3),
        sample: format!("paper{}_{n}_{sample}", sample % 3),
        n,
        lines: None,
        attempt,
        started: jiff::Timestamp::UNIX_EPOCH,
        end: if pass { End::Answered } else { End::StepLimit },
        end_detail: None,
        answer: None,
        reported: Some(verdict(pass)),
        verified: Some(verdict(pass)),
        observed: serde_json::Map::new(),
        results: serde_json::Map::new(),
        pass,
        rounds: Vec::new(),
        steps: 10 + attempt,
        format_errors: attempt % 2,
        usage: Usage { input: 1500, cached: 500, cache_written: 0, output: 300, reasoning: 0 },
        cost: 0.0125,
        tool_seconds: 12.5,
        model_seconds: 30.25,
        verify_seconds: 2.0,
        wall_seconds: 45.0,
        verification_lost: false,
        evidence: None,
        changed: vec!["a.py".into()],
        skipped: vec![],
        unlisted: 0,
        ignored: vec![],
        sandbox: "local".into(),
        cached_checks: vec![],
        gpu: None,
        cached_replies: 0,
        refused_requests: 0,
        curriculum: None,
    }
}

fn lost(agent: &str, n: usize, sample: usize, attempt: u32) -> Outcome {
    (&full_lost(agent, n, sample, attempt)).into()
}

pub(crate) fn full_lost(agent: &str, n: usize, sample: usize, attempt: u32) -> AttemptRecord {
    let record = full_record(agent, n, sample, attempt, false);
    AttemptRecord { end: End::ModelError, reported: None, verified: None, ..record }
}

fn options(ks: &[usize]) -> SummaryOptions {
    SummaryOptions { ks: ks.to_vec(), ..SummaryOptions::default() }
}

/// Returns the outcomes of two agents at samples with 1, 2 and 3 masked functions: ten samples for each of these
/// numbers, and five attempts per sample.
fn whole_run() -> Vec<Outcome> {
    let mut records = Vec::new();
    for (agent, skill) in [("fixed", 2), ("react", 5)] {
        for n in 1..=3 {
            for sample in 0..10 {
                for attempt in 0..5 {
                    let pass = (sample * 7 + attempt as usize * 3) % 10 < skill * 2 - n;
                    records.push(record(agent, n, sample, attempt, pass));
                }
            }
        }
    }
    records[3].verified = Some(summary(false));
    records[3].reported = Some(summary(true));
    records
}

fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn the_console_report_of_a_whole_run_fits_100_columns_and_explains_its_figures() {
    let text = console(&summarise(&whole_run(), &options(&[1, 5])));
    assert_fits(&text);
    insta::assert_snapshot!(text, @r#"
    Pass rates
    agent          n  samples  attempts  passed             pass@1               pass@5  pass^5  lost
    fixed gpt-x    1       10        50      15  30.0 [18.2, 44.2]  100.0 [72.2, 100.0]     0.0     0
                   2       10        50      10   20.0 [8.9, 36.2]    80.0 [43.3, 97.6]     0.0     0
                   3       10        50       5   10.0 [2.5, 25.6]    50.0 [17.3, 82.7]     0.0     0
                 all       30       150      30  20.0 [14.3, 26.9]    76.7 [58.9, 89.3]     0.0     0
    react gpt-x    1       10        50      45  90.0 [74.4, 97.5]  100.0 [72.2, 100.0]    50.0     0
                   2       10        50      40  80.0 [63.5, 91.3]  100.0 [72.2, 100.0]    20.0     0
                   3       10        50      35  70.0 [56.3, 81.4]  100.0 [72.2, 100.0]     0.0     0
                 all       30       150     120  80.0 [73.1, 85.7]  100.0 [88.6, 100.0]    23.3     0
    pass@k: chance in percent that one of k attempts passes, averaged over samples, with its 95%
    interval (over samples of these papers). pass^k: that all of k attempts pass. lost: attempts lost to
    infrastructure, not in the rates.

    How attempts ended
    agent          n  reported  verified  unsupported  ends
    fixed gpt-x    1      32.0      30.0            1  answered 15, step limit 35
                   2      20.0      20.0            0  answered 10, step limit 40
                   3      10.0      10.0            0  answered 5, step limit 45
                 all      20.7      20.0            1  answered 30, step limit 120
    react gpt-x    1      90.0      90.0            0  answered 45, step limit 5
                   2      80.0      80.0            0  answered 40, step limit 10
                   3      70.0      70.0            0  answered 35, step limit 15
                 all      80.0      80.0            0  answered 120, step limit 30
    reported: percent of attempts whose answer agrees with gold. verified: percent whose code, run
    again, agrees with gold. unsupported: attempts reported rightly but not verified. ends: why attempts
    stopped.

    What they took
    agent          n  steps    format  cost per     cost     input    output     tool    model   verify
                               errors    sample             tokens    tokens  seconds  seconds  seconds
    fixed gpt-x    1   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                   2   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                   3   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                 all   12.0       0.4   $0.0625  $1.8750      225k       45k     12.5     30.2      2.0
    react gpt-x    1   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                   2   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                   3   12.0       0.4   $0.0625  $0.6250       75k       15k     12.5     30.2      2.0
                 all   12.0       0.4   $0.0625  $1.8750      225k       45k     12.5     30.2      2.0
    cost and tokens: in all, lost attempts included. steps, format errors, seconds: mean an attempt.
    cost per sample: of all attempts at it that count.
    "#);
}

#[test]
fn a_single_attempt_gives_a_report() {
    let mut only = record("noop", 1, 0, 0, false);
    only.model = None;
    only.verified = None;
    let text = console(&summarise(&[only], &options(&[1, 5])));
    assert_fits(&text);
    insta::assert_snapshot!(text, @r#"
    Pass rates
    agent  n  samples  attempts  passed         pass@1  pass@5  pass^5  lost
    noop   1        1         1       0  0.0 [too few]       -       -     0
    pass@k: chance in percent that one of k attempts passes, averaged over samples, with its 95%
    interval (over samples of these papers). pass^k: that all of k attempts pass. lost: attempts lost to
    infrastructure, not in the rates. [too few]: an interval takes 3 samples, and for papers like these
    2 papers.

    How attempts ended
    agent  n  reported  verified  unsupported  ends
    noop   1       0.0         -            0  step limit 1
    reported: percent of attempts whose answer agrees with gold. verified: percent whose code, run
    again, agrees with gold. unsupported: attempts reported rightly but not verified. ends: why attempts
    stopped.

    What they took
    agent  n  steps     format   cost per     cost      input     output       tool     model    verify
                        errors     sample              tokens     tokens    seconds   seconds   seconds
    noop   1   10.0        0.0    $0.0125  $0.0125       1500        300       12.5      30.2       2.0
    cost and tokens: in all, lost attempts included. steps, format errors, seconds: mean an attempt.
    cost per sample: of all attempts at it that count.

    Notes
    - noop, n = 1: there is no pass@5 yet, because no sample has 5 attempts
    - noop, n = 1: not verified; only the results that agents report decide which attempts pass
    - too few samples for an interval, which needs 3: noop, n = 1
    "#);
}

#[test]
fn the_console_report_fits_its_width_with_long_names_large_numbers_and_many_values_of_k() {
    let mut records = whole_run();
    for record in &mut records {
        record.model = Some("openrouter/meta-llama/llama-3.1-405b-instruct".into());
        record.cost = 123.456;
        record.usage.input = 987_654_321;
        record.tool_seconds = 12_345.678;
        record.n += 1000;
    }
    let text = console(&summarise(&records, &options(&[1, 2, 3, 4, 5])));
    assert_fits(&text);
    for whole in ["$617.28", "$6173", "$18518", "49G", "148G", "12346"] {
        assert!(text.contains(whole), "{whole} is broken over lines:\n{text}");
    }
}

#[test]
fn an_empty_run_gives_a_report_that_says_so() {
    let planned = vec![PlannedAttempts { agent: "gold".into(), model: None, n: 2, attempts: 30 }];
    let summary = summarise(&[], &SummaryOptions { planned, ..options(&[1]) });
    insta::assert_snapshot!(console(&summary), @"
    Notes
    - no attempt has been stored yet
    - gold, n = 2: 0 of 30 planned attempts stored, 30 missing
    ");
    assert!(json(&summary).unwrap().contains("no attempt has been stored yet"));
    assert_eq!(csv(&summary).unwrap().lines().count(), 1);
}

#[test]
fn the_report_of_half_a_run_names_missing_and_lost_attempts() {
    let records = [
        record("react", 1, 0, 0, true),
        record("react", 1, 0, 1, true),
        record("react", 1, 1, 0, false),
        lost("react", 1, 1, 1),
    ];
    let planned = vec![PlannedAttempts { agent: "react".into(), model: Some("gpt-x".into()), n: 1, attempts: 6 }];
    let summary = summarise(&records, &SummaryOptions { planned, ..options(&[1, 2]) });
    assert_eq!(
        summary.notes,
        [
            "react gpt-x, n = 1: 4 of 6 planned attempts stored, 2 missing",
            "react gpt-x, n = 1: 1 attempt lost to infrastructure and left out of the rates; pass@1 would be 50.0% if all had \
             failed and 75.0% if all had passed",
            "react gpt-x, n = 1: pass@2 is over the 1 of 2 samples with 2 or more attempts",
            "too few samples for an interval, which needs 3: react gpt-x, n = 1",
        ]
    );
    let row = &summary.rows[0];
    assert_eq!((row.samples, row.attempts, row.passed, row.lost), (2, 3, 2, 1));
    assert_eq!(row.pass_at[0].rate, Some(0.5));
    assert_eq!((row.pass_at_worst, row.pass_at_best), (Some(0.5), Some(0.75)));
    assert_eq!((row.pass_at[1].rate, row.pass_at[1].samples), (Some(1.0), 1));
    assert_eq!(row.pass_all.iter().map(|all| all.k).collect::<Vec<_>>(), [2]);
    assert_eq!(row.ends, [(End::Answered, 2), (End::StepLimit, 1), (End::ModelError, 1)].into());
}

#[test]
fn attempts_that_were_stopped_with_the_run_are_not_losses() {
    let stopped = |agent: &str, sample: usize, attempt: u32| Outcome {
        end: End::Cancelled,
        reported: None,
        verified: None,
        ..record(agent, 1, sample, attempt, false)
    };
    let records = [
        record("react", 1, 0, 0, true),
        stopped("react", 0, 1),
        stopped("react", 1, 0),
        record("fixed", 1, 0, 0, true),
        record("fixed", 1, 0, 1, false),
        stopped("other", 0, 0),
    ];
    let planned =
        |agent: &str, attempts| PlannedAttempts { agent: agent.into(), model: Some("gpt-x".into()), n: 1, attempts };
    let planned = vec![planned("react", 8), planned("fixed", 2)];
    let summary = summarise(&records, &SummaryOptions { planned, ..options(&[1, 8]) });
    let notes = summary.notes.join("\n");
    assert!(
        !notes.contains("infrastructure") && !notes.contains("different numbers") && !notes.contains(" 0 of"),
        "{notes}"
    );
    assert!(
        notes.contains("stopped with the run and not scored: 3 attempts; `autoexperiment resume` makes them again"),
        "{notes}"
    );
    assert!(notes.contains("react gpt-x, n = 1: 1 of 8 planned attempts stored, 7 missing"), "{notes}");
    assert!(notes.contains("fixed gpt-x, n = 1: there is no pass@8 yet, because no sample has 8 attempts"), "{notes}");
    let row = summary.rows.iter().find(|row| row.agent == "react").unwrap();
    assert_eq!((row.samples, row.attempts, row.lost, row.stopped, row.pass_at_worst), (1, 1, 0, 2, None));
    assert_eq!(row.ends, [(End::Answered, 1), (End::Cancelled, 2)].into());
    // If all attempts of an agent and model ended because the run was stopped, the agent and model have no row. Stopped
    // attempts do not count as lost to infrastructure.
    let names: Vec<String> = contenders(&records).into_iter().map(|contender| contender.name).collect();
    assert_eq!(names, ["fixed gpt-x", "react gpt-x"]);
    assert_eq!(outcome(records[1].end, records[1].pass), "stopped");
    let stopped = AttemptRecord { end: End::Cancelled, ..full_record("react", 1, 0, 1, false) };
    assert!(verdict_lines(&stopped)[0].ends_with(": stopped with the run"));
}

#[test]
fn a_contender_whose_attempts_were_all_lost_keeps_its_row_without_a_rate() {
    let records = [record("fixed", 1, 0, 0, true), lost("react", 1, 0, 0), lost("react", 1, 1, 0)];
    let summary = summarise(&records, &options(&[1]));
    let row = summary.rows.iter().find(|row| row.agent == "react").unwrap();
    assert_eq!((row.attempts, row.lost, row.pass_at[0].rate), (0, 2, None));
    assert!(summary.rows.iter().any(|row| row.agent == "fixed" && row.pass_at[0].rate == Some(1.0)));
    let text = console(&summary);
    assert!(text.contains("react") && !text.contains("NaN"), "{text}");
}

#[test]
fn refusal_of_all_attempts_gives_a_warning() {
    let refused = |attempt| Outcome {
        end: End::Refused,
        end_detail: Some("status 400: thinking is missing".into()),
        ..record("react", 1, 0, attempt, false)
    };
    let warned = |records: &[Outcome]| {
        let summary = summarise(records, &options(&[1]));
        summary.notes.iter().any(|note| note.starts_with("WARNING") && note.contains("status 400: thinking is missing"))
    };
    assert!(warned(&[refused(0), refused(1), lost("react", 1, 0, 2)]));
    assert!(!warned(&[refused(0), refused(1), record("react", 1, 0, 2, false)]));
}

#[test]
fn if_an_attempt_has_several_records_the_last_record_that_is_not_lost_counts() {
    let records = [
        lost("react", 1, 0, 0),
        record("react", 1, 0, 0, false),
        record("react", 1, 0, 0, true),
        lost("react", 1, 0, 0),
        lost("react", 1, 1, 0),
        lost("react", 1, 1, 0),
    ];
    assert_eq!(counting(&records), [false, false, true, false, false, true]);
    let summary = summarise(&records, &options(&[1]));
    let row = &summary.rows[0];
    assert_eq!((row.samples, row.attempts, row.passed, row.lost), (1, 1, 1, 1));
    assert!((row.cost - 6.0 * 0.0125).abs() < 1e-12, "what was spent is shown in full: {}", row.cost);
    assert_eq!(row.cost_per_sample, Some(0.0125));
    assert!(summary.notes.iter().any(|note| note.contains("same attempt: 4 records")));
}

#[test]
fn pass_at_k_is_averaged_over_samples_and_steps_over_attempts() {
    let records = [
        record("react", 1, 0, 0, true),
        record("react", 1, 0, 1, true),
        record("react", 1, 0, 2, false),
        record("react", 1, 1, 0, false),
        record("react", 1, 1, 1, false),
        record("react", 1, 1, 2, true),
    ];
    let summary = summarise(&records, &options(&[1, 2, 3]));
    let rates: Vec<f64> = summary.rows[0].pass_at.iter().map(|at| at.rate.unwrap()).collect();
    // Computed by hand: pass@1 is (2/3 + 1/3) / 2, pass@2 is (1 + 2/3) / 2, pass@3 is (1 + 1) / 2.
    for (got, wanted) in rates.iter().zip([0.5, 5.0 / 6.0, 1.0]) {
        assert!((got - wanted).abs() < 1e-12, "{rates:?}");
    }
    let all: Vec<f64> = summary.rows[0].pass_all.iter().map(|all| all.rate.unwrap()).collect();
    // By hand, pass^2 is (1/3 + 0) / 2, and pass^3 is 0.
    for (got, wanted) in all.iter().zip([1.0 / 6.0, 0.0]) {
        assert!((got - wanted).abs() < 1e-12, "{all:?}");
    }
    assert_eq!((rates.len(), all.len()), (3, 2));
    assert_eq!(summary.rows[0].steps, Some(11.0));
    assert_eq!(summary.rows.len(), 1, "no row over all n where there is one n");
}

#[test]
fn passing_all_of_k_attempts_is_rarer_than_passing_one() {
    let mut records = Vec::new();
    for attempt in 0..4 {
        records.push(record("react", 1, 0, attempt, attempt < 3));
        records.push(record("react", 1, 1, attempt, true));
    }
    let row = &summarise(&records, &options(&[1, 2, 4])).rows[0];
    let rates = |rates: &[PassAt]| rates.iter().map(|at| (at.k, at.rate.unwrap())).collect::<Vec<_>>();
    // pass^k is the mean over the two samples. For k = 2, the samples have the values C(3, 2) / C(4, 2) = 0.5 and 1.
    // For k = 4, they have the values 0 (only 3 of 4 attempts pass) and 1.
    assert_eq!(rates(&row.pass_all), [(2, 0.75), (4, 0.5)]);
    assert_eq!(rates(&row.pass_at), [(1, 0.875), (2, 1.0), (4, 1.0)]);
    assert!(row.pass_all.iter().all(|at| at.interval.is_none() && at.samples == 2));
    // Samples with fewer than k attempts are left out of pass@k and of pass^k.
    records.pop();
    let row = &summarise(&records, &options(&[1, 4])).rows[0];
    assert_eq!((row.pass_at[1].samples, row.pass_all[0].samples, row.pass_all[0].rate), (1, 1, Some(0.0)));
}

#[test]
fn huge_token_counts_saturate() {
    let mut records = vec![record("react", 1, 0, 0, true), record("react", 1, 0, 1, true)];
    for record in &mut records {
        record.usage = Usage { input: u64::MAX - 1, output: u64::MAX, ..Usage::default() };
    }
    let summary = summarise(&records, &options(&[1]));
    assert_eq!((summary.rows[0].usage.input, summary.rows[0].usage.output), (u64::MAX, u64::MAX));
    let rows = how(&records, Intervals::default(), |_| Ok(None)).unwrap();
    assert!(rows[0].tokens_per_sample.unwrap() >= u64::MAX as f64);
    assert_fits(&console(&summary));
    assert_fits(&how_console(&rows));
}

#[test]
fn names_stay_on_one_line_in_any_name_column() {
    let names = ["an-agent-of-18-cha", "another-of-18-char"];
    let mut table = super::terminal::plain_table();
    let numbers = |text: &str| vec![text.to_owned(); 8];
    table.set_header(["first", "second"].map(str::to_owned).into_iter().chain(numbers("heading")));
    table.add_row(names.map(str::to_owned).into_iter().chain(numbers("12.0 [1.0, 23.0]")));
    let text = super::terminal::trimmed(table, &[0, 1]);
    assert_fits(&text);
    assert!(text.contains("an-agent-of-18-cha  another-of-18-char"), "{text}");
}

#[test]
fn a_comparison_table_with_long_names_does_not_break_numbers_over_lines() {
    let mut records = Vec::new();
    for i in 0..30 {
        for agent in ["baselines/react+paper=full+code=full", "baselines/mutant-0.3"] {
            records.push(record(agent, 1 + i % 2, i, 0, agent.contains("react") || i % 5 == 0));
        }
    }
    for by_n in [false, true] {
        let rows = compare(&contenders(&records), false, by_n, Intervals::default());
        let text = compare_console(&rows, Intervals::default());
        assert_fits(&text);
        let row = &rows[0];
        let bounds = row.interval.unwrap();
        let whole = format!("{:+.1} [{:+.1}, {:+.1}]", 100.0 * row.difference, 100.0 * bounds.low, 100.0 * bounds.high);
        assert!(text.contains(&whole) && text.contains("second %"), "{whole}\n{text}");
    }
}

#[test]
fn right_answers_that_the_code_does_not_support_lower_only_the_verified_rate() {
    let mut records = vec![record("react", 1, 0, 0, true), record("react", 1, 1, 0, true)];
    records[1].verified = Some(summary(false));
    records[1].pass = false;
    let row = &summarise(&records, &options(&[1])).rows[0];
    assert_eq!((row.reported, row.verified, row.unsupported, row.passed), (Some(1.0), Some(0.5), 1, 1));
}

#[test]
fn the_report_does_not_depend_on_the_order_of_the_records() {
    let mut records = whole_run();
    let first = summarise(&records, &options(&[1, 5]));
    records.reverse();
    assert_eq!(json(&summarise(&records, &options(&[1, 5]))).unwrap(), json(&first).unwrap());
}

/// Returns a record whose texts contain control characters for terminals and a formula for spreadsheets.
pub(crate) fn hostile() -> AttemptRecord {
    let evil = "=cmd|'/c calc'!A1\u{1b}[31m\u{9b}2J\u{202e}\r\n\u{7}\"";
    let raw = json!({"Experiment 1": {"a": evil, "b": -1.5, "\u{1b}]0;x\u{7}": 1}}).to_string();
    let expected = Expected {
        id: "exp".into(),
        key: "Experiment 1".into(),
        gold: json!({"a": 1, "b": -1.5}),
        tolerance: Tolerance::default(),
    };
    let mut record = full_record(evil, 1, 0, 0, false);
    record.model = Some(evil.into());
    record.end_detail = Some(evil.into());
    record.reported = Some(score_answer(Rule::Strict, &[expected], Some(&raw), &crate::score::ExperimentRuns::new()));
    record.sample = format!("{evil}{evil}{evil}");
    record
}

#[test]
fn untrusted_text_never_reaches_the_terminal_raw() {
    let record = AttemptRecord { verified: None, ..hostile() };
    let summary = summarise(&[(&record).into()], &options(&[1]));
    assert!(!summary.notes.is_empty());
    let verdicts = verdict_lines(&record);
    assert!(verdicts.iter().all(|line| !line.contains('\n')));
    let texts = [console(&summary), json(&summary).unwrap(), csv(&summary).unwrap(), verdicts.join("\n")];
    for text in &texts {
        for bad in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}', '\r'] {
            assert!(!text.contains(bad), "{bad:?} in {text:?}");
        }
    }
    assert_fits(&texts[0]);
    assert_fits(&texts[3]);
    let read: Value = serde_json::from_str(&texts[1]).unwrap();
    assert_eq!(read["rows"][0]["agent"], Value::from(record.agent), "JSON reads back unchanged");
}

#[test]
fn unsafe_characters_are_escaped_and_long_names_cut() {
    assert_eq!(clean("k-means++ über 数 🙂"), "k-means++ über 数 🙂");
    assert_eq!(clean("a\u{1b}[1mb\u{85}\u{200b}\tc\0"), "a\\u{1b}[1mb\\u{85}\\u{200b}\\tc\\u{0}");
    assert_eq!(super::clean::short("abcdef", 4), "abc…");
    assert_eq!(super::clean::short("abcd", 4), "abcd");
    assert_eq!(super::clean::middle_cut("abcdefgh", 6), "ab…fgh");
    assert_eq!(super::clean::middle_cut("abcdef", 6), "abcdef");
}

#[test]
fn names_that_differ_in_the_middle_still_differ_when_shortened() {
    let long = |model: &str| format!("{}-{model}-{}", "a".repeat(40), "z".repeat(40));
    let (small, large) = (long("0.5b"), long("1.5b"));
    let cut = super::clean::cut_apart(&[&small, &large, "short", &small], 20);
    assert!(cut.iter().all(|name| name.chars().count() <= 20), "{cut:?}");
    assert!(cut[0].contains("-0.5b-") && cut[1].contains("-1.5b-"), "{cut:?}");
    assert_eq!((cut[2].as_str(), &cut[3]), ("short", &cut[0]));
}

#[test]
fn models_whose_long_names_differ_at_the_end_have_separate_rows() {
    let long = |model: &str| format!("{}/{model}-instruct.gguf", "models-of-somebody".repeat(4));
    let mut records = Vec::new();
    for size in ["0.5b", "1.5b"] {
        let model = Some(long(size).into());
        records.extend((0..3).map(|sample| Outcome {
            model: model.clone(),
            verified: None,
            ..record("react", 1, sample, 0, true)
        }));
    }
    let summary = summarise(&records, &options(&[1]));
    assert_eq!(summary.rows.len(), 2);
    // JSON and pages contain full names; only the console shortens names.
    let told = json(&summary).unwrap();
    for size in ["0.5b", "1.5b"] {
        assert!(told.contains(&format!("react {}, n = 1: not verified", long(size))), "{told}");
    }
    let source = figures::FigureInput {
        records: &records,
        summary: &summary,
        conditions: &std::collections::BTreeMap::new(),
        intervals: Intervals::default(),
        axis: "masked functions",
    };
    for figure in figures::figures(&source).iter().filter(|figure| figure.id == "pass-by-n") {
        let chart = figure.chart.as_ref().unwrap();
        assert_eq!(chart.series.len(), 2, "{chart:?}");
        let drawn = figures::chart::draw(chart, figures::chart::Canvas::SCREEN).unwrap();
        assert!(drawn.contains("0.5b") && drawn.contains("1.5b"), "{drawn}");
    }
    let text = console(&summary);
    // Long names are wrapped. The parts in which they differ are not cut off.
    let rates: String = text.split("pass@k:").next().unwrap().split_whitespace().collect();
    assert!(rates.contains("0.5b") && rates.contains("1.5b"), "{text}");
}

#[test]
fn csv_has_one_row_for_each_agent_and_n_and_its_columns_are_those_of_the_console() {
    let summary = summarise(&whole_run(), &options(&[1, 5]));
    let text = csv(&summary).unwrap();
    assert_eq!(text.lines().count(), 1 + 8);
    insta::assert_snapshot!(text.lines().take(2).collect::<Vec<_>>().join("\n"), @r#"
    agent,model,n,samples,attempts,passed,pass@1,pass@1_low,pass@1_high,pass@1_samples,pass@5,pass@5_low,pass@5_high,pass@5_samples,reported,verified,unsupported,lost,ends,steps,format_errors,cost_per_sample,cost,input_tokens,output_tokens,tool_seconds,model_seconds,tokens_per_second,verify_seconds,pass^5,pass^5_low,pass^5_high,pass@1_worst,pass@1_best
    fixed,gpt-x,1,10,50,15,0.3,0.18229752436781474,0.4416547398558592,10,1,0.7219425933819474,1,10,0.32,0.30000000000000004,1,0,answered 15; step_limit 35,12,0.4,0.06249999999999998,0.6249999999999998,75000,15000,12.5,30.25,9.917355371900827,2,0,0,0.2780574066180523,,
    "#);
}

#[test]
fn a_verifier_that_chose_at_only_some_samples_is_noted_and_left_out_of_the_figure() {
    let records: Vec<Outcome> =
        (0..4).map(|i| record("react", 1 + i / 2, i % 2, 0, true)).chain([record("react", 1, 0, 1, false)]).collect();
    let choice = |verifier: &str, of: &Outcome| crate::verifier::stored::ChoiceRecord {
        verifier: verifier.to_owned(),
        agent: of.agent.to_string(),
        model: of.model.as_deref().map(str::to_owned),
        sample: of.sample.to_string(),
        attempts: if of.sample.ends_with("_1_0") { vec![0, 1] } else { vec![0] },
        chosen: Some(0),
        reason: String::new(),
        usage: Usage::default(),
        cost: 0.0,
        unknown: 0,
        unreadable: 0,
    };
    let mut options = options(&[1, 2]);
    options.choices.extend(records[..4].iter().map(|of| choice("whole", of)));
    options.choices.extend(records[..3].iter().map(|of| choice("begun", of)));
    let summary = summarise(&records, &options);
    let notes: Vec<&String> = summary.notes.iter().filter(|note| note.contains("chose at")).collect();
    assert_eq!(notes, ["react gpt-x: verifier `begun` chose at 3 of 4 samples"]);
    let source = figures::FigureInput {
        records: &records,
        summary: &summary,
        conditions: &std::collections::BTreeMap::new(),
        intervals: Intervals::default(),
        axis: "masked functions",
    };
    let all = figures::figures(&source);
    let figure = all.iter().find(|figure| figure.id == "pass-at-k").unwrap();
    let names: Vec<&str> = figure.chart.as_ref().unwrap().series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["pass@1", "chosen by whole", "pass@2"]);
    assert!(figure.caption.contains("chose at only some samples are left out"), "{}", figure.caption);
    assert!(figure.caption.contains("From 5 attempts at 4 samples."), "{}", figure.caption);
}

#[test]
fn unequal_numbers_of_lost_attempts_give_a_warning_and_bounds_of_the_rate() {
    let records = [record("react", 1, 0, 0, true), lost("react", 1, 1, 0), record("fixed", 1, 0, 0, true)];
    let summary = summarise(&records, &options(&[1]));
    let warning = summary.notes.iter().find(|note| note.starts_with("WARNING")).unwrap();
    assert!(warning.contains("fixed gpt-x 0 of 1, react gpt-x 1 of 2"), "{warning}");
    let text = csv(&summary).unwrap();
    assert!(text.lines().any(|line| line.starts_with("react,") && line.ends_with(",0.5,1")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("fixed,") && line.ends_with(",,")), "{text}");
}

#[test]
fn json_holds_the_rows_with_their_fields() {
    let summary = summarise(&[record("react", 2, 0, 0, true)], &options(&[1]));
    insta::assert_snapshot!(json(&summary).unwrap(), @r#"
    {
      "format": 1,
      "level": 0.95,
      "population": "suite",
      "rows": [
        {
          "agent": "react",
          "model": "gpt-x",
          "n": 2,
          "samples": 1,
          "attempts": 1,
          "passed": 1,
          "pass_at": [
            {
              "k": 1,
              "rate": 1.0,
              "interval": null,
              "samples": 1
            }
          ],
          "reported": 1.0,
          "verified": 1.0,
          "unsupported": 0,
          "lost": 0,
          "ends": {
            "answered": 1
          },
          "steps": 10.0,
          "format_errors": 0.0,
          "cost_per_sample": 0.0125,
          "cost": 0.0125,
          "usage": {
            "input": 1500,
            "cached": 500,
            "cache_written": 0,
            "output": 300,
            "reasoning": 0
          },
          "tool_seconds": 12.5,
          "model_seconds": 30.25,
          "tokens_per_second": 9.917355371900827,
          "verify_seconds": 2.0
        }
      ],
      "verifiers": [],
      "notes": [
        "too few samples for an interval, which needs 3: react gpt-x, n = 2"
      ]
    }
    "#);
}

#[test]
fn verdict_lines_show_each_value_with_gold_reported_and_verified() {
    let expected = |number: usize, gold: Value| Expected {
        id: format!("exp{number}"),
        key: format!("Experiment {number}"),
        gold,
        tolerance: Tolerance::default(),
    };
    let experiments = [expected(1, json!({"mean": 2.5, "list": [0, 4]})), expected(2, json!("kmeans++"))];
    let reported = r#"{"Experiment 1": {"mean": 2.51, "list": [0.25, "x"], "more": 1}, "2": "kmeans++", "7": 0}"#;
    let verified = json!({"Experiment 1": {"mean": 2.5, "list": [0, 4]}}).to_string();
    let mut record = full_record("react", 1, 0, 0, false);
    record.reported =
        Some(score_answer(Rule::Strict, &experiments, Some(reported), &crate::score::ExperimentRuns::new()));
    record.verified =
        Some(score_answer(Rule::Strict, &experiments, Some(&verified), &crate::score::ExperimentRuns::new()));
    record.end_detail = Some("used 50 steps".into());
    let text = verdict_lines(&record).join("\n");
    assert_fits(&text);
    insta::assert_snapshot!(text, @"
    paper0_1_0 attempt 0 by react: fail
    ended: step limit: used 50 steps
    reported: fail
      warning: `7` is not an experiment of this sample
    verified: fail

    experiment exp1
      reported: fail
      warning: reported: extra value `more`
      verified: pass
    value    gold  reported           error  verified  error
    mean      2.5      2.51           0.40%       2.5  0.00%
    list[0]     0      0.25       2.50e-1 !         0      0
    list[1]     4         x  not a number !         4  0.00%

    experiment exp2
      reported: pass
      verified: fail: no result
    value             gold  reported  error  verified      error
    (the result)  kmeans++  kmeans++  equal         -  missing !
    ");
}

#[test]
#[ignore = "a measurement: cargo test --release --lib report:: -- --ignored --nocapture"]
fn a_hundred_thousand_records_are_summarised_within_a_second() {
    let mut records = Vec::new();
    for agent in ["a", "b", "c", "d"] {
        for n in 1..=5 {
            for sample in 0..1000 {
                records.extend(
                    (0..5).map(|attempt| {
                        record(agent, n, sample, attempt, (sample + attempt as usize).is_multiple_of(3))
                    }),
                );
            }
        }
    }
    let options = SummaryOptions { ks: vec![1, 5], ..SummaryOptions::default() };
    let begun = std::time::Instant::now();
    let rows = summarise(&records, &options).rows.len();
    println!("{} records, {rows} rows: {:?}", records.len(), begun.elapsed());
    assert!(begun.elapsed().as_secs_f64() < 1.0);
}

#[test]
fn the_rate_by_lines_weights_each_sample_by_its_number_of_masked_lines() {
    let of =
        |sample: usize, lines: usize, pass: bool| Outcome { lines: Some(lines), ..record("a", 1, sample, 0, pass) };
    let mut records = vec![of(0, 3, true), of(1, 9, false), of(2, 4, true)];
    // The second sample gets another attempt, which passes.
    records.push(Outcome { attempt: 1, ..of(1, 9, true) });
    let summary = summarise(&records, &SummaryOptions::default());
    let row = &summary.rows[0];
    assert_eq!((row.lines, row.score_lines), (Some(16), Some((3.0 + 4.5 + 4.0) / 16.0)));
    let shown = super::lines_console(&summary);
    assert!(shown.contains("score_lines") && shown.contains("71.9"), "{shown}");
    // Records of earlier versions lack the number of masked lines.
    assert_eq!(summarise(&[record("a", 1, 0, 0, true)], &SummaryOptions::default()).rows[0].score_lines, None);
}
