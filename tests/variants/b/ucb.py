"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("bandits/arms.py::Polygon.moments", "heights not scaled", ("self.density[:-1], self.density[1:]", "np.array(self.heights[:-1]), np.array(self.heights[1:])"))
wrong("bandits/arms.py::Polygon.quantile", "slope of the wrong sign", ("2.0 * slope * rest", "-2.0 * np.abs(slope) * rest"))
wrong("bandits/arms.py::Polygon.quantile", "masses by left heights", ("(self.density[:-1] + self.density[1:]) / 2.0", "self.density[:-1]"))
wrong("bandits/simulation.py::play", "collected since the last look", ("row += 1", "row += 1\n            policy.sums = policy.sums * 1.0\n            collected[row - 1] -= np.sum(collected[: row - 1], axis=0)"))
wrong("bandits/simulation.py::play", "same number for all runs", ("luck.random(runs)", "np.full(runs, luck.random())"))
wrong("bandits/policies.py::UCB1.index", "n of the machine", ("np.log(self.time)", "np.log(self.counts)"))
wrong("bandits/policies.py::UCB1.index", "width outside of the root", ("np.sqrt(self.width * np.log(self.time) / self.counts)", "self.width * np.sqrt(np.log(self.time) / self.counts)"))
wrong("bandits/policies.py::UCB1Tuned.index", "bound without its own bonus", ("np.minimum(bound, 0.25)", "np.minimum(spread, 0.25)"))
wrong("bandits/policies.py::KLUCB.index", "ln n + 3 ln ln n", ("np.log(self.time)", "(np.log(self.time) + 3.0 * np.log(np.maximum(np.log(self.time), 1.0)))"))
# Thought to be wrong when written: but a machine's plays are always as many as the length of its rung.
right("bandits/policies.py::UCB2.choose", "n_j for tau", ("np.log(math.e * self.time / lengths)", "np.log(math.e * self.time / self.counts[idle])"))
wrong("bandits/policies.py::UCB2.choose", "epoch of the whole rung", ("np.take(self.ladder, rungs + 1) - np.take(self.ladder, rungs)", "np.take(self.ladder, rungs + 1)"))
wrong("bandits/policies.py::epoch_ladder", "without the one above", ("return np.array(rungs)", "return np.array(rungs[:-1] if len(rungs) > 2 else rungs)"))
wrong("bandits/policies.py::epoch_ladder", "rungs more than once", ("        if length > rungs[-1]:\n            rungs.append(length)\n", "        rungs.append(length)\n"))
wrong("bandits/policies.py::DecreasingGreedy.choose", "at most the probability", ("np.less(tosses, self.exploration(self.time + 1))", "np.greater(tosses, self.exploration(self.time + 1))"))
wrong("bandits/policies.py::DecreasingGreedy.choose", "numbers only where needed", ("strays = self.rng.integers(self.n_arms, size=self.runs)\n", "strays = np.zeros(self.runs, dtype=int)\n        drawn = tosses < self.exploration(self.time + 1)\n        strays[drawn] = self.rng.integers(self.n_arms, size=np.count_nonzero(drawn))\n"))
wrong("bandits/policies.py::UCB1Normal.choose", "factor 8 in the index", ("16.0 * np.maximum", "8.0 * np.maximum"))
wrong("bandits/policies.py::UCB1Normal.choose", "no least number", ("max(2.0, np.ceil(8.0 * np.log(self.time + 1)))", "2.0"))
wrong("bandits/policies.py::StudentThompson.index", "deviation not scaled by n", ("np.sqrt(np.divide(deviations, self.counts * freedom))", "np.sqrt(deviations) / freedom"))
wrong("bandits/policies.py::Elimination.choose", "best one dropped with the others", ("means > np.max(means) - 2.0 * radius", "means < np.max(means) + 2.0 * radius"))
wrong("bandits/policies.py::Elimination.choose", "eliminates in the middle of rounds", ("(fewest == most) & (fewest > 0)", "(fewest > 0)"))
wrong("bandits/bounds.py::ucb2_bound", "e left out of the logarithm", ("2.0 * math.e * np.multiply.outer", "2.0 * np.multiply.outer"))
wrong("bandits/bounds.py::greedy_bound", "probability not cumulated", ("np.cumsum(chances)[np.subtract(times, 1)]", "(chances * np.arange(1, len(chances) + 1))[np.subtract(times, 1)]"))
wrong("bandits/bounds.py::greedy_bound", "K left out of x", ("c * n_arms / (square * math.sqrt(math.e))", "c / (square * math.sqrt(math.e))"))
wrong("bandits/divergence.py::bounded_divergence", "slope of the other sign", ("if slope < 0.0:", "if slope > 0.0:"))
wrong("bandits/tails.py::binomial_tail", "lower tail", ("range(least, trials + 1)", "range(0, least + 1)"))
wrong("bandits/tails.py::student_tail", "angle of the other ratio", ("math.atan2(value, math.sqrt(freedom))", "math.atan2(math.sqrt(freedom), value)"))
wrong("bandits/tails.py::conjecture_ratios", "bound of s", ("math.exp(-(freedom + 1) / 2.0)", "math.exp(-freedom / 2.0)"))
wrong("bandits/metrics.py::summarise", "share, not percent", ('"best": 100.0 * float', '"best": float'))
wrong("bandits/metrics.py::summarise", "all times", ("trace.shortfall[-1])", "trace.shortfall)"))
wrong("bandits/metrics.py::growth", "later half by number", ("np.greater_equal(np.square(trace.times), trace.times[0] * trace.times[-1])", "np.arange(len(trace.times)) >= (len(trace.times) + 1) // 2"))
wrong("bandits/metrics.py::crossing", "the look itself", ("return float(np.exp(logs[0] + weight * np.subtract(logs[1], logs[0])))", "return float(trace.times[after])"))
wrong("bandits/metrics.py::paired", "one-sided p", ("2.0 * student_tail", "student_tail"))
wrong("bandits/metrics.py::paired", "smaller number of both", ("max(wins, losses))", "min(wins, losses))"))
wrong("bandits/metrics.py::friedman", "sum of ranks", ("ranks = np.mean(below", "ranks = np.sum(below"))
wrong("bandits/metrics.py::sensitivity", "last crossing", ("            if regrets[there] > limit:\n                return np.interp(limit, regrets[[here, there]], logs[[here, there]])\n        return logs[places[-1]]\n", "            if regrets[there] > limit:\n                last = np.interp(limit, regrets[[here, there]], logs[[here, there]])\n        return locals().get('last', logs[places[-1]])\n"))
wrong("bandits/metrics.py::sensitivity", "grid points inside", ("return np.interp(limit, regrets[[here, there]], logs[[here, there]])", "return logs[here]"))

