//! Finds numbers in a text, and decides which of them are roundings of known values.
//!
//! If a few sentences contain a three-digit number that is a rounding of a result, it is almost certainly that result.
//! In a table of a thousand numbers, some numbers agree with a result by chance. So [`roundings`] compares the number
//! of agreements (hits) in a text with the number to expect by chance, given the text's other numbers of the same
//! precision.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

/// Maximum digits of precision that count: results of two machines differ in later digits.
const MOST_DIGITS: i32 = 7;

/// The value and precision of a written number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WrittenNumber {
    /// Value of the number.
    pub value: f64,
    /// Number of significant digits.
    pub digits: usize,
    /// Number of significant digits without trailing zeros: round numbers such as 100.0 are seldom results.
    pub sharp_digits: usize,
    /// Half of the last digit's unit.
    half_digit: f64,
    /// Power of ten of the last digit, or [`CAPPED`]. Only numbers of the same precision are compared.
    precision: i32,
}

/// A number in a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberInText<'text> {
    /// Line, from 1.
    pub line: usize,
    /// The number as written.
    pub token: &'text str,
    /// Value and precision.
    pub written: WrittenNumber,
}

/// Precision that is assigned to all numbers with more than [`MOST_DIGITS`] digits.
const CAPPED: i32 = i32::MIN;

impl WrittenNumber {
    /// Parses a number that is precise enough to be a result: it has at least `least` significant digits if it has a
    /// decimal point, or else at least one digit more. Shorter numbers are sizes and settings, and agree with some
    /// result by chance. Commas count as thousands separators.
    #[must_use]
    pub fn read(token: &str, least: usize) -> Option<Self> {
        let mut plain = Cow::Borrowed(token);
        if token.contains([',', '−']) {
            plain = token.replace(',', "").replace('−', "-").into();
        }
        let mantissa = plain.split(['e', 'E']).next().unwrap_or_default();
        let count = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
        let significant = mantissa.trim_start_matches(['-', '+', '0', '.']);
        let digits = count(significant);
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        if digits < if decimals > 0 { least } else { least + 1 } {
            return None;
        }
        let exponent: i32 = plain.split_once(['e', 'E']).and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
        let value = plain.parse::<f64>().ok().filter(|value| value.is_finite())?;
        let mut precision = exponent.saturating_sub(decimals as i32);
        let mut half_digit = 0.5 * 10_f64.powi(precision);
        if digits as i32 > MOST_DIGITS {
            precision = CAPPED;
            half_digit = value.abs() * capped_reach();
        }
        let sharp_digits = count(significant.trim_end_matches(['0', '.']));
        Some(Self { value, digits, sharp_digits, half_digit, precision })
    }

    /// Whether this is a rounding of `value`.
    #[must_use]
    pub fn is(&self, value: f64) -> bool {
        (self.value - value).abs() <= self.reach()
    }

    /// Returns the maximum distance to a rounded value: half the last digit, plus a little for floating-point error.
    fn reach(&self) -> f64 {
        self.half_digit * 1.000_001
    }

    /// Converts a percentage to a share.
    fn percent(self) -> Self {
        let precision = if self.precision == CAPPED { CAPPED } else { self.precision - 2 };
        Self { value: self.value / 100.0, half_digit: self.half_digit / 100.0, precision, ..self }
    }
}

/// Finds the numbers in a text that are precise enough to be a result: see [`WrittenNumber::read`]. Digits within a
/// name (`sha1`, `x_2`) are not numbers. `1,234.5` is read both as one number and as two; a percentage both as written
/// and as a share.
#[must_use]
pub fn written_numbers(text: &str, least: usize) -> Vec<NumberInText<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut line, mut at) = (1, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        line += usize::from(byte == b'\n');
        let point = byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_digit() || point) {
            at += 1;
            continue;
        }
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let grouped = grouped_end(bytes, at).filter(|_| !point);
        let (plain_end, end) = (number_end(bytes, at), grouped.map_or(0, |end| fraction_end(bytes, end)));
        if before.is_some_and(|before| before.is_ascii_alphanumeric() || before == b'_') {
            at = plain_end;
            continue;
        }
        let start = signed_start(text, at);
        for end in [end, plain_end] {
            if end > at {
                push(text, start..end, line, least, &mut found);
            }
        }
        at = plain_end;
    }
    found
}

