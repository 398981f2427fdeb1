//! Keeps the success rate of the last episodes at a target, by drawing samples of fitting difficulty.
//!
//! The chance of success at a sample is modelled as in `report difficulty`: its log-odds fall with n, the number of
//! masked functions, and with the difficulty of each masked function. After each episode, the estimates of the
//! learner's skill, of the decrease per function (the slope) and of the functions' difficulties move a step towards the
//! outcome, so that a learner who improves gets harder samples. For each episode several samples are drawn, and the
//! sample whose chance is closest to the aim is used. The aim is the target, raised if the last episodes succeeded less
//! often than the target, and lowered if more often. Equal settings, seeds, known difficulties and outcomes lead to the
//! same samples.

use std::collections::{BTreeMap, VecDeque};

use super::tasks::number;
use crate::run::CurriculumSettings;

/// Samples compared for each episode.
pub const CANDIDATES: u64 = 48;
/// Step sizes of skill, slope and difficulties, in log-odds. After an episode, skill rises by its step size times the
/// surprise, which is the outcome (0 or 1) minus the estimated chance of success. The difficulty of each masked
/// function falls by its step size times the surprise, and the slope by its step size times n times the surprise.
const SKILL_STEP: f64 = 0.25;
const SLOPE_STEP: f64 = 0.02;
const UNIT_STEP: f64 = 0.15;
/// Minimum decrease of the log-odds of success with each further masked function.
const LEAST_SLOPE: f64 = 0.2;
/// Lowest and highest chance of success that is aimed at. Neither is 0 or 1, so that both successes and failures occur.
const AIMS: (f64, f64) = (0.02, 0.98);

/// A masked function: the id of its paper or other item, and its index among the functions of that item.
pub type Unit = (String, usize);

/// State of a curriculum.
#[derive(Debug, Clone)]
pub struct Curriculum {
    settings: CurriculumSettings,
    seed: u64,
    skill: f64,
    slope: f64,
    units: BTreeMap<Unit, f64>,
    /// Whether each of the last episodes succeeded.
    recent: VecDeque<bool>,
    /// Episodes drawn so far.
    drawn: u64,
}

/// Difficulties known before the first episode, in log-odds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnownDifficulty {
    /// Decrease of the log-odds with each further masked function.
    pub slope: Option<f64>,
    /// Difficulty of each function.
    pub units: BTreeMap<Unit, f64>,
}

impl Curriculum {
    /// Begins a curriculum. `known` comes from earlier runs.
    #[must_use]
    pub fn new(settings: CurriculumSettings, seed: u64, known: KnownDifficulty) -> Self {
        let slope = known.slope.unwrap_or(1.0).max(LEAST_SLOPE);
        // The initial skill equals the slope, so the chance to solve a single function of difficulty 0 is one half.
        let window = VecDeque::with_capacity(settings.window);
        Self { settings, seed, skill: slope, slope, units: known.units, recent: window, drawn: 0 }
    }

    /// Returns the random number that selects candidate `place` of the next episode.
    #[must_use]
    pub fn draw(&self, place: u64) -> u64 {
        number(&[b"curriculum", &self.seed.to_le_bytes(), &self.drawn.to_le_bytes(), &place.to_le_bytes()])
    }

