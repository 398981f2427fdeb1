"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("bandits/arms.py::Polygon.moments", "heights not scaled", ("low, high = self.density[:-1], self.density[1:]", "low, high = np.array(self.heights[:-1], dtype=float), np.array(self.heights[1:], dtype=float)"))
wrong("bandits/arms.py::Polygon.moments", "second moment in place of the variance", (" / 12.0 - np.square(mean)", " / 12.0"))
wrong("bandits/arms.py::Polygon.moments", "cross term once", ("second + 2.0 * left * right", "second + left * right"))
wrong("bandits/arms.py::Polygon.quantile", "linear within a piece", ("root = np.sqrt(np.square(start) + 2.0 * slope * rest)", "root = start"))
wrong("bandits/arms.py::Polygon.quantile", "textbook root", ("return np.take(self.knots, piece) + 2.0 * rest / (start + root)", "return np.take(self.knots, piece) + (root - start) / slope"))
wrong("bandits/bounds.py::greedy_bound", "chances not cut at 1", ("np.minimum(c / (square * late) + early + confused, 1.0)", "c / (square * late) + early + confused"))
wrong("bandits/bounds.py::greedy_bound", "largest gap only", ("* np.sum(problem.gaps)", "* np.max(problem.gaps)"))
wrong("bandits/bounds.py::greedy_bound", "n in place of n - 1", ("late - 1)\n", "late)\n"))
wrong("bandits/bounds.py::greedy_bound", "least gap of the problem in place of the given one", ("len(problem.arms), gap**2", "len(problem.arms), problem.least_gap**2"))
wrong("bandits/bounds.py::ucb2_bound", "always the large bound", ("np.where(valid, leading + constant * np.sum(1.0 / gaps), times * np.max(gaps))", "leading + constant * np.sum(1.0 / gaps)"))
wrong("bandits/bounds.py::ucb2_bound", "valid by the largest gap", ("np.square(np.min(gaps))", "np.square(np.max(gaps))"))
wrong("bandits/bounds.py::ucb2_bound", "log(alpha)", ("math.log1p(alpha)", "math.log(1.0 + alpha + alpha**2)"))
wrong("bandits/divergence.py::bounded_divergence", "few halvings", ("range(halvings)", "range(10)"))
wrong("bandits/divergence.py::bounded_divergence", "halvings ignored", ("range(halvings)", "range(60)"))
wrong("bandits/divergence.py::bounded_divergence", "weights ignored in the slope", ("-np.sum(weights * np.divide", "-np.mean(np.divide"))
wrong("bandits/divergence.py::bounded_divergence", "end of the interval 1 / target", ("1.0 / (1.0 - target)", "1.0 / target"))
wrong("bandits/metrics.py::crossing", "linear in n", ("np.exp(logs[0] + weight * np.subtract(logs[1], logs[0]))", "trace.times[after - 1] + weight * (trace.times[after] - trace.times[after - 1])"))
wrong("bandits/metrics.py::crossing", "must exceed the level", ("np.greater_equal(shares, level)", "np.greater(shares, level)"))
wrong("bandits/metrics.py::crossing", "infinite if never reached", ("return float(trace.times[-1])", "return float(\"inf\")"))
wrong("bandits/metrics.py::crossing", "wraps around at the first time", ("    if after == 0:\n        return float(trace.times[0])\n", ""))
wrong("bandits/metrics.py::crossing", "last time below the level", ("after = int(above[0])", "after = int(np.flatnonzero(shares < level)[-1]) + 1 if np.any(shares[above[0] :] < level) else int(above[0])"))
wrong("bandits/metrics.py::friedman", "ties by order", ("np.mean(below + (same + 1) / 2.0, axis=0)", "np.mean(np.argsort(np.argsort(table, axis=1, kind=\"stable\"), axis=1, kind=\"stable\") + 1.0, axis=0)"))
wrong("bandits/metrics.py::friedman", "ties get the lowest rank", ("(same + 1) / 2.0", "1.0"))
wrong("bandits/metrics.py::friedman", "largest is first", ("others < table", "others > table"))
wrong("bandits/metrics.py::growth", "later half by number", ("np.greater_equal(np.square(trace.times), trace.times[0] * trace.times[-1])", "np.arange(len(trace.times)) >= len(trace.times) // 2"))
wrong("bandits/metrics.py::growth", "root excluded", ("np.greater_equal(np.square", "np.greater(np.square"))
wrong("bandits/metrics.py::growth", "squares overflow 32 bits", ("np.square(trace.times), trace.times[0] * trace.times[-1]", "np.square(trace.times.astype(np.int32)), trace.times.astype(np.int32)[0] * trace.times.astype(np.int32)[-1]"))
wrong("bandits/metrics.py::growth", "logarithm to base 10", ("np.log(trace.times[late])", "np.log10(trace.times[late])"))
wrong("bandits/metrics.py::growth", "last mean in place of the line's", ("float(np.mean(heights) + slope * centred[-1])", "float(heights[-1])"))
wrong("bandits/metrics.py::paired", "sign of the difference", ("np.subtract(second.shortfall[-1], first.shortfall[-1])", "np.subtract(first.shortfall[-1], second.shortfall[-1])"))
wrong("bandits/metrics.py::paired", "sign test not capped", ("min(sign, 1.0)", "sign"))
wrong("bandits/metrics.py::paired", "wins among all runs", ("\"wins\": wins / (wins + losses)", "\"wins\": wins / runs"))
wrong("bandits/metrics.py::paired", "one-sided p", ("2.0 * student_tail(abs(t), runs - 1)", "student_tail(abs(t), runs - 1)"))
wrong("bandits/metrics.py::paired", "degrees of freedom n", ("student_tail(abs(t), runs - 1)", "student_tail(abs(t), runs)"))
wrong("bandits/metrics.py::paired", "ties among the throws", ("binomial_tail(wins + losses, 0.5", "binomial_tail(runs, 0.5"))
wrong("bandits/metrics.py::sensitivity", "factor fixed", ("limit = factor * regrets[lowest]", "limit = 1.5 * regrets[lowest]"))
wrong("bandits/metrics.py::sensitivity", "plateau in natural logarithms", ("\"plateau\": float(plateau)", "\"plateau\": float(plateau * np.log(10.0))"))
wrong("bandits/metrics.py::sensitivity", "all points at or below", ("plateau = edge(range(lowest, len(logs))) - edge(range(lowest, -1, -1))", "below = logs[regrets <= limit]\n    plateau = below[-1] - below[0]"))
wrong("bandits/metrics.py::sensitivity", "at the limit is beyond it", ("regrets[there] > limit", "regrets[there] >= limit"))
wrong("bandits/metrics.py::sensitivity", "not refined", ("        vertex = vertex - slope / (2.0 * curve)\n", "        vertex = vertex + 0.0 * slope * curve\n"))
wrong("bandits/metrics.py::summarise", "interpolated quantile", ("float(ordered[math.ceil(0.9 * runs - 1e-9) - 1])", "float(np.quantile(regret, 0.9))"))
wrong("bandits/metrics.py::summarise", "population error", ("ddof=1", "ddof=0"))
wrong("bandits/metrics.py::summarise", "sample skew", ("np.mean(np.square(central)) ** 1.5", "np.std(regret, ddof=1) ** 3"))
wrong("bandits/policies.py::DecreasingGreedy.choose", "time of the last play", ("self.exploration(self.time + 1)", "self.exploration(max(self.time, 1))"))
wrong("bandits/policies.py::DecreasingGreedy.choose", "never played machines are tried first", ("out=np.zeros_like(self.sums)", "out=np.full_like(self.sums, np.inf)"))
wrong("bandits/policies.py::DecreasingGreedy.choose", "explores above one minus the probability", ("np.less(tosses,", "np.less(1.0 - tosses,"))
wrong("bandits/policies.py::Elimination.choose", "shrink ignored", ("self.shrink * math.sqrt", "math.sqrt"))
wrong("bandits/policies.py::Elimination.choose", "risk fixed", ("/ self.risk)", "/ 0.1)"))
wrong("bandits/policies.py::Elimination.choose", "one radius", ("- 2.0 * radius", "- radius"))
wrong("bandits/policies.py::Elimination.choose", "number of machines left", ("4.0 * self.n_arms", "4.0 * np.count_nonzero(self.active[run])"))
wrong("bandits/policies.py::KLUCB.index", "halvings fixed", ("range(self.halvings)", "range(16)"))
wrong("bandits/policies.py::KLUCB.index", "middle of the last interval", ("return low", "return (low + high) / 2.0"))
wrong("bandits/policies.py::KLUCB.index", "divergence the other way round", ("bernoulli_divergence(means, middle)", "bernoulli_divergence(middle, np.clip(means, 1e-9, 1 - 1e-9))"))
wrong("bandits/policies.py::StudentThompson.index", "n degrees of freedom", ("freedom = np.subtract(self.counts, 1.0)", "freedom = self.counts"))
wrong("bandits/policies.py::StudentThompson.index", "negative sums of squares", ("np.maximum(self.squares - self.sums * means, 0.0)", "self.squares - self.sums * means"))
wrong("bandits/policies.py::UCB1.index", "width fixed", ("self.width * np.log", "2.0 * np.log"))
wrong("bandits/policies.py::UCB1.index", "width outside of the root", ("np.sqrt(self.width * np.log(self.time) / self.counts)", "self.width * np.sqrt(np.log(self.time) / self.counts)"))
wrong("bandits/policies.py::UCB1Normal.choose", "negative variances", ("np.maximum(variances, 0.0)", "variances"))
wrong("bandits/policies.py::UCB1Normal.choose", "n - 1 is n", ("np.log(self.time) / counts", "np.log(self.time + 1) / counts"))
wrong("bandits/policies.py::UCB1Tuned.index", "no cap at a quarter", ("np.minimum(bound, 0.25)", "bound"))
wrong("bandits/policies.py::UCB1Tuned.index", "unbiased variance", ("bound = spread +", "bound = spread * self.counts / np.maximum(self.counts - 1.0, 1.0) +"))
wrong("bandits/policies.py::UCB2.choose", "whole next rung", ("np.take(self.ladder, rungs + 1) - np.take(self.ladder, rungs)", "np.take(self.ladder, rungs + 1)"))
wrong("bandits/policies.py::UCB2.choose", "hands out its own array", ("np.copy(self.current)", "self.current"))
wrong("bandits/policies.py::epoch_ladder", "rounded", ("math.ceil((1.0 + alpha) ** exponent)", "round((1.0 + alpha) ** exponent)"))
wrong("bandits/policies.py::epoch_ladder", "ends below the longest", ("return np.array(rungs)", "return np.array(rungs[:-1])"))
wrong("bandits/policies.py::epoch_ladder", "lengths repeat", ("if length > rungs[-1]:", "if length >= rungs[-1]:"))
wrong("bandits/simulation.py::play", "times ignored", ("times = log_times(horizon) if times is None else np.asarray(times)", "times = log_times(horizon)"))
wrong("bandits/simulation.py::play", "one generator for both", ("policy.start(len(problem.arms), runs, generator(seed, 1))", "policy.start(len(problem.arms), runs, luck)"))
wrong("bandits/simulation.py::play", "looks before the play", ("plays[row] = policy.counts", "plays[row] = policy.counts\n            plays[row, np.arange(runs), chosen] -= 1"))
wrong("bandits/tails.py::binomial_tail", "more than the least", ("range(least, trials + 1)", "range(least + 1, trials + 1)"))
wrong("bandits/tails.py::binomial_tail", "products without logarithms", """
return float(sum(float(math.comb(trials, k)) * probability**k * (1 - probability) ** (trials - k) for k in range(least, trials + 1)))
""")
wrong("bandits/tails.py::binomial_tail", "one minus the rest", """
rest = math.fsum(math.exp(math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(probability) + (trials - k) * math.log1p(-probability)) for k in range(least))
return 1.0 - rest
""")
wrong("bandits/tails.py::binomial_tail", "fair coin", ("hit, miss = math.log(probability), math.log1p(-probability)", "hit = miss = math.log(0.5)"))
wrong("bandits/tails.py::conjecture_ratios", "grid fixed", ("np.linspace(end / grid, end, grid)", "np.linspace(end / 20, end, 20)"))
wrong("bandits/tails.py::conjecture_ratios", "grid from 0", ("np.linspace(end / grid, end, grid)", "np.linspace(0.0, end, grid)"))
wrong("bandits/tails.py::student_tail", "two-sided", ("(1.0 - inside) / 2.0", "1.0 - inside"))
wrong("bandits/tails.py::student_tail", "normal for many degrees", ("    angle = math.atan2", "    if freedom > 30:\n        return math.erfc(value / math.sqrt(2.0)) / 2.0\n    angle = math.atan2"))
wrong("bandits/tails.py::student_tail", "one term less", ("range((freedom - odd) // 2)", "range(max((freedom - odd) // 2 - 1, 0))"))

