//! The fall of the pass rate with the number of masked functions, and the difficulty of single functions.

mod console;

use std::collections::BTreeMap;

use serde::Serialize;

use super::clean::short;
use super::names::full_name;
use crate::run::family::Words;
use crate::run::{Outcome, scored};
use crate::sample::Withheld;
use crate::stats::{Interval, Logistic, TryCounts, chance, fit_correlated};
pub use console::difficulty_console;

/// Minimum number of papers, or of functions masked in several samples, for fitting their differences as random
/// effects.
const FEWEST: usize = 3;
/// Range of the standard deviations between papers or functions, in log-odds, that are reported. Values outside this
/// range mean only that the fit stopped at a bound of its search.
const LEAST_SPREAD: f64 = 0.05;
const MOST_SPREAD: f64 = 5.8;
/// Maximum number of functions with random effects; the time of a fit grows with the cube of their number.
const MOST: usize = 600;

/// How pass rates fall with n (the number of masked functions), and how difficult single functions are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difficulty {
    /// Confidence level of the intervals, such as 0.95.
    pub level: f64,
    /// How the pass rate falls with n, for each agent and model.
    pub declines: Vec<Decline>,
    /// Difficulties of functions, estimated over all agents, hardest first.
    pub functions: Vec<FunctionDifficulty>,
    /// Sentences about what could not be fitted.
    pub notes: Vec<String>,
    /// The words that texts use for items, groups and units, such as "task", "repo" and "block".
    #[serde(skip)]
    pub words: Words,
}

/// How the pass rate of one agent and model falls with n, the number of masked functions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decline {
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// The pass rates, one point for each number n of masked functions.
    pub points: Vec<DifficultyPoint>,
    /// Log-odds of passing a typical paper at n = 0.
    pub intercept: f64,
    /// Change of the log-odds with each additional masked function.
    pub slope: f64,
    /// Confidence interval of the slope.
    pub slope_interval: Interval,
    /// The n at which half of all attempts fail.
    pub half: f64,
    /// Confidence interval of `half`; `None` if the slope may be 0.
    pub half_interval: Option<Interval>,
    /// Standard deviation between papers, in log-odds; `None` if there are too few papers, or if the fit stopped at a
    /// bound of its search.
    pub paper_spread: Option<f64>,
    /// Standard deviation between functions, in log-odds; `None` if too few functions are masked in several samples, if
    /// there are too many functions for a fit, or if the fit stopped at a bound of its search.
    pub function_spread: Option<f64>,
}

/// Pass rates at one n.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DifficultyPoint {
    /// Number of masked functions.
    pub n: usize,
    /// Number of samples.
    pub samples: usize,
    /// pass@1, averaged over samples.
    pub rate: f64,
    /// Fitted probability of passing a sample with typical functions of a typical paper.
    pub fitted: f64,
    /// Confidence interval of `fitted`.
    pub interval: Interval,
}

/// Difficulty of one function relative to the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionDifficulty {
    /// The paper's id.
    pub paper: String,
    /// The function's index in the manifest.
    pub function: usize,
    /// The function's name, if the suite is available.
    pub name: Option<String>,
    /// Decrease in log-odds of passing when this function is masked instead of a typical one.
    pub difficulty: f64,
    /// Confidence interval of the difficulty.
    pub interval: Interval,
    /// Attempts at samples in which the function is masked.
    pub attempts: usize,
    /// Share of the attempts counted in `attempts` that pass.
    pub rate: f64,
}

/// The attempts of one agent and model at one sample.
struct SampleTries<'a> {
    contender: usize,
    paper: &'a str,
    item: &'a str,
    n: usize,
    functions: &'a [usize],
    tries: usize,
    passed: usize,
}

