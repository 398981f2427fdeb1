"""A pool kept apart: written after the small cases, without a look at them. Wrong variants, and right ones."""

wrong("kmeanspp/synthetic.py::NormMixture.sample", "labels drawn uniformly", ("rng.permutation(np.arange(n_points) % self.n_components)", "rng.integers(self.n_components, size=n_points)"))
wrong("kmeanspp/synthetic.py::NormMixture.sample", "deviation as variance", ("* self.deviation", "* np.sqrt(self.deviation)"))
wrong("kmeanspp/synthetic.py::cloud_like", "additive noise", ("intensities * (1.0 + 0.05 *", "intensities + (0.05 *"))
wrong("kmeanspp/synthetic.py::cloud_like", "mixing not scaled", (" / np.sqrt(n_factors)", ""))
wrong("kmeanspp/synthetic.py::intrusion_like", "log-normal with variance 2", ("rng.normal(1.0, 2.0,", "rng.normal(1.0, np.sqrt(2.0),"))
wrong("kmeanspp/distances.py::two_nearest", "distance to the second by index", ("second = np.min(distances, axis=1)", "second = distances[rows, np.minimum(labels + 1, distances.shape[1] - 1)]"))
wrong("kmeanspp/seeding.py::PartitionSeeding.centers", "no cluster kept from being empty", ("labels[order[: self.n_clusters]] = np.arange(self.n_clusters)\n", "labels[:] = 0\n"))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "starts from the first point", ("chosen = [int(start[0])]", "chosen = [0]"))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "farthest from the newest", ("closest = np.minimum(closest, np.ravel(latest))", "closest = np.ravel(latest)"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "D for D squared", ("np.power(closest, self.exponent / 2.0)", "np.power(closest, self.exponent / 4.0)"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "first candidate", ("int(np.argmin(np.sum(remaining, axis=0)))", "0"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "farthest candidate", ("int(np.argmin(np.sum(remaining, axis=0)))", "int(np.argmax(nearest[candidates]))"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "k picks expected a round", ("expected = self.oversampling * self.n_clusters", "expected = self.n_clusters"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "first picks as centers", ("return recluster(points[picks], rng, weights=multiplicity)", "return points[picks[: self.n_clusters]]"))
wrong("kmeanspp/seeding.py::swap_search", "loss by own distance", ("bereft = np.minimum(closest[:, 1], fresh)", "bereft = closest[:, 1]"))
wrong("kmeanspp/seeding.py::swap_search", "counts tries", ("            accepted += 1\n", "        accepted += 1\n"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "patience of one", ("elif self._slow >= self.patience:", "elif self._slow >= 1:"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "first value kept", ("        self._value = float(value)\n", "        self._value = float(value) if self._value is None else self._value\n"))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "largest index on ties", ('np.argsort(-closest, kind="stable")', 'np.argsort(closest, kind="stable")[::-1]'))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "last ones may move", ("if sizes[labels[index]] > 1)", "if sizes[labels[index]] > 0)"))
wrong("kmeanspp/lloyd.py::KMeans.fit", "seed potential after one step", ("self.seed_potential_ = potential(points, centers)", "self.seed_potential_ = potential(points, cluster_means(points, nearest_centers(points, centers)[0], centers))"))
wrong("kmeanspp/lloyd.py::KMeans.fit", "mean for the potential", ("float(np.sum(closest))", "float(np.mean(closest))"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans.fit", "cap after it", ("self.n_iterations_ < self.max_iterations", "self.n_iterations_ <= self.max_iterations"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans._reassign", "counts before the second test", ("        loose = loose[self._upper[loose] > safe[loose]]\n        self.searched_.append(len(loose))\n", "        self.searched_.append(len(loose))\n        loose = loose[self._upper[loose] > safe[loose]]\n"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "learning rate by the batch only", ("np.maximum(counts, 1.0)", "np.maximum(gained, 1.0)"))
wrong("kmeanspp/theory.py::expected_weighted_ratios", "uniform draw", ("weights = np.power(current, exponent / 2.0)", "weights = np.ones(len(current))"))
wrong("kmeanspp/theory.py::coverage", "share of points", ("float(missed / np.sum(closest))", "float(np.mean(~covered[codes]))"))
wrong("kmeanspp/theory.py::summarise", "spread over the smallest", ("/ np.mean(finals))", "/ np.min(finals))"))
wrong("kmeanspp/metrics.py::adjusted_rand_index", "unadjusted", ("return float((together - chance) / (highest - chance))", "return float((everything + 2 * together - by_class - by_cluster) / everything)"))
wrong("kmeanspp/metrics.py::normalised_mutual_information", "smaller entropy", ("np.mean([class_entropy, cluster_entropy])", "min(class_entropy, cluster_entropy)"))
wrong("kmeanspp/metrics.py::silhouette", "distance to all others", ("nearest = np.min(others, axis=1)", "nearest = np.mean(np.where(np.isinf(others), 0.0, others), axis=1)"))
wrong("kmeanspp/metrics.py::davies_bouldin", "mean over pairs", ("np.mean(np.max(similarity, axis=1))", "np.sum(similarity) / (len(centers) * (len(centers) - 1))"))

right("kmeanspp/distances.py::two_nearest", "sorted", """
distances = squared_distances(points, centers)
order = np.argsort(distances, axis=1, kind="stable")
ordered = np.sqrt(np.take_along_axis(distances, order, axis=1))
return order[:, 0], ordered[:, 0].copy(), ordered[:, 1].copy()
""")
right("kmeanspp/seeding.py::UniformSeeding.centers", "loop", """
keys = rng.standard_exponential(len(points))
seen, fresh, repeated = set(), [], []
for index in np.argsort(keys):
    place = tuple(points[index])
    (repeated if place in seen else fresh).append(index)
    seen.add(place)
return points[(fresh + repeated)[: self.n_clusters]]
""")
right("kmeanspp/seeding.py::PlusPlusSeeding.centers", "list", """
mass = np.ones(len(points)) if weights is None else np.asarray(weights)
chosen = [int(draw_index(mass, rng))]
closest = squared_distances(points, points[chosen])[:, 0]
while len(chosen) < self.n_clusters:
    chosen.append(int(draw_index(mass * np.sqrt(closest) ** self.exponent, rng)))
    if len(chosen) < self.n_clusters:
        closest = np.minimum(closest, squared_distances(points, points[chosen[-1]][None, :])[:, 0])
return points[np.array(chosen)]
""")
right("kmeanspp/seeding.py::swap_search", "all potentials", """
centers = np.array(centers, dtype=float)
accepted = 0
for _ in range(n_swaps):
    distances = squared_distances(points, centers)
    closest = distances.min(axis=1)
    index = int(draw_index(closest, rng))
    fresh = squared_distances(points, points[index : index + 1])[:, 0]
    totals = []
    for out in range(len(centers)):
        rest = np.delete(distances, out, axis=1)
        totals.append(np.minimum(rest.min(axis=1), fresh).sum())
    best = int(np.argmin(totals))
    if totals[best] < closest.sum():
        centers[best] = points[index]
        accepted += 1
return centers, accepted
""")
right("kmeanspp/lloyd.py::repair_empty_clusters", "loop", """
labels = np.asarray(labels).copy()
counts = [int(np.sum(labels == cluster)) for cluster in range(n_clusters)]
empty = [cluster for cluster in range(n_clusters) if counts[cluster] == 0]
order = sorted(range(len(labels)), key=lambda index: (-closest[index], index))
position = 0
for cluster in empty:
    while counts[labels[order[position]]] < 2:
        position += 1
    point = order[position]
    counts[labels[point]] -= 1
    labels[point] = cluster
    counts[cluster] = 1
    position += 1
return labels, len(empty)
""")
right("kmeanspp/metrics.py::best_assignment", "scipy", "from scipy.optimize import linear_sum_assignment\nreturn linear_sum_assignment(np.asarray(gains, dtype=float), maximize=True)[1]")
right("kmeanspp/metrics.py::silhouette", "loop", """
labels = np.asarray(labels)
widths = []
for index, point in enumerate(points):
    distances = np.linalg.norm(points - point, axis=1)
    same = labels == labels[index]
    if same.sum() == 1:
        widths.append(0.0)
        continue
    a = distances[same].sum() / (same.sum() - 1)
    b = min(distances[labels == other].mean() for other in set(labels.tolist()) if other != labels[index])
    widths.append((b - a) / max(a, b))
return float(np.mean(widths))
""")
right("kmeanspp/metrics.py::davies_bouldin", "loop", """
k = len(centers)
scatter = [np.mean(np.linalg.norm(points[labels == i] - centers[i], axis=1)) for i in range(k)]
worst = [max((scatter[i] + scatter[j]) / np.linalg.norm(centers[i] - centers[j]) for j in range(k) if j != i) for i in range(k)]
return float(sum(worst) / k)
""")
right("kmeanspp/metrics.py::adjusted_rand_index", "comb", """
from math import comb
table = contingency(truth, labels)
cells = sum(comb(int(v), 2) for v in table.ravel())
rows = sum(comb(int(v), 2) for v in table.sum(axis=1))
columns = sum(comb(int(v), 2) for v in table.sum(axis=0))
expected = rows * columns / comb(len(truth), 2)
return (cells - expected) / (0.5 * (rows + columns) - expected)
""")
right("kmeanspp/theory.py::coverage", "sets", """
labels = np.asarray(labels)
kinds = np.unique(labels)
owner = labels[nearest_centers(centers, points)[0]]
counts = np.array([np.sum(owner == kind) for kind in kinds])
_, closest = nearest_centers(points, centers)
lost = np.isin(labels, kinds[counts == 0])
return np.mean(counts > 0), closest[lost].sum() / closest.sum(), counts[counts > 0].mean()
""")
right("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "sums kept", """
centers = np.array(self.seeding(points, rng), dtype=float)
totals, counts = np.zeros_like(centers), np.zeros(self.n_clusters)
self.smoothed_ = None
for number in range(self.n_batches):
    batch = points[rng.integers(0, len(points), self.batch_size)]
    labels, closest = nearest_centers(batch, centers)
    for label, point in zip(labels, batch):
        totals[label] += point
        counts[label] += 1
    given = counts > 0
    centers = centers.copy()
    centers[given] = totals[given] / counts[given, None]
    mean = closest.mean()
    self.smoothed_ = mean if number == 0 else 0.7 * self.smoothed_ + 0.3 * mean if self.smoothing == 0.3 else self.smoothed_ + self.smoothing * (mean - self.smoothed_)
self.centers_, self.counts_, self.potential_ = centers, counts, potential(points, centers)
return self
""")
