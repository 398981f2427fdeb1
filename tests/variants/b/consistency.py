"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("consistency/sampling.py::stratified_subset", "order of the draws", ("return np.sort(np.concatenate(chosen))", "return np.concatenate(chosen)"))
wrong("consistency/sampling.py::stratified_subset", "left-over places to the largest classes", ("np.argsort(-remainders,", "np.argsort(-sizes,"))
wrong("consistency/sampling.py::draw_labelled", "first members in the order of points", ("_, first = np.unique(labels[order], return_index=True)", "_, first = np.unique(labels, return_index=True)\n    first = np.argsort(order)[first]"))
wrong("consistency/sampling.py::draw_labelled", "the others in order of index", ("others[: count - len(first)]", "np.argsort(order)[np.sort(order[others])][: count - len(first)]"))
wrong("consistency/synthetic.py::two_moons", "noise after mixing", ("return Dataset(features[order], labels[order])", "return Dataset(clean[order] + noise * np.zeros_like(clean) + (features - clean), labels[order])"))
wrong("consistency/synthetic.py::two_moons", "evenly spaced angles", ("rng.uniform(0.0, np.pi, size=n_points)", "np.linspace(0.0, np.pi, n_points) + 0.0 * rng.uniform(0.0, np.pi, size=n_points)"))
wrong("consistency/synthetic.py::TopicCorpus.sample", "lengths by document", ("lengths = self.shortest + rng.poisson(self.mean_length, size=n_documents)", "lengths = np.maximum(rng.poisson(self.mean_length, size=n_documents), self.shortest)"))
wrong("consistency/synthetic.py::tfidf", "counts themselves", ("np.log1p(counts[:, kept])", "counts[:, kept]"))
wrong("consistency/synthetic.py::tfidf", "L1 length", ("np.linalg.norm(weighted, axis=1, keepdims=True)", "np.sum(weighted, axis=1, keepdims=True)"))
wrong("consistency/graph.py::local_width.weigh", "one scale", ("np.outer(scales, scales)", "np.outer(scales**2, np.ones(len(scales)))"))
wrong("consistency/graph.py::local_width.weigh", "rank from 0", ("ordered[:, int(rank) - 1]", "ordered[:, int(rank)]"))
wrong("consistency/graph.py::bridge_components", "one bridge only", ("while np.any(component != component[0]):", "if np.any(component != component[0]):"))
wrong("consistency/graph.py::bridge_components", "bridges in both directions counted", ("bridges += 1", "bridges += 2"))
wrong("consistency/graph.py::normalise", "symmetric without roots", ('"symmetric": (0.5, 0.5)', '"symmetric": (1.0, 1.0)'))
wrong("consistency/graph.py::normalise", "lonely points keep themselves", ("return np.where(np.logical_and.outer(alive, alive), scaled, 0.0)", "return np.where(np.logical_and.outer(alive, alive), scaled, 0.0) + np.diag(1.0 - alive)"))
wrong("consistency/labels.py::class_mass_normalise", "uniform priors", ("priors = np.divide(counts, np.sum(counts))", "priors = np.ones(len(counts)) / len(counts)"))
wrong("consistency/labels.py::class_mass_normalise", "rows first", ("    factors = np.divide", "    scores = np.divide(scores, np.sum(scores, axis=1, keepdims=True), out=np.copy(scores), where=np.sum(scores, axis=1, keepdims=True) > 0)\n    factors = np.divide"))
wrong("consistency/solvers.py::fixed_point", "clamped with weight alpha", ("np.multiply(1.0 - alpha, targets)", "np.multiply(alpha, targets)"))
wrong("consistency/solvers.py::chebyshev", "start from 0", ("np.array(targets, dtype=float)", "np.zeros(targets.shape)"))
wrong("consistency/solvers.py::chebyshev", "weights of the square root", ("4.0 / (4.0 - alpha**2 * weight)", "2.0 / (1.0 + np.sqrt(1.0 - alpha**2))"))
wrong("consistency/solvers.py::conjugate_gradients", "start from Y", ("scores, residual, direction = np.zeros_like(right), np.copy(right), np.copy(right)", "scores = np.array(targets, dtype=float)\n    residual = right - scores + alpha * operator(scores)\n    direction = np.copy(residual)"))
wrong("consistency/solvers.py::conjugate_gradients", "mean over the columns", ("np.sqrt(np.max(latest / reference))", "np.sqrt(np.mean(latest / reference))"))
wrong("consistency/solvers.py::lanczos", "vectors of the basis", ("span @ combinations[:, largest]", "span[:, largest]"))
wrong("consistency/models.py::Consistency.extend", "new degree added to the old ones", ("degrees = np.sum(points.weights, axis=1)", "degrees = np.sum(points.weights, axis=1) + np.mean(ties, axis=0)"))
wrong("consistency/models.py::HarmonicFields.score", "adjusted for the unlabelled only", ("return class_mass_normalise(scores, partial) if self.mass else scores", "out = class_mass_normalise(scores, partial) if self.mass else scores\n        out[known] = label_matrix(partial)[known]\n        return out"), ("scores[unknown] = np.linalg.solve(laplacian[np.ix_(unknown, unknown)], pull)", "scores[unknown] = np.linalg.solve(laplacian[np.ix_(unknown, unknown)] + 1e-3 * np.eye(len(unknown)), pull)"))
wrong("consistency/models.py::ClampedPropagation.score", "uniform start", ("np.sum(targets, axis=0) / np.sum(targets)", "1.0 / targets.shape[1]"))
wrong("consistency/models.py::ClampedPropagation.score", "symmetric weights", ('"row")', '"symmetric")'))
wrong("consistency/models.py::Eigenspace.score", "rounded share", ("int(np.floor(self.share * len(known)))", "int(np.ceil(self.share * len(known))) + 1"))
wrong("consistency/models.py::Eigenspace.score", "transition matrix", ('"symmetric")', '"row")'))
wrong("consistency/models.py::NearestNeighbours.score", "over the largest distance", ("spans = distances[:, -1:] - distances[:, :1]", "spans = distances[:, -1:]"))
# Thought to be wrong when written: but the kernel is 2 on its diagonal.
wrong("consistency/models.py::KernelMachine.train", "diagonal of the kernel taken as 2", ("slack / kernel[index, index]", "slack * 0.5"))
wrong("consistency/models.py::KernelMachine.train", "sum of K in place of y f", ("slack = 1.0 - sign * values[index]", "slack = 1.0 - values[index]"))
wrong("consistency/theory.py::energy_terms", "not scaled by degrees", ("np.divide(scores, np.sqrt(degrees)[:, np.newaxis])", "scores"))
wrong("consistency/theory.py::energy_terms", "mu = 1 - alpha", ("1.0 / alpha - 1.0", "1.0 - alpha"))
wrong("consistency/theory.py::leave_one_out", "factor 1 / alpha", ("(1.0 - alpha) * np.linalg.inv", "np.linalg.inv"), ("np.fill_diagonal(influence, 0.0)", "np.fill_diagonal(influence, np.diag(influence) * 0.5)"))
wrong("consistency/theory.py::leave_one_out", "logarithm of the mean", ("float(-np.mean(np.log(shares)))", "float(-np.log(np.mean(shares)))"))
wrong("consistency/metrics.py::class_report", "micro F1", ("float(np.mean(f1))", "agreement"))
wrong("consistency/metrics.py::class_report", "precision for recall", ("hits / np.maximum(members, 1.0)", "hits / np.maximum(claims, 1.0)"))
wrong("consistency/metrics.py::summarise_curve", "weighted by counts", ("np.dot(gaps, middles) / np.sum(gaps)", "np.average(mean, weights=counts)"))
wrong("consistency/metrics.py::paired_comparison", "second minus first", ("np.subtract(first, second)", "np.subtract(second, first)"))
wrong("consistency/metrics.py::paired_comparison", "fewer than the rarer", ("range(rarer + 1)", "range(rarer)"))

