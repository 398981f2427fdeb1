"""Wrong variants of the calibration paper's functions."""

ISO = "calibration/binning.py::IsotonicRegression.fit"
wrong(ISO, "equal scores not pooled first", ("levels, groups = np.unique(scores, return_inverse=True)", "order = np.argsort(scores, kind=\"stable\")\n        levels, groups, outcomes = np.asarray(scores)[order], np.arange(len(scores)), np.asarray(outcomes)[order]"))
wrong(ISO, "unweighted blocks", ("weights = np.bincount(groups)", "weights = np.ones(len(levels))"), ("totals = np.bincount(groups, weights=outcomes)", "totals = np.bincount(groups, weights=outcomes) / np.bincount(groups)"))
wrong(ISO, "one knot a block", ("self.knots = np.ravel(np.column_stack([first, last]))", "self.knots = (first + last) / 2"), ("np.repeat(positives / mass, 2)", "positives / mass"))
ADA = "calibration/metrics.py::adaptive_error"
wrong(ADA, "unweighted mean", ("total += len(rows) * (np.square(gap) - chance)", "total += len(order) / n_bins * (np.square(gap) - chance)"))
wrong(ADA, "variance over n", ("(len(rows) - 1)", "len(rows)"))
wrong(ADA, "cut at 0", ("np.copysign(np.sqrt(np.abs(total) / len(order)), total)", "np.sqrt(max(total, 0.0) / len(order))"))
wrong(ADA, "larger bins last", ("np.array_split(order, n_bins)", "np.array_split(order[::-1], n_bins)"))
PLATT = "calibration/scaling.py::PlattScaling.fit"
wrong(PLATT, "without the guard", ("            while loss(parameters - move) > loss(parameters):\n                move = move / 2.0\n", ""))
wrong(PLATT, "plain targets", ("np.where(np.asarray(outcomes) > 0, (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0))", "np.asarray(outcomes, dtype=float)"))
wrong(PLATT, "counts of targets exchanged", ("1.0 / (negatives + 2.0)", "1.0 / (positives + 2.0)"))
wrong(PLATT, "prior offset", ("parameters = np.zeros(2)", "parameters = np.array([0.0, np.log((positives + 1.0) / (negatives + 1.0))])"))
REST = "calibration/binning.py::one_versus_rest"
wrong(REST, "rows of zeros uniform", ("np.where(possible, calibrated, new_scores)", "np.where(possible, calibrated, 1.0)"))
wrong(REST, "rows of zeros stay", ("np.where(possible, calibrated, new_scores)", "calibrated"), ("np.sum(chances, axis=1, keepdims=True)", "np.maximum(np.sum(chances, axis=1, keepdims=True), 1e-12)"))
wrong(REST, "not normalised", ("np.divide(chances, np.sum(chances, axis=1, keepdims=True))", "chances"))
HIST = "calibration/binning.py::HistogramBinning.fit"
wrong(HIST, "edge to the upper bin", ('side="left"', 'side="right"'))
wrong(HIST, "empty bins 0", ("np.maximum(counts, 1), middles", "np.maximum(counts, 1), 0.0"))
wrong(HIST, "Laplace's rule", ("positives / np.maximum(counts, 1)", "(positives + 1) / (counts + 2)"))
wrong(HIST, "quantile edges", ("equal_mass_edges(scores, self.n_bins)", "np.quantile(scores, np.arange(1, self.n_bins) / self.n_bins)"))
BBQ = "calibration/binning.py::BayesianBinning.fit"
wrong(BBQ, "strength not divided", ("self.strength / n_bins", "self.strength"))
wrong(BBQ, "upper bound left out", ("int(root * self.widest) + 1", "int(root * self.widest)"))
wrong(BBQ, "uniform weights", ("relative / np.sum(relative)", "np.ones(len(relative)) / len(relative)"))
wrong(BBQ, "prior mean one half", ("0.5 * prior * (ends[:-1] + ends[1:])", "0.5 * prior * np.ones(n_bins)"))
wrong(BBQ, "edge to the upper bin", ('side="left"', 'side="right"'))
REL = "calibration/metrics.py::reliability"
wrong(REL, "edge to the upper bin", ("bin_positions(confidences, n_bins)", "np.minimum((np.asarray(confidences) * n_bins).astype(int), n_bins - 1)"))
wrong(REL, "excess of underconfident bins", ("np.maximum(gaps, 0.0)", "np.maximum(-gaps, 0.0)"))
wrong(REL, "signed largest", ("np.max(np.abs(gaps))", "np.max(gaps)"))
CLASS = "calibration/metrics.py::classwise_error"
wrong(CLASS, "over the points kept", ("/ n_points)", "/ len(kept))"))
wrong(CLASS, "strictly above the floor", (">= floor", "> floor"))
wrong(CLASS, "nothing left out", ("0.1 / n_classes", "0.0"))
BRIER = "calibration/metrics.py::brier_parts"
wrong(BRIER, "mean over classes", ('return {name: float(value) for', 'return {name: float(value) / n_classes for'))
wrong(BRIER, "within of the other sign", ('parts["score"] - parts["reliability"]', 'parts["reliability"] - parts["score"]'))
BN = "calibration/layers.py::BatchNormalisation.forward"
wrong(BN, "biased running variance", (", ddof=1", ""))
wrong(BN, "unbiased in the batch", ("np.var(inputs, axis=0)\n", "np.var(inputs, axis=0, ddof=1)\n"))
wrong(BN, "momentum of the old value", ("level + self.pace * np.subtract(value, level)", "value + self.pace * np.subtract(level, value)"))
wrong(BN, "epsilon outside of the root", ("np.sqrt(variance + self.epsilon)", "(np.sqrt(variance) + self.epsilon)"))
wrong("calibration/layers.py::BatchNormalisation.backward", "no term of the variance", ("spread + along", "spread"))
wrong("calibration/network.py::Network.build", "Glorot's variance", ("np.sqrt(2.0 / fan_in)", "np.sqrt(2.0 / (fan_in + width))"))
wrong("calibration/network.py::Network.build", "2 / inputs in the last layer", ("np.sqrt(fan_in))", "np.sqrt(fan_in / 2.0))"))
GRAD = "calibration/network.py::Network.gradients"
wrong(GRAD, "decay without a half", ("0.5 * decay", "decay"))
wrong(GRAD, "everything decays", ("np.ndim(parameter) == 2", "np.ndim(parameter) >= 1"))
STEP = "calibration/optimisers.py::NesterovDescent.step"
wrong(STEP, "classical momentum", ("self.momentum * velocity - change", "velocity"))
wrong(STEP, "drop after its share", ('side="right"', 'side="left"'))
wrong(STEP, "each gradient limited alone", ("change = rate * scale * gradient", "change = rate * min(1.0, self.longest / np.sqrt(np.sum(np.square(gradient)))) * gradient"))
TRAIN = "calibration/training.py::train"
wrong(TRAIN, "unweighted objective", ("np.average(objectives, weights=sizes)", "np.mean(objectives)"))
wrong(TRAIN, "one permutation", ("    for _ in range(recipe.epochs):\n", "    once = rng.permutation(len(data.labels))\n    for _ in range(recipe.epochs):\n"), ("np.array_split(rng.permutation(len(data.labels)), n_batches)", "np.array_split(once, n_batches)"))
wrong(TRAIN, "fixed batches, last one small", ("np.array_split(rng.permutation(len(data.labels)), n_batches)", "np.split(rng.permutation(len(data.labels)), np.arange(1, n_batches) * recipe.batch_size)"))
wrong("calibration/optimisers.py::two_loop_direction", "oldest pair's scale", ("newest = changes[-1]", "newest = changes[0]"), ("(moves[-1] @ newest)", "(moves[0] @ newest)"))
wrong("calibration/optimisers.py::two_loop_direction", "first direction not limited", ("-gradient / np.maximum(1.0, np.sum(np.abs(gradient)))", "-gradient"))
MIN = "calibration/optimisers.py::minimise"
wrong(MIN, "pairs of any curvature", ("if direction @ (slope - gradient) > 0.0:", "if True:"))
wrong(MIN, "any decrease", ("value + length * promise", "value"))
wrong(MIN, "norm of the gradient", ("np.max(np.abs(gradient)) > tolerance", "np.linalg.norm(gradient) > tolerance"))
wrong(MIN, "one pair more", ("moves[-memory:], changes[-memory:]", "moves[-memory - 1 :], changes[-memory - 1 :]"))
TEMP = "calibration/scaling.py::TemperatureScaling.fit"
wrong(TEMP, "steps not limited", ("np.clip(step, -self.longest, self.longest)", "step"))
wrong(TEMP, "full Newton", ("np.square(inverse) * np.mean(variance)", "np.square(inverse) * np.mean(variance) + first"))
AFF = "calibration/scaling.py::AffineScaling.objective"
wrong(AFF, "sum of squares of offsets", ("self.bias * np.mean(np.square(offsets))", "self.bias * np.sum(np.square(offsets))"), ("2.0 * self.bias * offsets / n_classes", "2.0 * self.bias * offsets"))
wrong(AFF, "over k^2 entries", ("(n_classes * (n_classes - 1))", "(n_classes * n_classes)"))
ENT = "calibration/scaling.py::maximum_entropy"
wrong(ENT, "bracketing not counted", ("        tried += 1\n    while high", "    while high"))
wrong(ENT, "lower end follows", ("        high *= 2.0\n", "        low = high\n        high *= 2.0\n"))
wrong(ENT, "upper end as the answer", ("multiplier = 0.5 * (low + high)", "multiplier = high"))
wrong("calibration/sampling.py::stratified_split", "parts not permuted again", ("rng.permutation(part) for part in joined", "part for part in joined"))
wrong("calibration/sampling.py::stratified_split", "cuts rounded", ("np.floor_divide(bounds[:-1] * len(members), bounds[-1])", "np.rint(bounds[:-1] * len(members) / bounds[-1]).astype(int)"))
wrong("calibration/sampling.py::degrade", "shift to the other side", ("1 - shifts[row]", "1 + shifts[row]"))
wrong("calibration/sampling.py::degrade", "contrast after the noise", ("contrasts[row] * np.ravel(moved)", "np.ravel(moved)"), ("np.clip(degraded + noise", "np.clip(contrasts[:, None] * degraded + contrasts[:, None] * noise"))
wrong("calibration/synthetic.py::GaussianClasses.sample", "priors 1 / (c + 1)", ("np.arange(2.0, self.n_classes + 2)", "np.arange(1.0, self.n_classes + 1)"))
wrong("calibration/synthetic.py::GaussianClasses.sample", "no volume", (" - volume", ""))
wrong("calibration/synthetic.py::documents", "smoothed rarity plus 1", ("np.log((1.0 + n_points) / (1.0 + np.count_nonzero(counts, axis=0)))", "np.log((1.0 + n_points) / (1.0 + np.count_nonzero(counts, axis=0))) + 1.0"))
right(ISO, "equal means stay apart", ("<= blocks[-2][3] / blocks[-2][2]", "< blocks[-2][3] / blocks[-2][2]"))
