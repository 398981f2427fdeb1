"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("twosample/synthetic.py::perturbed_gaussian", "cosine density", ("1.0 + np.sin(effect * proposals)", "1.0 + np.cos(effect * proposals)"))
wrong("twosample/synthetic.py::perturbed_gaussian", "other coordinates first", ("    x = rng.standard_normal((size, dimension))\n", "    x = rng.standard_normal((size, dimension))\n    rest = rng.standard_normal((size, dimension - 1))\n"), ("y[:, 1:] = rng.standard_normal((size, dimension - 1))", "y[:, 1:] = rest"))
wrong("twosample/synthetic.py::blobs", "noise before cells", ("        cells = rng.integers(9, size=size)\n        points = rng.standard_normal((size, dimension))\n", "        points = rng.standard_normal((size, dimension))\n        cells = rng.integers(9, size=size)\n"))
wrong("twosample/synthetic.py::blobs", "centred grid", ("np.divmod(cells, 3), axis=1)", "np.divmod(cells, 3), axis=1) - 5.0"))
wrong("twosample/synthetic.py::markov_strings", "steps back", ("np.cumsum(steps, axis=1)", "-np.cumsum(steps, axis=1)"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "lengths of the strings", ("np.sqrt(np.sum(np.square(table), axis=1, keepdims=True))", "np.sum(table, axis=1, keepdims=True)"))
wrong("twosample/kernels.py::SpectrumKernel.__call__", "all substrings up to the length", ("range(len(string) - self.length + 1)", "range(len(string))"))
wrong("twosample/kernels.py::median_bandwidth", "between the samples only", ("squared_distances(pooled, pooled)[np.triu_indices(len(pooled), k=1)]", "squared_distances(parts[0], parts[1]).ravel()"))
wrong("twosample/kernels.py::median_bandwidth", "mean", ("np.median(positive)", "np.mean(positive)"))
wrong("twosample/kernels.py::orthogonal_frequencies", "chi lengths once a block", ("lengths = np.sqrt(np.sum(squares, axis=1))", "lengths = np.full(dimension, np.sqrt(np.sum(squares[0])))"))
wrong("twosample/kernels.py::orthogonal_frequencies", "same length sqrt(d)", ("lengths = np.sqrt(np.sum(squares, axis=1))", "lengths = np.full(dimension, np.sqrt(dimension))"))
wrong("twosample/estimators.py::unbiased_mmd", "cross term once", ("2.0 * across", "across"))
wrong("twosample/estimators.py::unbiased_mmd", "never negative", ("return float(same_first + same_second - 2.0 * across)", "return float(max(same_first + same_second - 2.0 * across, 0.0))"))
wrong("twosample/estimators.py::mmd_variance", "first term only", (" + 2.0 * double", ""))
wrong("twosample/estimators.py::mmd_variance", "not centred", ("- np.square(centre), 0.0)", ", 0.0)"))
wrong("twosample/estimators.py::witness_profile", "samples exchanged", ("for sample in (x, y)]", "for sample in (y, x)]"))
wrong("twosample/estimators.py::witness_profile", "values for places", ("float(places[np.argmax(values)])", "float(np.argmax(values))"))
wrong("twosample/estimators.py::LinearStatistic.update", "mean of the piece means", ("self.mean += drift * added / total", "self.mean += drift / 2.0 if self.count else drift"))
wrong("twosample/estimators.py::LinearStatistic.update", "neighbouring pairs overlap", ("slice(0, paired, 2), slice(1, paired, 2)", "slice(0, paired - 1), slice(1, paired)"))
wrong("twosample/estimators.py::block_mmd", "strided blocks", ("rows = slice(start, start + block)", "rows = slice(number, None, count)"))
wrong("twosample/nulls.py::PermutationNull.draws", "with replacement", ("rng.permutation(total)[:size]", "rng.integers(total, size=size)"))
wrong("twosample/nulls.py::SpectrumNull.draws", "sum of both", ("np.square(first - second)", "np.square(first + second)"))
wrong("twosample/nulls.py::SpectrumNull.draws", "not shifted to mean 0", ("squares - 2.0", "squares"))
wrong("twosample/nulls.py::GammaNull.threshold", "shape inverted", ("shape = np.square(mean) / variance", "shape = variance / np.square(mean)"))
wrong("twosample/nulls.py::PearsonNull.threshold", "without the shift", ("(gamma_quantile(shape, level) - shape)", "gamma_quantile(shape, level)"))
wrong("twosample/nulls.py::WildNull.draws", "memory as coefficient", ("np.exp(-1.0 / self.memory)", "1.0 - 1.0 / self.memory"))
wrong("twosample/nulls.py::WildNull.draws", "centred over draws", ("np.mean(multipliers, axis=1, keepdims=True)", "np.mean(multipliers, axis=0, keepdims=True)"))
wrong("twosample/baselines.py::hotelling_test", "chi-square scale", ("statistic = freedom / (dimension * (total - 2)) * squared", "statistic = squared"))
wrong("twosample/baselines.py::hotelling_test", "covariance of the pooled sample", ("deviations = sample - np.mean(sample, axis=0)", "deviations = sample - np.mean(np.concatenate([x, y]), axis=0)"))
wrong("twosample/baselines.py::spanning_tree", "nearest to the point that joined last", ("gaps = np.where(closer, distances[joins], gaps)", "gaps = np.array(distances[joins], dtype=float)"))
wrong("twosample/baselines.py::friedman_rafsky_test", "variance without the tree", ("variance = mean / (total - 1) * ((2.0 * m * n - total) / total + spread)", "variance = mean / (total - 1) * ((2.0 * m * n - total) / total)"))
wrong("twosample/baselines.py::neighbour_test", "last j only", ("np.mean(np.abs(np.cumsum(others, axis=1) - chance))", "np.mean(np.abs(np.sum(others, axis=1) - chance[:, -1]))"))
wrong("twosample/baselines.py::neighbour_test", "threshold not standardised", ("(upper_quantile(draws, level) - centre) / deviation", "upper_quantile(draws, level)"))
wrong("twosample/baselines.py::partition_test", "cuts of the first sample", ("np.quantile(column, np.arange", "np.quantile(column[:m], np.arange"))
wrong("twosample/matching.py::auction", "reduction by 2", ("increment / reduction", "increment / 2.0"))
wrong("twosample/matching.py::auction", "largest cost", ("np.negative(costs[bidder]) - prices", "costs[bidder] - prices"))
wrong("twosample/selection.py::choose_bandwidth", "vertex to the other side", ("(before - after) /", "(after - before) /"))
wrong("twosample/evaluation.py::summarise", "margin over the median threshold", ("/ np.mean(thresholds))", "/ np.median(thresholds))"))
wrong("twosample/evaluation.py::summarise", "normal z for 90%", ("(1.0 - confidence) / 2.0)", "0.05)"))

right("twosample/estimators.py::unbiased_mmd", "slices", """
m = size
n = len(gram) - m
xx, yy, xy = gram[:m, :m], gram[m:, m:], gram[:m, m:]
return (xx.sum() - np.trace(xx)) / (m * (m - 1)) + (yy.sum() - np.trace(yy)) / (n * (n - 1)) - 2 * xy.sum() / (m * n)
""")
right("twosample/estimators.py::mmd_variance", "loop", """
core = paired_core(gram, size)
pairs = [core[i, j] for i in range(size) for j in range(size) if i != j]
c = sum(pairs) / len(pairs)
g = [(core[i].sum() - core[i, i]) / (size - 1) for i in range(size)]
one = max(0.0, sum(v * v for v in g) / size - c * c)
two = sum(v * v for v in pairs) / len(pairs) - c * c
return (4 * (size - 2) * one + 2 * two) / (size * (size - 1))
""")
right("twosample/nulls.py::PermutationNull.draws", "permuted matrices", """
values = []
for _ in range(self.count):
    order = rng.permutation(len(gram))
    values.append(unbiased_mmd(gram[np.ix_(order, order)], size))
return sample_scale(gram, size) * np.array(values)
""")
right("twosample/nulls.py::SpectrumNull.draws", "centring matrix", """
n = len(gram)
h = np.eye(n) - 1.0 / n
values = np.sort(np.linalg.eigvals(h @ gram @ h).real)[::-1][: min(self.rank, n)] / n
values[values < 0] = 0
a, b = rng.standard_normal((2, self.count, len(values)))
return (((a - b) ** 2 - 2) * values).sum(axis=1)
""")
right("twosample/kernels.py::SpectrumKernel.__call__", "Counter", """
from collections import Counter

def counts(string):
    return Counter(string[i : i + self.length] for i in range(len(string) - self.length + 1))

rows, columns = [counts(it) for it in a], [counts(it) for it in b]
norm = lambda one: sum(v * v for v in one.values()) ** 0.5
out = np.zeros((len(rows), len(columns)))
for i, one in enumerate(rows):
    for j, two in enumerate(columns):
        if one and two:
            out[i, j] = sum(v * two[key] for key, v in one.items()) / (norm(one) * norm(two))
return out
""")
right("twosample/baselines.py::friedman_rafsky_test", "loop", """
m, n = len(x), len(y)
N = m + n
pooled = np.vstack([x, y])
tree = spanning_tree(np.sqrt(squared_distances(pooled, pooled)))
R = sum((a < m) != (b < m) for a, b in tree)
degree = [0] * N
for a, b in tree:
    degree[a] += 1
    degree[b] += 1
C = sum(d * (d - 1) // 2 for d in degree)
E = 2 * m * n / N
V = E / (N - 1) * ((2 * m * n - N) / N + (C - N + 2) / ((N - 2) * (N - 3)) * (N * (N - 1) - 4 * m * n + 2))
return (E - R) / math.sqrt(V), normal_quantile(level)
""")
right("twosample/baselines.py::partition_test", "digitize", """
m, n = len(x), len(y)
pooled = np.vstack([x, y])
codes = np.zeros((m + n, pooled.shape[1]), dtype=int)
for j in range(pooled.shape[1]):
    codes[:, j] = np.digitize(pooled[:, j], [np.quantile(pooled[:, j], i / bins) for i in range(1, bins)])
_, cells = np.unique(codes, axis=0, return_inverse=True)
cells = cells.ravel()
distance = mean = spread = 0.0
for cell in range(cells.max() + 1):
    inside = cells == cell
    distance += abs(inside[:m].sum() / m - inside[m:].sum() / n)
    v = inside.sum() / (m + n) * (1 / m + 1 / n)
    mean += math.sqrt(2 * v / math.pi)
    spread += (1 - 2 / math.pi) * v
return (distance - mean) / math.sqrt(spread), normal_quantile(level)
""")
right("twosample/estimators.py::LinearStatistic.update", "point by point", """
if self._waiting is not None:
    x, y = np.concatenate([self._waiting[0], x]), np.concatenate([self._waiting[1], y])
for i in range(0, len(x) - 1, 2):
    one, two = slice(i, i + 1), slice(i + 1, i + 2)
    h = self.kernel.paired(x[one], x[two])[0] + self.kernel.paired(y[one], y[two])[0] - self.kernel.paired(x[one], y[two])[0] - self.kernel.paired(x[two], y[one])[0]
    self.count += 1
    delta = h - self.mean
    self.mean += delta / self.count
    self._squares += delta * (h - self.mean)
even = len(x) // 2 * 2
self._waiting = x[even:], y[even:]
""")
right("twosample/matching.py::auction", "sorted profits", """
k = len(costs)
spread = float(costs.max() - costs.min())
prices, eps, bids = np.zeros(k), spread / 2, 0
while True:
    column_of, row_of = [-1] * k, [-1] * k
    while -1 in column_of:
        row = column_of.index(-1)
        profit = -costs[row] - prices
        j = int(profit.argmax())
        second = max((profit[c] for c in range(k) if c != j), default=profit[j])
        prices[j] += profit[j] - second + eps
        if row_of[j] != -1:
            column_of[row_of[j]] = -1
        row_of[j], column_of[row] = row, j
        bids += 1
    if eps * k <= precision * spread:
        break
    eps /= reduction
return np.array(column_of), prices, bids
""")
