"""Wrong variants of the bandits' functions."""

KL = "bandits/policies.py::KLUCB.index"
wrong(KL, "upper end", ("        return low\n", "        return high\n"))
wrong(KL, "middle of the last interval", ("        return low\n", "        return (low + high) / 2.0\n"))
wrong(KL, "from 0", ("np.copy(means), np.ones", "np.zeros_like(means), np.ones"))
wrong(KL, "arguments exchanged", ("bernoulli_divergence(means, middle)", "bernoulli_divergence(middle, means)"))
NORM = "bandits/policies.py::UCB1Normal.choose"
wrong(NORM, "ln n for ln(n - 1)", ("np.log(self.time) /", "np.log(self.time + 1) /"))
wrong(NORM, "needs by n - 1", ("8.0 * np.log(self.time + 1)", "8.0 * np.log(max(self.time, 1))"))
wrong(NORM, "rounded down", ("np.ceil(", "np.floor("))
wrong(NORM, "negative variances", ("np.maximum(variances, 0.0)", "variances"))
wrong(NORM, "biased variance", ("/ (counts - 1.0)", "/ counts"))
wrong(NORM, "at most", ("np.less(np.min", "np.less_equal(np.min"))
wrong(NORM, "all runs together", ("lagging = np.less(np.min(self.counts, axis=1), needed)", "lagging = np.full(self.runs, np.min(self.counts) < needed)"))
ELI = "bandits/policies.py::Elimination.choose"
wrong(ELI, "last of the fewest", ("return np.argmin(np.where(self.active, self.counts, np.inf), axis=1)", "return self.n_arms - 1 - np.argmin(np.where(self.active, self.counts, np.inf)[:, ::-1], axis=1)"))
wrong(ELI, "one radius", ("2.0 * radius", "radius"))
wrong(ELI, "number of active machines", ("4.0 * self.n_arms * rounds**2", "4.0 * np.count_nonzero(self.active[run]) * rounds**2"))
wrong(ELI, "s for s squared", ("rounds**2", "rounds"))
wrong(ELI, "settled after the play", ("self.settled[run] = self.time", "self.settled[run] = self.time + 1"))
GB = "bandits/bounds.py::greedy_bound"
wrong(GB, "n for n - 1", ("late - 1)\n    early", "late)\n    early"))
wrong(GB, "n = cK/d^2 late", ("np.greater(plays", "np.greater_equal(plays"))
wrong(GB, "not cut at 1", ("np.minimum(c / (square * late) + early + confused, 1.0)", "c / (square * late) + early + confused"))
wrong(GB, "largest gap", ("np.sum(problem.gaps)", "np.max(problem.gaps)"))
wrong("bandits/bounds.py::ucb2_bound", "condition strict", ("np.greater_equal(times", "np.greater(times"))
wrong("bandits/bounds.py::ucb2_bound", "condition of the largest gap", ("np.square(np.min(gaps))", "np.square(np.max(gaps))"))
wrong("bandits/bounds.py::ucb2_bound", "ln(1 + alpha) left out", (" * math.log1p(alpha))", ")"))
MOM = "bandits/arms.py::Polygon.moments"
wrong(MOM, "second moment", (" - np.square(mean)", ""))
wrong(MOM, "middles of pieces", ("first = left * (2.0 * low + high) + right * (low + 2.0 * high)", "first = 1.5 * (left + right) * (low + high)"))
wrong("bandits/arms.py::Polygon.quantile", "linear in a piece", ("2.0 * rest / (start + root)", "widths[piece] * rest / masses[piece]"))
PLAY = "bandits/simulation.py::play"
wrong(PLAY, "one generator", ("policy.start(len(problem.arms), runs, generator(seed, 1))", "policy.start(len(problem.arms), runs, luck)"))
wrong(PLAY, "numbers before the choice", ("        chosen = policy.choose()\n        policy.observe(chosen, problem.draw(chosen, luck.random(runs)))\n", "        uniforms = luck.random((runs, 1))[:, 0]\n        chosen = policy.choose()\n        policy.observe(chosen, problem.draw(chosen, uniforms[::-1]))\n"))
wrong(PLAY, "looks before the play", ("        if now == times[row]:", "        if now == times[row] and now > 1:"))
wrong("bandits/policies.py::UCB1.index", "n + 1", ("np.log(self.time)", "np.log(self.time + 1)"))
wrong("bandits/policies.py::UCB1Tuned.index", "unbiased variance", ("spread = np.divide(self.squares, self.counts) - np.square(means)", "spread = (self.squares - self.counts * means**2) / np.maximum(self.counts - 1, 1)"))
wrong("bandits/policies.py::UCB1Tuned.index", "no limit", ("np.minimum(bound, 0.25)", "bound"))
U2 = "bandits/policies.py::UCB2.choose"
wrong(U2, "one play too few", ("self.remaining -= 1", "self.remaining[self.remaining > 1] -= 1"))
wrong(U2, "next rung in the index", ("lengths = np.take(self.ladder, self.levels[idle])", "lengths = np.take(self.ladder, self.levels[idle] + 1)"))
wrong(U2, "the array itself", ("return np.copy(self.current)", "return self.current"))
wrong("bandits/policies.py::epoch_ladder", "rounded", ("math.ceil((1.0 + alpha) ** exponent)", "round((1.0 + alpha) ** exponent)"))
wrong("bandits/policies.py::epoch_ladder", "up to the length", ("while rungs[-1] <= longest:", "while rungs[-1] < longest:"))
DG = "bandits/policies.py::DecreasingGreedy.choose"
wrong(DG, "play number n", ("self.exploration(self.time + 1)", "self.exploration(max(self.time, 1))"))
wrong(DG, "unplayed first", ("out=np.zeros_like(self.sums)", "out=np.full_like(self.sums, np.inf)"))
wrong(DG, "machines drawn first", ("        tosses = self.rng.random(self.runs)\n        strays = self.rng.integers(self.n_arms, size=self.runs)\n", "        strays = self.rng.integers(self.n_arms, size=self.runs)\n        tosses = self.rng.random(self.runs)\n"))
wrong(DG, "best ones not among the random", ("np.where(exploring, strays,", "np.where(exploring, (np.argmax(means, axis=1) + 1 + strays) % self.n_arms,"))
ST = "bandits/policies.py::StudentThompson.index"
wrong(ST, "n degrees", ("np.subtract(self.counts, 1.0)", "self.counts"))
wrong(ST, "sample variance not over n", ("self.counts * freedom", "freedom"))
wrong(ST, "normal number", ("self.rng.standard_t(freedom)", "self.rng.standard_normal(freedom.shape)"))
BD = "bandits/divergence.py::bounded_divergence"
wrong(BD, "value at the lower end", ("-(low + high) / 2.0 * distance", "-low * distance"))
wrong(BD, "interval up to 1", ("1.0 / (1.0 - target)", "1.0"))
wrong("bandits/tails.py::binomial_tail", "more than", ("range(least, trials + 1)", "range(least + 1, trials + 1)"))
wrong("bandits/tails.py::student_tail", "two-sided", ("(1.0 - inside) / 2.0", "1.0 - inside"))
wrong("bandits/tails.py::student_tail", "one term more", ("(freedom - odd) // 2", "(freedom + odd) // 2"))
wrong("bandits/tails.py::conjecture_ratios", "with 0", ("np.linspace(end / grid, end, grid)", "np.linspace(0.0, end, grid)"))
SUM = "bandits/metrics.py::summarise"
wrong(SUM, "population error", (", ddof=1", ""))
wrong(SUM, "quantile", ("float(ordered[math.ceil(0.9 * runs - 1e-9) - 1])", "float(np.quantile(regret, 0.9))"))
wrong(SUM, "sample skewness", ("np.mean(np.square(central)) ** 1.5", "np.var(regret, ddof=1) ** 1.5"))
wrong("bandits/metrics.py::growth", "strictly later", ("np.greater_equal(", "np.greater("))
wrong("bandits/metrics.py::growth", "last observed value", ("np.mean(heights) + slope * centred[-1]", "heights[-1]"))
CR = "bandits/metrics.py::crossing"
wrong(CR, "strictly above", ("np.greater_equal(", "np.greater("))
wrong(CR, "linear in n", ("np.exp(logs[0] + weight * np.subtract(logs[1], logs[0]))", "trace.times[after - 1] + weight * (trace.times[after] - trace.times[after - 1])"))
wrong(CR, "never is infinite", ("        return float(trace.times[-1])", "        return float(\"inf\")"))
PA = "bandits/metrics.py::paired"
wrong(PA, "first minus second", ("second.shortfall[-1], first.shortfall[-1]", "first.shortfall[-1], second.shortfall[-1]"))
wrong(PA, "wins among all", ("wins / (wins + losses)", "wins / runs"))
wrong(PA, "trials with ties", ("binomial_tail(wins + losses, 0.5", "binomial_tail(runs, 0.5"))
wrong(PA, "n degrees", ("runs - 1)", "runs)"))
FRI = "bandits/metrics.py::friedman"
wrong(FRI, "lowest rank on ties", ("(same + 1) / 2.0", "1.0"))
wrong(FRI, "largest first", ("others < table", "others > table"))
SEN = "bandits/metrics.py::sensitivity"
wrong(SEN, "limit itself outside", ("if regrets[there] > limit:", "if regrets[there] >= limit:"))
wrong(SEN, "linear scale of the vertex", ("np.log10(parameters)", "np.log(parameters)"), ("np.power(10.0, vertex)", "np.exp(vertex)"))
wrong(SEN, "last of the lowest", ("int(np.argmin(regrets))", "int(len(regrets) - 1 - np.argmin(regrets[::-1]))"))
wrong(SEN, "not refined", ("if 0 < lowest < len(logs) - 1:", "if False:"))
