//! `autoexperiment sample`: prints the samples that a run would take.

use std::sync::Arc;

use super::lines::SampleLine;
use super::shared::{PaperOptions, SuiteOptions, print_json_line};
use crate::error::{Error, Result};
use crate::run::SampleDraw;
use crate::run::family::{Families, SampleNames, ScoringBasis, beyond, nothing_drawn};
use crate::sample::{MASKED, UnitChoice, parse_n};
use crate::suite::PartialDate;

/// Options of [`DrawOptions`] that choose among an item's samples or among items. They conflict with samples that are
/// requested by name.
pub(super) const CHOICES: [&str; 7] = ["named", "papers", "n", "fraction", "units", "after", "limit"];

/// Which samples to draw.
#[derive(clap::Args, Debug)]
pub(super) struct DrawOptions {
    /// Kind of task.
    #[arg(long, value_name = "FAMILY", default_value = MASKED, help_heading = "Samples")]
    pub family: String,
    #[command(flatten)]
    pub papers: PaperOptions,
    /// Numbers of masked functions: `3`, `1..5` (including both ends) or `1,2,5`. 0 masks nothing, for pure
    /// reproduction.
    #[arg(short, long = "masked", value_name = "N", default_value = "1", help_heading = "Samples")]
    pub n: String,
    /// Share of a paper's functions to mask, such as `0.25`, instead of n.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', conflicts_with = "n", help_heading = "Samples")]
    pub fraction: Vec<f64>,
    /// Units to mask in papers that list regions as well as functions. A region counts as one in n.
    #[arg(long, value_enum, value_name = "UNITS", default_value = "functions", help_heading = "Samples")]
    pub units: UnitChoice,
    /// Draw only functions and tasks that became public after this day or month, such as `2026-06-01`.
    #[arg(long, value_name = "DATE", help_heading = "Samples")]
    pub after: Option<PartialDate>,
    /// Maximum samples per paper and n.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = parse_limit, help_heading = "Samples")]
    pub limit: usize,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0, help_heading = "Samples")]
    pub seed: u64,
}

/// Parses a number of samples, limited because each is drawn and held in memory.
fn parse_limit(text: &str) -> Result<usize, String> {
    let parsed = text.parse::<usize>().ok().filter(|limit| (1..=1_000_000).contains(limit));
    parsed.ok_or_else(|| format!("`{text}` is not a number of samples: give one from 1 to 1000000"))
}

impl DrawOptions {
    /// Checks and converts the options.
    pub fn draw(&self) -> Result<SampleDraw> {
        if let Some(wrong) = self.fraction.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(
                Error::usage(format!("`{wrong}` is not a share")).hint("give a number from 0 to 1, such as `0.25`")
            );
        }
        Ok(SampleDraw {
            n: if self.fraction.is_empty() { parse_n(&self.n)? } else { Vec::new() },
            fractions: self.fraction.clone(),
            units: self.units,
            after: self.after,
            limit: self.limit,
            samples: Vec::new(),
        })
    }
}

/// Draw samples and print them as JSON lines
///
/// The same options give the same samples in `autoexperiment run`. The samples of a smaller limit are the first ones of
/// a larger limit, and a paper's samples do not depend on other papers.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment sample -p kmeanspp -n 1..5 --limit 20 --seed 7\n  \
                        autoexperiment sample --fraction 0.5")]
pub struct Arguments {
    #[command(flatten)]
    draw: DrawOptions,
    #[command(flatten)]
    suite: SuiteOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let families = Families::standard();
    let family = families.get(&arguments.draw.family)?;
    let suite = &arguments.suite.folder()?;
    let asked = arguments.draw.draw()?;
    let (mut drawn, mut items) = (Vec::new(), Vec::new());
    for id in SuiteOptions::items(family.as_ref(), suite, &arguments.draw.papers.all())? {
        let item = family.load(suite, &id, ScoringBasis::default())?;
        items.push(Arc::clone(&item));
        let samples = item.draw(&asked, arguments.draw.seed)?;
        drawn.extend(samples.iter().cloned());
        for sample in samples {
            let SampleNames { units, checks } = item.listed(&sample)?;
            print_json_line(&SampleLine {
                sample: sample.id(),
                paper: sample.cluster(),
                n: sample.n(),
                functions: units,
                experiments: checks,
            })?;
        }
    }
    if drawn.is_empty() {
        return Err(nothing_drawn(family.as_ref(), &items, &asked, arguments.draw.seed));
    }
    if let Some(note) = beyond(family.as_ref(), &asked, &drawn) {
        talk!("warning: {note}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn every_option_that_chooses_samples_conflicts_with_samples_requested_by_name() {
        let command = DrawOptions::augment_args(clap::Command::new("draw"));
        let options: Vec<&str> = command.get_arguments().map(|option| option.get_id().as_str()).collect();
        // The options `family` and `seed` also apply to samples requested by name, so they do not conflict with such
        // samples.
        let choices: Vec<&str> = options.into_iter().filter(|id| !["family", "seed"].contains(id)).collect();
        assert_eq!(choices, CHOICES);
    }
}
