"""A third pool, written from the functions and their docstrings alone. Wrong variants, and right ones."""

wrong("kmeanspp/accelerated.py::HamerlyKMeans.fit", "lower bound shrinks by the own drift", ("np.where(own_is_fastest, drift[runner_up], drift[fastest])", "np.take(drift, self.labels_)"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans.fit", "iteration cap ignored", ("while changed > 0 and self.n_iterations_ < self.max_iterations", "while changed > 0"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans.fit", "centers before the last move kept", ("            centers = means\n            changed = self._reassign(points, centers)", "            changed = self._reassign(points, means)\n            self.centers_, centers = centers, means"), ("        self.centers_ = centers\n", "        self.centers_ = getattr(self, 'centers_', centers)\n"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans.fit", "the largest drift for all", ("np.where(own_is_fastest, drift[runner_up], drift[fastest])", "drift[fastest]"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans._reassign", "half gap not halved", ("np.min(between, axis=1) / 2.0", "np.min(between, axis=1)"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans._reassign", "smaller of the two bounds", ("np.maximum(np.take", "np.minimum(np.take"))
wrong("kmeanspp/accelerated.py::HamerlyKMeans._reassign", "second test left out", ("        loose = loose[self._upper[loose] > safe[loose]]\n", ""))
wrong("kmeanspp/accelerated.py::HamerlyKMeans._reassign", "bounds not updated", ("self.labels_[loose], self._upper[loose], self._lower[loose] = two_nearest(points[loose], centers)", "self.labels_[loose], self._upper[loose], _ = two_nearest(points[loose], centers)"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "smoothed by the complement", ("self.smoothed_ + step * (level - self.smoothed_)", "level + step * (self.smoothed_ - level)"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "counts the seed", ("counts = np.zeros(self.n_clusters)", "counts = np.ones(self.n_clusters)"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "batch without replacement", ("rng.integers(len(points), size=self.batch_size)", "rng.permutation(len(points))[: self.batch_size]"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "duplicates in a batch lost", ("np.add.at(pull, labels, batch - centers[labels])", "pull[labels] += batch - centers[labels]"))
wrong("kmeanspp/accelerated.py::MiniBatchKMeans.fit", "step of the smoothing fixed at 0.3", ("else self.smoothing\n", "else 0.3\n"))
wrong("kmeanspp/distances.py::two_nearest", "squared", ("np.sqrt(squared_distances(points, centers))", "squared_distances(points, centers)"))
wrong("kmeanspp/distances.py::two_nearest", "ties to the highest index", ("labels = np.argmin(distances, axis=1)", "labels = distances.shape[1] - 1 - np.argmin(distances[:, ::-1], axis=1)"))
wrong("kmeanspp/distances.py::two_nearest", "second must differ from the first", ("    distances[rows, labels] = np.inf\n", "    distances[distances <= first[:, np.newaxis]] = np.inf\n"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "slow iterations not in a row", ("else 0\n", "else self._slow\n"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "labels kept without a copy", ("self._labels = np.copy(labels)", "self._labels = labels"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "at most the tolerance is slow", ("decrease < self.tolerance", "decrease <= self.tolerance"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "absolute decrease", ("(self._value - value) / self._value", "self._value - value"))
wrong("kmeanspp/lloyd.py::StoppingRule.update", "tolerance goes before assignment", ("            if np.array_equal(labels, self._labels):\n                self.reason = \"assignment\"\n            elif self._slow >= self.patience:\n                self.reason = \"tolerance\"", "            if self._slow >= self.patience:\n                self.reason = \"tolerance\"\n            elif np.array_equal(labels, self._labels):\n                self.reason = \"assignment\""))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "changes the labels that it gets", ("labels = np.array(labels)", "labels = np.asarray(labels)"))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "sizes not kept up", ("        sizes[labels[donor]] -= 1\n", ""))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "highest index on ties", ("np.argsort(-closest, kind=\"stable\")", "np.argsort(closest, kind=\"stable\")[::-1]"))
wrong("kmeanspp/lloyd.py::KMeans.fit", "given centers ignored", ("self.seeding(points, rng) if centers is None else np.array(centers, dtype=float)", "self.seeding(points, rng)"))
wrong("kmeanspp/lloyd.py::KMeans.fit", "rule not restarted", ("        self.stopping.restart()\n", ""))
wrong("kmeanspp/lloyd.py::KMeans.fit", "repairs of the last iteration only", ("self.repairs_ += repaired", "self.repairs_ = repaired"))
wrong("kmeanspp/lloyd.py::KMeans.fit", "potential after the repair", ("self.history_.append(float(np.sum(closest)))", "self.history_.append(float(np.sum(np.square(points - cluster_means(points, labels, centers)[labels]))))"))
wrong("kmeanspp/metrics.py::adjusted_rand_index", "not corrected for chance", ("(together - chance) / (highest - chance)", "together / highest"))
wrong("kmeanspp/metrics.py::adjusted_rand_index", "int32 pairs", ("np.sum(counts * (counts - 1)) / 2.0", "np.sum((counts * (counts - 1)).astype(np.int32), dtype=np.int32) / 2.0"))
wrong("kmeanspp/metrics.py::adjusted_rand_index", "geometric mean", ("(by_class + by_cluster) / 2.0", "np.sqrt(by_class * by_cluster)"))
wrong("kmeanspp/metrics.py::normalised_mutual_information", "maximum entropy", ("np.mean([class_entropy, cluster_entropy])", "max(class_entropy, cluster_entropy)"))
wrong("kmeanspp/metrics.py::normalised_mutual_information", "0 log 0 by a small number", ("positive = probabilities[probabilities > 0]", "positive = probabilities + 0.01"))
wrong("kmeanspp/metrics.py::best_assignment", "greedy row by row", """
left = np.array(gains, dtype=float)
chosen = np.empty(len(left), dtype=int)
for row in range(len(left)):
    chosen[row] = np.argmax(left[row])
    left[:, chosen[row]] = -np.inf
return chosen
""")
wrong("kmeanspp/metrics.py::best_assignment", "greedy by the largest entry", """
left = np.array(gains, dtype=float)
chosen = np.empty(len(left), dtype=int)
for _ in range(len(left)):
    row, column = np.unravel_index(np.argmax(left), left.shape)
    chosen[row] = column
    left[row], left[:, column] = -np.inf, -np.inf
return chosen
""")
wrong("kmeanspp/metrics.py::best_assignment", "only the first columns", """
from itertools import permutations
gains = np.asarray(gains)
rows = np.arange(len(gains))
return np.array(max(permutations(rows), key=lambda order: gains[rows, list(order)].sum()))
""")
wrong("kmeanspp/metrics.py::best_assignment", "smallest sum", ("np.max(gains) - np.asarray(gains, dtype=float)", "np.asarray(gains, dtype=float)"))
wrong("kmeanspp/metrics.py::silhouette", "a point alone has width 1", ("np.where(sizes[codes] > 1, (nearest - own) / np.maximum(nearest, own), 0.0)", "(nearest - own) / np.maximum(nearest, own)"))
wrong("kmeanspp/metrics.py::silhouette", "own mean with the point itself", ("np.maximum(sizes[codes] - 1.0, 1.0)", "sizes[codes]"))
wrong("kmeanspp/metrics.py::silhouette", "labels taken for 0 to k - 1", ("    clusters, codes = np.unique(labels, return_inverse=True)\n", "    codes = np.asarray(labels)\n    clusters = np.arange(np.max(codes) + 1)\n"), ("    others = totals / sizes\n", "    others = totals / np.maximum(sizes, 1.0)\n"))
wrong("kmeanspp/metrics.py::davies_bouldin", "largest scatter as the sum", ("np.add.outer(scatter, scatter)", "np.maximum.outer(scatter, scatter)"))
wrong("kmeanspp/metrics.py::davies_bouldin", "root mean square scatter", ("residuals = np.sqrt(np.sum(np.square(points - centers[labels]), axis=1))", "residuals = np.sum(np.square(points - centers[labels]), axis=1)"), ("minlength=len(centers)) / counts", "minlength=len(centers)) / counts\n    scatter = np.sqrt(scatter)"))
wrong("kmeanspp/seeding.py::UniformSeeding.centers", "repeated points not passed over", ("points[ranking[winners]]", "points[ranking[: self.n_clusters]]"))
wrong("kmeanspp/seeding.py::UniformSeeding.centers", "no filling up", ("np.concatenate([fresh, repeated])[: self.n_clusters]", "fresh[: self.n_clusters]"))
wrong("kmeanspp/seeding.py::UniformSeeding.centers", "places in sorted order", ("fresh = np.sort(earliest)", "fresh = earliest"))
wrong("kmeanspp/seeding.py::PartitionSeeding.centers", "others in index order", ("labels[order[self.n_clusters :]] =", "labels[np.sort(order[self.n_clusters :])] ="))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "random start", ("chosen = [int(start[0])]", "chosen = [int(rng.integers(len(points)))]"))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "farthest from the last one", ("closest = np.minimum(closest, np.ravel(latest))", "closest = np.ravel(latest)"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "weights ignored after the first", ("scores = mass * np.power", "scores = np.power"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "first center ignores the weights", ("chosen[0] = draw_index(mass, rng)", "chosen[0] = draw_index(np.ones(len(points)), rng)"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "exponent not halved", ("self.exponent / 2.0", "self.exponent"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "always squared", ("np.power(closest, self.exponent / 2.0)", "closest"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "last candidate on ties", ("best = int(np.argmin(np.sum(remaining, axis=0)))", "sums = np.sum(remaining, axis=0)\n            best = len(sums) - 1 - int(np.argmin(sums[::-1]))"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "number of candidates by default", ("size=self.n_candidates", "size=2 + int(np.log(self.n_clusters))"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "best by the largest distance", ("np.argmin(np.sum(remaining, axis=0))", "np.argmax(nearest[candidates])"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "number of clusters left out", ("self.oversampling * self.n_clusters", "self.oversampling"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "always five rounds", ("range(self.rounds)", "range(5)"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "unweighted reclustering", ("recluster(points[picks], rng, weights=multiplicity)", "recluster(points[picks], rng)"))
wrong("kmeanspp/seeding.py::swap_search", "in place on the centers", ("centers = np.array(centers, dtype=float)", "centers = np.asarray(centers, dtype=float)"))
wrong("kmeanspp/seeding.py::swap_search", "exchange also on equal potential", ("losses[victim] < np.sum", "losses[victim] <= np.sum"))
wrong("kmeanspp/seeding.py::swap_search", "stops at the first rejection", ("            accepted += 1\n", "            accepted += 1\n        else:\n            break\n"))
wrong("kmeanspp/synthetic.py::NormMixture.sample", "deviation as variance", ("* self.deviation", "* np.sqrt(self.deviation)"))
wrong("kmeanspp/synthetic.py::NormMixture.sample", "uniform components", ("rng.permutation(np.arange(n_points) % self.n_components)", "rng.integers(self.n_components, size=n_points)"))
wrong("kmeanspp/synthetic.py::cloud_like", "number of factors fixed", ("rng.standard_normal((n_regimes, n_factors))", "rng.standard_normal((n_regimes, 3))"), ("rng.standard_normal((n_points, n_factors))", "rng.standard_normal((n_points, 3))"), ("rng.standard_normal((n_factors, n_features)) / np.sqrt(n_factors)", "rng.standard_normal((3, n_features)) / np.sqrt(3)"))
wrong("kmeanspp/synthetic.py::cloud_like", "scales in linear steps", ("np.geomspace(1.0, 100.0, n_features)", "np.linspace(1.0, 100.0, n_features)"))
wrong("kmeanspp/synthetic.py::intrusion_like", "counts cut to a byte", ("counts.astype(float)", "np.minimum(counts, 255).astype(float)"))
wrong("kmeanspp/synthetic.py::intrusion_like", "shares halve from kind to kind", ("np.power(0.6, np.arange(n_kinds))", "np.power(0.5, np.arange(n_kinds))"))
wrong("kmeanspp/theory.py::expected_uniform_potentials", "sample deviation", ("np.std(outcomes)", "np.std(outcomes, ddof=1 if len(outcomes) > 1 else 0)"))
wrong("kmeanspp/theory.py::expected_weighted_ratios", "exponent ignored", ("np.power(current, exponent / 2.0)", "current"))
wrong("kmeanspp/theory.py::expected_weighted_ratios", "members' own distances only", ("np.minimum(pairwise, current[:, np.newaxis])", "pairwise"))
wrong("kmeanspp/theory.py::coverage", "labels as codes", ("covered[codes]])", "covered[np.asarray(labels) % len(kinds)]])"))
wrong("kmeanspp/theory.py::coverage", "crowding over all clusters", ("np.mean(hits[covered])", "np.mean(hits)"))
wrong("kmeanspp/theory.py::summarise", "gain as a share", ("100.0 * (1.0 - row[\"mean\"] / baseline[\"mean\"])", "1.0 - row[\"mean\"] / baseline[\"mean\"]"))
wrong("kmeanspp/theory.py::summarise", "gain only where it is positive", ("100.0 * (1.0 - row[\"mean\"] / baseline[\"mean\"])", "max(0.0, 100.0 * (1.0 - row[\"mean\"] / baseline[\"mean\"]))"))

right("kmeanspp/metrics.py::best_assignment", "scipy", """
from scipy.optimize import linear_sum_assignment
return linear_sum_assignment(gains, maximize=True)[1]
""")
right("kmeanspp/distances.py::two_nearest", "sorted", """
distances = np.sqrt(squared_distances(points, centers))
order = np.argsort(distances, axis=1, kind="stable")
ranked = np.sort(distances, axis=1)
return order[:, 0], ranked[:, 0], ranked[:, 1]
""")
right("kmeanspp/lloyd.py::repair_empty_clusters", "loops", """
result = [int(label) for label in labels]
order = sorted(range(len(result)), key=lambda i: (-closest[i], i))
count = 0
for cluster in range(n_clusters):
    if cluster in list(labels):
        continue
    count += 1
    while True:
        point = order.pop(0)
        if result.count(result[point]) > 1:
            break
    result[point] = cluster
return np.array(result), count
""")
right("kmeanspp/metrics.py::silhouette", "loops", """
labels = np.asarray(labels)
total = 0.0
for i in range(len(points)):
    gaps = np.sqrt(np.sum((points - points[i]) ** 2, axis=1))
    mine = labels == labels[i]
    if mine.sum() == 1:
        continue
    a = gaps[mine].sum() / (mine.sum() - 1)
    b = min(gaps[labels == other].mean() for other in set(labels.tolist()) if other != labels[i])
    total += (b - a) / max(a, b)
return total / len(points)
""")
right("kmeanspp/seeding.py::PlusPlusSeeding.centers", "another loop", """
mass = np.ones(len(points)) if weights is None else np.asarray(weights, float)
chosen = [int(draw_index(mass, rng))]
near = squared_distances(points, points[chosen[:1]])[:, 0]
while len(chosen) < self.n_clusters:
    chosen.append(int(draw_index(mass * near ** (self.exponent / 2), rng)))
    near = np.minimum(near, squared_distances(points, points[chosen[-1:]])[:, 0])
return points[chosen]
""")
right("kmeanspp/metrics.py::adjusted_rand_index", "combinations", """
from math import comb
table = contingency(truth, labels).tolist()
both = sum(comb(n, 2) for row in table for n in row)
rows = sum(comb(sum(row), 2) for row in table)
columns = sum(comb(sum(column), 2) for column in zip(*table))
expected = rows * columns / comb(len(truth), 2)
return (both - expected) / ((rows + columns) / 2 - expected)
""")
right("kmeanspp/theory.py::expected_uniform_potentials", "loops", """
means, deviations = [], []
for kind in np.unique(labels):
    cluster = points[labels == kind]
    values = [np.sum((cluster - center) ** 2) for center in cluster]
    means.append(np.mean(values))
    deviations.append(np.std(values))
return np.array(means), np.array(deviations)
""")

# Was written as a wrong one. A cluster with one point never gets another, so its point stays passed over.
right("kmeanspp/lloyd.py::repair_empty_clusters", "passed over only this time", ("    donors = iter(np.argsort(-closest, kind=\"stable\"))\n", "    ranked, used = np.argsort(-closest, kind=\"stable\"), set()\n"), ("next(index for index in donors if sizes[labels[index]] > 1)", "next(index for index in ranked if index not in used and sizes[labels[index]] > 1)"), ("        labels[donor] = cluster\n", "        labels[donor] = cluster\n        used.add(donor)\n"))
