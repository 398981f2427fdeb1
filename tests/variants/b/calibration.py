"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("calibration/synthetic.py::GaussianClasses.sample", "noise after, not before the factor", ('"nd,nde->ne"', '"nd,ned->ne"'))
wrong("calibration/synthetic.py::GaussianClasses.sample", "equal priors", ("np.reciprocal(np.arange(2.0, self.n_classes + 2))", "np.ones(self.n_classes)"))
wrong("calibration/synthetic.py::documents", "second topic may be the first", ("rng.integers(1, n_topics, size=n_points)", "rng.integers(0, n_topics, size=n_points)"))
wrong("calibration/synthetic.py::documents", "shares exchanged", ("(1.0 - shares) * topics[labels] + shares * topics[others]", "shares * topics[labels] + (1.0 - shares) * topics[others]"))
wrong("calibration/sampling.py::stratified_split", "one permutation for all", ("rng.permutation(np.flatnonzero(labels == label))", "np.flatnonzero(labels == label)"))
wrong("calibration/sampling.py::degrade", "patch before the shift", ("        moved[down : down + patch, across : across + patch] = 0.0\n", "        moved[max(down - 1, 0) : down + patch - 1, across : across + patch] = 0.0\n"))
wrong("calibration/sampling.py::degrade", "values not cut", ("np.clip(degraded + noise * rng.standard_normal(degraded.shape), 0.0, 16.0)", "degraded + noise * rng.standard_normal(degraded.shape)"))
wrong("calibration/layers.py::BatchNormalisation.forward", "batch statistics outside training", ("mean, variance = self.running_mean, self.running_variance", "mean, variance = np.mean(inputs, axis=0), np.var(inputs, axis=0)"))
wrong("calibration/layers.py::BatchNormalisation.forward", "gain left out", ("return gain * self.standardised + shift", "return self.standardised + shift"))
wrong("calibration/layers.py::BatchNormalisation.backward", "statistics as constants", ("return gain * self.factor * remainder", "return gain * self.factor * upstream"))
wrong("calibration/network.py::Network.build", "rectifier before normalisation", ("            if normalise:\n                layers.append(BatchNormalisation(width))\n            layers.append(Rectifier())\n", "            layers.append(Rectifier())\n            if normalise:\n                layers.append(BatchNormalisation(width))\n"))
wrong("calibration/network.py::Network.gradients", "sum over the batch", ("upstream = upstream / len(labels)", "upstream = upstream * 1.0"))
wrong("calibration/optimisers.py::NesterovDescent.step", "rate drops once", ("np.searchsorted(self.drops, self.taken / self.n_steps, side=\"right\")", "int(self.taken / self.n_steps >= self.drops[0])"))
wrong("calibration/optimisers.py::NesterovDescent.step", "always scaled to the length", ("np.minimum(1.0, self.longest / length)", "self.longest / length"))
wrong("calibration/training.py::train", "objective after training", ("descent.step(gradients)\n            objectives.append(objective)", "descent.step(gradients)\n            objectives.append(network.gradients(data.points[rows], data.labels[rows], recipe.decay)[0])"))
wrong("calibration/optimisers.py::two_loop_direction", "pairs in the same order", ("zip(moves, changes, reversed(weights))", "zip(moves, changes, weights)"))
wrong("calibration/optimisers.py::minimise", "evaluations halved away not counted", ("            reached, slope = objective(point + length * direction)\n            evaluations += 1\n", "            reached, slope = objective(point + length * direction)\n"))
wrong("calibration/metrics.py::reliability", "unweighted error", ("np.sum(shares * np.abs(gaps))", "np.mean(np.abs(gaps))"))
wrong("calibration/metrics.py::adaptive_error", "variance not subtracted", ("np.square(gap) - chance", "np.square(gap)"))
wrong("calibration/metrics.py::classwise_error", "maximum over classes", ("float(np.mean(errors))", "float(np.max(errors))"))
wrong("calibration/metrics.py::brier_parts", "score of the true class only", ('parts["score"] += np.mean(np.square(chances - truth))', 'parts["score"] += np.mean(np.square(chances - truth) * truth)'))
wrong("calibration/binning.py::HistogramBinning.fit", "mean score for the share", ("weights=outcomes, minlength", "weights=scores, minlength"))
wrong("calibration/binning.py::IsotonicRegression.fit", "decreasing", ("blocks[-1][3] / blocks[-1][2] <= blocks[-2][3] / blocks[-2][2]", "blocks[-1][3] / blocks[-1][2] >= blocks[-2][3] / blocks[-2][2]"))
wrong("calibration/binning.py::IsotonicRegression.fit", "one pass", ("while len(blocks) > 1 and", "if len(blocks) > 1 and"))
wrong("calibration/binning.py::BayesianBinning.fit", "best scheme only", ("self.weights = relative / np.sum(relative)", "self.weights = (relative == np.max(relative)).astype(float)"))
wrong("calibration/binning.py::BayesianBinning.fit", "shares without a prior", ("(alpha + positives) / (prior + counts)", "positives / np.maximum(counts, 1)"))
wrong("calibration/binning.py::one_versus_rest", "softmax", ("return np.divide(chances, np.sum(chances, axis=1, keepdims=True))", "return np.exp(chances) / np.sum(np.exp(chances), axis=1, keepdims=True)"))
wrong("calibration/scaling.py::PlattScaling.fit", "gradient descent", ("np.linalg.solve(curvature, gradient)", "gradient"))
wrong("calibration/scaling.py::TemperatureScaling.fit", "inverse temperature", ("float(np.exp(level))", "float(np.exp(-level))"))
wrong("calibration/scaling.py::AffineScaling.objective", "diagonal penalised towards 0", ("outside = weights - np.diag(np.diag(weights))", "outside = weights"))
wrong("calibration/scaling.py::maximum_entropy", "width relative", ("while high - low > tolerance:", "while high - low > tolerance * high:"))

