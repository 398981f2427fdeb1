"""Small cases by hand: ties, empty clusters, repeated points, few points. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

from types import SimpleNamespace

import numpy as np

from . import metrics, theory
from .accelerated import HamerlyKMeans, MiniBatchKMeans
from .distances import COUNTER, two_nearest
from .lloyd import KMeans, StoppingRule, repair_empty_clusters
from .sampling import trial_generator
from .seeding import ScalableSeeding, make_seeding, swap_search
from .synthetic import NormMixture, cloud_like, intrusion_like

GROUPS = {}

#: A grid of two rows and four columns, whose mean is equally near to its four middle points.
GRID = np.array([[float(row), float(column)] for row in range(2) for column in range(4)])

#: Seven points at four places.
REPEATED = np.array([[1.0, 2.0], [4.0, 0.0], [1.0, 2.0], [0.0, 3.0], [4.0, 0.0], [5.0, 5.0], [1.0, 2.0]])

#: Points on a line, symmetric around 0.
LINE = np.array([[-7.0], [-3.0], [-3.0], [0.0], [3.0], [3.0], [7.0], [0.0]])


def group(function):
    """Decorator: make a group of cases available by its name."""
    GROUPS[function.__name__] = function
    return function


def primes(count):
    """The first prime numbers."""
    limit = 20 + 20 * count
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for number in range(2, int(limit**0.5) + 1):
        sieve[number * number :: number] = False
    return np.flatnonzero(sieve)[:count]


def signature(*arrays):
    """How many numbers there are, and the sum of all of them, each times the root of another prime, with changing signs.

    The roots of different primes are independent over the rational numbers: whole numbers that differ, or change places,
    give another sum.
    """
    flat = np.concatenate([np.ravel(np.asarray(values, dtype=float)) for values in arrays])
    weights = np.sqrt(primes(len(flat))) * np.where(np.arange(len(flat)) % 3 == 1, -1.0, 1.0)
    return len(flat) + float(np.dot(flat, weights))


def rounded(result):
    return {name: round(float(value), 9) for name, value in result.items()}


def scattered(n_points, key):
    """Points of overlapping clusters."""
    return NormMixture(4, 2, 10.0, 1.5).sample(n_points, trial_generator(41, key)).points


def seeded_on_edges():
    """Seedings of as many centers as points or places, of whole numbers, and swaps that change nothing."""
    result = {}
    for size in (2, 5):
        data = NormMixture(3, 2).sample(size, trial_generator(21, size))
        result[f"mixture, {size}"] = signature(data.points, data.labels, data.centers)
    whole = np.array([[0, 2], [1, 7], [5, 5], [0, 2], [9, 1]])
    for name in ("random", "partition", "kmeans++", "greedy", "farthest"):
        for points, k in ((REPEATED, 1), (REPEATED, 4), (REPEATED, 7), (whole, 3), (whole, 5)):
            centers = [make_seeding(name, k)(points, trial_generator(22, trial)) for trial in range(3)]
            result[f"{name}, {k} of {len(points)}"] = signature(*centers, points)
    close = np.array([[1.0, 2.0], [1.0, 2.0 + 2.0**-30], [1.0, 2.0], [1.0 - 2.0**-40, 2.0]])
    draws = [make_seeding("random", 3)(close, trial_generator(27, trial)) for trial in range(6)]
    result["random, close"] = signature((np.array(draws) - close[0]) * 2.0**40)
    stripes = np.array([[0.0], [8.0], [4.0], [0.0], [8.0], [2.0], [6.0]])
    result["farthest, stripes"] = signature(*[make_seeding("farthest", k)(points, None) for points in (stripes, LINE, stripes[::-1]) for k in (2, 3, 6)])
    weights = np.array([0.5, 3.0, 0.0, 0.25, 1.25])
    draws = [make_seeding("kmeans++", 3)(whole, trial_generator(23, trial), weights=weights) for trial in range(6)]
    result["weighted, whole"] = signature(*draws, weights)
    line = scattered(30, 22)
    for k, oversampling, rounds in ((1, 0.5, 0), (2, 40.0, 1), (4, 2.0, 5), (3, 0.75, 8)):
        draws = [ScalableSeeding(k, oversampling, rounds)(points, trial_generator(24, trial)) for trial in range(3) for points in ((line, np.rint(line)) if rounds < 2 else (line,))]
        result[f"kmeans||, {k}, {rounds}"] = signature(*draws, line)
    tied = np.array([[0.0], [4.0], [8.0], [12.0], [20.0], [24.0], [28.0], [32.0]])
    for name, start, swaps in (("ends", tied[[0, 7, 1]], 1), ("middle", tied[[3, 4, 2]], 1), ("even", tied[[1, 6]], 1), ("whole", np.array([[1], [2], [30]]), 4), ("twice", tied[[5, 5, 0]], 2), ("no swaps", tied[:2], 0)):
        found = [swap_search(tied, start, trial_generator(25, trial), swaps) for trial in range(8)]
        result[f"swaps, {name}"] = signature(*[values for pair in found for values in pair], start)
        found[0][0][:] = 99.0
        result[f"swaps, {name}, start"] = signature(start, tied)
    found = [swap_search(tied + 0.5, np.array([[1], [2], [30]]), trial_generator(28, trial), 3) for trial in range(4)]
    result["swaps, whole centers"] = signature(*[values for pair in found for values in pair])
    square = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    found = [swap_search(square, square[list(rows)], trial_generator(26, trial), 2) for trial in range(6) for rows in ((0, 1), (3, 0), (2, 2, 2))]
    result["swaps, square"] = signature(*[values for pair in found for values in pair])
    return result


@group
def seeds():
    result = {}
    data = NormMixture(3, 2, 10.0, 0.5).sample(7, trial_generator(1))
    result["mixture"] = signature(data.points) + signature(data.labels) + signature(data.centers)
    for name, draw, options in (("cloud", cloud_like, {"n_features": 4, "n_regimes": 2, "n_factors": 2}),
                                ("intrusion", intrusion_like, {"n_features": 5, "n_kinds": 3})):
        drawn = draw(9, trial_generator(2), **options)
        result[name] = signature(drawn.points) + signature(drawn.labels)
    for name in ("random", "partition", "kmeans++", "greedy"):
        rngs = [trial_generator(3, trial) for trial in range(8)]
        result[f"{name}, grid"] = np.mean([signature(make_seeding(name, 3)(GRID, rng)) for rng in rngs])
        result[f"{name}, line"] = np.mean([signature(make_seeding(name, 4)(LINE, rng) + 9.0) for rng in rngs])
    for k in (3, 6):
        draws = [make_seeding("random", k)(REPEATED, trial_generator(4, trial)) for trial in range(8)]
        result[f"random, repeated, k={k}"] = np.mean([signature(centers) for centers in draws])
    for candidates in (1, 6):
        draws = [make_seeding("greedy", 3, n_candidates=candidates)(scattered(20, 4), trial_generator(13, trial)) for trial in range(4)]
        result[f"greedy, {candidates} candidates"] = signature(draws)
    for exponent in (1.0, 2.0, 6.0):
        draws = [make_seeding("kmeans++", 4, exponent=exponent)(scattered(20, 5), trial_generator(14, trial)) for trial in range(4)]
        result[f"exponent {exponent:g}"] = signature(draws)
    result["farthest"] = signature(np.vstack([make_seeding("farthest", k)(GRID, None) for k in (1, 4)]))
    weighted = make_seeding("kmeans++", 3, exponent=3.0)
    weights = np.array([0, 1, 3, 2, 0, 5, 1, 1])
    draws = [weighted(GRID, trial_generator(5, trial), weights=weights) for trial in range(12)]
    result["weighted"] = np.mean([signature(centers) for centers in draws])
    draws = [ScalableSeeding(3, 1.5, 3)(scattered(30, 1), trial_generator(6, trial)) for trial in range(8)]
    result["kmeans||"] = np.mean([signature(centers) for centers in draws])
    moved, accepted, start = [], [], np.array([[-7.0], [-3.0], [0.0]])
    for trial in range(8):
        centers, exchanges = swap_search(LINE, start, trial_generator(7, trial), 3)
        moved.append(signature(centers + 9.0))
        accepted.append(exchanges)
    result["swaps"], result["swaps, accepted"] = np.mean(moved), signature(accepted)
    even = np.array([[0.0], [2.0], [10.0], [12.0]])
    result["swaps, none"] = swap_search(even, even[::2], trial_generator(8), 9)[1] + signature(start + 9.0)
    result["inputs"] = signature(GRID, LINE, REPEATED, even, weights)
    return {**result, **seeded_on_edges()}


def ended(values, labels=None, tolerance=0.125, patience=2, cap=9):
    """When and why a run with these potentials ends; labels differ from each other unless they are given."""
    rule = StoppingRule(cap, tolerance, patience)
    rule.restart()
    for number, value in enumerate(values):
        if rule.update(np.array([number, 1] if labels is None else labels[number]), value):
            break
    return rule.iterations, {None: 0, "assignment": 1, "tolerance": 2, "iterations": 3}[rule.reason]


def lloyd_row(model):
    row = [model.potential_, model.seed_potential_, model.n_iterations_, model.repairs_]
    return signature([*row, {"assignment": 1, "tolerance": 2, "iterations": 3}[model.reason_]])


def stepped_on_edges():
    """Nearest centers that are tied, stops that coincide, and repairs of many empty clusters."""
    result = {}
    rng = trial_generator(31)
    for trial in range(8):
        points, centers = rng.integers(-2, 3, (9, 2)), rng.integers(-2, 3, (4, 2))
        found = two_nearest(points, centers), two_nearest(points + 0.5, centers[:2] * 1.0)
        result[f"two nearest, {trial}"] = signature(*found[0], *found[1], points, centers)
        k = 3 + trial % 4
        labels, closest = rng.integers(0, k - 1, 9), rng.integers(0, 4, 9) / 2.0
        labels[labels == trial % 3] = k - 2
        repaired, count = repair_empty_clusters(labels, closest, k)
        repaired_again, none = repair_empty_clusters(repaired, closest, k)
        repaired_again[0] = -1
        result[f"repair, {trial}"] = signature(repaired, repaired_again, [count, none], labels, closest)
    many = np.arange(40) % 3
    repaired, count = repair_empty_clusters(many, np.mod(np.arange(40.0), 4.0), 20)
    result["repair, many"] = signature(repaired, count, many)
    stops = [
        ended([64, 64], [[0, 1], [0, 1]], patience=1, cap=2),
        ended([64, 56, 49], [[0, 1], [1, 1], [0, 0]], tolerance=0.25, patience=2, cap=3),
        ended([64, 56, 49], [[0, 1], [1, 1], [1, 1]], tolerance=0.25, patience=2, cap=3),
        ended([64, 63, 32, 31, 30, 29], tolerance=0.25, patience=3, cap=6),
        ended([64, 48, 36, 27], tolerance=0.25, patience=1, cap=5),
        ended([64, 96, 72, 54, 40], tolerance=0.25, patience=1, cap=5),
        ended([64, 64, 64, 64], tolerance=1e-9, patience=3),
        ended([64, 32, 16, 8], [[0, 1], [1, 0], [0, 1], [0, 1]], patience=1),
    ]
    result["stops, together"] = signature(stops)
    rule = StoppingRule(3, 0.5, 2)
    rows = []
    for _ in range(2):
        rule.restart()
        for number, value in enumerate((64.0, 60.0, 20.0)):
            rows.append([rule.update(np.array([number, 0]), value), rule.iterations, rule.reason == "iterations"])
    result["stops, restarted"] = signature(rows)
    return result


def fitted_on_edges():
    """Fits from given centers: of whole numbers, with several empty clusters, with one center, and with caps of one."""
    result = {}
    steps = np.array([[0.0], [1.0], [2.0], [3.0], [64.0], [65.0], [67.0], [68.0]])
    for name, centers, stopping in (
        ("whole numbers", np.array([[1], [66]]), None),
        ("one center", np.array([[9.0]]), None),
        ("three empty", np.array([[1.0], [500.0], [501.0], [502.0]]), StoppingRule(9)),
        ("equal centers", np.array([[64.0], [64.0], [64.0]]), StoppingRule(9)),
        ("one iteration", np.array([[3.0], [64.0]]), StoppingRule(1)),
        ("at once slow", np.array([[1.0], [4.0], [66.0]]), StoppingRule(9, 0.9, 1)),
    ):
        given = np.array(centers)
        model = KMeans(len(centers), stopping=stopping).fit(steps, None, centers=given)
        result[f"fit, {name}"] = lloyd_row(model) + signature(model.centers_, model.labels_, model.history_, given, steps)
        model.centers_[:] = -1.0
        result[f"fit, {name}, given"] = signature(given)
    # Clusters of 1, 2 or 4 points, whose means and bounds are exact: some bounds equal the distances that they bound.
    bounded = (
        ([-2, 2, 3, 5], [0, 4], 9),
        ([9, 15, 11, 3, 1], [4, 14, 1], 9),
        ([10, 8, 1, -1, 11, -6, 7], [5, 9, -3, 10], 9),
        ([11, -2, 15, -6, 16, 2, 7, 6, 4], [5, 15, -1, 16], 9),
        ([10, -7, 7, 9, 14, -5, 12, 10], [14, 10, 9], 9),
        ([9, 15, 11, 3, 1], [4, 14, 1], 1),
    )
    for number, (places, seeds, cap) in enumerate(bounded):
        points, start = np.array(places, dtype=float)[:, np.newaxis], np.array(seeds, dtype=float)[:, np.newaxis]
        model = HamerlyKMeans(len(seeds), max_iterations=cap)
        model.seeding = lambda points, rng, start=start: start
        COUNTER.reset()
        model.fit(points, None)
        result[f"hamerly, bounds, {number}"] = signature(COUNTER.reset(), model.searched_, model.n_iterations_, model.potential_, model.labels_, model.centers_, start)
    for k, batches, size in ((2, 1, 1), (3, 5, 2), (1, 3, 8)):
        model = MiniBatchKMeans(k, "random", size, batches, 0.5).fit(scattered(12, 9), trial_generator(32, k))
        result[f"batches, {k}, {size}"] = signature(model.centers_, model.counts_, model.potential_, model.smoothed_)
    return result


@group
def iterations():
    result = {}
    centers = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [2.0, 3.0]])
    labels, first, second = two_nearest(GRID, centers)
    result["nearest"], result["distances"] = signature(labels), signature([first, second])
    stops = [
        ended([64, 56.5, 49.5, 49.0, 48.5]),
        ended([64, 56, 49, 48, 47]),
        ended([64, 60, 40, 39, 38]),
        ended([64, 80, 100, 50]),
        ended([64, 60, 40, 39, 20, 19, 18], patience=3),
        ended([8, 8, 8, 8], tolerance=0.0),
        ended([64, 63, 62], [[0, 1], [1, 1], [1, 1]]),
        ended([64, 63], [[1, 0], [1, 0]], patience=1),
        ended([64, 32, 16], [[1, 0], [0, 1], [0, 1]], cap=3),
        ended([64], cap=1),
        ended([64, 62, 60], cap=3),
    ]
    result["stops"], result["reasons"] = signature([at for at, _ in stops]), signature([why for _, why in stops])
    rule, reused = StoppingRule(9, 0.0, 2), np.array([0, 1])
    rule.restart()
    rule.update(reused, 64)
    reused[:] = 1, 0
    result["reused labels"] = rule.update(reused, 32) + rule.iterations
    given = np.array([0, 0, 1, 2, 2, 2])
    for name, labels, closest, k in (("spare", given, [4.0, 1.0, 9.0, 5.0, 5.0, 0.0], 5),
                                     ("sizes", [0, 0, 1, 1, 1], [9.0, 8.0, 1.0, 1.0, 1.0], 4)):
        labels, closest = np.array(labels), np.array(closest)
        repaired, count = repair_empty_clusters(labels, closest, k)
        result[f"repair, {name}"] = signature([*repaired, count], labels, closest)
    apart = np.array([[0.0], [1.0], [10.0]])
    far = np.array([[0.0], [100.0], [200.0]])
    model = KMeans(3).fit(apart, None, centers=far)
    result["empty"], result["history"] = lloyd_row(model), signature(model.history_)
    result["again"] = lloyd_row(model.fit(LINE, None, centers=far)) + signature(model.labels_)
    result["kept"] = signature(far)
    capped = KMeans(2, stopping=StoppingRule(2)).fit(scattered(40, 2), trial_generator(9))
    result["capped"] = lloyd_row(capped) + signature(capped.centers_)
    slow = KMeans(5, stopping=StoppingRule(50, 0.25, 1)).fit(scattered(40, 3), trial_generator(10))
    result["slow"] = lloyd_row(slow) + signature(slow.labels_)
    COUNTER.reset()
    searched = []
    for k, cap in ((2, 50), (4, 3), (6, 50)):
        model = HamerlyKMeans(k, max_iterations=cap)
        # Given seeds, so that only the iteration's own evaluations count.
        model.seeding = lambda points, rng, k=k: points[7 : 7 + k]
        model.fit(scattered(60, k), None)
        searched.extend([*model.searched_, model.n_iterations_, model.potential_, signature(model.labels_, model.centers_)])
    result["hamerly"], result["evaluations"] = signature(searched), COUNTER.reset()
    tied, large = [(GRID, [1, 2]), (GRID, [0, 3, 5]), (LINE, [1, 4]), (LINE, [0, 3, 6])], [(scattered(2000, 8), [5, 9, 30, 41])]
    for name, runs in (("tied", tied), ("thousands", large)):
        searched = []
        for points, rows in runs:
            model = HamerlyKMeans(len(rows))
            model.seeding = lambda points, rng, rows=rows: points[rows]
            model.fit(points, None)
            searched.extend([*model.searched_, model.n_iterations_, model.potential_, *np.bincount(model.labels_), *np.ravel(model.centers_)])
        result[f"hamerly, {name}"] = signature(searched)
    for batches, size, smoothing in ((1, 4, 0.3), (3, 4, 0.3), (4, 7, 0.75)):
        model = MiniBatchKMeans(3, "random", size, batches, smoothing).fit(scattered(12, 7), trial_generator(12))
        result[f"batches={batches}"] = signature(model.centers_, model.counts_, model.potential_)
        result[f"smoothed={batches}"] = model.smoothed_
    return {**result, **stepped_on_edges(), **fitted_on_edges()}


def matched_on_edges():
    """Partitions with fewer, more and as many clusters as classes, and tables of any shape."""
    result = {}
    rng = trial_generator(33)
    for trial in range(10):
        classes, clusters = 2 + trial % 4, 2 + trial // 3
        truth, found = rng.integers(0, classes, 24) * 3 - 2, rng.integers(0, clusters, 24)
        found = np.where(rng.random(24) < 0.5, np.mod(truth, clusters), found)
        result[f"partitions, {trial}"] = signature([[measure(*pair) for measure in (metrics.adjusted_rand_index, metrics.normalised_mutual_information, metrics.matched_accuracy)] for pair in ((truth, found), (found, truth))], truth, found)
        rows, columns = 1 + trial % 5, 1 + trial % 5 + trial // 4
        table = rng.integers(-9, 10, (rows, columns))
        matched = metrics.best_assignment(table)
        result[f"gains, {trial}"] = signature(np.sum(table[np.arange(rows), matched]), len(np.unique(matched)), table)
        distinct = rng.permutation(2 ** np.arange(rows * columns)).reshape(rows, columns)
        result[f"distinct gains, {trial}"] = signature(metrics.best_assignment(distinct), metrics.best_assignment(-1.0 * distinct))
    same = np.array([3, 3, 0, 0, 8])
    result["the same"] = signature([metrics.adjusted_rand_index(same, -same), metrics.normalised_mutual_information(same, -same), metrics.matched_accuracy(same, -same)])
    halves = np.repeat([0, 1], 4), np.tile([5, 5, 7, 7], 2)
    result["independent"] = signature([metrics.adjusted_rand_index(*halves), metrics.normalised_mutual_information(*halves), metrics.matched_accuracy(*halves)])
    result["single class"] = signature([metrics.matched_accuracy(np.zeros(8), halves[1]), metrics.matched_accuracy(halves[1], np.ones(8)), metrics.adjusted_rand_index(np.zeros(8), halves[1])])
    return result


def measured_on_edges():
    """Measures of geometry for centers that are not the means, clusters of one point, and tables with one baseline."""
    result = {}
    rng = trial_generator(34)
    for trial in range(6):
        points = rng.integers(0, 9, (10, 2)) * 2.0 + np.arange(10.0)[:, np.newaxis] / 32.0
        k = 2 + trial % 3
        labels = np.append(np.arange(k), rng.integers(0, k, 10 - k))
        centers = points[-k:] + 0.25
        result[f"separation, {trial}"] = signature(metrics.davies_bouldin(points, labels, centers), metrics.davies_bouldin(points.astype(int), labels, np.rint(centers[::-1] * 2.0).astype(int)))
        result[f"widths, {trial}"] = signature(metrics.silhouette(points, 5 - 2 * labels), metrics.silhouette(points, np.minimum(labels, 1)), points, labels, centers)
        uniform = theory.expected_uniform_potentials(points, 2 * labels - 3)
        weighted = [theory.expected_weighted_ratios(points, 1 + np.minimum(labels, 1), centers, exponent) for exponent in (2.0, 3.0)]
        result[f"expected, {trial}"] = signature(*uniform, *weighted)
        whole = np.rint(points).astype(int)
        result[f"covered, {trial}"] = signature(theory.coverage(whole, 3 - 2 * labels, whole[: 1 + trial] + 1), theory.coverage(points, labels, centers[:1]))
    most = np.where(np.arange(9) == 4, 0, 2)
    spread = np.arange(9.0)[:, np.newaxis] ** 2
    result["covered, most"] = signature(theory.coverage(spread, most, np.array([[15.0], [17.0]])), theory.coverage(spread, most, np.array([[70.0]])))
    alone = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    result["alone"] = signature(metrics.silhouette(alone, np.arange(3)), metrics.silhouette(alone, np.array([1, 1, 0])), *theory.expected_uniform_potentials(alone, np.array([2, 2, 0])))
    runs = [SimpleNamespace(potential_=p, seed_potential_=s, n_iterations_=i) for p, s, i in ((4.0, 9.0, 2), (6.0, 8.5, 5))]
    rows = theory.summarise(runs), theory.summarise(runs, {"mean": 20.0, "min": 1.0})
    result["rows"] = signature([len(row) for row in rows], *[[row[name] for name in sorted(row)] for row in rows])
    return result


@group
def measures():
    result = {}
    labels = np.array([5, 5, 2, 2, 2, 5, 9, 9])
    expected, deviation = theory.expected_uniform_potentials(GRID, labels)
    result["expected"], result["deviation"] = signature(expected), signature(deviation)
    for exponent in (2.0, 1.0):
        ratios = theory.expected_weighted_ratios(GRID, labels, GRID[[1, 3]], exponent)
        result[f"ratios, l={exponent:g}"] = signature(ratios)
    centers = np.array([[0.5, 0.0], [0.0, 1.0], [0.0, 2.5]])
    kinds = np.array([3, 3, 1, 3, 1, 4, 7, 4])
    result["covered"], result["missed"], result["crowding"] = theory.coverage(GRID, kinds, centers)
    runs = [SimpleNamespace(potential_=p, seed_potential_=s, n_iterations_=i) for p, s, i in ((4, 9, 2), (1, 8, 3), (7, 7, 8))]
    row = theory.summarise(runs, {"mean": 3.0})
    result["row"], result["spread"], result["gain"] = signature([row["mean"], row["min"], row["seed"], row["iterations"]]), row["spread"], row["gain"]
    truth, found = np.array([4, 4, 4, 1, 1, 6, 6, 6]), np.array([0, 0, 3, 3, 3, 3, 5, 0])
    result["rand"] = metrics.adjusted_rand_index(truth, found)
    result["information"] = metrics.normalised_mutual_information(truth, found)
    result["accuracy"] = metrics.matched_accuracy(np.arange(8) % 4, found)
    tables = ([[7, 5, 1], [6, 1, 0], [8, 7, 2]], [[1.5, 2.5, 0.0, 9.0], [2.0, 9.5, 1.0, 9.0]], [[-3.0, -1.0], [-2.0, -4.0]], [[4, 8, 8]])
    large = trial_generator(15).integers(0, 30, (6, 8))
    result["matching"] = signature(*[metrics.best_assignment(np.array(table)) for table in (*tables[:3], large, large - 40)], large)
    result["matching, tied"] = tables[3][0][int(metrics.best_assignment(np.array(tables[3]))[0])]
    half, third = np.arange(140000) // 70000, np.arange(140000) // 46667
    result["rand, many"] = metrics.adjusted_rand_index(half, third)
    result["information, many"] = metrics.normalised_mutual_information(half.astype(np.int32), third)
    codes = np.array([2, 2, 0, 7, 0, 0, 7, 4])
    result["silhouette"] = metrics.silhouette(GRID, codes)
    result["davies_bouldin"] = metrics.davies_bouldin(GRID, np.array([0, 0, 1, 2, 0, 1, 1, 2]), np.array([[0.5, 0.5], [0.5, 2.0], [1.0, 3.0]]))
    result["silhouette, far away"] = metrics.silhouette(GRID + 4096.0, codes)
    result["inputs"] = signature(GRID, labels, kinds, centers, truth, found, codes)
    return {**result, **matched_on_edges(), **measured_on_edges()}
