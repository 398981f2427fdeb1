"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("localexp/corpus.py::ReviewCorpus.sample", "mean length without the shortest", ("self.shortest + rng.poisson(self.mean_length, size=n_reviews)", "np.maximum(self.shortest, rng.poisson(self.mean_length, size=n_reviews))"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "counts without the logarithm", ("np.log1p(np.stack(counts))", "np.stack(counts).astype(float)"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "concentration fixed", ("np.full(self.n_words, self.concentration)", "np.full(self.n_words, 0.4)"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "scale for the mean", ("rng.gamma(4.0, 0.125, size=n_reviews)", "rng.gamma(4.0, 0.5, size=n_reviews)"))
wrong("localexp/corpus.py::plant_artifacts", "last part misleads as well", ("        if number == len(parts):\n            misleading = np.zeros_like(misleading)\n", ""))
wrong("localexp/corpus.py::plant_artifacts", "rates by default", ("np.where(misleading, frequent, rare)", "np.where(misleading, 0.3, 0.1)"))
wrong("localexp/corpus.py::plant_artifacts", "frequent rate fixed", ("np.where(misleading, frequent, rare)", "np.where(misleading, 0.3, rare)"))
wrong("localexp/corpus.py::plant_artifacts", "in the first columns", ("np.hstack([part.features, np.log1p(present.astype(float))])", "np.hstack([np.log1p(present.astype(float)), part.features])"))
wrong("localexp/corpus.py::plant_artifacts", "artifacts of the other class in the last part", ("misleading = np.zeros_like(misleading)", "misleading = ~misleading"))
wrong("localexp/domains.py::Quartiles.fit", "sample deviation", ("np.std(members)", "np.std(members, ddof=1 if len(members) > 1 else 0)"))
wrong("localexp/domains.py::Quartiles.fit", "empty quarter copies the feature's mean", ("            if len(members) > 0:\n", "            if len(members) == 0:\n                self.means[code, column] = np.mean(features[:, column])\n            if len(members) > 0:\n"))
wrong("localexp/domains.py::Quartiles.fit", "quarters taken as equal", ("len(members) / len(features)", "0.25"))
wrong("localexp/domains.py::Quartiles.fit", "quantile of the lower value", ("[0.25, 0.5, 0.75], axis=0)", "[0.25, 0.5, 0.75], axis=0, method=\"lower\")"))
wrong("localexp/domains.py::Quartiles.fit", "highest value is the edge", ("np.min(members), np.max(members)", "np.min(members), self.edges[min(code, 2), column]"))
wrong("localexp/domains.py::Quartiles.perturb", "not cut to the quarter's range", ("        drawn = np.clip(drawn, self.lows[codes, columns], self.highs[codes, columns])\n", ""))
wrong("localexp/domains.py::Quartiles.perturb", "share at the bound", ("np.greater_equal(lots,", "np.greater(lots,"))
wrong("localexp/domains.py::Quartiles.perturb", "all quarters alike", ("np.cumsum(self.shares, axis=0)[:3, np.newaxis]", "np.array([0.25, 0.5, 0.75])[:, np.newaxis, np.newaxis]"))
wrong("localexp/domains.py::Quartiles.perturb", "first sample drawn as well", ("np.vstack([instance, drawn])", "np.vstack([drawn[:1], drawn])"))
wrong("localexp/domains.py::Quartiles.perturb", "shares of the first feature", ("np.cumsum(self.shares, axis=0)[:3, np.newaxis]", "np.cumsum(self.shares[:, :1], axis=0)[:3, np.newaxis]"))
wrong("localexp/domains.py::Words.perturb", "never all words", ("rng.integers(1, len(present) + 1,", "rng.integers(1, max(len(present), 2),"))
wrong("localexp/domains.py::Words.perturb", "largest lots go", ("np.greater_equal(ranks, removed)", "np.less(ranks, len(present) - removed)"))
wrong("localexp/domains.py::Words.perturb", "presence in place of values", ("np.multiply(switches, instance[present])", "switches"))
wrong("localexp/domains.py::Words.perturb", "each word by a coin", ("np.greater_equal(ranks, removed)", "np.greater_equal(lots, 0.5)"))
wrong("localexp/explainers.py::LocalExplainer.explain", "width fixed", ("gaps / self.width", "gaps / 0.25"))
wrong("localexp/explainers.py::LocalExplainer.explain", "penalty fixed", ("weights, self.penalty)", "weights, 1.0)"))
wrong("localexp/explainers.py::LocalExplainer.explain", "always the lasso", ("SELECTORS[self.selection]", "SELECTORS[\"lasso\"]"))
wrong("localexp/explainers.py::LocalExplainer.explain", "root of the kernel", ("np.exp(-np.square(gaps / self.width))", "np.sqrt(np.exp(-np.square(gaps / self.width)))"))
wrong("localexp/explainers.py::LocalExplainer.explain", "order by signed weights", ("np.argsort(-np.abs(coefficients), kind=\"stable\")", "np.argsort(-coefficients, kind=\"stable\")"))
wrong("localexp/explainers.py::LocalExplainer.explain", "cosine for all", ("1.0 - np.sqrt(shares) if self.domain.distance == \"cosine\" else np.sqrt(1.0 - shares)", "1.0 - np.sqrt(shares)"))
wrong("localexp/explainers.py::LocalExplainer.explain", "local without the intercept", ("local = intercept + float(np.sum(effects))", "local = float(np.sum(effects))"))
wrong("localexp/explainers.py::LocalExplainer.explain", "features of the choice in place of the parts", ("np.take(parts, chosen[order])", "chosen[order]"))
wrong("localexp/explainers.py::greedy_explanation", "works on the instance", ("np.array(instance, dtype=float)", "np.asarray(instance, dtype=float)"))
wrong("localexp/explainers.py::greedy_explanation", "ties by the last", ("int(np.argmax(support < np.min(support) + 1e-9))", "len(support) - 1 - int(np.argmax((support < np.min(support) + 1e-9)[::-1]))"))
wrong("localexp/explainers.py::greedy_explanation", "only towards 0", ("side = 1.0 if first > 0.5 else -1.0", "side = 1.0"))
wrong("localexp/explainers.py::greedy_explanation", "does not end at the change", (" and side * (level - 0.5) > 0.0", ""))
wrong("localexp/explainers.py::greedy_explanation", "all effects from the start", ("effects.append(level - side * float(support[best]))\n        level -= effects[-1]", "effects.append(first - side * float(support[best]))\n        level = side * float(support[best])"))
wrong("localexp/explainers.py::greedy_explanation", "most important once, by single removals", ("    current[removed[-1]] = 0.0", "    pass"))
wrong("localexp/images.py::superpixels", "compactness ignored", ("scale = compactness / spacing", "scale = 0.6 / spacing"))
wrong("localexp/images.py::superpixels", "rounds fixed", ("range(rounds)", "range(4)"))
wrong("localexp/images.py::superpixels", "always three a side", ("spacing = side / per_side", "per_side = 3\n    spacing = side / per_side"))
wrong("localexp/images.py::superpixels", "numbers with gaps", ("np.unique(owners, return_inverse=True)[1]", "owners"))
wrong("localexp/images.py::superpixels", "highest index on ties", ("np.argmax(squares < np.min(squares, axis=1, keepdims=True) + 1e-9, axis=1)", "squares.shape[1] - 1 - np.argmax((squares < np.min(squares, axis=1, keepdims=True) + 1e-9)[:, ::-1], axis=1)"))
wrong("localexp/images.py::superpixels", "centres start with brightness 0", ("np.full(per_side**2, np.mean(image))", "np.zeros(per_side**2)"))
wrong("localexp/logistic.py::SparseLogistic.fit", "offset penalised", ("            shrunk[-1] = moved[-1]\n", ""))
wrong("localexp/logistic.py::SparseLogistic.fit", "no acceleration", ("probe = point + (older - 1.0) / age * move", "probe = point"))
wrong("localexp/logistic.py::SparseLogistic.fit", "cap fixed", ("range(1, self.max_iterations + 1)", "range(1, 501)"))
wrong("localexp/logistic.py::SparseLogistic.fit", "tolerance fixed", ("<= self.tolerance", "<= 1e-5"))
wrong("localexp/logistic.py::SparseLogistic.fit", "step without the offset's column", ("np.linalg.eigvalsh(design.T @ design)", "np.linalg.eigvalsh(features.T @ features)"))
wrong("localexp/logistic.py::SparseLogistic.with_at_most", "factor fixed", ("penalty *= factor", "penalty *= 0.9"))
wrong("localexp/logistic.py::SparseLogistic.with_at_most", "fewer than most", ("<= most", "< most"))
wrong("localexp/logistic.py::SparseLogistic.with_at_most", "first model beyond", ("    return best", "    return chosen"))
wrong("localexp/metrics.py::agreement", "kappa 1 where chance is 1", ("else 0.0", "else 1.0"))
wrong("localexp/metrics.py::agreement", "precision 1 without claims", ("\"precision\": hits / max(claimed, 1.0)", "\"precision\": hits / claimed if claimed else 1.0"))
wrong("localexp/metrics.py::agreement", "recall 1 without true cases", ("\"recall\": hits / max(positive, 1.0)", "\"recall\": hits / positive if positive else 1.0"))
wrong("localexp/metrics.py::stability", "overlap over the smaller set", ("len(np.union1d(first.features, second.features))", "min(len(first.features), len(second.features))"))
wrong("localexp/metrics.py::stability", "features of all explanations only", ("if len(weights) >= 2:", "if len(weights) == len(explanations):"))
wrong("localexp/metrics.py::stability", "absent weights count as 0", ("weights = np.concatenate([explanation.weights[explanation.among(feature)] for explanation in explanations])", "weights = np.array([np.sum(explanation.weights[explanation.among(feature)]) for explanation in explanations])"), ("if len(weights) >= 2:", "if np.count_nonzero(weights) >= 2:"))
wrong("localexp/metrics.py::stability", "absolute mean", ("np.mean(np.abs(weights))", "np.abs(np.mean(weights))"))
wrong("localexp/parzen.py::ParzenWindows.explain", "absent features as well", ("present = np.flatnonzero(instance)", "present = np.arange(len(instance))"))
wrong("localexp/parzen.py::ParzenWindows.explain", "far instance gives 0 / 0", ("np.exp((np.min(squares) - squares) / (2.0 * self.width**2))", "np.exp(-squares / (2.0 * self.width**2))"))
wrong("localexp/parzen.py::ParzenWindows.explain", "signed order", ("np.argsort(-np.abs(gradient[present]), kind=\"stable\")", "np.argsort(-gradient[present], kind=\"stable\")"))
wrong("localexp/parzen.py::ParzenWindows.explain", "gradient in place of contributions", ("np.multiply(gradient[chosen], instance[chosen])", "gradient[chosen]"))
wrong("localexp/parzen.py::ParzenWindows.explain", "largest contributions", ("np.abs(gradient[present])", "np.abs(gradient[present] * instance[present])"))
wrong("localexp/parzen.py::ParzenWindows.fit", "factors ignored", ("    for factor in factors:\n", "    factors = (0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0)\n        for factor in factors:\n"))
wrong("localexp/parzen.py::ParzenWindows.fit", "case itself in the estimate", ("        np.fill_diagonal(squares, np.inf)\n", ""))
wrong("localexp/parzen.py::ParzenWindows.fit", "median with the diagonal", ("np.median(squares[np.triu_indices(len(squares), 1)])", "np.median(squares)"))
wrong("localexp/parzen.py::ParzenWindows.fit", "windows underflow", ("np.exp((closest - squares)", "np.exp(-squares"))
wrong("localexp/parzen.py::ParzenWindows.fit", "last on ties", ("best = int(np.argmin(losses))", "best = len(losses) - 1 - int(np.argmin(losses[::-1]))"))
wrong("localexp/pick.py::submodular_pick", "sum in place of the root", ("weights = np.sqrt(np.sum(table, axis=0))", "weights = np.sum(table, axis=0)"))
wrong("localexp/pick.py::submodular_pick", "not filled up", ("            picked.extend(others[: budget - len(picked)])\n", ""))
wrong("localexp/pick.py::submodular_pick", "filled up in row order", ("order = np.argsort(-np.sum(table, axis=1), kind=\"stable\")", "order = np.arange(len(table))"))
wrong("localexp/pick.py::submodular_pick", "not greedy: the largest rows", ("picked.append(int(np.argmax(gains > np.max(gains) - 1e-9)))", "alone = np.where(np.isin(np.arange(len(table)), picked), -1.0, np.dot(shows, weights))\n        picked.append(int(np.argmax(alone)))"))
wrong("localexp/sampling.py::stratified_split", "plain split", ("for label in np.unique(data.labels):\n        members = rng.permutation(np.flatnonzero(data.labels == label))", "for _ in range(1):\n        members = rng.permutation(len(data.labels))"))
wrong("localexp/sampling.py::stratified_split", "at a bound the part below", ("side=\"right\"", "side=\"left\""))
wrong("localexp/sampling.py::stratified_split", "places without the half", ("np.arange(len(members)) + 0.5", "np.arange(len(members))"))
wrong("localexp/selection.py::forward_selection", "sorted", ("np.asarray(chosen)", "np.sort(chosen).astype(int)"))
wrong("localexp/selection.py::forward_selection", "last of equal ones", ("score >= worth + 1e-9", "score >= worth - 1e-9"))
wrong("localexp/selection.py::forward_selection", "targets without weights", ("weighted_ridge(columns, targets, weights)", "weighted_ridge(columns, targets, np.ones(len(targets)))"))
wrong("localexp/selection.py::lasso_path", "weights ignored", ("shares = np.divide(weights, np.sum(weights))", "shares = np.full(len(targets), 1.0 / len(targets))"))
wrong("localexp/selection.py::lasso_path", "features never leave", ("if 0.0 < reach < length:", "if False:"))
wrong("localexp/selection.py::lasso_path", "order of joining", ("np.sort(active)", "np.array(active, dtype=int)"))
wrong("localexp/selection.py::weighted_ridge", "penalty fixed", ("gram + penalty *", "gram + 1.0 *"))
wrong("localexp/selection.py::weighted_ridge", "score 1 for constant targets", ("else 0.0", "else 1.0"))
wrong("localexp/selection.py::weighted_ridge", "intercept penalised: not centred", ("np.subtract(design, middle), np.subtract(targets, level)", "np.subtract(design, 0.0), np.subtract(targets, level)"))
wrong("localexp/trees.py::best_split", "leaf size on the left only", ("np.minimum(sizes, np.flip(sizes)) >= smallest", "sizes >= smallest"))
wrong("localexp/trees.py::best_split", "threshold is the lower value", ("np.mean(values[place : place + 2, column])", "values[place, column]"))
wrong("localexp/trees.py::best_split", "lowest threshold before the first candidate", ("column, place = np.argwhere(gains.T > best - 1e-9)[0]", "place, column = np.argwhere(gains > best - 1e-9)[0]"))
wrong("localexp/trees.py::best_split", "column among the candidates", ("int(candidates[column])", "int(column)"))
wrong("localexp/trees.py::DecisionTree.fit", "depth first", ("(-round(split.gain, 9), number, split, rows)", "(number, number, split, rows)"))
wrong("localexp/trees.py::DecisionTree.fit", "right child first", ("open_leaf(rows[goes_left]), open_leaf(rows[~goes_left])", "(lambda right: (open_leaf(rows[goes_left]), right))(open_leaf(rows[~goes_left]))"))
wrong("localexp/trees.py::DecisionTree.fit", "twice as many leaves", ("2 * self.max_leaves - 1", "4 * self.max_leaves - 1"))
wrong("localexp/trees.py::RandomForest.fit", "error on the trained cases", ("np.setdiff1d(np.arange(len(labels)), rows)", "np.unique(rows)"))
wrong("localexp/trees.py::RandomForest.fit", "cases without votes are wrong", ("judged = np.flatnonzero(np.any(votes > 0.0, axis=1))", "judged = np.arange(len(labels))"))
wrong("localexp/trees.py::RandomForest.fit", "smallest leaf by default", ("DecisionTree(self.max_leaves, self.smallest, n_candidates)", "DecisionTree(self.max_leaves, n_candidates=n_candidates)"))
wrong("localexp/users.py::choose_classifier", "larger count", ("np.sign(counts[0] - counts[1])", "np.sign(counts[1] - counts[0])"))
wrong("localexp/users.py::choose_classifier", "all artifacts known", ("np.intersect1d(shown, artifacts)", "artifacts"))
wrong("localexp/users.py::choose_classifier", "draw goes to the first", ("0.5 * (1.0 + np.sign(counts[0] - counts[1]))", "float(counts[0] > counts[1])"))
wrong("localexp/users.py::choose_classifier", "first rows for both", ("zip(rivals, picks)", "zip(rivals, [picks[0], picks[0]])"))
wrong("localexp/users.py::mistrusts", "prediction of the classifier", ("remainder = explanation.local -", "remainder = explanation.predicted -"))
wrong("localexp/users.py::mistrusts", "additive for all", ("if additive:", "if True:"))

