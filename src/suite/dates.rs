//! Publication dates, for deciding whether a model can have seen a paper or its code in training.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// A day, or a month if the day is unknown: `2026-11-21`, `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PartialDate {
    first: Date,
    last: Date,
}

impl PartialDate {
    /// Returns the first day that the date can mean: of a month, the first day.
    #[must_use]
    pub const fn first(self) -> Date {
        self.first
    }

    /// Returns the last day that the date can mean.
    #[must_use]
    pub const fn last(self) -> Date {
        self.last
    }

    /// Returns the earlier of two dates, or the only known one.
    #[must_use]
    pub fn earlier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min_by_key(|it| (it.first, it.last))
    }
}

impl std::str::FromStr for PartialDate {
    type Err = String;

    /// # Errors
    /// An error message if the text is neither a day nor a month.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |_| format!("`{}` is not a date: write a day as `2026-11-21` or a month as `2026-11`", text.escape_debug());
        if text.len() == "2026-11".len() {
            let first: Date = format!("{text}-01").parse().map_err(wrong)?;
            return Ok(Self { first, last: first.last_of_month() });
        }
        let day = Date::strptime("%Y-%m-%d", text).map_err(wrong)?;
        Ok(Self { first: day, last: day })
    }
}

crate::files::stored_as_text!(PartialDate);

impl fmt::Display for PartialDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}", self.first.strftime("%Y-%m"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_day_or_a_whole_month() {
        let read = |text: &str| text.parse::<PartialDate>();
        let month = read("2024-02").unwrap();
        assert_eq!((month.first().to_string(), month.last().to_string()), ("2024-02-01".into(), "2024-02-29".into()));
        for text in ["2024-02", "2026-11-21"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for wrong in ["", "2024", "2024-13", "2024-02-30", "21.11.2026", "2026-11-21T00:00"] {
            assert!(read(wrong).unwrap_err().contains("is not a date"), "{wrong}");
        }
        let day = read("2024-02-10").unwrap();
        assert_eq!(PartialDate::earlier(Some(day), Some(month)), Some(month));
        assert_eq!(PartialDate::earlier(None, Some(day)), Some(day));
    }
}
