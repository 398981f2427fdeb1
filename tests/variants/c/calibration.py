"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("calibration/binning.py::HistogramBinning.fit", "equal mass ignored", ("if self.equal_mass:", "if False:"))
wrong("calibration/binning.py::HistogramBinning.fit", "edge belongs to the upper bin", ("side=\"left\"", "side=\"right\""))
wrong("calibration/binning.py::HistogramBinning.fit", "empty bins are 0", ("counts > 0, positives / np.maximum(counts, 1), middles", "counts > 0, positives / np.maximum(counts, 1), 0.0"))
wrong("calibration/binning.py::HistogramBinning.fit", "empty bins take their lower end", ("ends[:-1] + 0.5 * np.diff(ends)", "ends[:-1]"))
wrong("calibration/binning.py::HistogramBinning.fit", "always ten bins of equal width", ("np.linspace(0.0, 1.0, self.n_bins + 1)[1:-1]", "np.linspace(0.0, 1.0, 11)[1 : self.n_bins]"))
wrong("calibration/binning.py::HistogramBinning.fit", "bins over the range of the scores", ("np.linspace(0.0, 1.0, self.n_bins + 1)[1:-1]", "np.linspace(np.min(scores), np.max(scores), self.n_bins + 1)[1:-1]"))
wrong("calibration/binning.py::IsotonicRegression.fit", "equal scores are blocks of their own", ("levels, groups = np.unique(scores, return_inverse=True)", "order = np.argsort(scores, kind=\"stable\")\n        levels, groups = np.asarray(scores)[order], np.argsort(order)"))
wrong("calibration/binning.py::IsotonicRegression.fit", "unweighted means", ("blocks[-1][2] += extra\n                blocks[-1][3] += positive", "blocks[-1][3] = 0.5 * (blocks[-1][3] / blocks[-1][2] + positive / extra) * (blocks[-1][2] + extra)\n                blocks[-1][2] += extra"))
wrong("calibration/binning.py::IsotonicRegression.fit", "one pass", ("while len(blocks) > 1 and", "if len(blocks) > 1 and"))
wrong("calibration/binning.py::IsotonicRegression.fit", "steps at the first scores", ("np.ravel(np.column_stack([first, last]))", "np.ravel(np.column_stack([first, first]))"))
wrong("calibration/binning.py::IsotonicRegression.fit", "scores taken as sorted", ("levels, groups = np.unique(scores, return_inverse=True)", "levels, groups = np.unique(scores, return_inverse=True)\n        groups = np.sort(groups)"))
wrong("calibration/binning.py::BayesianBinning.fit", "strength fixed", ("self.strength / n_bins", "2.0 / n_bins"))
wrong("calibration/binning.py::BayesianBinning.fit", "strength for each bin", ("self.strength / n_bins", "self.strength"))
wrong("calibration/binning.py::BayesianBinning.fit", "widest fixed", ("int(root * self.widest) + 1", "int(root * 2.0) + 1"))
wrong("calibration/binning.py::BayesianBinning.fit", "widest not for the fewest", ("int(root / self.widest)", "int(root / 2.0)"))
wrong("calibration/binning.py::BayesianBinning.fit", "evidence underflows", ("np.exp(np.subtract(evidence, np.max(evidence)))", "np.exp(evidence)"))
wrong("calibration/binning.py::BayesianBinning.fit", "largest number left out", ("int(root * self.widest) + 1)", "int(root * self.widest))"))
wrong("calibration/binning.py::BayesianBinning.fit", "without the floor of 3", ("max(3, int(root / self.widest))", "max(1, int(root / self.widest))"))
wrong("calibration/binning.py::BayesianBinning.fit", "uniform prior mean", ("0.5 * prior * (ends[:-1] + ends[1:])", "0.5 * prior * np.ones(n_bins)"))
wrong("calibration/binning.py::one_versus_rest", "rows of zeros stay", ("chances = np.where(possible, calibrated, new_scores)", "chances = np.where(possible, calibrated, 1.0)"))
wrong("calibration/binning.py::one_versus_rest", "not normalised", ("return np.divide(chances, np.sum(chances, axis=1, keepdims=True))", "return chances"))
wrong("calibration/binning.py::one_versus_rest", "in place of the new scores", ("calibrated = np.empty_like(new_scores)", "calibrated = new_scores"))
wrong("calibration/binning.py::one_versus_rest", "always histograms", ("BINARY[name]()", "BINARY[\"histogram\"]()"))
wrong("calibration/layers.py::BatchNormalisation.forward", "biased running variance", ("follow(self.running_variance, unbiased)", "follow(self.running_variance, variance)"))
wrong("calibration/layers.py::BatchNormalisation.forward", "pace the other way round", ("level + self.pace * np.subtract(value, level)", "value + self.pace * np.subtract(level, value)"))
wrong("calibration/layers.py::BatchNormalisation.forward", "pace fixed", ("self.pace * np.subtract", "0.2 * np.subtract"))
wrong("calibration/layers.py::BatchNormalisation.forward", "usual epsilon", ("variance + self.epsilon", "variance + 1e-5"))
wrong("calibration/layers.py::BatchNormalisation.forward", "running statistics always", ("        if training:\n            mean, variance = np.mean(inputs, axis=0), np.var(inputs, axis=0)", "        mean, variance = self.running_mean, self.running_variance\n        if training:\n            batch_mean = np.mean(inputs, axis=0)"), ("follow(self.running_mean, mean)", "follow(self.running_mean, batch_mean)"))
wrong("calibration/layers.py::BatchNormalisation.backward", "statistics taken as constants", ("np.subtract(upstream, np.divide(spread + along, len(upstream)))", "upstream"))
wrong("calibration/layers.py::BatchNormalisation.backward", "mean only", ("np.divide(spread + along, len(upstream))", "np.divide(spread, len(upstream))"))
wrong("calibration/layers.py::BatchNormalisation.backward", "gain left out", ("return gain * self.factor * remainder", "return self.factor * remainder"))
wrong("calibration/metrics.py::adaptive_error", "bins of equal width", ("np.array_split(order, n_bins)", "(rows for rows in (np.flatnonzero(bin_positions(confidences, n_bins) == b) for b in range(n_bins)) if len(rows) > 1)"))
wrong("calibration/metrics.py::adaptive_error", "fifteen bins", ("np.array_split(order, n_bins)", "np.array_split(order, 15)"))
wrong("calibration/metrics.py::adaptive_error", "negative estimates are 0", ("float(np.copysign(np.sqrt(np.abs(total) / len(order)), total))", "float(np.sqrt(max(total, 0.0) / len(order)))"))
wrong("calibration/metrics.py::adaptive_error", "bins count the same", ("total += len(rows) * (np.square(gap) - chance)", "total += len(order) / n_bins * (np.square(gap) - chance)"))
wrong("calibration/metrics.py::adaptive_error", "unstable sort: later ones first on ties", ("np.argsort(confidences, kind=\"stable\")", "len(confidences) - 1 - np.argsort(np.asarray(confidences)[::-1], kind=\"stable\")"))
wrong("calibration/metrics.py::brier_parts", "fifteen bins", ("bin_positions(chances, n_bins)", "bin_positions(chances, 15)"))
wrong("calibration/metrics.py::brier_parts", "mean over classes", ("return {name: float(value) for name, value in parts.items()}", "return {name: float(value) / n_classes for name, value in parts.items()}"))
wrong("calibration/metrics.py::brier_parts", "within with the wrong sign", ("- parts[\"reliability\"] + parts[\"resolution\"] - parts[\"uncertainty\"]", "- parts[\"reliability\"] - parts[\"resolution\"] - parts[\"uncertainty\"]"))
wrong("calibration/metrics.py::classwise_error", "no floor", ("floor = 0.1 / n_classes", "floor = 0.0"))
wrong("calibration/metrics.py::classwise_error", "floor 1 / n_classes", ("floor = 0.1 / n_classes", "floor = 1.0 / n_classes"))
wrong("calibration/metrics.py::classwise_error", "relative to the kept points", ("np.sum(np.abs(gaps)) / n_points", "np.sum(np.abs(gaps)) / max(len(kept), 1)"))
wrong("calibration/metrics.py::classwise_error", "at the floor left out", (">= floor", "> floor"))
wrong("calibration/metrics.py::reliability", "fifteen bins", ("    counts = np.bincount(positions, minlength=n_bins)", "    positions, n_bins = bin_positions(confidences, 15), max(15, n_bins)\n    counts = np.bincount(positions, minlength=n_bins)"))
wrong("calibration/metrics.py::reliability", "excess of the mean", ("np.sum(shares * np.maximum(gaps, 0.0))", "max(np.sum(shares * gaps), 0.0)"))
wrong("calibration/metrics.py::reliability", "weighted largest", ("np.max(np.abs(gaps))", "np.max(shares * np.abs(gaps))"))
wrong("calibration/network.py::Network.build", "depth fixed", ("range(depth)", "range(2)"))
wrong("calibration/network.py::Network.build", "always normalised", ("if normalise:", "if True:"))
wrong("calibration/network.py::Network.build", "last layer as the blocks", ("np.divide(rng.standard_normal((fan_in, n_classes)), np.sqrt(fan_in))", "np.divide(rng.standard_normal((fan_in, n_classes)), np.sqrt(fan_in / 2.0))"))
wrong("calibration/network.py::Network.build", "normalisation behind the rectifier", ("            if normalise:\n                layers.append(BatchNormalisation(width))\n            layers.append(Rectifier())", "            layers.append(Rectifier())\n            if normalise:\n                layers.append(BatchNormalisation(width))"))
wrong("calibration/network.py::Network.gradients", "decay not halved in the objective", ("0.5 * decay * np.sum", "decay * np.sum"))
wrong("calibration/network.py::Network.gradients", "all parameters decay", ("if np.ndim(parameter) == 2:", "if True:"))
wrong("calibration/network.py::Network.gradients", "decay only in the objective", ("gradient = gradient + decay * parameter", "pass"))
wrong("calibration/network.py::Network.gradients", "sum over the batch", ("upstream = upstream / len(labels)", "pass"))
wrong("calibration/optimisers.py::NesterovDescent.step", "plain momentum", ("parameter += self.momentum * velocity - change", "parameter += velocity"))
wrong("calibration/optimisers.py::NesterovDescent.step", "shrink fixed", ("np.power(self.shrink, passed)", "np.power(0.1, passed)"))
wrong("calibration/optimisers.py::NesterovDescent.step", "each gradient on its own", ("change = rate * scale * gradient", "change = rate * min(1.0, self.longest / np.sqrt(np.sum(np.square(gradient)))) * gradient"))
wrong("calibration/optimisers.py::NesterovDescent.step", "steps not counted", ("    self.taken += 1", "    pass"))
wrong("calibration/optimisers.py::NesterovDescent.step", "drop just after its share", ("side=\"right\"", "side=\"left\""))
wrong("calibration/optimisers.py::NesterovDescent.step", "longest fixed", ("self.longest / length", "1.0 / length"))
wrong("calibration/optimisers.py::minimise", "decrease ignored", ("value + length * promise", "value"))
wrong("calibration/optimisers.py::minimise", "decrease fixed", ("promise = decrease *", "promise = 0.1 *"))
wrong("calibration/optimisers.py::minimise", "memory fixed", ("moves[-memory:], changes[-memory:]", "moves[-4:], changes[-4:]"))
wrong("calibration/optimisers.py::minimise", "tolerance fixed", ("> tolerance", "> 1e-5"))
wrong("calibration/optimisers.py::minimise", "all pairs kept", ("if direction @ (slope - gradient) > 0.0:", "if True:"))
wrong("calibration/optimisers.py::minimise", "in place on the start", ("point = np.array(start, dtype=float)", "point = start"), ("point, value, gradient = point + length * direction, reached, slope", "point += length * direction\n        value, gradient = reached, slope"))
wrong("calibration/optimisers.py::minimise", "norm of the gradient", ("np.max(np.abs(gradient)) > tolerance", "np.linalg.norm(gradient) > tolerance"))
wrong("calibration/optimisers.py::two_loop_direction", "changes the gradient", ("remaining = np.array(gradient)", "remaining = gradient"))
wrong("calibration/optimisers.py::two_loop_direction", "oldest pair scales", ("newest = changes[-1]\n    remaining *= (moves[-1] @ newest)", "newest = changes[0]\n    remaining *= (moves[0] @ newest)"))
wrong("calibration/optimisers.py::two_loop_direction", "length in place of the sum", ("np.sum(np.abs(gradient))", "np.linalg.norm(gradient)"))
wrong("calibration/optimisers.py::two_loop_direction", "weights not reversed", ("zip(moves, changes, reversed(weights))", "zip(moves, changes, weights)"))
wrong("calibration/sampling.py::degrade", "patch fixed", ("moved[down : down + patch, across : across + patch]", "moved[down : down + 2, across : across + 2]"))
wrong("calibration/sampling.py::degrade", "noise fixed", ("degraded + noise *", "degraded + 2.0 *"))
wrong("calibration/sampling.py::degrade", "not cut", ("np.clip(degraded + noise * rng.standard_normal(degraded.shape), 0.0, 16.0)", "degraded + noise * rng.standard_normal(degraded.shape)"))
wrong("calibration/sampling.py::degrade", "shifts wrap around", ("moved = np.array(framed[top : top + side, left : left + side], dtype=float)", "moved = np.roll(np.array(picture, dtype=float), tuple(shifts[row]), axis=(0, 1))"))
wrong("calibration/sampling.py::degrade", "integers stay integers", ("degraded = np.empty((n_images, side * side))", "degraded = np.empty((n_images, side * side), dtype=images.dtype)"))
wrong("calibration/sampling.py::stratified_split", "parts not permuted", ("[rng.permutation(part) for part in joined]", "joined"))
wrong("calibration/sampling.py::stratified_split", "rounded cuts", ("np.floor_divide(bounds[:-1] * len(members), bounds[-1])", "np.rint(bounds[:-1] * len(members) / bounds[-1]).astype(int)"))
wrong("calibration/sampling.py::stratified_split", "shares taken as percent", ("bounds[:-1] * len(members), bounds[-1]", "bounds[:-1] * len(members), 100"))
wrong("calibration/scaling.py::AffineScaling.objective", "penalties fixed", ("self.off_diagonal /", "0.5 /"))
wrong("calibration/scaling.py::AffineScaling.objective", "bias penalty summed", ("self.bias * np.mean(np.square(offsets))", "self.bias * np.sum(np.square(offsets))"))
wrong("calibration/scaling.py::AffineScaling.objective", "diagonal penalised", ("outside = weights - np.diag(np.diag(weights))", "outside = weights"))
wrong("calibration/scaling.py::PlattScaling.fit", "targets 0 and 1", ("(positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)", "1.0, 0.0"))
wrong("calibration/scaling.py::PlattScaling.fit", "cap fixed", ("self.iterations < self.max_iterations", "self.iterations < 20"))
wrong("calibration/scaling.py::PlattScaling.fit", "positives and negatives exchanged", ("(positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0)", "(negatives + 1.0) / (negatives + 2.0), 1.0 / (positives + 2.0)"))
wrong("calibration/scaling.py::TemperatureScaling.fit", "step limit fixed", ("np.clip(step, -self.longest, self.longest)", "np.clip(step, -0.5, 0.5)"))
wrong("calibration/scaling.py::TemperatureScaling.fit", "limited downwards only", ("np.clip(step, -self.longest, self.longest)", "np.minimum(step, self.longest)"))
wrong("calibration/scaling.py::TemperatureScaling.fit", "tolerance fixed", ("np.abs(first) <= self.tolerance", "np.abs(first) <= 1e-6"))
wrong("calibration/scaling.py::TemperatureScaling.fit", "exponent overflows", ("chances = softmax(inverse * logits)", "chances = np.exp(inverse * logits) / np.sum(np.exp(inverse * logits), axis=1, keepdims=True)"))
wrong("calibration/scaling.py::maximum_entropy", "tolerance fixed", ("high - low > tolerance", "high - low > 1e-4"))
wrong("calibration/scaling.py::maximum_entropy", "bits", ("return float(multiplier), float(entropy), tried", "return float(multiplier), float(entropy / np.log(2.0)), tried"))
wrong("calibration/scaling.py::maximum_entropy", "bisected from the last bracket", ("        high *= 2.0\n", "        low, high = high, high * 2.0\n"))
wrong("calibration/synthetic.py::GaussianClasses.sample", "posterior without the volume", (" - volume - 0.5", " - 0.5"))
wrong("calibration/synthetic.py::GaussianClasses.sample", "skew fixed", ("self.skew * mixing", "0.6 * mixing"))
wrong("calibration/synthetic.py::GaussianClasses.sample", "factors transposed", ("\"nd,nde->ne\"", "\"ne,nde->nd\""))
wrong("calibration/synthetic.py::documents", "shape fixed", ("rng.gamma(shape,", "rng.gamma(0.5,"))
wrong("calibration/synthetic.py::documents", "other topic may be the same", ("rng.integers(1, n_topics, size=n_points)", "rng.integers(0, n_topics - 1, size=n_points)"))
wrong("calibration/synthetic.py::documents", "frequencies without the one", ("(1.0 + n_points) / (1.0 + np.count_nonzero(counts, axis=0))", "n_points / np.maximum(np.count_nonzero(counts, axis=0), 1)"))
wrong("calibration/training.py::train", "batches count the same", ("np.average(objectives, weights=sizes)", "np.mean(objectives)"))
wrong("calibration/training.py::train", "one order for all epochs", ("    for _ in range(recipe.epochs):\n", "    order = rng.permutation(len(data.labels))\n    for _ in range(recipe.epochs):\n"), ("np.array_split(rng.permutation(len(data.labels)), n_batches)", "np.array_split(order, n_batches)"))
wrong("calibration/training.py::train", "decay ignored", ("recipe.decay)", "0.0)"))
wrong("calibration/training.py::train", "last batch is the rest", ("np.array_split(rng.permutation(len(data.labels)), n_batches)", "np.split(rng.permutation(len(data.labels)), range(recipe.batch_size, len(data.labels), recipe.batch_size))"))
wrong("calibration/training.py::train", "incomplete batch dropped", ("int(np.ceil(len(data.labels) / recipe.batch_size))", "max(1, len(data.labels) // recipe.batch_size)"))

