"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("consistency/graph.py::local_width.weigh", "own distance counts as the nearest", ("        np.fill_diagonal(others, np.inf)\n", ""))
wrong("consistency/graph.py::local_width.weigh", "works on the distances that it gets", ("np.array(distances, dtype=float)", "np.asarray(distances, dtype=float)"))
wrong("consistency/graph.py::local_width.weigh", "always the first neighbour", ("int(rank) - 1", "0"))
wrong("consistency/graph.py::local_width.weigh", "equal points divide by 0", ("np.maximum(np.outer(scales, scales), np.finfo(float).tiny)", "np.outer(scales, scales)"))
wrong("consistency/graph.py::local_width.weigh", "twice the width", ("/ widths)", "/ (2.0 * widths))"))
wrong("consistency/graph.py::bridge_components", "in place on the mask", ("mask = np.array(mask)", "mask = np.asarray(mask)"))
wrong("consistency/graph.py::bridge_components", "longest edges", ("np.unravel_index(np.argmin(lengths), lengths.shape)", "np.unravel_index(np.argmax(np.where(apart, distances, -np.inf)), lengths.shape)"))
wrong("consistency/graph.py::bridge_components", "one direction", ("mask[row, column] = mask[column, row] = True", "mask[row, column] = True"))
wrong("consistency/graph.py::bridge_components", "last pair on ties", ("np.unravel_index(np.argmin(lengths), lengths.shape)", "np.unravel_index(lengths.size - 1 - np.argmin(lengths.ravel()[::-1]), lengths.shape)"))
wrong("consistency/graph.py::normalise", "row and column exchanged", ("\"row\": (1.0, 0.0), \"column\": (0.0, 1.0)", "\"row\": (0.0, 1.0), \"column\": (1.0, 0.0)"))
wrong("consistency/graph.py::normalise", "column sums as degrees", ("np.sum(weights, axis=1)", "np.sum(weights, axis=0)"))
wrong("consistency/graph.py::normalise", "unknown kinds are symmetric", ("left, right = exponents[kind]", "left, right = exponents.get(kind, (0.5, 0.5))"), ("raise ValueError(f\"unknown normalisation {kind!r}\")", "kind = \"symmetric\""))
wrong("consistency/labels.py::class_mass_normalise", "without the one added", ("minlength=scores.shape[1]) + 1.0", "minlength=scores.shape[1])"))
wrong("consistency/labels.py::class_mass_normalise", "mass of all points", ("np.sum(np.compress(partial < 0, scores, axis=0), axis=0)", "np.sum(scores, axis=0)"))
wrong("consistency/labels.py::class_mass_normalise", "rows not divided", ("return np.divide(scaled, totals, out=scaled, where=totals > 0)", "return scaled"))
wrong("consistency/labels.py::class_mass_normalise", "in place on the scores", ("scaled = np.multiply(scores, factors)", "scores *= factors\n    scaled = scores"))
wrong("consistency/labels.py::class_mass_normalise", "empty columns become zeros", ("out=np.ones_like(priors)", "out=np.zeros_like(priors)"))
wrong("consistency/labels.py::class_mass_normalise", "divides by non-positive totals", ("return np.divide(scaled, totals, out=scaled, where=totals > 0)", "return scaled / totals"))
wrong("consistency/metrics.py::class_report", "all points", ("hidden = np.less(partial, 0)", "hidden = np.ones(len(truth), dtype=bool)"))
wrong("consistency/metrics.py::class_report", "absent classes left out", ("float(1.0 - np.mean(recall))", "float(1.0 - np.mean(recall[members > 0]))"))
wrong("consistency/metrics.py::class_report", "classes of the truth only", ("int(max(np.max(truth), np.max(predicted))) + 1", "int(np.max(truth)) + 1"), ("np.add.at(table, (truth[hidden], predicted[hidden]), 1.0)", "np.add.at(table, (truth[hidden], np.minimum(predicted[hidden], n_classes - 1)), 1.0)"))
wrong("consistency/metrics.py::class_report", "pairs counted once", ("np.add.at(table, (truth[hidden], predicted[hidden]), 1.0)", "table[truth[hidden], predicted[hidden]] += 1.0"))
wrong("consistency/metrics.py::class_report", "micro f1", ("\"f1\": float(np.mean(f1))", "\"f1\": float(np.sum(hits) / total)"))
wrong("consistency/metrics.py::class_report", "f1 over classes with members", ("float(np.mean(f1))", "float(np.mean(f1[members + claims > 0]))"))
wrong("consistency/metrics.py::paired_comparison", "ties lose", ("wins + 0.5 * (len(gaps) - throws)", "wins"))
wrong("consistency/metrics.py::paired_comparison", "not capped", ("min(1.0, 2.0 * tail)", "2.0 * tail"))
wrong("consistency/metrics.py::paired_comparison", "population deviation", ("ddof=1", "ddof=0"))
wrong("consistency/metrics.py::paired_comparison", "fewer heads than the rarer", ("range(rarer + 1)", "range(rarer)"))
wrong("consistency/metrics.py::paired_comparison", "ties among the throws", ("throws, rarer = wins + losses", "throws, rarer = len(gaps)"))
wrong("consistency/metrics.py::summarise_curve", "linear counts", ("np.log(np.asarray(counts, dtype=float))", "np.asarray(counts, dtype=float)"))
wrong("consistency/metrics.py::summarise_curve", "plain mean of the means", ("np.dot(gaps, middles) / np.sum(gaps)", "np.mean(mean)"))
wrong("consistency/metrics.py::summarise_curve", "area not divided", ("np.dot(gaps, middles) / np.sum(gaps)", "np.dot(gaps, middles)"))
wrong("consistency/metrics.py::summarise_curve", "single count gives 0", ("else mean[0]", "else 0.0"))
wrong("consistency/metrics.py::summarise_curve", "deviation of the trials", (" / np.sqrt(len(errors))", ""))
wrong("consistency/models.py::Consistency.extend", "alpha left out", ("return self.alpha * np.dot", "return np.dot"))
wrong("consistency/models.py::Consistency.extend", "all points as neighbours", ("if builder.neighbours is not None:", "if False:"))
wrong("consistency/models.py::Consistency.extend", "row normalisation", ("np.sqrt(own * degrees)", "own"))
wrong("consistency/models.py::Consistency.extend", "degrees with the new points", ("degrees = np.sum(points.weights, axis=1)", "degrees = np.sum(points.weights, axis=1) + np.sum(ties, axis=0)"))
wrong("consistency/models.py::HarmonicFields.score", "degrees of the unknown ones only", ("degrees = np.sum(points.weights, axis=1)", "degrees = np.sum(points.weights[:, unknown], axis=1)"))
wrong("consistency/models.py::HarmonicFields.score", "mass ignored", ("if self.mass else scores", "if False else scores"))
wrong("consistency/models.py::HarmonicFields.score", "mass always", ("if self.mass else scores", "if True else scores"))
wrong("consistency/models.py::ClampedPropagation.score", "cap ignored", (" and self.iterations_ < self.max_iterations", ""))
wrong("consistency/models.py::ClampedPropagation.score", "tolerance fixed", ("change >= self.tolerance", "change >= 1e-2"))
wrong("consistency/models.py::ClampedPropagation.score", "start from zeros", ("scores[free] = np.sum(targets, axis=0) / np.sum(targets)", "scores[free] = 0.0"))
wrong("consistency/models.py::ClampedPropagation.score", "start with equal shares", ("np.sum(targets, axis=0) / np.sum(targets)", "1.0 / targets.shape[1]"))
wrong("consistency/models.py::ClampedPropagation.score", "largest change", ("np.mean(np.sum(np.abs(spread[free] - scores[free]), axis=1))", "np.max(np.abs(spread[free] - scores[free]))"))
wrong("consistency/models.py::Eigenspace.score", "share ignored", ("int(np.floor(self.share * len(known)))", "int(np.floor(0.4 * len(known)))"))
wrong("consistency/models.py::Eigenspace.score", "not less than the classes left out", ("max(targets.shape[1], int(np.floor(self.share * len(known))))", "int(np.floor(self.share * len(known)))"))
wrong("consistency/models.py::Eigenspace.score", "steps fixed", ("lanczos(operator, n_pairs, self.n_steps,", "lanczos(operator, n_pairs, 40,"))
wrong("consistency/models.py::Eigenspace.score", "rounded", ("np.floor(self.share * len(known))", "np.ceil(self.share * len(known))"))
wrong("consistency/models.py::Eigenspace.score", "fitted to all rows", ("np.take(vectors, known, axis=0), np.take(targets, known, axis=0)", "vectors, targets"))
wrong("consistency/models.py::NearestNeighbours.score", "equal votes", ("out=np.ones_like(distances), where=spans > 0)", "out=np.ones_like(distances), where=spans > 0) * 0.0 + 1.0"))
wrong("consistency/models.py::NearestNeighbours.score", "one nearest", (": self.k]", ": 1]"))
wrong("consistency/models.py::NearestNeighbours.score", "equal distances do not vote", ("out=np.ones_like(distances)", "out=np.zeros_like(distances)"))
wrong("consistency/models.py::NearestNeighbours.score", "inverse distances", ("np.einsum(\"nk,nkc->nc\", loudness, classes)", "np.einsum(\"nk,nkc->nc\", 1.0 / np.maximum(distances, 1e-12), classes)"))
wrong("consistency/models.py::KernelMachine.train", "cost fixed", ("0.0, self.cost)", "0.0, 10.0)"))
wrong("consistency/models.py::KernelMachine.train", "cost ignored", ("np.clip(multipliers[index] + slack / kernel[index, index], 0.0, self.cost)", "max(multipliers[index] + slack / kernel[index, index], 0.0)"))
wrong("consistency/models.py::KernelMachine.train", "sweeps fixed", ("sweeps < self.max_sweeps", "sweeps < 200"))
wrong("consistency/models.py::KernelMachine.train", "tolerance fixed", ("furthest >= self.tolerance", "furthest >= 1e-3"))
wrong("consistency/models.py::KernelMachine.train", "kernel values taken as 2", ("slack / kernel[index, index]", "slack / 2.0"))
wrong("consistency/models.py::KernelMachine.train", "sum of the moves", ("max(furthest, abs(move))", "furthest + abs(move)"))
wrong("consistency/sampling.py::draw_labelled", "first places only", ("np.concatenate([first, others[: count - len(first)]])", "np.arange(count)"))
wrong("consistency/sampling.py::draw_labelled", "too few labels pass", ("if count < len(first):", "if False:"))
wrong("consistency/sampling.py::draw_labelled", "count of each class", ("others[: count - len(first)]", "others[: (count - 1) * len(first)]"))
wrong("consistency/sampling.py::stratified_subset", "rounded shares", ("places[favoured] += 1", "places[favoured[remainders[favoured] * 2 >= len(labels)]] += 1"))
wrong("consistency/sampling.py::stratified_subset", "highest class on ties", ("np.argsort(-remainders, kind=\"stable\")", "np.argsort(remainders, kind=\"stable\")[::-1]"))
wrong("consistency/sampling.py::stratified_subset", "in order of the classes", ("np.sort(np.concatenate(chosen))", "np.concatenate(chosen)"))
wrong("consistency/sampling.py::stratified_subset", "last of the permutation", ("rng.permutation(members)[:count]", "rng.permutation(members)[len(members) - count :]"))
wrong("consistency/solvers.py::chebyshev", "first weight stays", ("2.0 / (2.0 - alpha**2) if len(changes) == 1 else 4.0 / (4.0 - alpha**2 * weight)", "2.0 / (2.0 - alpha**2)"))
wrong("consistency/solvers.py::chebyshev", "tolerance fixed", ("changes[-1] <= tolerance", "changes[-1] <= 1e-6"))
wrong("consistency/solvers.py::conjugate_gradients", "one step for all columns", ("np.divide(power, np.sum(direction * image, axis=0))", "np.sum(power) / np.sum(direction * image)"))
wrong("consistency/solvers.py::conjugate_gradients", "residual not squared root", ("float(np.sqrt(np.max(latest / reference)))", "float(np.max(latest / reference))"))
wrong("consistency/solvers.py::conjugate_gradients", "mean over the columns", ("np.max(latest / reference)", "np.mean(latest / reference)"))
wrong("consistency/solvers.py::fixed_point", "absolute change", ("np.max(np.abs(spread - scores)) / largest", "np.max(np.abs(spread - scores))"))
wrong("consistency/solvers.py::fixed_point", "relative to the value before", ("largest = np.max(np.abs(spread))", "largest = np.max(np.abs(scores))"))
wrong("consistency/solvers.py::fixed_point", "cap fixed", ("len(changes) < max_iterations", "len(changes) < 1000"))
wrong("consistency/solvers.py::fixed_point", "start from zeros", ("scores = np.array(targets, dtype=float)", "scores = np.zeros(np.shape(targets))"))
wrong("consistency/solvers.py::lanczos", "orthogonal once", ("range(2)", "range(1)"))
wrong("consistency/solvers.py::lanczos", "no early end", ("length < 1e-10", "length < 0.0"))
wrong("consistency/solvers.py::lanczos", "smallest eigenvalues", ("np.argsort(-values, kind=\"stable\")", "np.argsort(values, kind=\"stable\")"))
wrong("consistency/solvers.py::lanczos", "by absolute value", ("np.argsort(-values, kind=\"stable\")", "np.argsort(-np.abs(values), kind=\"stable\")"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "shortest ignored", ("self.shortest + rng.poisson", "10 + rng.poisson"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "shares exchanged", ("share * languages[topic] + (1.0 - share) * languages[-1]", "(1.0 - share) * languages[topic] + share * languages[-1]"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "concentration fixed", ("np.full(self.n_words, self.concentration)", "np.full(self.n_words, 0.1)"))
wrong("consistency/synthetic.py::tfidf", "fewest excluded", ("np.greater_equal(containing, fewest)", "np.greater(containing, fewest)"))
wrong("consistency/synthetic.py::tfidf", "most excluded", ("np.less_equal(containing, most * n_documents)", "np.less(containing, most * n_documents)"))
wrong("consistency/synthetic.py::tfidf", "bounds by default", ("np.greater_equal(containing, fewest)", "np.greater_equal(containing, 2)"), ("most * n_documents", "0.5 * n_documents"))
wrong("consistency/synthetic.py::tfidf", "empty documents divide by 0", ("np.divide(weighted, lengths, out=np.zeros_like(weighted), where=lengths > 0)", "weighted / lengths"))
wrong("consistency/synthetic.py::tfidf", "counts of words as frequencies", ("np.count_nonzero(counts, axis=0)", "np.sum(counts, axis=0)"))
wrong("consistency/synthetic.py::two_moons", "lower moon gets the odd point", ("(n_points + 1) // 2", "n_points // 2"))
wrong("consistency/synthetic.py::two_moons", "noise fixed", ("noise * rng.standard_normal", "0.12 * rng.standard_normal"))
wrong("consistency/theory.py::energy_terms", "unordered pairs", ("0.5 * float(np.sum(np.multiply(weights, squares)))", "0.25 * float(np.sum(np.multiply(weights, squares)))"))
wrong("consistency/theory.py::energy_terms", "mu by alpha / (1 - alpha)", ("1.0 / alpha - 1.0", "alpha / (1.0 - alpha)"))
wrong("consistency/theory.py::leave_one_out", "shares not cut", ("np.maximum(own / np.sum(scores, axis=1), 1e-6)", "own / np.sum(scores, axis=1)"))
wrong("consistency/theory.py::leave_one_out", "shares cut at 1e-12", ("1e-6)", "1e-12)"))
wrong("consistency/theory.py::leave_one_out", "draws are errors", ("np.less(own, np.max(scores, axis=1))", "np.less_equal(own, np.sort(np.where(targets[known] > 0, -np.inf, scores), axis=1)[:, -1])"))
wrong("consistency/theory.py::leave_one_out", "own label kept", ("    np.fill_diagonal(influence, 0.0)\n", ""))

right("consistency/graph.py::bridge_components", "pairs in order", """
mask = np.array(mask)
added = 0
while True:
    part = connected_components(mask)
    pairs = [(distances[i, j], i, j) for i in range(len(mask)) for j in range(len(mask)) if part[i] != part[j]]
    if not pairs:
        return mask, added
    _, i, j = min(pairs)
    mask[i, j] = mask[j, i] = True
    added += 1
""")
right("consistency/metrics.py::class_report", "loops", """
pairs = [(int(t), int(p)) for t, p, given in zip(truth, predicted, partial) if given < 0]
classes = range(int(max(max(truth), max(predicted))) + 1)
recalls, scores, chance = [], [], 0.0
for c in classes:
    hit = sum(t == c == p for t, p in pairs)
    member, claim = sum(t == c for t, _ in pairs), sum(p == c for _, p in pairs)
    recalls.append(hit / member if member else 0.0)
    scores.append(2 * hit / (member + claim) if member + claim else 0.0)
    chance += member * claim / len(pairs) ** 2
same = sum(t == p for t, p in pairs) / len(pairs)
return {
    "balanced": 1 - sum(recalls) / len(recalls), "f1": sum(scores) / len(scores), "kappa": (same - chance) / (1 - chance),
}
""")
right("consistency/graph.py::normalise", "diagonal matrices", """
power = {"symmetric": (-0.5, -0.5), "row": (-1.0, 0.0), "column": (0.0, -1.0)}
if kind not in power:
    raise ValueError(f"no normalisation {kind!r}")
degrees = np.sum(weights, axis=1)
result = np.zeros(np.shape(weights))
for i, a in enumerate(degrees):
    for j, b in enumerate(degrees):
        if a > 0 and b > 0:
            result[i, j] = weights[i, j] * a ** power[kind][0] * b ** power[kind][1]
return result
""")
right("consistency/sampling.py::stratified_subset", "fractions", """
from fractions import Fraction

labels = np.asarray(labels)
kinds = sorted(set(labels.tolist()))
due = {kind: Fraction(size * int((labels == kind).sum()), len(labels)) for kind in kinds}
places = {kind: int(due[kind]) for kind in kinds}
for kind in sorted(kinds, key=lambda kind: (places[kind] - due[kind], kind))[: size - sum(places.values())]:
    places[kind] += 1
return np.sort(np.concatenate([rng.permutation(np.flatnonzero(labels == kind))[: places[kind]] for kind in kinds]))
""")
right("consistency/synthetic.py::tfidf", "columns", """
n = len(counts)
columns = []
for column in np.transpose(counts):
    c = np.count_nonzero(column)
    if fewest <= c <= most * n:
        columns.append(np.log1p(column) * np.log(n / c))
table = np.column_stack(columns) if columns else np.zeros((n, 0))
norms = np.sqrt((table**2).sum(axis=1))
norms[norms == 0] = 1.0
return table / norms[:, None]
""")
right("consistency/models.py::NearestNeighbours.score", "loops", """
known = np.flatnonzero(partial >= 0)
votes = np.zeros((len(partial), int(np.max(partial)) + 1))
for i in range(len(partial)):
    ranked = sorted((points.distances[i, j], j) for j in known)[: self.k]
    near, far = ranked[0][0], ranked[-1][0]
    for gap, j in ranked:
        votes[i, partial[j]] += (far - gap) / (far - near) if far > near else 1.0
return votes
""")
right("consistency/solvers.py::fixed_point", "loop", """
scores, changes = np.array(targets, dtype=float), []
for _ in range(max_iterations):
    after = alpha * operator(scores) + (1.0 - alpha) * targets
    changes.append(float(np.abs(after - scores).max() / np.abs(after).max()))
    scores = after
    if changes[-1] <= tolerance:
        break
return Solution(scores, len(changes), changes)
""")

# Was written as a wrong one. The rows and columns are set to zeros afterwards; only a warning is added.
right("consistency/graph.py::normalise", "isolated points divide by 0", ("safe = np.where(alive, degrees, 1.0)", "safe = degrees"))

# Was written as a wrong one. Row order breaks all ties alike, so that there is one spanning tree of shortest edges, however it grows.
right("consistency/graph.py::bridge_components", "everything to the first component", ("apart = np.not_equal.outer(component, component)", "apart = np.logical_xor.outer(component == component[0], component == component[0])"))
