"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("twosample/baselines.py::hotelling_test", "ridge ignored", ("covariance += ridge * np.trace(covariance) / dimension * np.eye(dimension)", "covariance = covariance"))
wrong("twosample/baselines.py::hotelling_test", "ridge always 0.1", ("covariance += ridge *", "covariance += 0.1 *"))
wrong("twosample/baselines.py::hotelling_test", "ridge is not relative to the variances", ("ridge * np.trace(covariance) / dimension * np.eye(dimension)", "ridge * np.eye(dimension)"))
wrong("twosample/baselines.py::hotelling_test", "biased covariance", ("scatter / (total - 2)", "scatter / total"))
wrong("twosample/baselines.py::hotelling_test", "one degree of freedom more", ("freedom = total - dimension - 1", "freedom = total - dimension"))
wrong("twosample/baselines.py::spanning_tree", "highest index on ties", ("joins = int(np.argmin(np.where(outside, gaps, np.inf)))", "joins = total - 1 - int(np.argmin(np.where(outside, gaps, np.inf)[::-1]))"))
wrong("twosample/baselines.py::spanning_tree", "the one that joined last on ties", ("np.less(distances[joins], gaps)", "np.less_equal(distances[joins], gaps)"))
wrong("twosample/baselines.py::spanning_tree", "star of the first point", ("nearest[closer] = joins", "pass"))
wrong("twosample/baselines.py::spanning_tree", "sorted edges", ("return np.array(edges)", "return np.array(sorted(edges))"))
wrong("twosample/baselines.py::spanning_tree", "works on the matrix that it gets", ("gaps = np.array(distances[0], dtype=float)", "np.fill_diagonal(distances, np.inf)\n    gaps = np.array(distances[0], dtype=float)"))
wrong("twosample/baselines.py::friedman_rafsky_test", "sign not changed", ("(mean - crossing)", "(crossing - mean)"))
wrong("twosample/baselines.py::friedman_rafsky_test", "runs in place of edges", ("(mean - crossing)", "(mean - crossing - 1)"))
wrong("twosample/baselines.py::friedman_rafsky_test", "adjacent pairs counted twice", ("np.sum(degrees * (degrees - 1)) / 2.0", "np.sum(degrees * (degrees - 1))"))
wrong("twosample/baselines.py::neighbour_test", "count of divisions ignored", ("range(count)", "range(100)"))
wrong("twosample/baselines.py::neighbour_test", "squared amounts", ("np.mean(np.abs(np.cumsum(others, axis=1) - chance))", "np.sqrt(np.mean(np.square(np.cumsum(others, axis=1) - chance)))"))
wrong("twosample/baselines.py::neighbour_test", "same sample counted", ("np.not_equal(labels[nearest]", "np.equal(labels[nearest]"))
wrong("twosample/baselines.py::neighbour_test", "a point is its own neighbour", ("    np.fill_diagonal(distances, np.inf)\n", ""))
wrong("twosample/baselines.py::partition_test", "always three parts", ("np.arange(1, bins) / bins)", "np.arange(1, 3) / 3)"), ("cells * bins", "cells * 3"))
wrong("twosample/baselines.py::partition_test", "cuts of equal width", ("np.quantile(column, np.arange(1, bins) / bins)", "np.min(column) + np.ptp(column) * np.arange(1, bins) / bins"))
wrong("twosample/baselines.py::partition_test", "values at a cut below it", ("side=\"right\"", "side=\"left\""))
wrong("twosample/estimators.py::unbiased_mmd", "sizes taken as equal", ("(other * (other - 1))", "(size * (size - 1))"))
wrong("twosample/estimators.py::unbiased_mmd", "biased within the samples", ("(size * (size - 1))", "size**2"), ("(other * (other - 1))", "other**2"))
wrong("twosample/estimators.py::unbiased_mmd", "in place on the kernel matrix", ("inner = np.subtract(gram, np.diag(np.diagonal(gram)))", "np.fill_diagonal(gram, 0.0)\n    inner = gram"))
wrong("twosample/estimators.py::mmd_variance", "diagonal counted", ("np.where(off, core, 0.0)", "core"))
wrong("twosample/estimators.py::mmd_variance", "4 (m - 1)", ("4.0 * (size - 2)", "4.0 * (size - 1)"))
wrong("twosample/estimators.py::witness_profile", "zeros at the grid point left of them", ("zeros = places[left] + share * np.diff(places)[left]", "zeros = places[left]"))
wrong("twosample/estimators.py::witness_profile", "even grid taken for granted", ("* np.diff(places)))", "* (places[1] - places[0])))"))
wrong("twosample/estimators.py::witness_profile", "touching zero counts as a zero", ("np.less(values[:-1] * values[1:], 0.0)", "np.less_equal(values[:-1] * values[1:], 0.0)"))
wrong("twosample/estimators.py::witness_profile", "signed area", ("heights = np.abs(values)", "heights = values"))
wrong("twosample/estimators.py::witness_profile", "squared norm", ("/ biased_mmd(pooled_gram(kernel, x, y), len(x))", "/ biased_mmd(pooled_gram(kernel, x, y), len(x)) ** 2"))
wrong("twosample/estimators.py::LinearStatistic.update", "waiting point dropped", ("self._waiting = (x[paired:], y[paired:])", "self._waiting = None"))
wrong("twosample/estimators.py::LinearStatistic.update", "merge without the drift of the means", ("self._squares += np.sum(np.square(terms - mean)) + np.square(drift) * self.count * added / total", "self._squares += np.sum(np.square(terms - mean))"))
wrong("twosample/estimators.py::LinearStatistic.update", "drift added whole", ("self.mean += drift * added / total", "self.mean += drift / total"))
wrong("twosample/estimators.py::LinearStatistic.update", "same pair twice", ("- self.kernel.paired(x[even], y[odd])", "- self.kernel.paired(x[odd], y[even])"))
wrong("twosample/estimators.py::block_mmd", "rest as a block of its own", ("np.mean(estimates)\n", "np.mean(np.append(estimates, unbiased_mmd(pooled_gram(kernel, x[-block:], y[-block:]), block))) if len(x) % block else np.mean(estimates)\n"))
wrong("twosample/estimators.py::block_mmd", "error without the root of the count", ("np.std(estimates, ddof=1) / np.sqrt(count)", "np.std(estimates, ddof=1)"))
wrong("twosample/estimators.py::block_mmd", "population deviation", ("ddof=1", "ddof=0"))
wrong("twosample/estimators.py::block_mmd", "blocks of the first sample only", ("min(len(x), len(y)) // block", "len(x) // block"))
wrong("twosample/evaluation.py::summarise", "95% always", ("(1.0 - confidence) / 2.0", "0.025"))
wrong("twosample/evaluation.py::summarise", "one-sided", ("(1.0 - confidence) / 2.0", "1.0 - confidence"))
wrong("twosample/evaluation.py::summarise", "at the threshold rejects", ("np.greater(statistics, thresholds)", "np.greater_equal(statistics, thresholds)"))
wrong("twosample/evaluation.py::summarise", "Wald's interval", ("centre - half", "max(0.0, rate - z * np.sqrt(rate * (1 - rate) / count))"), ("centre + half", "min(1.0, rate + z * np.sqrt(rate * (1 - rate) / count))"))
wrong("twosample/evaluation.py::summarise", "mean margin", ("np.median(statistics - thresholds)", "np.mean(statistics - thresholds)"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "each substring once", ("counts[column] = counts.get(column, 0) + 1", "counts[column] = 1"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "substrings do not overlap", ("range(len(string) - self.length + 1)", "range(0, len(string) - self.length + 1, self.length)"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "last substring left out", ("range(len(string) - self.length + 1)", "range(len(string) - self.length)"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "short strings are alike", ("return np.dot(tables[0], np.transpose(tables[1]))", "gram = np.dot(tables[0], np.transpose(tables[1]))\n        gram[np.ix_([len(s) < self.length for s in a], [len(s) < self.length for s in b])] = 1.0\n        return gram"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "length 3 always", ("for start in range(len(string) - self.length + 1):", "for start in range(len(string) - 2):"), ("string[start : start + self.length]", "string[start : start + 3]"))
wrong("twosample/kernels.py::median_bandwidth", "limit ignored", ("if len(sample) > limit:", "if False:"))
wrong("twosample/kernels.py::median_bandwidth", "the first points stand for all", ("rows = np.floor(np.arange(limit) * len(sample) / limit).astype(int)", "rows = np.arange(limit)"))
wrong("twosample/kernels.py::median_bandwidth", "pairs at distance 0 count", ("pairs[np.greater(pairs, 0.0)]", "pairs"))
wrong("twosample/kernels.py::median_bandwidth", "0 where all are equal", ("else 1.0", "else 0.0"))
wrong("twosample/kernels.py::median_bandwidth", "limit for both together", ("for sample in (x, y):", "limit = limit // 2\n    for sample in (x, y):"))
wrong("twosample/kernels.py::orthogonal_frequencies", "signs not fixed", ("np.multiply(basis, np.sign(np.diagonal(triangle)))", "basis"))
wrong("twosample/kernels.py::orthogonal_frequencies", "multiplied by the bandwidth", ("[:count] / bandwidth", "[:count] * bandwidth"))
wrong("twosample/kernels.py::orthogonal_frequencies", "columns not transposed", ("np.transpose(directions)", "directions"))
wrong("twosample/matching.py::auction", "greedy by the smallest cost", """
left = np.array(costs, dtype=float)
columns = np.full(len(left), -1)
for _ in range(len(left)):
    row, column = np.unravel_index(np.argmin(left), left.shape)
    columns[row] = column
    left[row], left[:, column] = np.inf, np.inf
return columns, np.zeros(len(left)), len(left)
""")
wrong("twosample/matching.py::auction", "reduction fixed", ("increment / reduction", "increment / 5.0"))
wrong("twosample/matching.py::auction", "precision fixed", ("precision * spread", "1e-4 * spread"))
wrong("twosample/matching.py::auction", "prices start again each round", ("        owners = np.full(count, -1)\n", "        owners = np.full(count, -1)\n        prices = np.zeros(count)\n"))
wrong("twosample/matching.py::auction", "one round", ("if increment * count <= precision * spread:", "if True:"))
wrong("twosample/matching.py::auction", "one row fails", ("(np.max(rest) if len(rest) else profits[best])", "np.max(rest)"))
wrong("twosample/nulls.py::GammaNull.threshold", "variance by m^2", ("(size * (size - 1)) ** 2", "(size * size) ** 2"))
wrong("twosample/nulls.py::GammaNull.threshold", "scale without the sample size", ("scale = size * variance / mean", "scale = variance / mean"))
wrong("twosample/nulls.py::PearsonNull.threshold", "diagonal counts", ("        np.fill_diagonal(core, 0.0)\n", ""))
wrong("twosample/nulls.py::PearsonNull.threshold", "shape 2 / skewness^2", ("shape = 4.0 / np.square(skewness)", "shape = 2.0 / np.square(skewness)"))
wrong("twosample/nulls.py::PermutationNull.draws", "diagonal counts", ("inner = gram - np.diag(np.diag(gram))", "inner = gram"))
wrong("twosample/nulls.py::PermutationNull.draws", "last places of the permutation", ("rng.permutation(total)[:size]", "rng.permutation(total)[-size:]"))
wrong("twosample/nulls.py::SpectrumNull.draws", "rank ignored", ("rank = min(self.rank, len(gram))", "rank = len(gram)"))
wrong("twosample/nulls.py::SpectrumNull.draws", "smallest eigenvalues", ("np.flip(np.linalg.eigvalsh(centred))[:rank]", "np.linalg.eigvalsh(centred)[:rank]"))
wrong("twosample/nulls.py::SpectrumNull.draws", "negative eigenvalues count", ("np.maximum(eigenvalues, 0.0)", "eigenvalues"))
wrong("twosample/nulls.py::WildNull.draws", "memory fixed", ("np.exp(-1.0 / self.memory)", "np.exp(-1.0 / 8.0)"))
wrong("twosample/nulls.py::WildNull.draws", "noise not scaled", ("fresh * noise[:, step]", "noise[:, step]"))
wrong("twosample/selection.py::choose_bandwidth", "vertex on the linear scale", ("candidates[best] * factor**shift", "candidates[best] * (1.0 + shift * (factor - 1.0))"))
wrong("twosample/selection.py::choose_bandwidth", "last candidate on ties", ("best = int(np.argmax(scores))", "best = len(scores) - 1 - int(np.argmax(scores[::-1]))"))
wrong("twosample/selection.py::choose_bandwidth", "always the ratio", ("if criterion == \"ratio\":", "if True:"))
wrong("twosample/selection.py::choose_bandwidth", "variances not cut", ("np.sqrt(max(mmd_variance(gram, len(x)), 1e-10))", "np.sqrt(mmd_variance(gram, len(x)))"))
wrong("twosample/synthetic.py::blobs", "effect as ratio of deviations", ("np.diag(np.sqrt([effect, 1.0]))", "np.diag([effect, 1.0])"))
wrong("twosample/synthetic.py::blobs", "turned before stretching", ("np.dot(turn, stretch)", "np.dot(stretch, turn)"))
wrong("twosample/synthetic.py::markov_strings", "jumps may stay", ("rng.integers(1, 4,", "rng.integers(0, 4,"))
wrong("twosample/synthetic.py::perturbed_gaussian", "other coordinates from the first sample", ("y[:, 1:] = rng.standard_normal((size, dimension - 1))", "y[:, 1:] = x[:, 1:]"))

right("twosample/matching.py::auction", "lists of profits", """
count = len(costs)
spread = float(np.max(costs) - np.min(costs))
prices = np.zeros(count)
increment, bids = spread / 2.0, 0
while True:
    owner, column = {}, {}
    while len(column) < count:
        row = next(i for i in range(count) if i not in column)
        profits = [-costs[row][j] - prices[j] for j in range(count)]
        best = profits.index(max(profits))
        others = profits[:best] + profits[best + 1 :]
        prices[best] += profits[best] - (max(others) if others else profits[best]) + increment
        if best in owner:
            del column[owner[best]]
        owner[best], column[row] = row, best
        bids += 1
    if increment * count <= precision * spread:
        return np.array([column[i] for i in range(count)]), prices, bids
    increment /= reduction
""")
right("twosample/kernels.py::median_bandwidth", "differences of rows", """
def few(sample):
    n = len(sample)
    return sample if n <= limit else sample[[i * n // limit for i in range(limit)]]

pooled = np.concatenate([few(x), few(y)])
i, j = np.triu_indices(len(pooled), k=1)
gaps = np.sqrt(np.sum((pooled[i] - pooled[j]) ** 2, axis=1))
gaps = gaps[gaps > 0]
return float(np.sqrt(np.median(gaps**2))) if gaps.size else 1.0
""")
right("twosample/baselines.py::spanning_tree", "plain loops", """
tree, edges = [0], []
while len(tree) < len(distances):
    best = None
    for j in range(len(distances)):
        if j in tree:
            continue
        gap, rank = min((distances[i][j], rank) for rank, i in enumerate(tree))
        if best is None or gap < best[0]:
            best = (gap, tree[rank], j)
    edges.append(best[1:])
    tree.append(best[2])
return np.array(edges)
""")
right("twosample/kernels.py::SpectrumKernel.__call__", "counters", """
from collections import Counter

def grams(text):
    return Counter(text[i : i + self.length] for i in range(len(text) - self.length + 1))

def cosine(one, two):
    norm = (sum(v * v for v in one.values()) * sum(v * v for v in two.values())) ** 0.5
    return sum(one[key] * two[key] for key in one) / norm if norm else 0.0

rows, columns = [grams(text) for text in a], [grams(text) for text in b]
return np.array([[cosine(one, two) for two in columns] for one in rows])
""")
right("twosample/evaluation.py::summarise", "written out", """
pairs = [(float(s), float(t)) for s, t in outcomes]
n = len(pairs)
p = sum(s > t for s, t in pairs) / n
z = normal_quantile((1 - confidence) / 2)
bottom = 1 + z * z / n
middle = (p + z * z / (2 * n)) / bottom
half = z / bottom * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
threshold = sum(t for _, t in pairs) / n
return {
    "rate": p, "low": middle - half, "high": middle + half, "statistic": sum(s for s, _ in pairs) / n,
    "threshold": threshold, "margin": float(np.median([s - t for s, t in pairs])) / threshold,
}
""")
right("twosample/nulls.py::GammaNull.threshold", "loops", """
core = paired_core(gram, size)
mean = sum(gram[i, i] + gram[size + i, size + i] - 2 * gram[i, size + i] for i in range(size)) / size**2
total = sum(core[i, j] ** 2 for i in range(size) for j in range(size) if i != j)
variance = 2 * total / (size * (size - 1)) ** 2
return float(size * variance / mean * gamma_quantile(mean**2 / variance, level))
""")
right("twosample/estimators.py::LinearStatistic.update", "keeps all terms", """
if self._waiting is not None:
    x, y = np.concatenate([self._waiting[0], x]), np.concatenate([self._waiting[1], y])
n = len(x) // 2 * 2
self._waiting = (x[n:], y[n:])
if n:
    k = self.kernel.paired
    a, b, c, d = x[:n:2], x[1:n:2], y[:n:2], y[1:n:2]
    new = k(a, b) + k(c, d) - k(a, d) - k(b, c)
    self._terms = np.append(getattr(self, "_terms", []), new)
    self.count, self.mean = len(self._terms), float(np.mean(self._terms))
    self._squares = float(np.sum((self._terms - self.mean) ** 2))
""")

# Was written as a wrong one. The mean of the projections is the centre, so that the difference is a variance, and not below 0.
right("twosample/estimators.py::mmd_variance", "not cut at 0", ("single = max(np.mean(np.square(projections)) - np.square(centre), 0.0)", "single = np.mean(np.square(projections)) - np.square(centre)"))