right("calibration/binning.py::IsotonicRegression.fit", "greatest convex minorant", """
scores, outcomes = np.asarray(scores, dtype=float), np.asarray(outcomes, dtype=float)
levels, groups, sizes = np.unique(scores, return_inverse=True, return_counts=True)
x = np.concatenate([[0.0], np.cumsum(sizes)])
y = np.concatenate([[0.0], np.cumsum(np.bincount(groups, weights=outcomes))])
hull = []
for i in range(len(x)):
    while len(hull) > 1:
        a, b = hull[-2:]
        if (y[b] - y[a]) * (x[i] - x[b]) <= (y[i] - y[b]) * (x[b] - x[a]):
            break
        hull.pop()
    hull.append(i)
self.knots = np.ravel([[levels[a], levels[b - 1]] for a, b in zip(hull, hull[1:])])
self.values = np.ravel([[(y[b] - y[a]) / (x[b] - x[a])] * 2 for a, b in zip(hull, hull[1:])])
return self
""")
right("calibration/metrics.py::reliability", "loops", """
positions = bin_positions(confidences, n_bins)
counts, accuracy, confidence = np.zeros(n_bins, dtype=int), np.zeros(n_bins), np.zeros(n_bins)
for b in range(n_bins):
    rows = [i for i, position in enumerate(positions) if position == b]
    if rows:
        counts[b] = len(rows)
        accuracy[b] = np.mean(np.asarray(correct, dtype=float)[rows])
        confidence[b] = np.mean(np.asarray(confidences)[rows])
gaps = [(c / len(positions), p - a) for c, a, p in zip(counts, accuracy, confidence)]
return Diagram(
    counts, accuracy, confidence, float(sum(s * abs(g) for s, g in gaps)), float(max(abs(g) for _, g in gaps)),
    float(sum(s * g for s, g in gaps if g > 0)),
)
""")
right("calibration/optimisers.py::two_loop_direction", "full matrix", """
gradient = np.asarray(gradient, dtype=float)
if not moves:
    return -gradient / max(1.0, np.abs(gradient).sum())
identity = np.eye(len(gradient))
inverse = identity * (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
for s, y in zip(moves, changes):
    rho = 1.0 / (s @ y)
    inverse = (identity - rho * np.outer(s, y)) @ inverse @ (identity - rho * np.outer(y, s)) + rho * np.outer(s, s)
return -inverse @ gradient
""")
right("calibration/layers.py::BatchNormalisation.backward", "textbook", """
n = len(upstream)
gain = self.parameters[0]
self.gradients = [np.sum(upstream * self.standardised, axis=0), np.sum(upstream, axis=0)]
by_hat = upstream * gain
total = n * by_hat - by_hat.sum(axis=0) - self.standardised * (by_hat * self.standardised).sum(axis=0)
return self.factor / n * total
""")
right("calibration/sampling.py::stratified_split", "slices", """
total, parts = sum(shares), [[] for _ in shares]
for label in sorted(set(np.asarray(labels).tolist())):
    members = rng.permutation(np.flatnonzero(np.asarray(labels) == label))
    begin = 0
    for i in range(len(shares)):
        end = int(sum(shares[: i + 1])) * len(members) // int(total)
        parts[i].extend(members[begin:end])
        begin = end
return [rng.permutation(np.array(part, dtype=int)) for part in parts]
""")
right("calibration/metrics.py::adaptive_error", "loop", """
pairs = sorted(zip(np.asarray(confidences).tolist(), range(len(confidences))))
hits = np.asarray(correct, dtype=float)
n, total, begin = len(pairs), 0.0, 0
for b in range(n_bins):
    size = n // n_bins + (b < n % n_bins)
    rows = pairs[begin : begin + size]
    begin += size
    a = sum(hits[i] for _, i in rows) / size
    gap = sum(c for c, _ in rows) / size - a
    total += size / n * (gap**2 - a * (1 - a) / (size - 1))
return float(np.sign(total) * abs(total) ** 0.5)
""")
right("calibration/sampling.py::degrade", "explicit shifts", """
n, side = len(images), math.isqrt(images.shape[1])
shifts = rng.integers(2, size=(n, 2))
corners = rng.integers(side - patch + 1, size=(n, 2))
contrasts = rng.uniform(0.5, 1.5, size=n)
result = np.zeros((n, side, side))
for i in range(n):
    down, right_ = shifts[i]
    picture = images[i].reshape(side, side)
    result[i, down:, right_:] = picture[: side - down, : side - right_]
    y, x = corners[i]
    result[i, y : y + patch, x : x + patch] = 0.0
    result[i] *= contrasts[i]
flat = result.reshape(n, side * side)
return np.clip(flat + noise * rng.standard_normal(flat.shape), 0.0, 16.0)
""")

# Was written as a wrong one. A full step never raises the loss by more than rounding does; pool a has it as a right one, too.
wrong("calibration/scaling.py::PlattScaling.fit", "full steps", ("            while loss(parameters - move) > loss(parameters):\n                move = move / 2.0\n", ""))