/// Returns the end of the number that begins at `at`.
fn number_end(bytes: &[u8], at: usize) -> usize {
    fraction_end(bytes, digits_end(bytes, at))
}

fn digits_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the end of the decimals and the exponent after a number's whole part.
fn fraction_end(bytes: &[u8], mut at: usize) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if bytes.get(at) == Some(&b'.') && digit(at + 1) {
        at = digits_end(bytes, at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        if digit(at + 1 + sign) {
            at = digits_end(bytes, at + 1 + sign);
        }
    }
    at
}

/// Returns the end of the digits before the decimal point, if commas separate their thousands.
fn grouped_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = digits_end(bytes, at);
    let first = end - at;
    while bytes.get(end) == Some(&b',') && digits_end(bytes, end + 1) == end + 4 {
        end += 4;
    }
    ((1..=3).contains(&first) && end > at + first).then_some(end)
}

/// Returns the position of the sign before a number, or else `at`.
fn signed_start(text: &str, at: usize) -> usize {
    ["-", "−"].iter().find(|sign| text[..at].ends_with(**sign)).map_or(at, |sign| at - sign.len())
}

fn push<'text>(
    text: &'text str,
    range: std::ops::Range<usize>,
    line: usize,
    least: usize,
    found: &mut Vec<NumberInText<'text>>,
) {
    let token = &text[range.clone()];
    let Some(written) = WrittenNumber::read(token, least) else { return };
    found.push(NumberInText { line, token, written });
    let behind = text[range.end..].trim_start_matches(['\\', ',', ' ']);
    if behind.starts_with('%') || behind.starts_with("percent") {
        found.push(NumberInText { line, token, written: written.percent() });
    }
}

/// Calls `found` for all numbers of a result that identify it in a text. Skips small whole numbers, such as counts,
/// because they occur in texts for other reasons. Also skips the counts in a report of hidden tests, and the numbers in
/// digests of values (written by `factory/package_tests.py`), which are weighted sums that no text states.
pub fn result_numbers(value: &Value, found: &mut impl FnMut(f64)) {
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_f64()
                && (number.fract() != 0.0 || number.abs() >= 1000.0)
            {
                found(number);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| result_numbers(item, found)),
        Value::Object(items) if is_digest(items) => {}
        Value::Object(items) => {
            let is_test_report = items.contains_key("tests") && items.contains_key("canaries");
            let is_count = |name: &str| is_test_report && ["passed", "changed"].contains(&name);
            let results = items.iter().filter(|(name, _)| !is_count(name));
            results.for_each(|(_, item)| result_numbers(item, found));
        }
        _ => {}
    }
}

/// Whether an object is a digest of values: it contains a hash of the values, which begins with `#`, and weighted sums
/// of the numbers among them.
fn is_digest(object: &serde_json::Map<String, Value>) -> bool {
    object.get("exact").and_then(Value::as_str).is_some_and(|hash| hash.starts_with('#'))
}

/// Returns the maximum relative difference between a number of precision [`CAPPED`] and a value of which it is a
/// rounding.
fn capped_reach() -> f64 {
    0.5 * 10_f64.powi(1 - MOST_DIGITS)
}

