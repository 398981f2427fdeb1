//! Samples: the tasks that agents attempt. The number of possible samples is computed exactly, and samples are drawn
//! without listing all possible ones.
//!
//! Only the family (kind of task) of a [`Sample`] knows what the sample's id means. In most families, a sample
//! withholds some units of an item, such as functions of a paper or steps of a solution. Such families use [`Withheld`]
//! to write the ids.

mod combination;
mod draw;
mod nesting;
mod units;
mod up_sets;

use std::fmt;
use std::str::FromStr;

pub use combination::count;
pub use draw::draw;
pub use nesting::Nesting;
pub use units::{UnitChoice, Units};
pub(crate) use up_sets::{MOST_STEPS, UpSets};

use crate::error::{Error, Result};

/// Name of the family (kind of task) of masked replication, to which all runs and records belong that name no family.
pub const MASKED: &str = "masked";

/// Name of the family (kind of task) in which agents write a program that carries out an instruction.
pub const COMMAND: &str = "command";

/// One task that agents attempt. Only the code of the sample's family (kind of task) parses the id; all other code uses
/// the other fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    id: String,
    family: String,
    item: String,
    cluster: String,
    n: usize,
}

impl Sample {
    /// Creates a sample. Only the code of the sample's family should call this, because it decides what the id means.
    #[must_use]
    pub fn new(family: &str, item: &str, cluster: &str, id: String, n: usize) -> Self {
        Self { id, family: family.to_owned(), item: item.to_owned(), cluster: cluster.to_owned(), n }
    }

    /// The id, which is part of file names, such as `kmeanspp_0,3`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The family's name.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.family
    }

    /// The item that the sample is drawn from, such as a paper; an item is loaded and prepared as a whole.
    #[must_use]
    pub fn item(&self) -> &str {
        &self.item
    }

    /// The paper or repo of the sample. Samples of the same cluster are similar, so intervals are computed over
    /// clusters.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// How much the sample withholds, such as the number of masked functions. Figures show it as the sample's
    /// difficulty.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// An item, and the units of it that a sample withholds, such as a paper and the masked functions. Families that
/// withhold units write their sample ids in this form: `kmeanspp_0,3`, or `kmeanspp_` if no unit is withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// The item's id, such as a paper's id.
    pub item: String,
    /// Indices (from 0, ascending) of the item's units that the sample withholds, such as the masked functions.
    pub units: Vec<usize>,
}

impl Withheld {
    /// Creates the sample that withholds the units in `units`. `family` is the sample's kind of task, and `cluster` is
    /// its paper or repo. [`Sample::n`] is the number of these units.
    #[must_use]
    pub fn sample(&self, family: &str, cluster: &str) -> Sample {
        Sample::new(family, &self.item, cluster, self.to_string(), self.units.len())
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_", self.item)?;
        for (i, unit) in self.units.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{unit}")?;
        }
        Ok(())
    }
}

impl FromStr for Withheld {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self> {
        let wrong = || Error::usage(format!("`{id}` is not a sample id"));
        let (item, list) = id.rsplit_once('_').ok_or_else(wrong)?;
        let units = if list.is_empty() {
            Vec::new()
        } else {
            list.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|_| wrong())?
        };
        if item.is_empty() || !units.is_sorted_by(|a, b| a < b) {
            return Err(wrong());
        }
        Ok(Self { item: item.to_owned(), units })
    }
}

/// Parses values of [`Sample::n`], such as numbers of masked functions, from a command line: `3`, `1..5` (both ends
/// included), `1,2,5`, or a combination of these.
///
/// # Errors
/// Kind `Usage` for any other text.
pub fn parse_n(text: &str) -> Result<Vec<usize>> {
    let wrong = || {
        Error::usage(format!("`{text}` is not a number of masked functions"))
            .hint("give a number, a range with both ends included as `1..5`, or a list as `1,2,5`")
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        if let Some((first, last)) = part.split_once("..") {
            let last = last.strip_prefix('=').unwrap_or(last);
            let (first, last): (usize, usize) =
                (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
            if first > last || last - first > 10_000 {
                return Err(wrong());
            }
            all.extend(first..=last);
        } else {
            all.push(part.trim().parse().map_err(|_| wrong())?);
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Parses the id of a sample of masked replication. For tests in which the kind of task does not matter.
#[cfg(test)]
pub fn masked(id: &str) -> Sample {
    let withheld: Withheld = id.parse().unwrap();
    withheld.sample(MASKED, &withheld.item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_id_is_printed_as_it_was_parsed() {
        for id in ["kmeanspp_0,3", "a_b_7", "p_"] {
            assert_eq!(id.parse::<Withheld>().unwrap().to_string(), id);
        }
        for id in ["p", "_1", "p_1,1", "p_2,1", "p_x", "p_1,"] {
            assert!(id.parse::<Withheld>().is_err(), "{id}");
        }
    }

    #[test]
    fn n_is_a_number_a_range_with_both_ends_or_a_list() {
        assert_eq!(parse_n("3").unwrap(), [3]);
        assert_eq!(parse_n("1..3").unwrap(), [1, 2, 3]);
        assert_eq!(parse_n("1..=3").unwrap(), [1, 2, 3]);
        assert_eq!(parse_n("0,5,2..3,3").unwrap(), [0, 2, 3, 5]);
        for wrong in ["", "a", "3..1", "1..", "-1"] {
            assert!(parse_n(wrong).is_err(), "{wrong}");
        }
    }
}
