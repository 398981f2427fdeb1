//! A number as it is written in a text, and whether it is a rounding of a result.

use regex::Regex;
use serde_json::Value;

/// A number as it is written: its value and the size of half its last digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Written {
    /// The value.
    pub value: f64,
    /// Significant digits.
    pub digits: usize,
    half_digit: f64,
}

impl Written {
    /// Reads a number that is precise enough to be a result: `least` significant digits or more with a decimal point, or
    /// one more without; shorter ones are sizes and settings, and agree with some result by chance. Commas are taken
    /// for separators of thousands.
    #[must_use]
    pub fn read(token: &str, least: usize) -> Option<Self> {
        let plain = token.replace(',', "").replace('−', "-");
        let mantissa = plain.split(['e', 'E']).next().unwrap_or_default();
        let digits = mantissa.trim_start_matches(['-', '+', '0', '.']).chars().filter(char::is_ascii_digit).count();
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        if digits < if decimals > 0 { least } else { least + 1 } {
            return None;
        }
        let exponent: i32 = plain.split_once(['e', 'E']).and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
        let value = plain.parse::<f64>().ok()?;
        Some(Self { value, digits, half_digit: 0.5 * 10_f64.powi(exponent - decimals as i32) })
    }

    /// Whether the writing is a rounding of `value`.
    #[must_use]
    pub fn is(&self, value: f64) -> bool {
        // A millionth more than half the last digit, for the rounding of the comparison itself.
        (self.value - value).abs() <= self.half_digit * 1.000_001
    }
}

/// Numbers in a text that [`Written::read`] finds precise enough: line from 1, the token, its value.
pub(super) fn written_numbers(text: &str, least: usize) -> Vec<(usize, String, Written)> {
    let Ok(number) = Regex::new(r"[-−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?") else { return Vec::new() };
    let mut found = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for token in number.find_iter(content) {
            if let Some(written) = Written::read(token.as_str(), least) {
                found.push((line + 1, token.as_str().to_owned(), written));
            }
        }
    }
    found
}

/// All numbers of a result that are no small whole numbers, such as counts, which texts hold for other reasons.
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
        Value::Object(items) => items.values().for_each(|item| result_numbers(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_leak(text: &str, value: f64) -> bool {
        written_numbers(text, 3).iter().any(|(_, _, written)| written.is(value))
    }

    #[test]
    fn a_rounded_result_in_the_text_is_found() {
        for text in ["an accuracy of 0.873.", "| 87.3 |", "(1,234.57)", "−0.873", "8.73e-1"] {
            let value = match text {
                "| 87.3 |" => 87.304,
                "(1,234.57)" => 1234.5678,
                "−0.873" => -0.8731,
                _ => 0.8731,
            };
            assert!(is_leak(text, value), "{text}");
        }
    }

    #[test]
    fn settings_years_and_other_numbers_are_no_leaks() {
        for (text, value) in [("tolerance 0.05", 0.050_000_4), ("0.873", 0.8746), ("k = 10 of 150", 150.2), ("v1", 1.0)]
        {
            assert!(!is_leak(text, value), "{text}");
        }
        let mut found = Vec::new();
        result_numbers(&serde_json::json!({"size": 150, "loss": 0.25, "list": [1e4]}), &mut |value| found.push(value));
        assert_eq!(found, [0.25, 1e4]);
    }
}