/// Returns the numbers of one text that are roundings of one of these values (hits), each with the value's index. The
/// hits of each precision are judged separately. They are left out if their number can be explained by chance: if at
/// least that many hits would occur by chance with a probability of `chance` or more.
///
/// Hits by chance are assumed to have a Poisson distribution. For each precision, their expected number is a sum over
/// the values. For each value, let m be the number of different numbers in the text, hits excluded, that differ from
/// the value by at most half of the value. Divide this range of numbers into cells as wide as the last digit's unit. If
/// the m numbers were spread evenly over the cells, the value's own cell would contain at least one of them with a
/// probability of 1 - exp(-m / cells). This probability is added to the sum.
#[must_use]
pub fn roundings<'found, 'text>(
    found: &'found [NumberInText<'text>],
    values: &[f64],
    chance: f64,
) -> Vec<(&'found NumberInText<'text>, usize)> {
    let mut sorted: Vec<(f64, usize)> = values.iter().enumerate().map(|(place, &value)| (value, place)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut hits = Vec::new();
    let mut by_precision: BTreeMap<i32, Vec<&NumberInText<'_>>> = BTreeMap::new();
    for one in found {
        by_precision.entry(one.written.precision).or_default().push(one);
    }
    for (precision, numbers) in by_precision {
        let (mut here, mut others, mut distinct) = (Vec::new(), Vec::new(), Vec::new());
        for one in numbers {
            let written = one.written;
            let next = sorted.partition_point(|(value, _)| *value < written.value - written.reach());
            match sorted.get(next).filter(|(value, _)| written.is(*value)) {
                Some(&(_, place)) => {
                    here.push((one, place));
                    distinct.push(written.value);
                }
                None => others.push(written.value),
            }
        }
        for list in [&mut others, &mut distinct] {
            list.sort_by(f64::total_cmp);
            list.dedup();
        }
        if !here.is_empty() && at_least(distinct.len(), expected(&sorted, &others, precision)) < chance {
            hits.extend(here);
        }
    }
    hits.sort_by_key(|(one, _)| one.line);
    hits
}

/// Returns the number of hits of this precision that are expected by chance, as described at [`roundings`]. `others`
/// are the text's numbers of this precision that agree with no value.
fn expected(values: &[(f64, usize)], others: &[f64], precision: i32) -> f64 {
    let mut last_cell = None;
    let mut sum = 0.0;
    for &(value, _) in values {
        let width = if precision == CAPPED { 2.0 * capped_reach() * value.abs() } else { 10_f64.powi(precision) };
        // Values that have the same rounding agree with the same numbers, so count only one of these values.
        let cell = (value / width).round();
        if value == 0.0 || (precision != CAPPED && last_cell.replace(cell) == Some(cell)) {
            continue;
        }
        let half = value.abs() / 2.0;
        let near = others.partition_point(|&other| other <= value + half)
            - others.partition_point(|&other| other < value - half);
        sum += 1.0 - (-(near as f64) * width / (2.0 * half)).exp();
    }
    sum
}

/// Returns the probability of `count` or more events if `mean` are expected, for a Poisson distribution.
fn at_least(count: usize, mean: f64) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for k in 0..count {
        below += term;
        term *= mean / (k + 1) as f64;
    }
    (1.0 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_leak(text: &str, value: f64) -> bool {
        !roundings(&written_numbers(text, 3), &[value], 0.5).is_empty()
    }

    fn tokens(text: &str) -> Vec<&str> {
        written_numbers(text, 3).iter().map(|one| one.token).collect()
    }

    #[test]
    fn a_rounded_result_in_the_text_is_found() {
        for (text, value) in [
            ("an accuracy of 0.873.", 0.8731),
            ("| 87.3 |", 87.304),
            ("(1,234.57)", 1234.5678),
            ("−0.873", -0.8731),
            ("8.73e-1", 0.8731),
            (".873", 0.8731),
            ("87.3%", 0.8731),
            ("$87.3\\,\\%$, 87.3\\% of", 0.8731),
            ("87.3 percent", 0.8731),
            ("0.1,0.873,5", 0.8731),
            ("5,123.456", 123.456),
        ] {
            assert!(is_leak(text, value), "{text}");
        }
    }

    #[test]
    fn settings_years_and_other_numbers_are_not_leaks() {
        for (text, value) in [
            ("tolerance 0.05", 0.050_000_4),
            ("0.873", 0.8746),
            ("k = 10 of 150", 150.2),
            ("v1", 1.0),
            ("87.3 of", 0.8731),
            ("+0.873", -0.8731),
        ] {
            assert!(!is_leak(text, value), "{text}");
        }
    }

    #[test]
    fn numbers_of_a_digest_are_not_counted_as_results() {
        let result = serde_json::json!({
            "accuracy": 0.8731,
            "values": {"a": {"exact": "#0a", "numbers": [19.1478]}, "b": {"exact": "no digest", "error": 0.25}},
        });
        let mut found = Vec::new();
        result_numbers(&result, &mut |value| found.push(value));
        found.sort_by(f64::total_cmp);
        assert_eq!(found, [0.25, 0.8731]);
    }

    #[test]
    fn the_number_of_passed_tests_in_a_test_report_is_not_counted_as_a_result() {
        let report = serde_json::json!({
            "tests": {"a.py::test_b": "passed"}, "canaries": {"a.py::test_c": "failed"}, "passed": 1001, "changed": 0,
            "values": [1002],
        });
        let mut found = Vec::new();
        result_numbers(&report, &mut |value| found.push(value));
        result_numbers(&serde_json::json!({"passed": 1003}), &mut |value| found.push(value));
        assert_eq!(found, [1002.0, 1003.0]);
    }

    #[test]
    fn digits_of_names_versions_and_digests_are_not_numbers() {
        assert_eq!(tokens("sha_2345 x0.1234 9acb4712345f6 1.2.3456 mnist_784"), [""; 0]);
        assert_eq!(tokens("1,234,567 1,234 12345,678"), ["1,234,567", "234,567", "1,234", "12345"]);
    }

    #[test]
    fn a_result_of_another_machine_is_found_though_its_last_digits_differ() {
        assert!(is_leak("{\"loss\": 0.87312345678901234}", 0.873_123_456_789_077));
        assert!(!is_leak("{\"loss\": 0.87312345678901234}", 0.873_124_456));
    }

    /// `count` numbers of four digits between 0 and 1, the same ones every time.
    fn table(count: u64) -> String {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        (0..count).fold(String::new(), |text, _| text + &format!("{:.4}\n", next()))
    }

    fn hits(text: &str, values: &[f64]) -> usize {
        roundings(&written_numbers(text, 4), values, 0.01).len()
    }

    #[test]
    fn chance_agreements_in_a_data_table_are_ignored_but_results_written_beside_the_table_are_found() {
        let values: Vec<f64> = (1..60).map(|place| (f64::from(place) * 0.618_034).fract()).collect();
        let data = table(2000);
        let by_chance =
            written_numbers(&data, 4).iter().filter(|it| values.iter().any(|&value| it.written.is(value))).count();
        assert!(by_chance > 5, "the table must tempt: {by_chance}");
        assert_eq!(hits(&data, &values), 0);
        let results = values.iter().fold(String::new(), |text, value| text + &format!("{value:.4} "));
        assert!(hits(&(results + &data), &values) > 50);
        assert_eq!(hits(&(data.clone() + "loss 0.618034"), &values), 1, "another precision is weighed apart");
        assert_eq!(hits("lr 0.1234\nmomentum 0.9876\nloss 0.6180\n", &values), 1, "a few settings hide nothing");
    }

    #[test]
    fn small_whole_numbers_are_not_collected_as_numbers_that_identify_a_result() {
        let mut found = Vec::new();
        result_numbers(&serde_json::json!({"size": 150, "loss": 0.25, "list": [1e4]}), &mut |value| found.push(value));
        assert_eq!(found, [0.25, 1e4]);
    }

    #[test]
    fn the_probability_of_chance_agreements_is_the_tail_of_a_poisson_distribution() {
        assert!((at_least(1, 0.5) - 0.393_469).abs() < 1e-6);
        assert!((at_least(3, 1.0) - 0.080_301).abs() < 1e-6);
        assert!((at_least(0, 1.0) - 1.0).abs() < 1e-12);
        assert!(at_least(1, 0.0) < 1e-12);
    }
}