right("bandits/policies.py::epoch_ladder", "set of lengths", """
lengths, r = {1}, 0
while max(lengths) <= longest:
    r += 1
    lengths.add(math.ceil((1.0 + alpha) ** r))
return np.array(sorted(lengths))
""")
right("bandits/metrics.py::friedman", "loops", """
table = [[float(value) for value in row] for row in table]
b, k = len(table), len(table[0])
ranks = [0.0] * k
for row in table:
    for j, value in enumerate(row):
        lower, equal = sum(v < value for v in row), sum(v == value for v in row)
        ranks[j] += (lower + (equal + 1) / 2) / b
statistic = 12 * b / (k * (k + 1)) * sum((rank - (k + 1) / 2) ** 2 for rank in ranks)
return np.array(ranks), float(statistic), chi_square_tail(statistic, k - 1) if statistic > 0 else 1.0
""")
right("bandits/tails.py::binomial_tail", "log terms by recurrence", """
log_term = trials * math.log1p(-probability)
terms = [log_term]
for k in range(1, trials + 1):
    log_term += math.log(trials - k + 1) - math.log(k) + math.log(probability) - math.log1p(-probability)
    terms.append(log_term)
top = max(terms[least:])
return math.exp(top) * math.fsum(math.exp(t - top) for t in terms[least:])
""")
right("bandits/metrics.py::crossing", "search", """
shares = trace.best_share.mean(axis=1)
for i, share in enumerate(shares):
    if share >= level:
        if i == 0:
            return float(trace.times[0])
        a, b = math.log(trace.times[i - 1]), math.log(trace.times[i])
        return math.exp(a + (b - a) * (level - shares[i - 1]) / (share - shares[i - 1]))
return float(trace.times[-1])
""")
right("bandits/policies.py::UCB1Tuned.index", "loops", """
result = np.empty_like(self.sums)
for r in range(self.runs):
    for j in range(self.n_arms):
        n = self.counts[r, j]
        mean = self.sums[r, j] / n
        log = math.log(self.time) / n
        v = self.squares[r, j] / n - mean**2 + math.sqrt(2 * log)
        result[r, j] = mean + math.sqrt(log * min(0.25, v))
return result
""")
right("bandits/arms.py::Polygon.moments", "by Gauss-Legendre", """
nodes, weights = np.polynomial.legendre.leggauss(4)
one = two = 0.0
for a, b, f, g in zip(self.knots, self.knots[1:], self.density, self.density[1:]):
    x = (a + b) / 2 + (b - a) / 2 * nodes
    y = f + (g - f) * (x - a) / (b - a)
    one += (b - a) / 2 * np.dot(weights, x * y)
    two += (b - a) / 2 * np.dot(weights, x * x * y)
return float(one), float(two - one**2)
""")
right("bandits/bounds.py::ucb2_bound", "loops", """
gaps = [float(g) for g in problem.gaps if g > 0]
result = []
for n in np.asarray(times, dtype=float):
    if n < 1 / (2 * min(gaps) ** 2):
        result.append(n * max(gaps))
        continue
    c = 1 + (1 + alpha) * math.e / alpha**2
    c += ((1 + alpha) / alpha) ** (1 + alpha) * (1 + 11 * (1 + alpha) / (5 * alpha**2 * math.log(1 + alpha)))
    result.append(sum((1 + alpha) * (1 + 4 * alpha) * math.log(2 * math.e * d * d * n) / (2 * d) + c / d for d in gaps))
return np.array(result)
""")

# Was written as a wrong one. The value at a knot is the same from both sides.
right("bandits/arms.py::Polygon.quantile", "knots belong to the piece left of them", ("side=\"right\"", "side=\"left\""))
# Was written as a wrong one. When an epoch ends, a machine's plays are the length of its rung.
right("bandits/policies.py::UCB2.choose", "counts in place of the ladder", ("lengths = np.take(self.ladder, self.levels[idle])", "lengths = self.counts[idle]"))
