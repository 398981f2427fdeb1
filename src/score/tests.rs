use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::suite::ResultRule;

fn expected(number: usize, gold: Value) -> Expected {
    Expected { id: format!("exp_{number}"), key: format!("Experiment {number}"), gold, tolerance: Tolerance::default() }
}

/// Scores one experiment's answer, given as JSON text, by both rules: (reference, strict).
fn both(gold: Value, answer: &str) -> (bool, bool) {
    let experiments = [expected(1, gold)];
    let raw = format!("{{\"Experiment 1\": {answer}}}");
    (
        score_answer(Rule::Reference, &experiments, Some(&raw), &ExperimentRuns::new()).pass,
        score_answer(Rule::Strict, &experiments, Some(&raw), &ExperimentRuns::new()).pass,
    )
}

#[allow(clippy::needless_pass_by_value)] // json!() literals at the call
fn strict(gold: Value, got: Value) -> ExperimentVerdict {
    score_experiment("e", &gold, Some(&got), &Tolerance::default())
}

fn numbered(count: usize, value: impl Fn(usize) -> Option<f64>) -> Value {
    Value::Object((0..count).filter_map(|i| value(i).map(|v| (format!("v{i}"), v.into()))).collect())
}

#[test]
fn the_published_and_the_strict_rule_give_the_expected_verdict_on_each_listed_answer() {
    let all = numbered(25, |_| Some(0.5));
    let one_missing = numbered(25, |i| (i != 7).then_some(0.5));
    let many = numbered(18, |_| Some(2.0));
    let one_off = numbered(18, |i| Some(if i == 3 { 3.6 } else { 2.0 }));
    // Rows of: gold, answer, and whether the answer passes by the reference rule and by the strict rule.
    let rows = [
        (json!(-0.5), "100", (true, false)),
        (json!(-0.5), "-1.0", (true, false)),
        (json!({"a": -1}), "{}", (true, false)),
        (json!({"a": -1, "b": 1}), r#"{"a": 0, "b": 1.9}"#, (true, false)),
        (json!(0), "0", (false, true)),
        (all, &one_missing.to_string(), (true, false)),
        (many, &one_off.to_string(), (true, false)),
        (json!({"x": 1, "y": 1}), r#"{"x": 1.09, "y": 1.0}"#, (true, false)),
        (json!([0.5, 1.0]), "[0.5]", (true, false)),
        (json!({"a": [0.5], "b": [1]}), r#"{"a": [], "b": [1]}"#, (true, false)),
        (json!([0.5]), "[0.5, 9]", (false, false)),
        (json!(1.0), "1.05", (false, true)),
        (json!(1.0), "0.95", (false, true)),
        (json!(0.6), "0.63", (false, true)),
        (json!(0.5), r#"".5""#, (false, true)),
        (json!(1000), r#""1_000""#, (true, false)),
        (json!(1.0), "true", (true, false)),
        (json!("NaN"), "NaN", (false, false)),
    ];
    for (gold, answer, passes) in rows {
        assert_eq!(both(gold.clone(), answer), passes, "gold {gold}, answer {answer}");
    }
}

#[test]
fn the_reference_scoring_rule_gives_the_same_verdicts_as_the_published_python_code() {
    let reference = |gold: Value, answer: &str| both(gold, answer).0;
    // A missing key counts as 0, which is a loss of 1. The mean loss is then just tolerable for 20 values, but not for
    // 19.
    assert!(!reference(json!({"a": 1}), "{}"));
    for (count, passes) in [(20, true), (19, false)] {
        let one_missing = numbered(count, |i| (i != 7).then_some(0.5)).to_string();
        assert_eq!(reference(numbered(count, |_| Some(0.5)), &one_missing), passes, "{count} values");
    }
    // A string is read as JSON or, if it is not valid JSON, as a Python integer.
    for (answer, passes) in
        [(r#""7""#, true), (r#"" 007 ""#, true), (r#""+7""#, true), (r#""7_""#, false), (r#""seven""#, false)]
    {
        assert_eq!(reference(json!(7), answer), passes, "{answer}");
    }
    assert!(reference(json!({"a": [1, 2]}), r#"{"a": "[1, 2]"}"#));
    // Infinity counts as a number. The loss is the distance to gold, divided by gold and not by its absolute value. If
    // gold is negative, the loss of infinity is minus infinity. This is less than the maximum loss, so infinity passes.
    assert!(reference(json!(-1), "Infinity") && reference(json!(-1), "1e999"));
    assert!(!reference(json!(1), "Infinity") && !reference(json!(1), "NaN") && !reference(json!(1), "null"));
    // The last of two equal keys counts, and keys must be exact.
    assert!(reference(json!({"a": 1}), r#"{"a": 9, "a": 1}"#));
    assert!(!score_answer(Rule::Reference, &[expected(1, json!(1))], Some(r#"{"1": 1}"#), &ExperimentRuns::new()).pass);
}

#[test]
fn by_the_strict_rule_an_answer_list_that_is_too_long_fails_only_its_own_experiment() {
    let experiments = [expected(1, json!([0.5])), expected(2, json!(1))];
    let raw = r#"{"Experiment 1": [0.5, 9], "Experiment 2": 1}"#;
    let passes = |verdict: &Verdict| verdict.experiments.iter().map(|e| e.pass).collect::<Vec<_>>();
    let reference = score_answer(Rule::Reference, &experiments, Some(raw), &ExperimentRuns::new());
    assert_eq!(passes(&reference), [false, false]);
    assert!(reference.reason.unwrap().starts_with("parsing error"));
    let right = score_answer(Rule::Strict, &experiments, Some(raw), &ExperimentRuns::new());
    assert_eq!(passes(&right), [false, true]);
    assert_eq!(right.experiments[0].reason.as_deref(), Some("the list has 2 values, gold has 1"));
}

#[test]
fn only_the_strict_rule_reads_an_answer_in_a_code_fence() {
    let experiments = [expected(1, json!(2))];
    let raw = "Here it is:\n```json\n{\"Experiment 1\": 2.0}\n```\n";
    assert!(!score_answer(Rule::Reference, &experiments, Some(raw), &ExperimentRuns::new()).pass);
    assert!(score_answer(Rule::Strict, &experiments, Some(raw), &ExperimentRuns::new()).pass);
}

#[test]
fn an_extra_metric_passes_both_rules_and_gets_a_warning_from_the_strict_rule() {
    assert_eq!(both(json!({"a": 1}), r#"{"a": 1, "z": 9}"#), (true, true));
    assert_eq!(strict(json!({"a": 1}), json!({"a": 1, "z": 9})).warnings, ["extra value `z`"]);
}

#[test]
fn an_answer_to_a_sample_without_gold_passes_the_reference_rule_but_fails_the_strict_rule() {
    assert!(score_answer(Rule::Reference, &[], Some("{\"anything\": 1}"), &ExperimentRuns::new()).pass);
    let verdict = score_answer(Rule::Strict, &[], Some("{\"anything\": 1}"), &ExperimentRuns::new());
    assert!(!verdict.pass);
    assert!(verdict.reason.unwrap().starts_with("no gold"));
    assert_eq!(strict(json!({}), json!({})).reason.as_deref(), Some("the gold result is empty"));
    assert!(check_gold(&json!({})).is_err());
}

#[test]
fn one_wrong_value_fails_and_is_named() {
    let experiments = [expected(1, json!({"a": 1, "b": [2, 3]})), expected(2, json!(1))];
    let raw = r#"{"Experiment 1": {"a": 1, "b": [2, {"x": 1}]}, "Experiment 2": 1}"#;
    let reference = score_answer(Rule::Reference, &experiments, Some(raw), &ExperimentRuns::new());
    assert!(reference.reason.unwrap().contains("parsing error"));
    assert!(!reference.experiments[1].pass);
    let right = score_answer(Rule::Strict, &experiments, Some(raw), &ExperimentRuns::new());
    let bad: Vec<_> = right.experiments[0].values.iter().filter(|value| !value.pass).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].path, "b[1]");
    assert_eq!(bad[0].reason.as_deref(), Some(r#"not a number: `{"x":1}`"#));
    assert!(right.experiments[1].pass);
}

#[test]
fn a_gold_value_that_is_not_finite_is_matched_only_by_itself() {
    let read = read_result(
        &ResultRule::JsonFile("f".into()),
        b"",
        Some(b"{\"a\": NaN, \"b\": [-Infinity, 1], \"c\": \"inf\"}"),
    );
    let gold = with_markers(read.unwrap());
    assert_eq!(gold, json!({"a": "NaN", "b": ["-Infinity", 1], "c": "Infinity"}));
    assert_eq!(check_gold(&gold), Ok(()));
    let passes = |got: Value| strict(gold.clone(), got).pass;
    assert!(passes(json!({"a": "nan", "b": ["-inf", 1], "c": "Infinity"})));
    for (a, b, c) in [
        (json!(null), json!("-inf"), json!("inf")),
        (json!("text"), json!("-inf"), json!("inf")),
        (json!(0.0), json!("-inf"), json!("inf")),
        (json!("nan"), json!("inf"), json!("inf")),
        (json!("nan"), json!("-inf"), json!("nan")),
        (json!("nan"), json!(-1e308), json!("inf")),
    ] {
        assert!(!passes(json!({"a": a, "b": [b, 1], "c": c})), "{a} {b} {c}");
    }
    let reported = "{\"Experiment 1\": {\"a\": NaN, \"b\": [-Infinity, 1], \"c\": Infinity}}";
    assert!(score_answer(Rule::Strict, &[expected(1, gold)], Some(reported), &ExperimentRuns::new()).pass);
    // If gold consists of markers such as NaN alone, there is no value to compare.
    let only = json!({"a": ["NaN", "Infinity"]});
    assert_eq!(check_gold(&only), Err("the gold result has no finite value".into()));
    assert!(!strict(only.clone(), only).pass);
}

#[test]
fn a_meaningless_gold_value_is_refused_when_it_is_recorded() {
    for bad in [json!("NaN"), json!("inf"), json!(null), json!([]), json!({"a": {}}), json!([1, "-inf"]), json!("0.5")]
    {
        assert!(check_gold(&bad).is_err(), "{bad}");
        assert!(!strict(bad.clone(), bad.clone()).pass, "{bad}");
    }
    for good in [json!(0), json!({"a": [1, -2.5], "best": "kmeans++", "converged": true})] {
        assert_eq!(check_gold(&good), Ok(()));
    }
    assert_eq!(check_gold(&json!({"k": [1, null]})), Err("the gold value `k[1]` is null".into()));
}

#[test]
fn five_percent_is_inclusive_and_nothing_beyond_it_passes() {
    for (gold, got) in
        [(1.0, 1.05), (1.0, 0.95), (0.6, 0.63), (0.6, 0.57), (-2.0, -2.1), (1e-300, 1.05e-300), (1e300, 0.95e300)]
    {
        assert!(strict(gold.into(), got.into()).pass, "{gold} {got}");
    }
    for (gold, got) in [(1.0, 1.050_000_000_1), (1.0, 0.949_999_999_9), (-2.0, 2.0), (1e-300, 0.0), (1e308, -1e308)] {
        assert!(!strict(gold.into(), got.into()).pass, "{gold} {got}");
    }
}

#[test]
fn a_deviation_of_exactly_five_percent_passes_and_the_next_larger_decimal_fails_for_every_gold() {
    let decimal = |digits: i64| format!("{digits}e-5").parse::<f64>().unwrap();
    for gold in (1..100_000_i64).step_by(7) {
        // Gold has two decimals, so its bounds (gold plus or minus 5%) have at most four. A number must fail if it is
        // beyond a bound by 1 in the fifth decimal.
        let (digits, five_percent) = (gold * 1000, gold * 50);
        for sign in [1, -1] {
            let score = |got: i64| strict(decimal(sign * digits).into(), decimal(sign * got).into()).pass;
            assert!(score(digits + five_percent) && score(digits - five_percent), "{gold}");
            assert!(!score(digits + five_percent + 1) && !score(digits - five_percent - 1), "{gold}");
        }
    }
}

#[test]
fn gold_zero_is_compared_absolutely() {
    assert!(strict(json!(0), json!(1e-9)).pass);
    assert!(strict(json!(0.0), json!(-0.0)).pass);
    let verdict = strict(json!(0), json!(0.001));
    assert!(!verdict.pass);
    assert_eq!(verdict.values[0].error, Some(0.001));
}

#[test]
fn plain_numbers_in_strings_are_read_and_others_refused_with_a_reason() {
    for text in [".5", "5e-1", " 0.5 ", "+0.5", "0.50", "5E-1"] {
        assert!(strict(json!(0.5), json!(text)).pass, "{text}");
    }
    for text in ["1_000", "0x10", "50%", "nan", "inf", "-Infinity", "", "0.5 s", "1,0", "1e999", "."] {
        let verdict = strict(json!(0.5), json!(text));
        assert!(!verdict.pass, "{text}");
        let reason = verdict.values[0].reason.clone().unwrap();
        assert!(reason.starts_with("not a number: `") || reason.starts_with("not finite: `"), "{reason}");
    }
    for other in [json!(true), json!(null), json!([0.5]), json!({"mean": 0.5})] {
        assert!(
            strict(json!(0.5), other.clone()).values[0].reason.as_ref().unwrap().starts_with("not a number"),
            "{other}"
        );
    }
}

#[test]
fn gold_values_other_than_numbers_are_compared_for_equality() {
    let gold = json!({"best": "kmeans++", "converged": true});
    assert!(strict(gold.clone(), gold.clone()).pass);
    assert!(!strict(gold.clone(), json!({"best": "random", "converged": true})).pass);
    assert!(!strict(gold, json!({"best": "kmeans++", "converged": 1})).pass);
}

#[test]
fn every_gold_value_gets_a_verdict_however_wrong_the_shape() {
    let gold = json!({"k=10": {"mean": 1, "min": [2, 3]}});
    for got in [json!(1), json!([]), json!({"k=10": 4}), json!({"k=10": {"min": 4}}), json!(null), json!("x")] {
        let verdict = strict(gold.clone(), got);
        let paths: Vec<_> = verdict.values.iter().map(|value| value.path.as_str()).collect();
        assert_eq!(paths, ["k=10.mean", "k=10.min[0]", "k=10.min[1]"]);
        assert!(verdict.values.iter().all(|value| !value.pass && value.reason.is_some()));
    }
    assert_eq!(strict(json!([1, 2]), json!([1])).values[1].reason.as_deref(), Some("missing"));
    assert!(strict(gold.clone(), Value::String(gold.to_string())).pass, "an object in a string is read");
}

#[test]
fn the_last_readable_object_of_an_answer_counts() {
    let read = |raw: &str| parse_answer(raw).map(Value::Object);
    let wanted = Ok(json!({"Experiment 1": 2}));
    for raw in [
        r#"{"Experiment 1": 2}"#,
        "\u{feff} {\"Experiment 1\": 2}\n",
        "```json\n{\"Experiment 1\": 2}\n```",
        "First I thought {\"Experiment 1\": 1}, but no:\n{\"Experiment 1\": 2} (with `{}` as default and {x: y}).",
        "set {a, b} and f\"{value}\"\n```\n{\"Experiment 1\": 2}\n```\nDone {",
    ] {
        assert_eq!(read(raw), wanted, "{raw}");
    }
}

#[test]
fn the_answer_is_found_in_a_programs_output() {
    let printed = "{\"a\": 1}\n```json\n{\"Experiment 1\": {\"x\": NaN}}\n```\nDone {really}.\n{\"cut\": ";
    assert_eq!(find_answer(printed), Some("{\"Experiment 1\": {\"x\": NaN}}"));
    // A line that is cut off does not hide the lines after it, and objects inside it are not answers.
    let cut = "request {\"messages\": [{\"role\": \"user\"}, \"half\nwarning\n{\"Experiment 1\": 2}\n";
    assert_eq!(find_answer(cut), Some("{\"Experiment 1\": 2}"));
    assert_eq!(parse_answer(cut).map(Value::Object), Ok(json!({"Experiment 1": 2})));
    for nothing in ["no object", "", "{\"Experiment 1\": {\"a\": 1}, \"Experiment 2\": {\"b\"", "{'Experiment 1': 2}"] {
        assert_eq!(find_answer(nothing), None, "{nothing}");
    }
}

#[test]
fn text_without_a_json_object_is_refused_with_the_value_found() {
    let wrong = |raw: &str| parse_answer(raw).unwrap_err();
    assert_eq!(wrong("  "), "the answer is empty");
    assert_eq!(wrong("[1, 2]"), "the answer must be a JSON object, found `[1,2]`");
    assert!(wrong("{'Experiment 1': 2}").contains("json.dumps"));
    assert!(wrong(r#"{"Experiment 1": {"a": 1}, "Experiment 2": {"b""#).contains("cut off"));
    assert!(wrong("I could not do it.").starts_with("the answer is not JSON"));
    assert!(wrong(r#"Result: {"Experiment 1": 1,}"#).starts_with("the answer is not JSON"));
}

#[test]
fn invalid_values_of_an_answer_fail_and_valid_ones_still_pass() {
    let raw = r#"{"Experiment 1": {"a": NaN, "b": -Infinity, "c": 1e999, "d": .5, "h": nan, "i": -inf, "e": 1_000, "f": 3, "f": 4, "g": 5, "g": 5}}"#;
    let gold = json!({"a": 1, "b": 1, "c": 1, "d": 0.5, "e": 1000, "f": 3, "g": 5, "h": 1, "i": 1});
    let verdict = score_answer(Rule::Strict, &[expected(1, gold)], Some(raw), &ExperimentRuns::new());
    let values = &verdict.experiments[0].values;
    assert_eq!(
        values.iter().map(|v| v.pass).collect::<Vec<_>>(),
        [false, false, false, true, false, false, true, false, false]
    );
    assert_eq!(values[0].reason.as_deref(), Some("not finite: `NaN`"));
    assert_eq!(values[8].reason.as_deref(), Some("not finite: `-inf`"));
    assert_eq!(values[5].reason.as_deref(), Some("not a number: `given twice: 3 and 4`"));
}

#[test]
fn long_and_deep_answers_are_read_in_linear_time_without_overflow() {
    let begun = std::time::Instant::now();
    let padding = "x".repeat(1 << 20);
    assert!(parse_answer(&format!("{padding} {{\"Experiment 1\": \"{padding}\"}}")).is_ok());
    for unit in ["{", "{\"a\":", "[", "{\"a\":[", "{\"", "{\"a\":{},", "{} ", "{\"\\", "\n{\"a\":"] {
        let _ = parse_answer(&unit.repeat((1 << 20) / unit.len()));
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert!(parse_answer(&deep).unwrap_err().contains("recursion limit"));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn experiments_are_found_under_other_spellings_of_their_key_and_under_their_id() {
    let experiments = [expected(3, json!(1)), Expected { id: "Lloyd".into(), ..expected(12, json!(2)) }];
    for (first, second) in [
        ("Experiment 3", "Experiment 12"),
        ("experiment_3", "12"),
        ("3", "lloyd"),
        ("exp_3", "Lloyd"),
        (" EXPERIMENT 3 ", "experiment12"),
    ] {
        let raw = json!({first: 1, second: 2}).to_string();
        assert!(score_answer(Rule::Strict, &experiments, Some(&raw), &ExperimentRuns::new()).pass, "{raw}");
    }
    let verdict = score_answer(
        Rule::Strict,
        &experiments,
        Some(r#"{"3": 1, "12": 2, "Experiment 1": 5}"#),
        &ExperimentRuns::new(),
    );
    assert!(verdict.pass);
    assert_eq!(verdict.warnings, ["`Experiment 1` is not an experiment of this sample"]);
}

#[test]
fn an_experiment_reported_twice_fails_unless_both_results_are_equal() {
    let experiments = [expected(3, json!(1))];
    assert!(
        score_answer(Rule::Strict, &experiments, Some(r#"{"3": 1, "Experiment 3": 1.0}"#), &ExperimentRuns::new()).pass
    );
    let verdict =
        score_answer(Rule::Strict, &experiments, Some(r#"{"3": 1, "Experiment 3": 2}"#), &ExperimentRuns::new());
    assert!(!verdict.pass);
    assert!(verdict.experiments[0].reason.as_ref().unwrap().contains("reported twice"));
}

#[test]
fn a_missing_answer_or_experiment_fails_with_its_reason() {
    let experiments = [expected(1, json!(1)), expected(2, json!({"a": 1}))];
    let verdict = score_answer(Rule::Strict, &experiments, None, &ExperimentRuns::new());
    assert_eq!((verdict.pass, verdict.reason.as_deref()), (false, Some("no answer")));
    let verdict = score_answer(Rule::Strict, &experiments, Some(r#"{"Experiment 1": 1}"#), &ExperimentRuns::new());
    assert_eq!(verdict.experiments[1].reason.as_deref(), Some("no result"));
    assert_eq!(verdict.experiments[1].values[0].reason.as_deref(), Some("missing"));
    assert!(!score_answer(Rule::Reference, &experiments, None, &ExperimentRuns::new()).pass);
    assert!(!score_answer(Rule::Reference, &experiments, Some(r#"{"Experiment 1": 1}"#), &ExperimentRuns::new()).pass);
}

#[test]
fn results_of_verification_are_scored_by_id_with_the_reasons_for_missing_ones() {
    let experiments = [expected(1, json!(1)), expected(2, json!(2)), expected(3, json!(3))];
    let results = ExperimentRuns::from([("exp_1".to_owned(), vec![json!(1)])]);
    let failures = BTreeMap::from([("exp_2".to_owned(), "timed out".to_owned())]);
    let verdict = score_results(Rule::Strict, &experiments, &results, &failures);
    let reasons: Vec<_> = verdict.experiments.iter().map(|e| e.reason.as_deref()).collect();
    assert_eq!(reasons, [None, Some("timed out"), Some("no result")]);
    assert!(!verdict.pass && verdict.experiments[0].pass);
    assert!(score_results(Rule::Reference, &experiments[..1], &results, &failures).pass);
}

#[test]
fn a_verdict_is_unchanged_after_it_is_written_as_json_and_read_back() {
    let experiments = [expected(1, json!({"a": 1e-300, "b": [1, "x"]}))];
    let verdict =
        score_answer(Rule::Strict, &experiments, Some(r#"{"1": {"a": 1e300, "b": [1]}}"#), &ExperimentRuns::new());
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
}

fn json_line() -> ResultRule {
    serde_json::from_value(json!({"json_line": "stdout"})).unwrap()
}

fn regexes(pairs: &[(&str, &str)]) -> ResultRule {
    ResultRule::Regex(pairs.iter().map(|(name, regex)| ((*name).to_owned(), (*regex).to_owned())).collect())
}

#[test]
fn a_result_is_read_from_a_json_file() {
    let rule = ResultRule::JsonFile("out.json".into());
    assert_eq!(read_result(&rule, b"", Some(b"\xef\xbb\xbf{\"a\": [1, NaN]}\n")), Ok(json!({"a": [1, "NaN"]})));
    assert_eq!(read_result(&rule, b"", None), Err("`out.json` was not written".into()));
    assert!(read_result(&rule, b"", Some(b"")).unwrap_err().starts_with("`out.json` is not JSON"));
}

#[test]
fn json_over_several_lines_is_read_if_no_single_line_is_json() {
    let rule = ResultRule::JsonLine(crate::suite::Stdout::Stdout);
    let read = |text: &str| read_result(&rule, text.as_bytes(), None);
    let block = "begin {\n{\n  \"a\": {\n    \"f\": 0.5\n  }\n}\nend\n";
    assert_eq!(read(block).unwrap(), serde_json::json!({"a": {"f": 0.5}}));
    assert_eq!(read(&format!("{{\"b\": 1}}\n{block}")).unwrap(), serde_json::json!({"b": 1}));
    assert!(read("}\n{\n").is_err() && read("{\n}}\n").is_err());
}

#[test]
fn a_result_is_read_from_the_last_json_line_of_stdout() {
    let rule = json_line();
    let stdout = b"{\"a\": 1}\r\n{\"a\": 2}\r\n{broken}\nbye \xff\n";
    assert_eq!(read_result(&rule, stdout, None), Ok(json!({"a": 2})));
    let error = read_result(&rule, b"[1]\nTraceback\n", None).unwrap_err();
    assert_eq!(error, "no line of stdout is a JSON object; it ends with `Traceback`");
}

#[test]
fn a_result_is_read_by_named_expressions_from_their_last_match() {
    let rule = regexes(&[("loss", r"loss: (\S+)"), ("seed", r"seed=(\d+)"), ("acc", r"acc (\S+)")]);
    let stdout = b"loss: 3.5\nseed=7\nloss: 1e-2\nacc nan\n";
    assert_eq!(read_result(&rule, stdout, None), Ok(json!({"acc": "nan", "loss": 0.01, "seed": 7})));
    let partly = read_result(&rule, b"loss: 1\n", None).unwrap();
    assert_eq!(partly, json!({"acc": null, "loss": 1, "seed": null}));
    assert!(check_gold(&partly).is_err());
    assert!(read_result(&rule, b"nothing", None).unwrap_err().starts_with("no expression matches"));
    assert_eq!(
        read_result(&regexes(&[("x", "x")]), b"x", None),
        Err("expression of `x` has no group to read the value from".into())
    );
    assert!(read_result(&regexes(&[("x", "(")]), b"x", None).unwrap_err().starts_with("expression `x` is broken"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d1 ]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(map) => map.values().map(leaves).sum(),
        _ => 1,
    }
}

proptest! {
    #[test]
    fn reading_results_never_panics_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_result(&ResultRule::JsonFile("f".into()), b"", Some(&bytes));
        let _ = read_result(&json_line(), &bytes, None);
        let _ = read_result(&regexes(&[("x", r"(.)."), ("y", r"(\d+)|z")]), &bytes, None);
    }

    #[test]
    fn random_answers_never_cause_a_panic_and_never_pass_by_the_strict_rule(text in r#"[{}\[\]":,'\\0-9a.eE+\-NI_ \n\u{e9}]{0,80}"#) {
        let experiments = [expected(1, json!({"a": 1})), expected(2, json!([0]))];
        let _ = parse_answer(&text);
        for rule in [Rule::Strict, Rule::Reference] {
            prop_assert!(!score_answer(rule, &experiments, Some(&text), &ExperimentRuns::new()).pass || rule == Rule::Reference);
        }
    }

    #[test]
    fn every_leaf_of_gold_gets_one_verdict_and_good_gold_passes_against_itself(gold in any_json(), got in any_json()) {
        let verdict = strict(gold.clone(), got.clone());
        prop_assert_eq!(verdict.values.len(), leaves(&gold));
        prop_assert_eq!(strict(gold.clone(), gold.clone()).pass, check_gold(&gold).is_ok());
        let raw = json!({"Experiment 1": got}).to_string();
        for rule in [Rule::Strict, Rule::Reference] {
            let _ = score_answer(rule, &[expected(1, gold.clone())], Some(&raw), &ExperimentRuns::new());
        }
    }
}

/// A stochastic experiment with these repeats.
fn stochastic(repeats: Vec<Value>) -> [Expected; 1] {
    let gold = repeats[0].clone();
    let tolerance = Tolerance { repeats, ..Tolerance::default() };
    [Expected { id: "e".to_owned(), key: "e".to_owned(), gold, tolerance }]
}

/// A stochastic experiment with these repeats of one value.
fn stochastic_value(repeats: &[f64]) -> [Expected; 1] {
    stochastic(repeats.iter().map(|value| json!({ "a": value })).collect())
}

/// Returns whether these runs pass verification, and whether the report `told` passes if the code gave these runs.
fn stochastic_verdicts(experiments: &[Expected], runs: &[Value], told: &Value) -> (bool, bool) {
    let runs = ExperimentRuns::from([("e".to_owned(), runs.to_vec())]);
    let answer = json!({ "e": told }).to_string();
    let verified = score_results(Rule::Strict, experiments, &runs, &BTreeMap::new()).pass;
    (verified, score_answer(Rule::Strict, experiments, Some(&answer), &runs).pass)
}

/// Same as [`stochastic_verdicts`], for results with a single value.
fn single_value_verdicts(experiments: &[Expected], runs: &[f64], told: f64) -> (bool, bool) {
    let runs: Vec<Value> = runs.iter().map(|value| json!({ "a": value })).collect();
    stochastic_verdicts(experiments, &runs, &json!({ "a": told }))
}

/// 96 values around 0.8 with a standard deviation of about 0.05.
fn usual_repeats() -> Vec<f64> {
    let mut random = crate::stats::Uniform::seeded(3);
    (0..96).map(|_| 0.8 + 0.1 * (random.next() + random.next() + random.next() - 1.5)).collect()
}

/// Five values that could be among [`usual_repeats`].
const RIGHT: [f64; 5] = [0.75, 0.82, 0.86, 0.78, 0.8];

#[test]
fn code_that_always_gives_the_same_result_passes_only_if_gold_could_have_given_it() {
    let gold = stochastic_value(&usual_repeats());
    for (constant, passes) in [(0.8, true), (0.83, true), (123.0, false), (-1e200, false), (0.0, false), (1.0, false)] {
        assert_eq!(single_value_verdicts(&gold, &[constant; 5], constant), (passes, true), "{constant}");
    }
    // Sums in another order give results that differ by rounding only.
    let rounded: Vec<f64> = (0..5).map(|place| 0.83 + f64::from(place) * 1e-15).collect();
    assert!(single_value_verdicts(&gold, &rounded, 0.83).0);
    // If the code always gives the same result, a report passes only if it is this result.
    assert_eq!(single_value_verdicts(&gold, &[0.8; 5], 0.9), (true, false));
}

#[test]
fn neither_absurd_numbers_nor_wrong_spreads_pass_as_random_results() {
    let gold = stochastic_value(&usual_repeats());
    assert_eq!(single_value_verdicts(&gold, &RIGHT, 0.79), (true, true));
    for wrong in [
        [1.8, 1.7, 1.9, 1.8, 1e12],
        [1e155, 2e155, 3e155, 4e155, 5e155],
        [-1e308, 1e308, 1e308, -1e308, 0.8],
        [1000.0, -1000.0, 1000.0, -1000.0, 1000.8],
        [5.0, -3.4, 0.8, 0.81, 0.79],
    ] {
        assert!(!single_value_verdicts(&gold, &wrong, 0.8).0, "{wrong:?}");
    }
    assert!(!single_value_verdicts(&gold, &RIGHT, 1e200).1);
}

#[test]
fn one_extreme_repeat_of_a_value_does_not_hide_deviations_of_other_values() {
    let row = |a: f64, odd: f64, k: i32| json!({ "a": a, "odd": odd, "k": k });
    let mut repeats: Vec<Value> = usual_repeats().into_iter().map(|a| row(a, 0.0, 10)).collect();
    repeats[40]["odd"] = json!(1e6);
    let gold = stochastic(repeats);
    let right = RIGHT.map(|a| row(a, 0.0, 10));
    for (result, passes) in [
        (row(0.8123, 0.0, 10), true),
        // One of gold's repeats has this value of `odd`, too.
        (row(0.8123, 1e6, 10), true),
        (row(123.0, 0.0, 10), false),
        (row(0.0, 0.0, 10), false),
        (row(0.8123, 0.0, 77), false),
    ] {
        let equal = vec![result.clone(); 5];
        assert_eq!(stochastic_verdicts(&gold, &equal, &result), (passes, true), "{result}");
        assert_eq!(stochastic_verdicts(&gold, &right, &result), (true, passes), "{result}");
    }
    // Five different runs, off by two standard deviations.
    let biased = RIGHT.map(|a| row(a + 0.1, 0.0, 10));
    assert!(!stochastic_verdicts(&gold, &biased, &biased[0]).0);
}

#[test]
fn a_rare_event_passes_if_the_repeats_have_others_like_it() {
    for (events, passes) in [(2, false), (3, true)] {
        let mut repeats: Vec<Value> =
            usual_repeats().into_iter().map(|a| json!({ "a": a, "events": [0, 0, 0, 0] })).collect();
        for event in 0..events {
            repeats[10 * event]["events"][event] = json!(1);
        }
        let result = json!({ "a": 0.8123, "events": [0, 0, 0, 1] });
        let equal = vec![result.clone(); 5];
        assert_eq!(stochastic_verdicts(&stochastic(repeats), &equal, &result), (passes, true), "{events} events");
    }
}

#[test]
fn runs_that_agree_by_chance_do_not_bind_the_report() {
    let repeats: Vec<f64> = (0..96).map(|place| f64::from(u8::from(place % 6 == 0))).collect();
    let gold = stochastic_value(&repeats);
    for (told, passes) in [(0.0, true), (1.0, true), (7.0, false)] {
        assert_eq!(single_value_verdicts(&gold, &[0.0; 5], told), (true, passes), "{told}");
    }
}

#[test]
fn values_with_a_fixed_seed_count_as_one_draw_beside_values_that_vary() {
    let usual = usual_repeats();
    let row = |a: f64, b: f64, flag: bool| json!({ "a": a, "b": b, "flag": i32::from(flag) });
    let repeats = (0..96).map(|place| row(usual[place], 10.0 * usual[(place + 48) % 96], place % 10 == 0));
    let gold = stochastic(repeats.collect());
    let runs = |b: f64, flag: bool, bias: f64| RIGHT.map(|a| row(a + bias, b, flag));
    let right = runs(8.9, false, 0.0);
    assert_eq!(stochastic_verdicts(&gold, &right, &right[1]), (true, true));
    assert_eq!(stochastic_verdicts(&gold, &right, &row(RIGHT[1], 8.0, false)), (true, false));
    for wrong in [runs(123.0, false, 0.0), runs(8.9, true, 0.0), runs(8.9, false, 0.1)] {
        assert!(!stochastic_verdicts(&gold, &wrong, &wrong[0]).0, "{}", wrong[0]);
    }
}
