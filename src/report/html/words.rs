//! Formatting of numbers and counts on the page.

use crate::report::terminal::TOO_FEW;
use crate::stats::Interval;

/// Formats a share in percent.
pub(super) fn percent(rate: f64) -> String {
    format!("{:.1}", 100.0 * rate)
}

/// Formats a share in percent with its interval, or with a note that there are too few samples for one.
pub(super) fn with_interval(rate: Option<f64>, interval: Option<Interval>) -> String {
    let Some(rate) = rate else { return "–".to_owned() };
    let bounds = interval.map(|it| format!("[{}, {}]", percent(it.low), percent(it.high)));
    format!("{} {}", percent(rate), bounds.as_deref().unwrap_or(TOO_FEW))
}

/// Formats a count with its noun, as `3 samples`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
