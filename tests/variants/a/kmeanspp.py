"""Wrong variants of k-means++'s functions: those that passed before the small cases, and more in their manner."""

STOP = "kmeanspp/lloyd.py::StoppingRule.update"
wrong(STOP, "relative to the new value", ("/ self._value", "/ value"))
wrong(STOP, "slow iterations in all, not in a row", ("self._slow + 1 if decrease < self.tolerance else 0", "self._slow + (decrease < self.tolerance)"))
wrong(STOP, "not strictly less", ("decrease < self.tolerance", "decrease <= self.tolerance"))
wrong(STOP, "absolute decrease", ("(self._value - value) / self._value", "abs(self._value - value) / self._value"))
wrong(STOP, "tolerance before assignment", ("if np.array_equal(labels, self._labels):", "if self._slow >= self.patience:\n                self.reason = \"tolerance\"\n            elif np.array_equal(labels, self._labels):"), ('            elif self._slow >= self.patience:\n                self.reason = "tolerance"\n        if', "        if"))
wrong(STOP, "one more than the cap", ("self.iterations >= self.max_iterations", "self.iterations > self.max_iterations"))
wrong(STOP, "patience exceeded", ("self._slow >= self.patience", "self._slow > self.patience"))
FIT = "kmeanspp/lloyd.py::KMeans.fit"
wrong(FIT, "potential after the repair", ("self.history_.append(float(np.sum(closest)))", "self.history_.append(float(np.sum((points - centers[labels]) ** 2)))"))
wrong(FIT, "rule sees labels before the repair", ("labels, repaired = repair_empty_clusters(labels, closest, self.n_clusters)", "raw = labels\n            labels, repaired = repair_empty_clusters(labels, closest, self.n_clusters)"), ("self.stopping.update(labels, ", "self.stopping.update(raw, "))
wrong(FIT, "centers moved once more", ("            if not finished:\n                centers", "            if True:\n                centers"))
wrong(FIT, "rule not restarted", ("self.stopping.restart()", "pass"))
wrong(FIT, "repairs of the last iteration only", ("self.repairs_ += repaired", "self.repairs_ = repaired"))
HAM = "kmeanspp/accelerated.py::HamerlyKMeans.fit"
wrong(HAM, "one drift for all lower bounds", ("np.where(own_is_fastest, drift[runner_up], drift[fastest])", "drift[fastest]"))
wrong(HAM, "own drift off the lower bound", ("np.where(own_is_fastest, drift[runner_up], drift[fastest])", "np.take(drift, self.labels_)"))
wrong(HAM, "upper bound not shifted", ("self._upper = self._upper + np.take(drift, self.labels_)", "pass"))
RE = "kmeanspp/accelerated.py::HamerlyKMeans._reassign"
wrong(RE, "whole gap", ("/ 2.0", "/ 1.0"))
wrong(RE, "smaller of both bounds", ("np.maximum(np.take", "np.minimum(np.take"))
wrong(RE, "no second test", ("        loose = loose[self._upper[loose] > safe[loose]]\n", ""))
wrong("kmeanspp/seeding.py::UniformSeeding.centers", "repeated places not passed over", 'keys = rng.standard_exponential(len(points))\nreturn points[np.argsort(keys, kind="stable")[: self.n_clusters]]')
wrong("kmeanspp/seeding.py::UniformSeeding.centers", "choice of the generator", "return points[rng.choice(len(points), self.n_clusters, replace=False)]")
wrong("kmeanspp/theory.py::expected_uniform_potentials", "sample deviation", ("np.std(outcomes)", "np.std(outcomes, ddof=1)"))
wrong("kmeanspp/theory.py::expected_uniform_potentials", "without the point itself", ("np.mean(outcomes)", "np.sum(outcomes) / max(len(outcomes) - 1, 1)"))
TWO = "kmeanspp/distances.py::two_nearest"
wrong(TWO, "ties to the highest index", ("np.argmin(distances, axis=1)", "distances.shape[1] - 1 - np.argmin(distances[:, ::-1], axis=1)"))
wrong(TWO, "second strictly farther", ("distances[rows, labels] = np.inf", "distances[distances == first[:, None]] = np.inf"))
wrong(TWO, "second not rooted", ("second = np.min(distances, axis=1)", "second = np.min(distances, axis=1) ** 2"))
wrong("kmeanspp/synthetic.py::NormMixture.sample", "sorted labels", ("rng.permutation(np.arange(n_points) % self.n_components)", "np.sort(rng.permutation(np.arange(n_points) % self.n_components))"))
wrong("kmeanspp/synthetic.py::cloud_like", "linear factors", ("np.geomspace(1.0, 100.0, n_features)", "np.linspace(1.0, 100.0, n_features)"))
wrong("kmeanspp/synthetic.py::intrusion_like", "raised at 0.3 or more", ("< 0.3", ">= 0.3"))
wrong("kmeanspp/seeding.py::PartitionSeeding.centers", "in the points' order", ("labels[order[self.n_clusters :]] =", "labels[np.sort(order[self.n_clusters :])] ="))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "last of the farthest", ("int(np.argmax(closest))", "int(len(closest) - 1 - np.argmax(closest[::-1]))"))
wrong("kmeanspp/seeding.py::FarthestFirstSeeding.centers", "last of the nearest to the mean", ("int(start[0])", "int(np.flatnonzero(squared_distances(points, middle[np.newaxis])[:, 0] == np.min(squared_distances(points, middle[np.newaxis])))[-1])"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "first center without weights", ("draw_index(mass, rng)", "draw_index(np.ones(len(points)), rng)"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "D(x)^(2l)", ("self.exponent / 2.0", "self.exponent"))
wrong("kmeanspp/seeding.py::PlusPlusSeeding.centers", "weights only for the first", ("scores = mass * np.power", "scores = np.power"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "candidates one by one", ("draw_index(nearest, rng, size=self.n_candidates)", "np.array([draw_index(nearest, rng) for _ in range(self.n_candidates)])[::-1]"))
wrong("kmeanspp/seeding.py::GreedySeeding.centers", "last of equally good ones", ("int(np.argmin(np.sum(remaining, axis=0)))", "int(self.n_candidates - 1 - np.argmin(np.sum(remaining, axis=0)[::-1]))"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "unweighted picks", ("weights=multiplicity", "weights=None"))
wrong("kmeanspp/seeding.py::ScalableSeeding.centers", "at least one pick a round", ("picks = np.union1d(picks, hits)", "picks = np.concatenate([picks, hits])"))
SWAP = "kmeanspp/seeding.py::swap_search"
wrong(SWAP, "also if equal", ("< np.sum(closest[:, 0])", "<= np.sum(closest[:, 0])"))
wrong(SWAP, "caller's array", ("np.array(centers, dtype=float)", "np.asarray(centers, dtype=float)"))
wrong(SWAP, "uniform candidates", ("draw_index(closest[:, 0], rng)", "draw_index(np.ones(len(points)), rng)"))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "sizes not updated", ("        sizes[labels[donor]] -= 1\n", ""))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "nearest points", ("np.argsort(-closest", "np.argsort(closest"))
wrong("kmeanspp/lloyd.py::repair_empty_clusters", "from the largest cluster", ("next(index for index in donors if sizes[labels[index]] > 1)", "max((index for index in range(len(labels)) if labels[index] == np.argmax(sizes)), key=lambda index: closest[index])"))
MINI = "kmeanspp/accelerated.py::MiniBatchKMeans.fit"
wrong(MINI, "seed has weight 1", ("counts = np.zeros(self.n_clusters)", "counts = np.ones(self.n_clusters)"))
wrong(MINI, "smoothed from 0", ("self.smoothed_ = None", "self.smoothed_ = 0.0"))
wrong(MINI, "without replacement", ("rng.integers(len(points), size=self.batch_size)", "rng.choice(len(points), self.batch_size, replace=False)"))
wrong("kmeanspp/theory.py::expected_weighted_ratios", "not over the optimum", (" / optimal[position]", ""))
wrong("kmeanspp/theory.py::coverage", "centers in all clusters", ("np.mean(hits[covered])", "np.mean(hits)"))
wrong("kmeanspp/theory.py::summarise", "population spread", ("np.std(finals, ddof=1)", "np.std(finals)"))
wrong("kmeanspp/theory.py::summarise", "gain relative to the row", ('row["mean"] / baseline["mean"]', 'baseline["mean"] / row["mean"]'))
wrong("kmeanspp/metrics.py::adjusted_rand_index", "geometric mean", ("(by_class + by_cluster) / 2.0", "np.sqrt(by_class * by_cluster)"))
wrong("kmeanspp/metrics.py::normalised_mutual_information", "geometric mean", ("np.mean([class_entropy, cluster_entropy])", "np.sqrt(class_entropy * cluster_entropy)"))
wrong("kmeanspp/metrics.py::normalised_mutual_information", "larger entropy", ("np.mean([class_entropy, cluster_entropy])", "max(class_entropy, cluster_entropy)"))
wrong("kmeanspp/metrics.py::best_assignment", "greedy", """
gains = np.array(gains, dtype=float)
columns = []
for row in gains:
    row = row.copy()
    row[columns] = -np.inf
    columns.append(int(np.argmax(row)))
return np.array(columns)
""")
SIL = "kmeanspp/metrics.py::silhouette"
wrong(SIL, "own point counted", ("np.maximum(sizes[codes] - 1.0, 1.0)", "sizes[codes]"))
wrong(SIL, "lonely points have width 1", ("np.maximum(nearest, own), 0.0)", "np.maximum(nearest, own), 1.0)"))
wrong(SIL, "squared distances", ("np.sqrt(squared_distances(points, points))", "squared_distances(points, points)"))
DB = "kmeanspp/metrics.py::davies_bouldin"
wrong(DB, "root mean square scatter", ("scatter = np.bincount(labels, weights=residuals, minlength=len(centers)) / counts", "scatter = np.sqrt(np.bincount(labels, weights=residuals**2, minlength=len(centers)) / counts)"))
wrong(DB, "squared separation", ("np.sqrt(squared_distances(centers, centers))", "squared_distances(centers, centers)"))