right("consistency/graph.py::local_width.weigh", "partition", """
n = len(distances)
scales = np.empty(n)
for i in range(n):
    scales[i] = np.sort(np.delete(distances[i], i))[int(rank) - 1]
return np.exp(-(np.asarray(distances) ** 2) / np.maximum(scales[:, None] * scales[None, :], np.finfo(float).tiny))
""")
right("consistency/graph.py::bridge_components", "Kruskal", """
mask = np.array(mask)
parts = connected_components(mask)
bridges = 0
n = len(mask)
for _, i, j in sorted((distances[i, j], i, j) for i in range(n) for j in range(n) if i < j):
    if parts[i] != parts[j]:
        mask[i, j] = mask[j, i] = True
        parts[parts == parts[j]] = parts[i]
        bridges += 1
return mask, bridges
""")
right("consistency/graph.py::normalise", "loops", """
if kind not in ("symmetric", "row", "column"):
    raise ValueError(kind)
d = np.asarray(weights).sum(axis=1)
n = len(d)
out = np.zeros((n, n))
for i in range(n):
    for j in range(n):
        if d[i] > 0 and d[j] > 0:
            divisor = {"symmetric": np.sqrt(d[i] * d[j]), "row": d[i], "column": d[j]}[kind]
            out[i, j] = weights[i, j] / divisor
return out
""")
right("consistency/solvers.py::lanczos", "three-term with full orthogonalisation", """
q = start / np.linalg.norm(start)
Q, products = [q], []
for step in range(n_steps):
    product = operator(Q[-1])
    products.append(product)
    rest = product.copy()
    for _ in range(2):
        for v in Q:
            rest -= (v @ rest) * v
    size = np.linalg.norm(rest)
    if size < 1e-10:
        break
    Q.append(rest / size)
V = np.array(Q[: len(products)]).T
T = V.T @ np.array(products).T
w, U = np.linalg.eigh(0.5 * (T + T.T))
order = np.argsort(w)[::-1][:n_pairs]
return w[order], V @ U[:, order]
""")
right("consistency/solvers.py::conjugate_gradients", "column norms", """
B = (1 - alpha) * np.asarray(targets, dtype=float)
F, R, P = np.zeros_like(B), B.copy(), B.copy()
rr, bb, changes = (R * R).sum(0), (B * B).sum(0), []
while len(changes) < max_iterations:
    Q = P - alpha * operator(P)
    a = rr / (P * Q).sum(0)
    F, R = F + a * P, R - a * Q
    new = (R * R).sum(0)
    changes.append(float(np.max(np.sqrt(new / bb))))
    if changes[-1] <= tolerance:
        break
    P, rr = R + new / rr * P, new
return Solution(F, len(changes), changes)
""")
right("consistency/models.py::HarmonicFields.score", "inverse of the walk", """
free = partial < 0
Y = label_matrix(partial)
W = points.weights
P = W / W.sum(axis=1, keepdims=True)
Y[free] = np.linalg.inv(np.eye(free.sum()) - P[np.ix_(free, free)]) @ P[np.ix_(free, ~free)] @ Y[~free]
return class_mass_normalise(Y, partial) if self.mass else Y
""")
right("consistency/models.py::Eigenspace.score", "pinv", """
known = np.flatnonzero(partial >= 0)
Y = label_matrix(partial)
count = min(max(Y.shape[1], int(self.share * len(known))), self.n_steps)
_, V = lanczos(Operator(normalise(points.weights)), count, self.n_steps, np.ones(len(partial)))
return V @ (np.linalg.pinv(V[known]) @ Y[known])
""")
right("consistency/theory.py::leave_one_out", "solve again", """
K = (1 - alpha) * np.linalg.inv(np.eye(len(weights)) - alpha * normalise(weights))
Y = label_matrix(partial)
wrong_ones, losses = [], []
for i in np.flatnonzero(partial >= 0):
    Z = Y.copy()
    Z[i] = 0
    row = K[i] @ Z
    own = row[partial[i]]
    wrong_ones.append(own < row.max())
    losses.append(-np.log(max(own / row.sum(), 1e-6)))
return float(np.mean(wrong_ones)), float(np.mean(losses))
""")
right("consistency/metrics.py::class_report", "sets", """
hidden = partial < 0
k = max(truth.max(), predicted.max()) + 1
t, p = truth[hidden], predicted[hidden]
recalls, f1s, chance = [], [], 0.0
for c in range(k):
    hits, members, claims = np.sum((t == c) & (p == c)), np.sum(t == c), np.sum(p == c)
    recalls.append(hits / members if members else 0.0)
    f1s.append(2 * hits / (members + claims) if members + claims else 0.0)
    chance += members * claims / len(t) ** 2
agree = np.mean(t == p)
return {"balanced": 1 - np.mean(recalls), "f1": np.mean(f1s), "kappa": (agree - chance) / (1 - chance)}
""")
right("consistency/models.py::KernelMachine.train", "values anew", """
n = len(signs)
a = np.zeros(n)
for sweep in range(1, self.max_sweeps + 1):
    largest = 0.0
    for i in range(n):
        f = float((a * signs) @ kernel[i])
        new = min(max(a[i] + (1 - signs[i] * f) / kernel[i, i], 0.0), self.cost)
        largest, a[i] = max(largest, abs(new - a[i])), new
    if largest < self.tolerance:
        break
return a, sweep
""")
