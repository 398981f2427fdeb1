"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("localexp/sampling.py::stratified_split", "(r + 1) / m", ("np.arange(len(members)) + 0.5", "np.arange(len(members)) + 1.0 - 1e-9"))
wrong("localexp/sampling.py::stratified_split", "classes in falling order", ("for label in np.unique(data.labels):", "for label in np.unique(data.labels)[::-1]:"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "normal strengths", ("rng.gamma(4.0, 0.125, size=n_reviews)", "np.abs(rng.normal(0.5, 0.25, size=n_reviews))"))
wrong("localexp/corpus.py::ReviewCorpus.sample", "labels drawn", ("rng.permutation(np.arange(n_reviews) % 2)", "rng.integers(2, size=n_reviews)"))
wrong("localexp/corpus.py::plant_artifacts", "frequent in the last part, too", ("        if number == len(parts):\n            misleading = np.zeros_like(misleading)\n", ""))
wrong("localexp/corpus.py::plant_artifacts", "in front of the words", ("np.hstack([part.features, np.log1p(present.astype(float))])", "np.hstack([np.log1p(present.astype(float)), part.features])"))
wrong("localexp/images.py::superpixels", "brightness times the compactness", ("np.column_stack([scale * rows, scale * columns, image])", "np.column_stack([scale * rows, scale * columns, compactness * np.asarray(image)])"))
wrong("localexp/images.py::superpixels", "compactness without the spacing", ("scale = compactness / spacing", "scale = compactness"))
wrong("localexp/logistic.py::SparseLogistic.fit", "ages by t", ("0.5 * (1.0 + np.sqrt(1.0 + 4.0 * age**2))", "age + 0.5"))
wrong("localexp/logistic.py::SparseLogistic.fit", "threshold half of it", ("np.abs(moved) - step * self.penalty", "np.abs(moved) - 0.5 * step * self.penalty"))
wrong("localexp/logistic.py::SparseLogistic.fit", "gradient summed", ("np.dot(design.T, errors) / len(design)", "np.dot(design.T, errors)"))
wrong("localexp/logistic.py::SparseLogistic.with_at_most", "starts one step later", ("        chosen = cls(penalty).fit(features, labels)\n        while", "        best = cls(penalty).fit(features, labels)\n        penalty *= factor**2\n        chosen = cls(penalty).fit(features, labels)\n        while"))
wrong("localexp/trees.py::best_split", "least number not kept", ("enough = np.minimum(sizes, np.flip(sizes)) >= smallest", "enough = np.minimum(sizes, np.flip(sizes)) >= 1"))
wrong("localexp/trees.py::best_split", "strictly more than the least number", (">= smallest", "> smallest"))
wrong("localexp/trees.py::DecisionTree.fit", "one leaf more", ("2 * self.max_leaves - 1", "2 * self.max_leaves + 1"))
wrong("localexp/trees.py::DecisionTree.fit", "candidates once a tree", ("            candidates = np.arange(features.shape[1])\n            if self.n_candidates is not None:\n                candidates =", "            candidates = np.arange(features.shape[1])\n            if self.n_candidates is not None and number == 0:\n                candidates ="))
wrong("localexp/trees.py::RandomForest.fit", "votes of decisions", ("votes[unseen] += tree.probabilities(features[unseen])", "votes[unseen] += np.eye(targets.shape[1])[np.argmax(tree.probabilities(features[unseen]), axis=1)]"))
wrong("localexp/trees.py::RandomForest.fit", "rows with every tree's own generator", ("tree.fit(features[rows], targets[rows], rng)", "tree.fit(features[rows], targets[rows], np.random.default_rng(0))"))
wrong("localexp/parzen.py::ParzenWindows.fit", "width itself for the factor", ("float(factors[best] * np.sqrt(middle))", "float(factors[best])"))
wrong("localexp/parzen.py::ParzenWindows.fit", "squared error", ("losses.append(-np.mean(np.log(likelihoods)))", "losses.append(np.mean(np.square(1.0 - likelihoods)))"))
wrong("localexp/parzen.py::ParzenWindows.explain", "all features", ("present = np.flatnonzero(instance)", "present = np.arange(len(instance))"))
wrong("localexp/parzen.py::ParzenWindows.explain", "away from the cases", ("self.features - instance)", "instance - self.features)"))
wrong("localexp/domains.py::Words.perturb", "each word with probability one half", ("kept = np.greater_equal(ranks, removed).astype(float)", "kept = (lots >= 0.5).astype(float)"))
wrong("localexp/domains.py::Words.perturb", "instance not among the samples", ("np.vstack([np.ones(len(present)), kept])", "np.vstack([kept[:1], kept])"))
wrong("localexp/domains.py::Quartiles.fit", "shares of a quarter each", ("len(members) / len(features)", "0.25"))
wrong("localexp/domains.py::Quartiles.fit", "median for the mean", ("np.mean(members)", "np.median(members)"))
wrong("localexp/domains.py::Quartiles.perturb", "switch by equal values", ("same = np.equal(codes, self.codes(instance[np.newaxis])).astype(float)", "same = np.isclose(drawn, instance).astype(float)"))
wrong("localexp/domains.py::Quartiles.perturb", "off where it is the own quarter", ("np.equal(codes,", "np.not_equal(codes,"))
wrong("localexp/selection.py::weighted_ridge", "roots of the weights left out", ("np.dot(centred.T, weights[:, np.newaxis] * centred)", "np.dot(centred.T, np.square(weights)[:, np.newaxis] * centred)"))
wrong("localexp/selection.py::weighted_ridge", "penalty times n", ("penalty * np.eye(len(gram))", "len(design) * penalty * np.eye(len(gram))"))
wrong("localexp/selection.py::lasso_path", "joins by positive correlation", ("for side in (1.0, -1.0):", "for side in (1.0,):"))
wrong("localexp/selection.py::forward_selection", "worst one", ("best, worth = rest[0], -np.inf", "best, worth = rest[-1], np.inf"), ("score >= worth + 1e-9", "score <= worth - 1e-9"))
wrong("localexp/explainers.py::LocalExplainer.explain", "local without the intercept", ("local = intercept + float(np.sum(effects))", "local = float(np.sum(effects))"))
wrong("localexp/explainers.py::LocalExplainer.explain", "distances not rooted", ("else np.sqrt(1.0 - shares)", "else 1.0 - shares"))
wrong("localexp/explainers.py::greedy_explanation", "one removal at a time", ("        current[removed[-1]] = 0.0\n", ""))
wrong("localexp/explainers.py::greedy_explanation", "largest probability left", ("support < np.min(support) + 1e-9", "support > np.max(support) - 1e-9"))
wrong("localexp/pick.py::submodular_pick", "counts of features", ("gains = np.dot(np.logical_and(shows, ~shown), weights)", "gains = np.sum(np.logical_and(shows, ~shown), axis=1).astype(float)"))
wrong("localexp/pick.py::submodular_pick", "weights of the explanation itself", ("np.dot(np.logical_and(shows, ~shown), weights)", "np.sum(np.where(shown, 0.0, table), axis=1)"))
wrong("localexp/users.py::mistrusts", "adds the contributions", ("explanation.local - float(", "explanation.local + float("))
wrong("localexp/users.py::choose_classifier", "the more mistrusted", ("counts[0] - counts[1]", "counts[1] - counts[0]"))
wrong("localexp/metrics.py::agreement", "recall over the claims", ("hits / max(positive, 1.0)", "hits / max(claimed, 1.0)"))
wrong("localexp/metrics.py::agreement", "chance of hits only", ("(positive * claimed + (size - positive) * (size - claimed))", "(positive * claimed)"))
wrong("localexp/metrics.py::stability", "features of all explanations", ("if len(weights) >= 2:", "if len(weights) == len(explanations):"))

right("localexp/selection.py::weighted_ridge", "augmented least squares", """
k = design.shape[1]
z = np.column_stack([np.ones(len(design)), design])
penal = np.diag([0.0] + [penalty] * k)
w = np.asarray(weights)
solution = np.linalg.solve(z.T @ (w[:, None] * z) + penal, z.T @ (w * targets))
residual = targets - z @ solution
mean = np.average(targets, weights=w)
total = np.average((targets - mean) ** 2, weights=w)
score = 1 - np.average(residual**2, weights=w) / total if total >= 1e-12 else 0.0
return float(solution[0]), solution[1:], float(score)
""")
right("localexp/images.py::superpixels", "loops", """
side = int(round(len(image) ** 0.5))
S = side / per_side
f = compactness / S
points = np.array([[f * (i // side), f * (i % side), image[i]] for i in range(len(image))], dtype=float)
grid = [S * (i + 0.5) - 0.5 for i in range(per_side)]
centres = np.array([[f * a, f * b, np.mean(image)] for a in grid for b in grid])
for _ in range(rounds):
    owner = []
    for point in points:
        d = ((centres - point) ** 2).sum(axis=1)
        owner.append(int(np.flatnonzero(d < d.min() + 1e-9)[0]))
    owner = np.array(owner)
    for c in range(len(centres)):
        if np.any(owner == c):
            centres[c] = points[owner == c].mean(axis=0)
names = {c: i for i, c in enumerate(sorted(set(owner.tolist())))}
return np.array([names[c] for c in owner.tolist()])
""")
right("localexp/trees.py::best_split", "loops", """
def cost(rows):
    return float(((targets[rows] - targets[rows].mean(axis=0)) ** 2).sum())

everything = np.arange(len(features))
base, found = cost(everything), []
for place, feature in enumerate(candidates):
    values = np.unique(features[:, feature])
    for a, b in zip(values, values[1:]):
        left = features[:, feature] <= a
        if min(left.sum(), (~left).sum()) >= smallest:
            found.append((base - cost(everything[left]) - cost(everything[~left]), place, (a + b) / 2))
if not found or max(found)[0] < 1e-9:
    return None
best = max(gain for gain, _, _ in found)
gain, place, threshold = next(it for it in found if it[0] > best - 1e-9)
return Split(best, int(candidates[place]), float(threshold))
""")
right("localexp/pick.py::submodular_pick", "sets", """
importance = np.sqrt(np.asarray(table).sum(axis=0))
picked, covered = [], set()
rows = [set(np.flatnonzero(row > 0).tolist()) for row in table]
budget = min(budget, len(rows))
while len(picked) < budget:
    gains = [sum(importance[j] for j in row - covered) for row in rows]
    top = max(gains)
    if top < 1e-9:
        rest = sorted((i for i in range(len(rows)) if i not in picked), key=lambda i: (-np.sum(table[i]), i))
        return picked + rest[: budget - len(picked)]
    best = next(i for i, gain in enumerate(gains) if gain > top - 1e-9)
    picked.append(best)
    covered |= rows[best]
return picked
""")
right("localexp/domains.py::Words.perturb", "loop", """
present = np.flatnonzero(instance)
w = len(present)
numbers = rng.integers(1, w + 1, size=(n_samples - 1, 1))
uniforms = rng.random((n_samples - 1, w))
switches = np.ones((n_samples, w))
for row in range(n_samples - 1):
    switches[row + 1, np.argsort(uniforms[row])[: numbers[row, 0]]] = 0.0
samples = np.tile(np.asarray(instance, dtype=float), (n_samples, 1))
samples[:, present] *= switches
return present, switches, samples
""")
right("localexp/metrics.py::stability", "loops", """
pairs = []
for i in range(len(explanations)):
    for j in range(i + 1, len(explanations)):
        a, b = set(explanations[i].features.tolist()), set(explanations[j].features.tolist())
        pairs.append(len(a & b) / len(a | b))
found = {}
for e in explanations:
    for feature, weight in zip(e.features.tolist(), e.weights.tolist()):
        found.setdefault(feature, []).append(weight)
ratios = [np.std(v, ddof=1) / np.mean(np.abs(v)) for v in found.values() if len(v) > 1]
return sum(pairs) / len(pairs), sum(ratios) / len(ratios)
""")
right("localexp/metrics.py::agreement", "table", """
truth, claims = np.asarray(truth, dtype=bool), np.asarray(claims, dtype=bool)
tp, fp = np.sum(truth & claims), np.sum(~truth & claims)
fn, tn = np.sum(truth & ~claims), np.sum(~truth & ~claims)
n = tp + fp + fn + tn
o = (tp + tn) / n
e = ((tp + fn) / n) * ((tp + fp) / n) + ((fp + tn) / n) * ((fn + tn) / n)
ratio = lambda a, b: a / b if b else 0.0
return {"precision": ratio(tp, tp + fp), "recall": ratio(tp, tp + fn), "f1": ratio(2 * tp, 2 * tp + fp + fn), "kappa": (o - e) / (1 - e) if e < 1 else 0.0}
""")
right("localexp/parzen.py::ParzenWindows.explain", "loop", """
d = ((self.features - instance) ** 2).sum(axis=1)
w = np.exp(-(d - d.min()) / (2 * self.width**2))
w /= w.sum()
p = float(w @ self.decisions)
gradient = sum(w[j] * (self.decisions[j] - p) * (self.features[j] - instance) for j in range(len(w))) / self.width**2
present = np.flatnonzero(instance)
chosen = np.array(sorted(present, key=lambda j: (-abs(gradient[j]), j))[:n_features], dtype=int)
return Explanation(chosen, gradient[chosen] * instance[chosen], p, p)
""")
right("localexp/sampling.py::stratified_split", "loop", """
total, bounds = sum(shares), np.cumsum(shares) / np.sum(shares)
part = np.zeros(len(data.labels), dtype=int)
for label in sorted(set(data.labels.tolist())):
    order = rng.permutation(np.flatnonzero(data.labels == label))
    for r, case in enumerate(order):
        place = (r + 0.5) / len(order)
        part[case] = sum(place >= bound for bound in bounds)
return [Dataset(data.features[part == p], data.labels[part == p]) for p in range(len(shares))]
""")
