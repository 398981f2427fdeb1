//! The number of a shard, and how many shards a run has.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A shard of a run, such as `3/16`. A process starts with the attempts of its shard, and continues with any attempts
/// that no process has claimed. So the shard's number only decides which attempts come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 0.
    pub index: u32,
    /// Number of shards.
    pub count: u32,
}

/// Maximum number of shards of a run.
const MOST: u32 = 100_000;

impl Shard {
    /// The shard of a run that is not divided into shards.
    pub const ONLY: Self = Self { index: 0, count: 1 };

    /// Reads the shard from the environment: `AUTOEXPERIMENT_SHARD`, else the variables of a Slurm job array.
    ///
    /// # Errors
    /// Kind `Usage` if the value isn't a shard.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        if let Some(text) = variable("AUTOEXPERIMENT_SHARD").filter(|text| !text.is_empty()) {
            return text.parse().map(Some).map_err(|error: Error| Error {
                message: format!("the variable `AUTOEXPERIMENT_SHARD` is wrong: {}", error.message),
                ..error
            });
        }
        let number = |name| variable(name)?.parse::<u32>().ok();
        let (Some(task), Some(count)) = (number("SLURM_ARRAY_TASK_ID"), number("SLURM_ARRAY_TASK_COUNT")) else {
            return Ok(None);
        };
        let first = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
        let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
        // In an array with gaps, two tasks may get the same number. They can still work together, because the number
        // only decides which attempts a process starts with.
        Ok((count > 0).then(|| Self { index: (task.saturating_sub(first) / step) % count, count }))
    }

    /// Returns the shard's number from 1, padded to the digits of the last shard's number, so that names sort.
    #[must_use]
    pub fn name(self) -> String {
        format!("{:0width$}", self.index + 1, width = self.count.to_string().len())
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(place, of)| Some((place.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((place, count)) if (1..=count).contains(&place) && count <= MOST => {
                Ok(Self { index: place - 1, count })
            }
            _ => Err(Error::usage(format!("`{text}` is not a shard"))
                .hint("give the shard's number and the number of shards, such as `3/16`")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_shard_is_read_from_text_or_from_the_variables_of_a_job_array() {
        let shard = |text: &str| text.parse::<Shard>();
        assert_eq!(shard("3/16").unwrap(), Shard { index: 2, count: 16 });
        assert_eq!((shard("3/16").unwrap().name(), shard("3/16").unwrap().to_string()), ("03".into(), "3/16".into()));
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0", "-1/2", "1/100001"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
        let of = |variables: &[(&str, &str)]| {
            let variables: Vec<(String, String)> =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Shard::from_environment(move |name| {
                variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[("SLURM_ARRAY_TASK_ID", "3")]).unwrap(), None);
        let array = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_COUNT", "4"), ("SLURM_ARRAY_TASK_MIN", "1")];
        let stepped = [array.as_slice(), &[("SLURM_ARRAY_TASK_STEP", "2")]].concat();
        assert_eq!(of(&stepped).unwrap(), Some(Shard { index: 3, count: 4 }));
        // A job array with gaps, as after resubmitting some of its tasks.
        assert_eq!(of(&array).unwrap(), Some(Shard { index: 2, count: 4 }));
        let both = [array.as_slice(), &[("AUTOEXPERIMENT_SHARD", "2/2")]].concat();
        assert_eq!(of(&both).unwrap(), Some(Shard { index: 1, count: 2 }));
        assert!(of(&[("AUTOEXPERIMENT_SHARD", "5/2")]).is_err());
    }
}