    /// Ends the current draw, so that [`Self::draw`] returns other numbers from now on. Returns the number of the ended
    /// draw.
    pub fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn - 1
    }

    /// Continues after this draw of an earlier session.
    pub fn resume_after(&mut self, draw: u64) {
        self.drawn = self.drawn.max(draw + 1);
    }

    /// Returns the estimated chance of success at a sample.
    #[must_use]
    pub fn chance(&self, units: &[Unit]) -> f64 {
        let hard: f64 = units.iter().map(|unit| self.units.get(unit).copied().unwrap_or(0.0)).sum();
        1.0 / (1.0 + (-(self.skill - self.slope * units.len() as f64 - hard)).exp())
    }

    /// Returns how far the estimated chance of success at a sample is from the chance that the next sample should have.
    #[must_use]
    pub fn distance(&self, units: &[Unit]) -> f64 {
        (self.chance(units) - self.aim()).abs()
    }

    /// Returns the chance that the next sample should have: the target, plus the amount by which the success of the
    /// last episodes is below the target.
    fn aim(&self) -> f64 {
        let target = self.settings.target;
        let missing: f64 = self.recent.iter().map(|pass| target - f64::from(u8::from(*pass))).sum();
        (target + missing / self.settings.window.max(1) as f64).clamp(AIMS.0, AIMS.1)
    }

    /// Learns from an episode's outcome.
    pub fn learn(&mut self, units: &[Unit], pass: bool) {
        let surprise = f64::from(u8::from(pass)) - self.chance(units);
        self.skill += SKILL_STEP * surprise;
        self.slope = (self.slope - SLOPE_STEP * surprise * units.len() as f64).max(LEAST_SLOPE);
        for unit in units {
            *self.units.entry(unit.clone()).or_default() -= UNIT_STEP * surprise;
        }
        if self.recent.len() >= self.settings.window.max(1) {
            self.recent.pop_front();
        }
        self.recent.push_back(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CurriculumSettings = CurriculumSettings { target: 0.5, window: 50 };
    const FUNCTIONS: usize = 24;
    const LARGEST: u64 = 8;

    /// A learner whose functions differ in difficulty, and whose skill grows.
    struct Learner {
        seed: u64,
        begin: f64,
        growth: f64,
    }

    impl Learner {
        fn passes(&self, episode: u64, units: &[Unit]) -> bool {
            let hard = |unit: &Unit| f64::from((unit.1 as u32 * 7) % 5) * 0.5 - 1.0;
            let skill = self.begin + self.growth * episode as f64;
            let odds = skill - units.iter().map(|unit| 0.8 + hard(unit)).sum::<f64>();
            let drawn = number(&[b"learner", &self.seed.to_le_bytes(), &episode.to_le_bytes()]);
            (drawn as f64 / u64::MAX as f64) < 1.0 / (1.0 + (-odds).exp())
        }
    }

    fn candidate(drawn: u64) -> Vec<Unit> {
        let n = 1 + drawn % LARGEST;
        let mut units: Vec<usize> = (0..FUNCTIONS).collect();
        // Shuffle by a cheap hash, because the tests draw several hundred thousand candidates.
        units.sort_by_cached_key(|unit| {
            ((drawn >> 8) | 1).wrapping_mul(*unit as u64 * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        units.truncate(n as usize);
        units.into_iter().map(|unit| ("paper".to_owned(), unit)).collect()
    }

    fn choose(curriculum: &mut Curriculum) -> Vec<Unit> {
        let candidates = (0..CANDIDATES).map(|place| candidate(curriculum.draw(place)));
        let chosen = candidates.min_by(|a, b| curriculum.distance(a).total_cmp(&curriculum.distance(b))).unwrap();
        curriculum.next();
        chosen
    }

    /// Plays episodes; returns each one's n and outcome.
    fn play(curriculum: &mut Curriculum, learner: &Learner, episodes: u64) -> Vec<(usize, bool)> {
        let mut course = Vec::new();
        for episode in 0..episodes {
            let units = choose(curriculum);
            let pass = learner.passes(episode, &units);
            curriculum.learn(&units, pass);
            course.push((units.len(), pass));
        }
        course
    }

    fn rate(course: &[(usize, bool)]) -> f64 {
        course.iter().filter(|(_, pass)| *pass).count() as f64 / course.len() as f64
    }

    fn mean_n(course: &[(usize, bool)]) -> f64 {
        course.iter().map(|(n, _)| *n as f64).sum::<f64>() / course.len() as f64
    }

    #[test]
    fn the_success_rate_stays_at_the_target_and_samples_get_larger_as_the_learner_improves() {
        for target in [0.3, 0.5, 0.7] {
            for seed in 0..2 {
                let learner = Learner { seed, begin: 0.0, growth: 0.006 };
                let settings = CurriculumSettings { target, ..SETTINGS };
                let course = play(&mut Curriculum::new(settings, seed, KnownDifficulty::default()), &learner, 1000);
                for (place, window) in course[100..].chunks(100).enumerate() {
                    assert!(
                        (rate(window) - target).abs() < 0.12,
                        "target {target}, seed {seed}, part {place}: {}",
                        rate(window)
                    );
                }
                assert!((rate(&course[100..]) - target).abs() < 0.04, "{target}: {}", rate(&course[100..]));
                let (early, late) = (mean_n(&course[..200]), mean_n(&course[800..]));
                assert!(late > early + 1.5, "n follows the skill: {early} then {late}");
            }
        }
    }

    #[test]
    fn without_a_curriculum_the_success_rate_of_an_improving_learner_rises_above_90_percent() {
        let learner = Learner { seed: 0, begin: 0.0, growth: 0.006 };
        let fixed: Vec<(usize, bool)> = (0..1000)
            .map(|episode| {
                let units = candidate(number(&[&u64::to_le_bytes(episode)]) / LARGEST * LARGEST);
                (units.len(), learner.passes(episode, &units))
            })
            .collect();
        assert!(rate(&fixed[800..]) > 0.9, "{}", rate(&fixed[800..]));
    }

    #[test]
    fn the_same_seed_and_learner_give_the_same_course() {
        let learner = Learner { seed: 3, begin: 1.0, growth: 0.0 };
        let play = |seed| play(&mut Curriculum::new(SETTINGS, seed, KnownDifficulty::default()), &learner, 200);
        assert_eq!(play(1), play(1));
        assert_ne!(play(1), play(2));
    }

    #[test]
    fn known_difficulties_decide_the_first_samples() {
        let hard = |unit: usize| (("paper".to_owned(), unit), if unit < 12 { 3.0 } else { -3.0 });
        let known = KnownDifficulty { slope: Some(1.0), units: (0..FUNCTIONS).map(hard).collect() };
        let mut easy = Curriculum::new(CurriculumSettings { target: 0.9, window: 50 }, 0, known.clone());
        let hard_ones = |units: &[Unit]| units.iter().filter(|unit| unit.1 < 12).count() * 2 > units.len();
        assert!((0..20).all(|_| !hard_ones(&choose(&mut easy))));
        let blank = Curriculum::new(SETTINGS, 0, KnownDifficulty::default());
        assert!((blank.chance(&[("paper".to_owned(), 0)]) - 0.5).abs() < 1e-9);
    }
}
