//! Figures and counts as the page writes them.

use crate::report::terminal::TOO_FEW;
use crate::stats::Interval;

/// A share in percent.
pub(super) fn percent(rate: f64) -> String {
    format!("{:.1}", 100.0 * rate)
}

/// A share in percent with its interval, or that there is none.
pub(super) fn with_interval(rate: Option<f64>, interval: Option<Interval>) -> String {
    let Some(rate) = rate else { return "–".to_owned() };
    let bounds = interval.map(|it| format!("[{}, {}]", percent(it.low), percent(it.high)));
    format!("{} {}", percent(rate), bounds.as_deref().unwrap_or(TOO_FEW))
}

/// `3 samples`.
pub(super) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