right("localexp/metrics.py::agreement", "pairs", """
pairs = [(bool(t), bool(c)) for t, c in zip(truth, claims)]
n = len(pairs)
tp = sum(t and c for t, c in pairs)
p, q = sum(t for t, _ in pairs), sum(c for _, c in pairs)
same = sum(t == c for t, c in pairs) / n
chance = p / n * q / n + (n - p) / n * (n - q) / n
return {
    "precision": tp / q if q else 0.0,
    "recall": tp / p if p else 0.0,
    "f1": 2 * tp / (p + q) if p + q else 0.0,
    "kappa": 0.0 if p * q + (n - p) * (n - q) == n * n else (same - chance) / (1 - chance),
}
""")
right("localexp/selection.py::weighted_ridge", "with a column of ones", """
n, d = design.shape
full = np.column_stack([np.ones(n), design])
penalties = penalty * np.diag([0.0] + [1.0] * d)
solution = np.linalg.solve(full.T @ (weights[:, None] * full) + penalties, full.T @ (weights * targets))
w = weights / weights.sum()
around = w @ (targets - w @ targets) ** 2
score = 1 - w @ (targets - full @ solution) ** 2 / around if around >= 1e-12 else 0.0
return float(solution[0]), solution[1:], float(score)
""")
right("localexp/trees.py::best_split", "loops", """
def error(rows):
    return np.sum((targets[rows] - targets[rows].mean(axis=0)) ** 2)

everything = np.arange(len(features))
found = []
for candidate in candidates:
    values = np.unique(features[:, candidate])
    for low, high in zip(values, values[1:]):
        left = features[:, candidate] <= low
        if min(left.sum(), (~left).sum()) < smallest:
            continue
        gain = error(everything) - error(everything[left]) - error(everything[~left])
        found.append((gain, int(candidate), float((low + high) / 2)))
top = max((gain for gain, _, _ in found), default=0.0)
if top < 1e-9:
    return None
return next(Split(float(top), feature, threshold) for gain, feature, threshold in found if gain > top - 1e-9)
""")
right("localexp/users.py::mistrusts", "loops", """
bad = {int(u) for u in np.ravel(untrusted)}
answers = []
for e in explanations:
    mine = [w for f, w in zip(e.features, e.weights) if int(f) in bad]
    if additive:
        answers.append((e.local > 0.5) != (e.local - sum(mine) > 0.5))
    else:
        answers.append(len(mine) > 0)
return np.array(answers, dtype=bool)
""")
right("localexp/pick.py::submodular_pick", "sets", """
worth = np.sqrt(np.asarray(table, dtype=float).sum(axis=0))
sets = [set(np.flatnonzero(row > 0)) for row in table]
picked, seen = [], set()
while len(picked) < min(budget, len(table)):
    gains = [sum(worth[f] for f in s - seen) for s in sets]
    if max(gains) < 1e-9:
        rest = sorted((i for i in range(len(table)) if i not in picked), key=lambda i: (-np.sum(table, axis=1)[i], i))
        return picked + rest[: budget - len(picked)]
    best = next(i for i, g in enumerate(gains) if g > max(gains) - 1e-9)
    picked.append(best)
    seen |= sets[best]
return picked
""")
right("localexp/domains.py::Words.perturb", "sorted lots", """
present = np.flatnonzero(instance)
removed = rng.integers(1, len(present) + 1, size=(n_samples - 1, 1))
lots = rng.random((n_samples - 1, len(present)))
switches = np.ones((n_samples, len(present)))
for row in range(n_samples - 1):
    switches[row + 1, np.argsort(lots[row])[: removed[row, 0]]] = 0.0
samples = np.zeros((n_samples, len(instance)))
samples[:, present] = switches * instance[present]
return present, switches, samples
""")
right("localexp/metrics.py::stability", "dictionaries", """
tables = [dict(zip(e.features.tolist(), e.weights.tolist())) for e in explanations]
overlaps = [len(a.keys() & b.keys()) / len(a.keys() | b.keys()) for i, a in enumerate(tables) for b in tables[i + 1 :]]
spreads = []
for feature in range(n_features):
    values = [t[feature] for t in tables if feature in t]
    if len(values) > 1:
        spreads.append(np.std(values, ddof=1) / np.mean(np.abs(values)))
return float(np.mean(overlaps)), float(np.mean(spreads))
""")

# Was written as a wrong one. At exactly 1/2 no feature is removed either way.
right("localexp/explainers.py::greedy_explanation", "at one half it is the class", ("first > 0.5", "first >= 0.5"))
# Was written as a wrong one. When all rows are picked nothing is left to show, and the loop ends.
right("localexp/pick.py::submodular_pick", "budget above the rows fails", ("min(budget, len(table))", "budget"))
