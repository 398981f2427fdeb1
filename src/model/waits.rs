//! How long to wait before a failed call is tried again.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

/// Maximum wait that a provider may ask for; if it asks for a longer wait, the call fails. (If a provider reports with
/// status 400 or 422 that it is busy, a longer wait is ignored instead.) Also the total time for
/// which a call is retried after waits that the provider asks for, even if the number of retries is used up.
pub(super) const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Returns the wait that the response headers ask for: `retry-after-ms`, else `retry-after` in seconds or as an HTTP
/// date (RFC 9110, section 10.2.3).
pub(super) fn wait_in_headers(
    milliseconds: Option<&str>,
    after: Option<&str>,
    now: jiff::Timestamp,
) -> Option<Duration> {
    if let Some(milliseconds) = milliseconds.and_then(|text| text.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = after?.trim();
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

/// Pattern of a wait that a provider asks for in the body of an error, in lower case: in a sentence, such as "try again
/// in 1m26.4s" or "retry after 20 seconds", or in Gemini's field `retryDelay`.
const WAIT: &str =
    r#"(?:(?:try again|retry)(?: your request)? (?:in|after)|"retrydelay":)\s*"?((?:\d+(?:\.\d+)? ?[a-z]+ ?)+)"#;

static WAITS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(WAIT).ok());

/// Returns the wait that an error's body, in lower case, asks for.
pub(super) fn wait_in_body(lower: &str) -> Option<Duration> {
    let stated = |wait: regex::Captures<'_>| wait[1].trim().parse::<jiff::SignedDuration>().ok();
    WAITS.as_ref()?.captures_iter(lower).find_map(stated).and_then(|wait| Duration::try_from(wait).ok())
}

/// Returns how long to wait before the next try; `None` to give up. `asked` is the wait that the provider asks for,
/// `wait` the one that follows from the number of tries, and `elapsed` the time since the first try.
///
/// A provider that asks for a wait answers after it, but other calls may use up the rate limit again in the meantime.
/// So retries after such waits are limited by time instead of by number, and the waits become longer as time passes.
pub(super) fn next_wait(asked: Option<Duration>, wait: Option<Duration>, elapsed: Duration) -> Option<Duration> {
    // Ignore a wait of zero: without a wait, all tries would be used up within a short outage.
    let asked = asked.filter(|asked| !asked.is_zero());
    match asked.filter(|asked| elapsed.saturating_add(*asked) <= LONGEST_WAIT) {
        Some(asked) => Some(asked.max(elapsed / 8)),
        None => wait.map(|wait| asked.unwrap_or(wait)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_from_milliseconds_seconds_and_http_dates() {
        let now: jiff::Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(wait_in_headers(Some("1500"), Some("9"), now), Some(Duration::from_millis(1500)));
        assert_eq!(wait_in_headers(None, Some("2"), now), Some(Duration::from_secs(2)));
        assert_eq!(wait_in_headers(None, date, now), Some(Duration::from_secs(30)));
        assert_eq!(
            wait_in_headers(None, date, now + Duration::from_secs(90)),
            Some(Duration::ZERO),
            "a date in the past"
        );
        assert_eq!(wait_in_headers(None, Some("-3"), now), None);
        assert_eq!(wait_in_headers(None, Some("soon"), now), None);
        assert_eq!(wait_in_headers(None, None, now), None);
    }

    #[test]
    fn tries_after_a_stated_wait_are_bounded_by_time_and_other_tries_by_their_number() {
        let seconds = Duration::from_secs;
        assert_eq!(next_wait(Some(seconds(55)), None, seconds(300)), Some(seconds(55)));
        assert_eq!(next_wait(Some(seconds(1)), None, seconds(400)), Some(seconds(50)), "tries become rarer");
        assert_eq!(next_wait(Some(seconds(55)), None, seconds(599)), None);
        assert_eq!(next_wait(Some(seconds(55)), Some(seconds(8)), seconds(599)), Some(seconds(55)));
        assert_eq!(next_wait(Some(Duration::ZERO), None, seconds(0)), None);
        assert_eq!(next_wait(Some(Duration::ZERO), Some(seconds(8)), seconds(0)), Some(seconds(8)), "zero is no wait");
        assert_eq!(next_wait(None, Some(seconds(8)), seconds(599)), Some(seconds(8)));
        assert_eq!(next_wait(None, None, seconds(1)), None);
    }
}
