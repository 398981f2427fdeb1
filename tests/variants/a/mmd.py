"""Wrong variants of the two-sample paper's functions."""

ORTHO = "twosample/kernels.py::orthogonal_frequencies"
wrong(ORTHO, "signs ignored", ("np.multiply(basis, np.sign(np.diagonal(triangle)))", "basis"))
wrong(ORTHO, "norms of columns", ("np.sum(squares, axis=1)", "np.sum(squares, axis=0)"))
wrong(ORTHO, "times the bandwidth", ("[:count] / bandwidth", "[:count] * bandwidth"))
wrong(ORTHO, "rows for columns", ("np.transpose(directions)", "directions"))
LIN = "twosample/estimators.py::LinearStatistic.update"
wrong(LIN, "drift left out", (" + np.square(drift) * self.count * added / total", ""))
wrong(LIN, "leftover point dropped", ("self._waiting = (x[paired:], y[paired:])", "self._waiting = None"))
wrong(LIN, "leftover forgets its partner", ("self.kernel.paired(x[even], y[odd])", "self.kernel.paired(x[odd], y[odd])"))
HOT = "twosample/baselines.py::hotelling_test"
wrong(HOT, "ridge not relative", ("ridge * np.trace(covariance) / dimension * np.eye(dimension)", "ridge * np.eye(dimension)"))
wrong(HOT, "total - 1", ("scatter / (total - 2)", "scatter / (total - 1)"))
wrong(HOT, "ridge of the trace", ("np.trace(covariance) / dimension", "np.trace(covariance)"))
PART = "twosample/baselines.py::partition_test"
wrong(PART, "cut to the part below", ('side="right"', 'side="left"'))
wrong(PART, "squared differences", ("np.sum(np.abs(shares - others))", "np.sum(np.square(shares - others))"))
wrong(PART, "variance of the sum only", ("(1.0 - 2.0 / math.pi) * np.sum(variances)", "np.sum(variances)"))
wrong(PART, "equal widths", ("np.quantile(column, np.arange(1, bins) / bins)", "np.linspace(np.min(column), np.max(column), bins + 1)[1:-1]"))
UNB = "twosample/estimators.py::unbiased_mmd"
wrong(UNB, "biased", ("(size * (size - 1))", "size**2"), ("(other * (other - 1))", "other**2"))
wrong(UNB, "diagonal across left out", ("np.mean(gram[np.ix_(first, second)])", "(np.sum(gram[np.ix_(first, second)]) - np.trace(gram[np.ix_(first, second)])) / (size * (other - 1))"))
wrong(UNB, "diagonal kept", ("np.subtract(gram, np.diag(np.diagonal(gram)))", "gram"))
VAR = "twosample/estimators.py::mmd_variance"
wrong(VAR, "means over all pairs", ("/ (size - 1)\n    single", "/ size\n    single"))
wrong(VAR, "m for m - 2", ("4.0 * (size - 2)", "4.0 * size"))
wrong(VAR, "with diagonal", ("values = core[off]", "values = core.ravel()"))
WIT = "twosample/estimators.py::witness_profile"
wrong(WIT, "not of unit norm", (" / biased_mmd(pooled_gram(kernel, x, y), len(x))", ""))
wrong(WIT, "norm squared", ("biased_mmd(pooled_gram(kernel, x, y), len(x))", "biased_mmd(pooled_gram(kernel, x, y), len(x)) ** 2"))
wrong(WIT, "zeros at grid points", ("places[left] + share * np.diff(places)[left]", "places[left]"))
wrong(WIT, "signed area", ("heights = np.abs(values)", "heights = values"))
wrong(WIT, "left Riemann sum", ("(heights[:-1] + heights[1:]) / 2.0", "heights[:-1]"))
BLOCK = "twosample/estimators.py::block_mmd"
wrong(BLOCK, "population deviation", (", ddof=1", ""))
wrong(BLOCK, "without the root", ("/ np.sqrt(count)", "/ count"))
wrong(BLOCK, "last part a block, too", ("min(len(x), len(y)) // block", "-(-min(len(x), len(y)) // block)"))
wrong("twosample/synthetic.py::perturbed_gaussian", "uniform numbers first", ("        proposals = rng.standard_normal(size)\n        heights = 2.0 * rng.random(size)\n", "        heights = 2.0 * rng.random(size)\n        proposals = rng.standard_normal(size)\n"))
wrong("twosample/synthetic.py::perturbed_gaussian", "as many as are missing", ("proposals = rng.standard_normal(size)", "proposals = rng.standard_normal(size - len(accepted))"), ("rng.random(size)", "rng.random(len(proposals))"))
wrong("twosample/synthetic.py::blobs", "clockwise", ("[[half, -half], [half, half]]", "[[half, half], [-half, half]]"))
wrong("twosample/synthetic.py::blobs", "deviation for variance", ("np.sqrt([effect, 1.0])", "np.array([effect, 1.0])"))
wrong("twosample/synthetic.py::blobs", "second coordinate stretched", ("[effect, 1.0]", "[1.0, effect]"))
wrong("twosample/synthetic.py::markov_strings", "stay at the number itself", ("np.greater_equal(", "np.less("))
wrong("twosample/synthetic.py::markov_strings", "jumps to any letter", ("rng.integers(1, 4,", "rng.integers(0, 4,"))
SPEC = "twosample/kernels.py::SpectrumKernel.__call__"
wrong(SPEC, "each substring once", ("counts.get(column, 0) + 1", "1"))
wrong(SPEC, "not overlapping", ("range(len(string) - self.length + 1)", "range(0, len(string) - self.length + 1, self.length)"))
wrong(SPEC, "counts, no cosine", ("np.divide(table, np.maximum(lengths, 1e-300))", "table"))
MED = "twosample/kernels.py::median_bandwidth"
wrong(MED, "first points", ("np.floor(np.arange(limit) * len(sample) / limit).astype(int)", "np.arange(limit)"))
wrong(MED, "linspace of indices", ("np.floor(np.arange(limit) * len(sample) / limit).astype(int)", "np.linspace(0, len(sample) - 1, limit).astype(int)"))
wrong(MED, "zeros count", ("np.greater(pairs, 0.0)", "np.greater_equal(pairs, 0.0)"))
wrong(MED, "half of the squared median", ("np.sqrt(np.median(positive))", "np.sqrt(np.median(positive) / 2.0)"))
wrong(MED, "median of distances", ("np.sqrt(np.median(positive))", "np.median(np.sqrt(positive))"))
PERM = "twosample/nulls.py::PermutationNull.draws"
wrong(PERM, "not scaled", ("sample_scale(gram, size) * values", "values"))
wrong(PERM, "labels permuted", ("np.put(member, rng.permutation(total)[:size], 1.0)", "member[np.flatnonzero(rng.permutation(total) < size)] = 1.0"))
SPN = "twosample/nulls.py::SpectrumNull.draws"
wrong(SPN, "over m", ("[:rank] / len(gram)", "[:rank] / size"))
wrong(SPN, "rows centred only", ("centred = shifted - np.mean(shifted, axis=1, keepdims=True)", "centred = (shifted + shifted.T) / 2"))
wrong(SPN, "smallest first", ("np.flip(np.linalg.eigvalsh(centred))[:rank]", "np.flip(np.linalg.eigvalsh(centred))[:rank][::-1]"))
wrong(SPN, "negative ones count", ("np.maximum(eigenvalues, 0.0)", "eigenvalues"))
GAM = "twosample/nulls.py::GammaNull.threshold"
wrong(GAM, "with the diagonal", ("- np.sum(np.square(np.diagonal(core)))", ""))
wrong(GAM, "kernel of 1 on the diagonal", ("own[:size] + own[size:]", "2.0"))
wrong(GAM, "scale not times m", ("size * variance / mean", "variance / mean"))
PEA = "twosample/nulls.py::PearsonNull.threshold"
wrong(PEA, "m for m - 1", ("2.0 * second * size / (size - 1)", "2.0 * second"))
wrong(PEA, "2 / g", ("4.0 / np.square(skewness)", "2.0 / skewness"))
WILD = "twosample/nulls.py::WildNull.draws"
wrong(WILD, "not centred", ("centred = multipliers - np.mean(multipliers, axis=1, keepdims=True)", "centred = multipliers"))
wrong(WILD, "without the diagonal", ("core = paired_core(gram, size)", "core = paired_core(gram, size)\n        core = core - np.diag(np.diag(core))"))
wrong(WILD, "not stationary", ("multipliers = np.copy(noise)", "multipliers = np.copy(noise) * np.r_[fresh, np.ones(size - 1)]"))
TREE = "twosample/baselines.py::spanning_tree"
wrong(TREE, "latest on ties", ("np.less(distances[joins], gaps)", "np.less_equal(distances[joins], gaps)"))
wrong(TREE, "highest index on ties", ("int(np.argmin(np.where(outside, gaps, np.inf)))", "int(total - 1 - np.argmin(np.where(outside, gaps, np.inf)[::-1]))"))
wrong(TREE, "sorted edges", ("np.array(edges)", "np.array(sorted(edges))"))
FR = "twosample/baselines.py::friedman_rafsky_test"
wrong(FR, "sign kept", ("(mean - crossing)", "(crossing - mean)"))
wrong(FR, "pairs of edges twice", ("np.sum(degrees * (degrees - 1)) / 2.0", "np.sum(degrees * (degrees - 1))"))
wrong(FR, "number of runs", ("crossing = np.count_nonzero(np.logical_xor(from_x[:, 0], from_x[:, 1]))", "crossing = 1 + np.count_nonzero(np.logical_xor(from_x[:, 0], from_x[:, 1]))"))
NEI = "twosample/baselines.py::neighbour_test"
wrong(NEI, "sample deviation", ("np.std(draws)", "np.std(draws, ddof=1)"))
wrong(NEI, "itself a neighbour", ("    np.fill_diagonal(distances, np.inf)\n", ""))
wrong(NEI, "chance by N", ("/ (len(labels) - 1)", "/ len(labels)"))
wrong(NEI, "own sample's size", ("sizes[1 - labels]", "sizes[labels]"))
wrong(NEI, "squares", ("np.mean(np.abs(np.cumsum(others, axis=1) - chance))", "np.mean(np.square(np.cumsum(others, axis=1) - chance))"))
AUC = "twosample/matching.py::auction"
wrong(AUC, "prices from 0 in each round", ("        owners = np.full(count, -1)\n", "        owners = np.full(count, -1)\n        prices = np.zeros(count)\n"))
wrong(AUC, "increment only", ("profits[best] - (np.max(rest) if len(rest) else profits[best]) + increment", "increment"))
wrong(AUC, "one round more", ("if increment * count <= precision * spread:", "if reduction * increment * count <= precision * spread:"))
CHO = "twosample/selection.py::choose_bandwidth"
wrong(CHO, "linear scale", ("candidates[best] * factor**shift", "candidates[best] + shift * (candidates[1] - candidates[0])"))
wrong(CHO, "not refined", ("if 0 < best < len(candidates) - 1:", "if False:"))
wrong(CHO, "variance for deviation", ("np.sqrt(max(mmd_variance(gram, len(x)), 1e-10))", "max(mmd_variance(gram, len(x)), 1e-10)"))
SUM = "twosample/evaluation.py::summarise"
wrong(SUM, "at the threshold, too", ("np.greater(", "np.greater_equal("))
wrong(SUM, "one-sided z", ("(1.0 - confidence) / 2.0", "1.0 - confidence"))
wrong(SUM, "Wald's interval", ("    centre = (rate + np.square(z) / (2.0 * count)) / shrink\n", "    centre, shrink = rate, 1.0\n"), ("+ np.square(z / (2.0 * count))", ""))
wrong(SUM, "mean margin", ("np.median(statistics - thresholds)", "np.mean(statistics - thresholds)"))
