//! Returns the current time as a valid time stamp, even if the machine's clock is set to an impossible date.

/// Returns the current time, or the largest timestamp if the clock is set beyond the year 9999.
pub fn now() -> jiff::Timestamp {
    at(std::time::SystemTime::now())
}

fn at(time: std::time::SystemTime) -> jiff::Timestamp {
    jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_clock_beyond_the_year_9999_does_not_panic() {
        let late = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 9000);
        assert_eq!(at(late), jiff::Timestamp::MAX);
        assert_eq!(at(SystemTime::UNIX_EPOCH), jiff::Timestamp::UNIX_EPOCH);
    }
}
