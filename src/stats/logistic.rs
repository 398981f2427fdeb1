//! Logistic regression with random effects. It estimates how the probability that an attempt passes depends on what was
//! masked.

use super::Interval;
use super::sampled::two_sided;

/// Counts of the attempts (tries) at one sample, and the effects that determine their pass probability.
#[derive(Debug, Clone, PartialEq)]
pub struct TryCounts {
    /// The effects whose weighted sum is the log-odds, as (index, weight). The difficulty of a function has the weight
    /// -1, because it lowers the log-odds. The random effects have the first indices, one family (a group with a common
    /// standard deviation) after the other; the fixed effects follow.
    pub terms: Vec<(usize, f64)>,
    /// Number of tries.
    pub tries: f64,
    /// Number of tries that passed.
    pub passed: f64,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Logistic {
    /// All effects in log-odds, random ones first.
    pub effects: Vec<f64>,
    /// For each family (group) of random effects, their standard deviation.
    pub spreads: Vec<f64>,
    /// Log marginal likelihood by Laplace's approximation, without binomial coefficients.
    pub log_likelihood: f64,
    /// Covariance matrix of the effects in row-major order: the inverse of the penalised information.
    covariance: Vec<f64>,
    /// Degrees of freedom of Student's t for the intervals, if a correlation between tries at the same sample was
    /// estimated; `None` if the intervals use the normal distribution.
    freedom: Option<usize>,
}

/// Maximum number of rounds, each of which estimates the correlation between tries at the same sample and fits again.
const ROUNDS: usize = 4;
/// Range in which the standard deviations of the random effects are searched, in log-odds. With a larger standard
/// deviation, nearly every member of a family (such as a function) would either always pass or never pass.
const LEAST_SPREAD: f64 = 0.01;
const MOST_SPREAD: f64 = 6.0;

/// Fits a model whose log-odds are sums of effects. Random effects form families: those of one family are drawn from a
/// normal distribution with mean 0, whose standard deviation is fitted too. `families` contains the number of random
/// effects in each family, and `fixed` is the number of fixed effects.
///
/// For given standard deviations, the effects maximise the penalised likelihood (Breslow and Clayton, "Approximate
/// Inference in Generalized Linear Mixed Models", 1993), found by Newton's method with step halving. The standard
/// deviations maximise the marginal likelihood by Laplace's approximation (as `glmer` of lme4 does with `nAGQ = 0`;
/// Bates et al., "Fitting Linear Mixed-Effects Models Using lme4", 2015).
///
/// `None` if the likelihood has no maximum, for example if all tries pass, or if all tries with up to some number of
/// masked functions pass and all others fail.
#[must_use]
pub fn fit(tried: &[TryCounts], families: &[usize], fixed: usize) -> Option<Logistic> {
    let mut spreads = vec![1.0; families.len()];
    let mut best = mode(tried, families, &spreads, fixed, None)?;
    // Optimise the standard deviation of one family of random effects after the other, by golden-section search over
    // its logarithm, until no standard deviation changes.
    for _ in 0..6 {
        let before = spreads.clone();
        for family in 0..families.len() {
            let (mut low, mut high) = (LEAST_SPREAD.ln(), MOST_SPREAD.ln());
            let at = |place: f64, best: &mut LikelihoodMode| {
                let mut tried_spreads = spreads.clone();
                tried_spreads[family] = place.exp();
                let found = mode(tried, families, &tried_spreads, fixed, Some(&best.effects));
                found.map_or(f64::NEG_INFINITY, |found| {
                    let height = found.log_likelihood;
                    *best = found;
                    height
                })
            };
            let golden = 0.618_033_988_749_894_9;
            let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
            let (mut at_left, mut at_right) = (at(left, &mut best), at(right, &mut best));
            while high - low > 0.01 {
                if at_left > at_right {
                    (high, right, at_right) = (right, left, at_left);
                    left = high - golden * (high - low);
                    at_left = at(left, &mut best);
                } else {
                    (low, left, at_left) = (left, right, at_right);
                    right = low + golden * (high - low);
                    at_right = at(right, &mut best);
                }
            }
            spreads[family] = f64::midpoint(low, high).exp();
        }
        if spreads.iter().zip(&before).all(|(now, then)| (now.ln() - then.ln()).abs() < 0.02) {
            break;
        }
    }
    let LikelihoodMode { effects, log_likelihood, factor } =
        mode(tried, families, &spreads, fixed, Some(&best.effects))?;
    let covariance = inverse(&factor, effects.len());
    Some(Logistic { effects, spreads, log_likelihood, covariance, freedom: None })
}

/// Like [`fit`], but allows for samples that differ more than the effects explain. Tries at one sample are then
/// correlated, and k of them carry only the information of k / (1 + (k - 1) r) independent tries. The correlation r is
/// chosen so that Pearson's statistic equals its expectation, the number of samples minus the number of fitted effects
/// (Williams, "Extra-Binomial Variation in Logistic Linear Models", 1982, model II); intervals use Student's t with
/// that number of degrees of freedom. With one try per sample, the result equals that of [`fit`].
#[must_use]
pub fn fit_correlated(tried: &[TryCounts], families: &[usize], fixed: usize) -> Option<Logistic> {
    let mut found = fit(tried, families, fixed)?;
    if tried.iter().all(|one| one.tries <= 1.0) {
        return Some(found);
    }
    let mut correlation = 0.0;
    for _ in 0..ROUNDS {
        let (now, freedom) = found.correlation(tried, correlation);
        let is_settled = (now - correlation).abs() < 0.005;
        correlation = now;
        if !is_settled {
            let weighted: Vec<TryCounts> = tried
                .iter()
                .map(|one| {
                    let weight = 1.0 / (1.0 + (one.tries - 1.0) * correlation);
                    TryCounts { terms: one.terms.clone(), tries: weight * one.tries, passed: weight * one.passed }
                })
                .collect();
            found = fit(&weighted, families, fixed)?;
        }
        found.freedom = Some(freedom);
        if is_settled {
            break;
        }
    }
    Some(found)
}

impl Logistic {
    /// Estimates the correlation between tries at the same sample. `fitted` is the correlation that was assumed for
    /// this fit. Also returns the residual degrees of freedom.
    fn correlation(&self, tried: &[TryCounts], fitted: f64) -> (f64, usize) {
        // `terms` has for each sample: the number of tries, the sample's term of Pearson's statistic for independent
        // tries, and 1 minus the leverage. `excess` corrects the terms for a correlation, and subtracts the expectation
        // of each corrected term, which is 1 minus the leverage.
        let (mut terms, mut left) = (Vec::new(), 0.0);
        for one in tried {
            let log_odds: f64 = one.terms.iter().map(|&(place, weight)| weight * self.effects[place]).sum();
            let expected = chance(log_odds);
            let odds = (one.tries * expected * (1.0 - expected)).max(1e-12);
            let leverage = odds / (1.0 + (one.tries - 1.0) * fitted) * self.variance(&one.terms);
            let rest = 1.0 - leverage.clamp(0.0, 0.99);
            left += rest;
            terms.push((one.tries, (one.passed - one.tries * expected).powi(2) / odds, rest));
        }
        let excess = |correlation: f64| -> f64 {
            terms.iter().map(|(tries, term, rest)| term / (1.0 + (tries - 1.0) * correlation) - rest).sum()
        };
        let (mut low, mut high) = (0.0, 1.0);
        if excess(low) <= 0.0 {
            high = 0.0;
        } else if excess(high) >= 0.0 {
            low = 1.0;
        }
        while high - low > 1e-4 {
            let middle = f64::midpoint(low, high);
            if excess(middle) > 0.0 { low = middle } else { high = middle }
        }
        (f64::midpoint(low, high), (left.floor() as usize).max(1))
    }