right("bandits/policies.py::KLUCB.index", "cell by cell", """
import math as m
means = self.sums / self.counts
out = np.empty_like(means)
for run in range(means.shape[0]):
    for arm in range(means.shape[1]):
        lower, upper = means[run, arm], 1.0
        for _ in range(self.halvings):
            q = (lower + upper) / 2
            if float(bernoulli_divergence(means[run, arm], q)) <= m.log(self.time) / self.counts[run, arm]:
                lower = q
            else:
                upper = q
        out[run, arm] = lower
return out
""")
right("bandits/policies.py::UCB1Tuned.index", "two-step variance", """
n = self.counts
mean = self.sums / n
variance = self.squares / n - mean * mean
return mean + np.sqrt(np.log(self.time) / n * np.minimum(0.25, variance + np.sqrt(2 * np.log(self.time) / n)))
""")
right("bandits/policies.py::Elimination.choose", "run by run", """
chosen = np.zeros(self.runs, dtype=int)
for run in range(self.runs):
    arms = np.flatnonzero(self.active[run])
    plays = self.counts[run, arms]
    if len(arms) > 1 and plays.min() == plays.max() > 0:
        s = plays[0]
        w = self.shrink * np.sqrt(np.log(4 * self.n_arms * s * s / self.risk) / (2 * s))
        means = self.sums[run, arms] / s
        keep = means > means.max() - 2 * w
        self.active[run, arms[~keep]] = False
        arms = arms[keep]
        if len(arms) == 1:
            self.settled[run] = self.time
    chosen[run] = arms[np.argmin(self.counts[run, arms])]
return chosen
""")
right("bandits/policies.py::UCB2.choose", "run by run", """
if self.time < self.n_arms:
    return np.full(self.runs, self.time)
for run in range(self.runs):
    if self.remaining[run] == 0:
        tau = self.ladder[self.levels[run]]
        index = self.sums[run] / self.counts[run] + np.sqrt((1 + self.alpha) * (1 + np.log(self.time / tau)) / (2 * tau))
        best = int(np.argmax(index))
        level = self.levels[run, best]
        self.remaining[run] = self.ladder[level + 1] - self.ladder[level]
        self.levels[run, best] = level + 1
        self.current[run] = best
self.remaining -= 1
return self.current.copy()
""")
right("bandits/tails.py::binomial_tail", "comb", "from math import comb\nfrom fractions import Fraction\np = Fraction(probability)\nreturn float(sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(least, trials + 1)))")
right("bandits/tails.py::student_tail", "scipy", "from scipy import special\nreturn float(special.stdtr(freedom, -value))")
right("bandits/divergence.py::bounded_divergence", "same halving with sums", """
values, weights = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
a, b = 0.0, 1.0 / (1.0 - target)
for _ in range(halvings):
    t = 0.5 * (a + b)
    if -sum(w * (x - target) / (1 - t * (x - target)) for x, w in zip(values, weights)) < 0:
        b = t
    else:
        a = t
t = 0.5 * (a + b)
return float(sum(w * np.log(1 - t * (x - target)) for x, w in zip(values, weights)))
""")
right("bandits/metrics.py::friedman", "scipy ranks", """
from scipy.stats import rankdata
table = np.asarray(table, dtype=float)
b, k = table.shape
ranks = rankdata(table, axis=1).mean(axis=0)
statistic = 12 * b / (k * (k + 1)) * float(((ranks - (k + 1) / 2) ** 2).sum())
return ranks, statistic, chi_square_tail(statistic, k - 1)
""")
right("bandits/metrics.py::growth", "polyfit", """
times = np.asarray(trace.times, dtype=float)
late = times**2 >= times[0] * times[-1]
slope, offset = np.polyfit(np.log(times[late]), trace.regret[late].mean(axis=1), 1)
return float(slope), float(slope * np.log(times[-1]) + offset)
""")
right("bandits/arms.py::Polygon.moments", "loop", """
mean = square = 0.0
for a, b, f, g in zip(self.knots[:-1], self.knots[1:], self.density[:-1], self.density[1:]):
    mean += (b - a) * (a * (2 * f + g) + b * (f + 2 * g)) / 6
    square += (b - a) * (a * a * (3 * f + g) + 2 * a * b * (f + g) + b * b * (f + 3 * g)) / 12
return float(mean), float(square - mean**2)
""")