right("calibration/binning.py::IsotonicRegression.fit", "by the greatest minimum of means", """
scores, outcomes = np.asarray(scores), np.asarray(outcomes, dtype=float)
levels = np.unique(scores)
sums = np.array([outcomes[scores == level].sum() for level in levels])
sizes = np.array([np.sum(scores == level) for level in levels])
above = np.concatenate([[0.0], np.cumsum(sums)])
points = np.concatenate([[0.0], np.cumsum(sizes)])
means = np.array([[(above[j + 1] - above[i]) / (points[j + 1] - points[i]) if j >= i else np.inf for j in range(len(levels))] for i in range(len(levels))])
least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
values = [np.max(least[: at + 1, at]) for at in range(len(levels))]
self.knots, self.values = levels, np.array(values)
return self
""")
right("calibration/binning.py::HistogramBinning.fit", "loop", """
scores, outcomes = np.asarray(scores), np.asarray(outcomes)
self.edges = equal_mass_edges(scores, self.n_bins) if self.equal_mass else np.arange(1, self.n_bins) / self.n_bins
ends = [0.0, *self.edges, 1.0]
places = np.digitize(scores, self.edges, right=True)
self.values = np.array([outcomes[places == b].mean() if np.any(places == b) else (ends[b] + ends[b + 1]) / 2 for b in range(self.n_bins)])
return self
""")
right("calibration/metrics.py::reliability", "loop", """
places = bin_positions(confidences, n_bins)
confidences, correct = np.asarray(confidences), np.asarray(correct, dtype=float)
counts, accuracy, confidence = np.zeros(n_bins, dtype=int), np.zeros(n_bins), np.zeros(n_bins)
for b in range(n_bins):
    inside = places == b
    counts[b] = inside.sum()
    if counts[b]:
        accuracy[b], confidence[b] = correct[inside].mean(), confidences[inside].mean()
gaps = confidence - accuracy
weights = counts / len(confidences)
return Diagram(counts, accuracy, confidence, float(weights @ np.abs(gaps)), float(np.abs(gaps).max()), float(weights @ gaps.clip(0)))
""")
right("calibration/layers.py::BatchNormalisation.backward", "by parts", """
gain = self.parameters[0]
n = len(upstream)
self.gradients = [(upstream * self.standardised).sum(axis=0), upstream.sum(axis=0)]
inner = upstream * gain
return self.factor / n * (n * inner - inner.sum(axis=0) - self.standardised * (inner * self.standardised).sum(axis=0))
""")
right("calibration/scaling.py::maximum_entropy", "loop", """
def side(multiplier):
    chances = softmax(multiplier * logits)
    return float((chances * logits).sum(axis=1).mean())

wanted = float(logits[np.arange(len(labels)), labels].mean())
low, high, tried = 0.0, 0.25, 0
while True:
    tried += 1
    if side(high) >= wanted:
        break
    high = 2 * high
while high - low > tolerance:
    middle = (low + high) / 2
    tried += 1
    low, high = (middle, high) if side(middle) < wanted else (low, middle)
answer = (low + high) / 2
chances = softmax(answer * logits)
return answer, float(-(chances * np.log(chances)).sum(axis=1).mean()), tried
""")
right("calibration/scaling.py::TemperatureScaling.fit", "np.var by hand", """
rows = np.arange(len(labels))
u, self.iterations = 0.0, 0
for _ in range(self.max_iterations):
    a = np.exp(-u)
    p = softmax(a * logits)
    m = (p * logits).sum(axis=1)
    v = (p * (logits - m[:, None]) ** 2).sum(axis=1)
    f1 = -a * np.mean(m - logits[rows, labels])
    if abs(f1) <= self.tolerance:
        break
    u -= max(-self.longest, min(self.longest, f1 / (a * a * np.mean(v))))
    self.iterations += 1
self.temperature = float(np.exp(u))
return self
""")
right("calibration/optimisers.py::two_loop_direction", "dense inverse Hessian", """
if not moves:
    return -gradient / max(1.0, np.abs(gradient).sum())
size = len(gradient)
inverse = np.eye(size) * (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
for s, y in zip(moves, changes):
    rho = 1.0 / (s @ y)
    left = np.eye(size) - rho * np.outer(s, y)
    inverse = left @ inverse @ left.T + rho * np.outer(s, s)
return -inverse @ gradient
""")
right("calibration/metrics.py::adaptive_error", "loop", """
confidences, correct = np.asarray(confidences, dtype=float), np.asarray(correct, dtype=float)
order = np.argsort(confidences, kind="mergesort")
n, start, v = len(order), 0, 0.0
for b in range(n_bins):
    size = n // n_bins + (b < n % n_bins)
    rows = order[start : start + size]
    start += size
    a = correct[rows].mean()
    v += size / n * ((confidences[rows].mean() - a) ** 2 - a * (1 - a) / (size - 1))
return float(np.sqrt(v)) if v >= 0 else float(-np.sqrt(-v))
""")