/// By sample: one of its attempts, the number of passed attempts, and the number of all attempts.
type BySample<'a> = BTreeMap<&'a str, (&'a Outcome, [usize; 2])>;

/// Positions of the random effects in the vector of a fit.
struct Layout<'a> {
    families: Vec<usize>,
    functions: BTreeMap<(&'a str, usize), usize>,
    papers: BTreeMap<&'a str, usize>,
}

impl<'a> Layout<'a> {
    /// Gives an index in the fit's vector to each random effect that these samples can identify. Functions come first,
    /// then papers.
    fn for_groups(groups: &[&SampleTries<'a>]) -> Self {
        let mut uses: BTreeMap<(&str, usize), usize> = BTreeMap::new();
        let mut papers: BTreeMap<&str, usize> = BTreeMap::new();
        for group in groups {
            papers.entry(group.paper).or_default();
            for &function in group.functions {
                *uses.entry((group.item, function)).or_default() += 1;
            }
        }
        let mut families = Vec::new();
        // If each function is masked in one sample only, the function's effect cannot be distinguished from the
        // sample's effect.
        let repeated = uses.values().filter(|&&count| count > 1).count();
        let mut functions = BTreeMap::new();
        if repeated >= FEWEST && uses.len() <= MOST {
            functions = uses.into_keys().enumerate().map(|(place, key)| (key, place)).collect();
            families.push(functions.len());
        }
        let first = families.iter().sum::<usize>();
        if papers.len() >= FEWEST {
            families.push(papers.len());
            for (place, at) in papers.values_mut().enumerate() {
                *at = first + place;
            }
        } else {
            papers.clear();
        }
        Self { families, functions, papers }
    }

    fn random(&self) -> usize {
        self.families.iter().sum()
    }

    /// The random effects that contribute to a sample's log-odds: the index and the sign of each. A function's
    /// difficulty lowers the log-odds.
    fn terms(&self, group: &SampleTries<'_>) -> Vec<(usize, f64)> {
        let functions = group.functions.iter().filter_map(|&function| self.functions.get(&(group.item, function)));
        let mut terms: Vec<(usize, f64)> = functions.map(|&at| (at, -1.0)).collect();
        terms.extend(self.papers.get(group.paper).map(|&at| (at, 1.0)));
        terms
    }

    /// Returns the fitted standard deviations between functions and between papers.
    fn spreads(&self, fit: &Logistic) -> [Option<f64>; 2] {
        let mut spreads = fit.spreads.iter().copied();
        let functions = if self.functions.is_empty() { None } else { spreads.next() };
        [functions, if self.papers.is_empty() { None } else { spreads.next() }]
    }
}

/// Fits the fall of the pass rate for each agent and model separately, and the functions' difficulties over all agents
/// and models together. `units` returns the item and the units (such as a paper's functions) that an attempt's sample
/// withholds, or `None` if it withholds none; `named` returns the name of an item's unit.
#[must_use]
pub fn difficulty(
    records: &[Outcome],
    level: f64,
    units: impl Fn(&Outcome) -> Option<Withheld>,
    named: impl Fn(&str, usize) -> Option<String>,
) -> Difficulty {
    let mut samples: BTreeMap<&str, Option<Withheld>> = BTreeMap::new();
    for record in records {
        samples.entry(&record.sample).or_insert_with(|| units(record));
    }
    let mut tallies: BTreeMap<(&str, Option<&str>), BySample<'_>> = BTreeMap::new();
    for record in scored(records) {
        let by_sample = tallies.entry((&record.agent, record.model.as_deref())).or_default();
        let (_, [passed, tries]) = by_sample.entry(&record.sample).or_insert((record, [0; 2]));
        *passed += usize::from(record.pass);
        *tries += 1;
    }
    let mut notes = Vec::new();
    let (mut groups, mut contenders) = (Vec::new(), Vec::new());
    for ((agent, model), by_sample) in tallies {
        for (id, (first, [passed, tries])) in by_sample {
            let Some(Some(Withheld { item, units: functions })) = samples.get(id) else {
                notes.push(format!("`{}` is not a sample's id: left out", short(id, 60)));
                continue;
            };
            let (contender, paper, n) = (contenders.len(), &*first.paper, first.n);
            groups.push(SampleTries { contender, paper, item, n, functions, tries, passed });
        }
        contenders.push((agent, model));
    }
    let mut declines = Vec::new();
    for (place, &(agent, model)) in contenders.iter().enumerate() {
        let of_it: Vec<&SampleTries<'_>> = groups.iter().filter(|group| group.contender == place).collect();
        match decline(agent, model, &of_it, level) {
            Some((found, is_plain)) => {
                if is_plain {
                    notes.push(format!(
                        "{}: differences between papers and between functions could not be fitted, so the intervals of its decline are too narrow if there are such differences",
                        full_name(agent, model)
                    ));
                }
                declines.push(found);
            }
            None => notes.push(format!(
                "{}: no decline can be fitted: there is only one n, or nearly all attempts at small or large n end alike",
                full_name(agent, model)
            )),
        }
    }
    let functions = functions(&groups, contenders.len(), level, named).unwrap_or_else(|| {
        notes.push(
            "the difficulties of functions cannot be separated: too few samples share functions, or nearly all attempts end alike".into(),
        );
        Vec::new()
    });
    Difficulty { level, declines, functions, notes, words: Words::default() }
}

/// Fits log-odds = intercept + slope n + paper - sum of difficulties. Leaves out the random effects of papers or of
/// functions if there are too few data for them, and both kinds if the fit with them diverges; also returns whether it has
/// diverged.
fn decline(agent: &str, model: Option<&str>, groups: &[&SampleTries<'_>], level: f64) -> Option<(Decline, bool)> {
    let full = Layout::for_groups(groups);
    let plain = Layout { families: Vec::new(), functions: BTreeMap::new(), papers: BTreeMap::new() };
    let fitted = |layout: &Layout<'_>| {
        let (intercept, slope) = (layout.random(), layout.random() + 1);
        let tried: Vec<TryCounts> = groups
            .iter()
            .map(|group| {
                let mut terms = layout.terms(group);
                terms.extend([(intercept, 1.0), (slope, group.n as f64)]);
                TryCounts { terms, tries: group.tries as f64, passed: group.passed as f64 }
            })
            .collect();
        fit_correlated(&tried, &layout.families, 2)
    };
    let (layout, found, has_diverged) = match fitted(&full) {
        Some(found) => (full, found, false),
        None => {
            let found = fitted(&plain)?;
            (plain, found, full.random() > 0)
        }
    };
    let (intercept, slope) = (layout.random(), layout.random() + 1);
    let (half, half_interval) = found.half(intercept, slope, level);
    let is_reported = |spread: &f64| (LEAST_SPREAD..MOST_SPREAD).contains(spread);
    let [function_spread, paper_spread] = layout.spreads(&found).map(|spread| spread.filter(is_reported));
    let mut by_n: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for group in groups {
        let (samples, sum) = by_n.entry(group.n).or_default();
        *samples += 1;
        *sum += group.passed as f64 / group.tries as f64;
    }
    let points = by_n.into_iter().map(|(n, (samples, sum))| {
        let (log_odds, interval) = found.sum(&[(intercept, 1.0), (slope, n as f64)], level);
        let interval = Interval { low: chance(interval.low), high: chance(interval.high) };
        DifficultyPoint { n, samples, rate: sum / samples as f64, fitted: chance(log_odds), interval }
    });
    let decline = Decline {
        agent: agent.to_owned(),
        model: model.map(str::to_owned),
        points: points.collect(),
        intercept: found.effects[intercept],
        slope: found.effects[slope],
        slope_interval: found.sum(&[(slope, 1.0)], level).1,
        half,
        half_interval,
        paper_spread,
        function_spread,
    };
    Some((decline, has_diverged))
}

/// Fits log-odds = ability of agent and model + slope n + paper - sum of difficulties, over all agents and models.
fn functions(
    groups: &[SampleTries<'_>],
    contenders: usize,
    level: f64,
    named: impl Fn(&str, usize) -> Option<String>,
) -> Option<Vec<FunctionDifficulty>> {
    let all: Vec<&SampleTries<'_>> = groups.iter().collect();
    // Leave out agents that pass always or never. Their ability would have no bound, and their attempts do not show
    // which functions are hard.
    let tells = |place: usize| {
        let (passed, tries) = all
            .iter()
            .filter(|group| group.contender == place)
            .fold((0, 0), |(passed, tries), group| (passed + group.passed, tries + group.tries));
        passed > 0 && passed < tries
    };
    let telling: Vec<usize> = (0..contenders).filter(|&place| tells(place)).collect();
    let all: Vec<&SampleTries<'_>> = all.into_iter().filter(|group| telling.contains(&group.contender)).collect();
    let layout = Layout::for_groups(&all);
    if layout.functions.is_empty() {
        return None;
    }
    let several_n = all.iter().any(|group| group.n != all[0].n);
    let slope = layout.random() + telling.len();
    let tried: Vec<TryCounts> = all
        .iter()
        .map(|group| {
            let mut terms = layout.terms(group);
            let ability = telling.iter().position(|&place| place == group.contender).unwrap_or_default();
            terms.push((layout.random() + ability, 1.0));
            terms.extend(several_n.then_some((slope, group.n as f64)));
            TryCounts { terms, tries: group.tries as f64, passed: group.passed as f64 }
        })
        .collect();
    let found = fit_correlated(&tried, &layout.families, telling.len() + usize::from(several_n))?;
    // If the standard deviation between functions is at the lower bound of the fit's search, the intervals would only
    // reflect this bound.
    if layout.spreads(&found)[0].is_none_or(|spread| spread < LEAST_SPREAD) {
        return None;
    }
    let mut rows: Vec<FunctionDifficulty> = layout
        .functions
        .iter()
        .map(|(&(paper, function), &at)| {
            let (difficulty, interval) = found.sum(&[(at, 1.0)], level);
            let masking = groups.iter().filter(|group| group.item == paper && group.functions.contains(&function));
            let (passed, attempts) =
                masking.fold((0, 0), |(passed, tries), group| (passed + group.passed, tries + group.tries));
            FunctionDifficulty {
                paper: paper.to_owned(),
                function,
                name: named(paper, function),
                difficulty,
                interval,
                attempts,
                rate: passed as f64 / attempts.max(1) as f64,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.difficulty.total_cmp(&a.difficulty));
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::MASKED;

    fn units(record: &Outcome) -> Option<Withheld> {
        record.sample.parse().ok()
    }

    /// Simulates a run whose pass rate falls from n = 1 to 5. Samples that mask one certain function of each paper
    /// never pass.
    fn run() -> Vec<Outcome> {
        let mut records = Vec::new();
        let mut state = 5_u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for paper in ["a", "b", "c", "d"] {
            for n in 1..=5_usize {
                for i in 0..10_usize {
                    let mut functions: Vec<usize> = (0..n).map(|j| (i * 3 + j * 5 + n) % 16).collect();
                    functions.sort_unstable();
                    functions.dedup();
                    let hard = functions.contains(&7);
                    let sample = Withheld { item: paper.to_owned(), units: functions }.sample(MASKED, paper);
                    for attempt in 0..3 {
                        let pass = uniform() < chance(2.4 - 0.8 * sample.n() as f64) && !hard;
                        let end = End::Answered;
                        records.push(Outcome { end, pass, ..Outcome::blank("react", &sample, attempt) });
                    }
                }
            }
        }
        records
    }

    #[test]
    fn the_fitted_decline_of_pass_rates_shows_the_hardest_function_and_where_half_the_attempts_fail() {
        let found = difficulty(&run(), 0.95, units, |_, function| Some(format!("f{function}")));
        let [decline] = found.declines.as_slice() else { panic!("{found:?}") };
        assert!(decline.slope_interval.high < 0.0, "{decline:?}");
        let half = decline.half_interval.unwrap();
        // Without the hard function, half of the attempts fail at n = 3. The hard function lowers this n slightly.
        assert!(half.low < 3.0 && half.high > 2.0 && half.high - half.low < 2.0, "{decline:?}");
        assert_eq!(decline.points.iter().map(|point| point.n).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(decline.points.is_sorted_by(|a, b| a.fitted > b.fitted));
        // All papers are equally hard here, so their spread is at the lower bound of the fit and isn't reported.
        assert_eq!((decline.function_spread.is_some(), decline.paper_spread), (true, None));
        let hardest: Vec<_> = found.functions.iter().take(4).map(|it| (it.function, it.rate)).collect();
        assert!(hardest.iter().all(|&(function, rate)| function == 7 && rate == 0.0), "{hardest:?}");
        assert!(found.functions[0].interval.low > 0.0);
        let text = difficulty_console(&found);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("7 f7") && text.contains("15 of 64 units"), "{text}");
        let words = Words { item: "task", group: "repo", unit: "block" };
        let text = difficulty_console(&Difficulty { words, ..found });
        assert!(text.contains("Hardest blocks\ntask ") && !text.contains("paper"), "{text}");
    }

    #[test]
    fn no_spread_of_difficulty_is_reported_for_papers_of_equal_difficulty() {
        let spread = |differ: usize| {
            let mut records = Vec::new();
            for (place, paper) in ["a", "b", "c", "d"].into_iter().enumerate() {
                for (n, i) in (1..=3_usize).flat_map(|n| (0..10_usize).map(move |i| (n, i))) {
                    let functions = (0..n).map(|j| i + 10 * j).collect();
                    let sample = Withheld { item: paper.to_owned(), units: functions }.sample(MASKED, paper);
                    for attempt in 0..3 {
                        let pass = (i * 7 + attempt as usize * 3 + n) % 10 + 2 * n < 7 + differ * place;
                        let end = End::Answered;
                        records.push(Outcome { end, pass, ..Outcome::blank("react", &sample, attempt) });
                    }
                }
            }
            difficulty(&records, 0.95, units, |_, _| None).declines[0].paper_spread
        };
        assert_eq!(spread(0), None);
        assert!(spread(2).is_some_and(|spread| spread > 0.3), "{:?}", spread(2));
    }

    #[test]
    fn a_note_in_the_difficulty_report_says_that_declines_cannot_be_fitted() {
        let sample = crate::sample::masked("x_0");
        let one = Outcome { pass: true, end: End::Answered, ..Outcome::blank("gold", &sample, 0) };
        let found = difficulty(&[one], 0.95, units, |_, _| None);
        assert!(found.declines.is_empty() && found.functions.is_empty());
        assert!(found.notes[0].starts_with("gold: no decline can be fitted"), "{:?}", found.notes);
        assert!(difficulty(&[], 0.95, units, |_, _| None).declines.is_empty());
    }
}