    /// Returns the variance of a weighted sum of effects.
    #[must_use]
    pub fn variance(&self, terms: &[(usize, f64)]) -> f64 {
        let size = self.effects.len();
        let pairs = terms.iter().flat_map(|one| terms.iter().map(move |other| (one, other)));
        pairs.map(|(&(i, a), &(j, b))| a * b * self.covariance[i * size + j]).sum()
    }

    /// Returns a weighted sum of effects with its interval, in log-odds (Wald's, or Student's if a correlation was
    /// estimated).
    #[must_use]
    pub fn sum(&self, terms: &[(usize, f64)], level: f64) -> (f64, Interval) {
        let sum: f64 = terms.iter().map(|&(place, weight)| weight * self.effects[place]).sum();
        let half = two_sided(level, self.freedom) * self.variance(terms).sqrt();
        (sum, Interval { low: sum - half, high: sum + half })
    }

    /// Returns the x at which half of all tries pass, that is, at which `intercept` + x `slope` is 0. The interval
    /// follows Fieller's theorem (Fieller, "Some Problems in Interval Estimation", 1954): it contains every x at which
    /// this sum does not differ significantly from 0. There is no interval if the slope does not differ significantly
    /// from 0, because any x is then possible.
    #[must_use]
    pub fn half(&self, intercept: usize, slope: usize, level: f64) -> (f64, Option<Interval>) {
        let (a, b) = (self.effects[intercept], self.effects[slope]);
        let size = self.effects.len();
        let z2 = two_sided(level, self.freedom).powi(2);
        let [aa, ab, bb] =
            [(intercept, intercept), (intercept, slope), (slope, slope)].map(|(i, j)| self.covariance[i * size + j]);
        // The interval contains every x with (a + b x)^2 <= z2 (aa + 2 ab x + bb x^2), where z2 is multiplied by the
        // variance of a + b x.
        let (square, linear, constant) = (b * b - z2 * bb, 2.0 * (a * b - z2 * ab), a * a - z2 * aa);
        let root = linear * linear - 4.0 * square * constant;
        let bounds = (square > 0.0 && root >= 0.0).then(|| Interval {
            low: (-linear - root.sqrt()) / (2.0 * square),
            high: (-linear + root.sqrt()) / (2.0 * square),
        });
        (-a / b, bounds)
    }
}

/// Converts log-odds x to a probability, by the logistic function exp(x) / (1 + exp(x)).
#[must_use]
pub fn chance(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// The maximum of the penalised likelihood for given standard deviations of the random effects.
struct LikelihoodMode {
    effects: Vec<f64>,
    log_likelihood: f64,
    /// Lower Cholesky factor of the penalised information, in row-major order.
    factor: Vec<f64>,
}

fn mode(
    tried: &[TryCounts],
    families: &[usize],
    spreads: &[f64],
    fixed: usize,
    start: Option<&[f64]>,
) -> Option<LikelihoodMode> {
    let random: usize = families.iter().sum();
    let size = random + fixed;
    let mut penalties = Vec::with_capacity(size);
    for (&members, spread) in families.iter().zip(spreads) {
        penalties.extend(std::iter::repeat_n(spread.powi(-2), members));
    }
    penalties.resize(size, 0.0);
    let sum = |one: &TryCounts, effects: &[f64]| one.terms.iter().map(|&(at, w)| w * effects[at]).sum::<f64>();
    let height = |effects: &[f64]| {
        let likelihood: f64 = tried
            .iter()
            .map(|one| {
                let x = sum(one, effects);
                // log(1 + exp(x)) without overflow.
                one.passed * x - one.tries * (x.max(0.0) + (-x.abs()).exp().ln_1p())
            })
            .sum();
        likelihood - 0.5 * effects.iter().zip(&penalties).map(|(b, penalty)| penalty * b * b).sum::<f64>()
    };
    let mut effects = start.map_or_else(|| vec![0.0; size], <[f64]>::to_vec);
    let mut reached = height(&effects);
    let mut information = vec![0.0; size * size];
    for _ in 0..60 {
        let mut gradient: Vec<f64> = effects.iter().zip(&penalties).map(|(b, penalty)| -penalty * b).collect();
        information.fill(0.0);
        for (at, penalty) in penalties.iter().enumerate() {
            information[at * size + at] = *penalty;
        }
        for one in tried {
            let expected = chance(sum(one, &effects));
            let weight = one.tries * expected * (1.0 - expected);
            for &(i, a) in &one.terms {
                gradient[i] += a * (one.passed - one.tries * expected);
                for &(j, b) in &one.terms {
                    information[i * size + j] += a * b * weight;
                }
            }
        }
        if !factorise(&mut information, size) {
            return None;
        }
        let step = solve(&information, size, &gradient);
        let mut length = 1.0;
        let gained = loop {
            let moved: Vec<f64> = effects.iter().zip(&step).map(|(b, s)| b + length * s).collect();
            let now = height(&moved);
            if now >= reached - 1e-12 {
                let gained = now - reached;
                (effects, reached) = (moved, now);
                break gained;
            }
            length /= 2.0;
            if length < 1e-6 {
                break 0.0;
            }
        };
        // Log-odds this large mean that the effects grow without limit, because the likelihood has no maximum.
        if tried.iter().any(|one| sum(one, &effects).abs() > 25.0) {
            return None;
        }
        if gained < 1e-10 {
            // The log-determinant of the information matrix of the random effects alone. They come first, so their
            // Cholesky factor is the leading block.
            let log_determinant: f64 = (0..random).map(|at| 2.0 * information[at * size + at].ln()).sum();
            let log_spreads: f64 =
                families.iter().zip(spreads).map(|(&members, spread)| 2.0 * members as f64 * spread.ln()).sum();
            let log_likelihood = reached - 0.5 * (log_determinant + log_spreads);
            return Some(LikelihoodMode { effects, log_likelihood, factor: information });
        }
    }
    None
}

/// Replaces a symmetric matrix by its lower Cholesky factor; `false` if the matrix is not positive definite.
fn factorise(matrix: &mut [f64], size: usize) -> bool {
    for row in 0..size {
        for column in 0..=row {
            let (above, below) = matrix.split_at(row * size);
            let other = if column == row { &below[..column] } else { &above[column * size..column * size + column] };
            let dot: f64 = below[..column].iter().zip(other).map(|(a, b)| a * b).sum();
            let rest = below[column] - dot;
            matrix[row * size + column] = if column == row {
                if rest.is_nan() || rest <= 1e-12 {
                    return false;
                }
                rest.sqrt()
            } else {
                rest / matrix[column * size + column]
            };
        }
    }
    true
}

/// Solves L L' x = b for x, where L is the Cholesky factor `factor`, and b is `wanted`.
fn solve(factor: &[f64], size: usize, wanted: &[f64]) -> Vec<f64> {
    let mut x = wanted.to_vec();
    for row in 0..size {
        let dot: f64 = (0..row).map(|at| factor[row * size + at] * x[at]).sum();
        x[row] = (x[row] - dot) / factor[row * size + row];
    }
    for row in (0..size).rev() {
        let dot: f64 = (row + 1..size).map(|at| factor[at * size + row] * x[at]).sum();
        x[row] = (x[row] - dot) / factor[row * size + row];
    }
    x
}

fn inverse(factor: &[f64], size: usize) -> Vec<f64> {
    let mut inverse = Vec::with_capacity(size * size);
    for row in 0..size {
        let mut unit = vec![0.0; size];
        unit[row] = 1.0;
        inverse.extend(solve(factor, size, &unit));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::super::uniform::Uniform;
    use super::*;

    fn close(got: f64, wanted: f64, within: f64) {
        assert!((got - wanted).abs() <= within, "got {got}, wanted {wanted}");
    }

    /// Creates the data of a model with fixed effects only, an intercept and a slope, from points (x, number of tries,
    /// number that passed).
    fn line(points: impl IntoIterator<Item = (f64, f64, f64)>) -> Vec<TryCounts> {
        points
            .into_iter()
            .map(|(x, tries, passed)| TryCounts { terms: vec![(0, 1.0), (1, x)], tries, passed })
            .collect()
    }

    #[test]
    fn without_random_effects_the_fit_equals_the_published_regression_of_the_challengers_o_rings() {
        // The data are the temperature in degrees Fahrenheit, and whether an O-ring was damaged, of the 23 flights
        // before the Challenger disaster (Dalal, Fowlkes and Hoadley, 1989). The published estimates (with standard
        // errors) are 15.0429 (7.3786) for the intercept and -0.2322 (0.1082) for the slope; the log-likelihood is
        // -10.158.
        let temperatures = [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58];
        let damaged = [0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1];
        let points = temperatures.into_iter().zip(damaged).map(|(t, d)| (f64::from(t), 1.0, f64::from(d)));
        let fit = fit(&line(points), &[], 2).unwrap();
        close(fit.effects[0], 15.0429, 5e-5);
        close(fit.effects[1], -0.2322, 5e-5);
        close(fit.variance(&[(0, 1.0)]).sqrt(), 7.3786, 5e-5);
        close(fit.variance(&[(1, 1.0)]).sqrt(), 0.1082, 5e-5);
        close(fit.log_likelihood, -10.1576, 5e-4);
        let (half, interval) = fit.half(0, 1, 0.95);
        close(half, 64.79, 0.01);
        let interval = interval.unwrap();
        assert!(interval.low < half && half < interval.high, "{interval:?}");
        // At the interval's bounds, the linear predictor differs from 0 by exactly the critical value times its
        // standard error.
        for bound in [interval.low, interval.high] {
            let (sum, _) = fit.sum(&[(0, 1.0), (1, bound)], 0.95);
            close((sum / fit.variance(&[(0, 1.0), (1, bound)]).sqrt()).abs(), 1.959_964, 1e-5);
        }
        assert_eq!(fit.half(0, 1, 0.999).1, None, "a slope that may be 0 bounds nothing");
    }

    #[test]
    fn data_without_a_finite_maximum_likelihood_give_no_fit() {
        assert_eq!(fit(&line([(1.0, 5.0, 5.0), (2.0, 5.0, 5.0)]), &[], 2), None);
        assert_eq!(fit(&line([(1.0, 5.0, 5.0), (2.0, 5.0, 0.0)]), &[], 2), None);
        assert_eq!(fit(&line([(1.0, 5.0, 2.0)]), &[], 2), None, "one n has no slope");
        assert_eq!(fit(&[], &[], 1), None);
    }

    #[test]
    fn with_a_random_effect_the_fit_is_near_the_published_one_of_the_cattle_herds() {
        // The data set `cbpp` of lme4 (from Lesnoff et al., 2004): contagious bovine pleuropneumonia in 15 herds. The
        // columns are herd, new cases, animals and period. In the manual, `glmer` estimates the fixed effects -1.3983,
        // -0.9919, -1.1282 and -1.5797, and the standard deviation 0.6421 between herds, by the full Laplace
        // approximation. The method of `fit` is that of `nAGQ = 0`, whose estimates differ in the second digit.
        let herds = [
            (1, 2, 14, 1),
            (1, 3, 12, 2),
            (1, 4, 9, 3),
            (1, 0, 5, 4),
            (2, 3, 22, 1),
            (2, 1, 18, 2),
            (2, 1, 21, 3),
            (3, 8, 22, 1),
            (3, 2, 16, 2),
            (3, 0, 16, 3),
            (3, 2, 20, 4),
            (4, 2, 10, 1),
            (4, 0, 10, 2),
            (4, 2, 9, 3),
            (4, 0, 6, 4),
            (5, 5, 18, 1),
            (5, 0, 25, 2),
            (5, 0, 24, 3),
            (5, 1, 4, 4),
            (6, 3, 17, 1),
            (6, 0, 17, 2),
            (6, 0, 18, 3),
            (6, 1, 20, 4),
            (7, 8, 16, 1),
            (7, 1, 10, 2),
            (7, 3, 9, 3),
            (7, 0, 5, 4),
            (8, 12, 34, 1),
            (9, 2, 9, 1),
            (9, 0, 6, 2),
            (9, 0, 8, 3),
            (9, 0, 6, 4),
            (10, 1, 22, 1),
            (10, 1, 22, 2),
            (10, 0, 18, 3),
            (10, 2, 22, 4),
            (11, 0, 25, 1),
            (11, 5, 27, 2),
            (11, 3, 22, 3),
            (11, 1, 22, 4),
            (12, 2, 10, 1),
            (12, 1, 8, 2),
            (12, 0, 6, 3),
            (12, 0, 5, 4),
            (13, 1, 21, 1),
            (13, 2, 24, 2),
            (13, 0, 19, 3),
            (13, 0, 23, 4),
            (14, 11, 19, 1),
            (14, 0, 2, 2),
            (14, 0, 3, 3),
            (14, 0, 2, 4),
            (15, 1, 19, 1),
            (15, 1, 15, 2),
            (15, 1, 15, 3),
            (15, 0, 15, 4),
        ];
        let tried: Vec<TryCounts> = herds
            .into_iter()
            .map(|(herd, cases, animals, period)| {
                let mut terms = vec![(herd - 1, 1.0), (15, 1.0)];
                terms.extend((period > 1).then(|| (14 + period, 1.0)));
                TryCounts { terms, tries: f64::from(animals), passed: f64::from(cases) }
            })
            .collect();
        let fit = fit(&tried, &[15], 4).unwrap();
        for (at, published) in [(15, -1.3983), (16, -0.9919), (17, -1.1282), (18, -1.5797)] {
            close(fit.effects[at], published, 0.05);
        }
        close(fit.spreads[0], 0.6421, 0.03);
        // The manual also has the standard errors of these estimates.
        for (at, published) in [(15, 0.2312), (16, 0.3032), (17, 0.3228), (18, 0.4220)] {
            close(fit.variance(&[(at, 1.0)]).sqrt(), published, 0.01);
        }
    }

    #[test]
    fn simulated_difficulties_and_their_spread_are_recovered() {
        // The data are simulated: 30 functions, whose difficulties have the standard deviation 1.2, and 600 samples of
        // two functions each, with five attempts per sample.
        let mut uniform = Uniform(11);
        let normal = |uniform: &mut Uniform| (0..12).map(|_| uniform.next()).sum::<f64>() - 6.0;
        let difficulties: Vec<f64> = (0..30).map(|_| 1.2 * normal(&mut uniform)).collect();
        let tried: Vec<TryCounts> = (0..600)
            .map(|_| {
                let first = (uniform.next() * 30.0) as usize;
                let second = (first + 1 + (uniform.next() * 29.0) as usize) % 30;
                let p = chance(1.0 - difficulties[first] - difficulties[second]);
                let passed = (0..5).filter(|_| uniform.next() < p).count() as f64;
                TryCounts { terms: vec![(first, -1.0), (second, -1.0), (30, 1.0)], tries: 5.0, passed }
            })
            .collect();
        let fit = fit(&tried, &[30], 1).unwrap();
        let mean = difficulties.iter().sum::<f64>() / 30.0;
        // The standard deviation of the drawn difficulties, which differs from 1.2 by chance.
        let spread = (difficulties.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 29.0).sqrt();
        close(fit.spreads[0], spread, 0.2);
        close(fit.effects[30], 1.0 - 2.0 * mean, 0.6);
        let centre = fit.effects[..30].iter().sum::<f64>() / 30.0;
        // Estimates of extreme difficulties are shrunk towards the mean, but their intervals account for that.
        let covered = (0..30)
            .filter(|&at| {
                let (_, interval) = fit.sum(&[(at, 1.0)], 0.95);
                (interval.low..=interval.high).contains(&(difficulties[at] - mean + centre))
            })
            .count();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let truth: Vec<f64> = difficulties.iter().map(|it| it - mean).collect();
        let found: Vec<f64> = fit.effects[..30].iter().map(|it| it - centre).collect();
        let correlation = product(&truth, &found) / (product(&truth, &truth) * product(&found, &found)).sqrt();
        assert!(correlation > 0.95, "{correlation}");
        assert!(covered >= 26, "{covered} of 30");
    }
}
