"""Small cases by hand: ties, repeated points, lonely points, classes without members. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

import numpy as np

from . import metrics, theory
from .graph import GraphBuilder, Points, bridge_components, local_width, normalise
from .labels import class_mass_normalise
from .models import Consistency, KernelMachine, make_model
from .sampling import draw_labelled, stratified_subset, trial_generator
from .solvers import SOLVERS, Operator, lanczos
from .synthetic import TopicCorpus, tfidf, two_moons

GROUPS = {}

#: A grid of two rows and four columns; the last point repeats the first one's place.
GRID = np.array([[float(row), float(column)] for row in range(2) for column in range(4)] + [[0.0, 0.0]])


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


def weights_of(n_points, key):
    """A symmetric matrix of positive weights without a pattern, zeros on the diagonal."""
    half = trial_generator(31, key).random((n_points, n_points))
    return np.where(np.eye(n_points, dtype=bool), 0.0, half + half.T + 0.1)


@group
def parts():
    result = {}
    kinds = np.array([2, 2, 0, 5, 2, 0, 2, 5, 2, 0, 2])
    result["subset"] = signature(*[stratified_subset(kinds, size, trial_generator(1, size)) for size in (4, 5, 7, 11)])
    uneven = np.repeat([4, 1, 7], [3, 13, 14])
    result["subset, uneven"] = signature(*[stratified_subset(uneven, size, trial_generator(9, size)) for size in (6, 12, 24, 29)])
    even = np.tile([3, 1, 2], 3)
    result["subset, even"] = signature(*[stratified_subset(even, size, trial_generator(1, size)) for size in (4, 5, 7)])
    result["labelled"] = signature(*[draw_labelled(np.array([0, 0, 1, 0, 2, 1, 0, 0]), count, trial_generator(2, count)) for count in (3, 5, 8)])
    moons = two_moons(7, trial_generator(3), 0.25)
    result["moons"] = signature(moons.features, moons.labels)
    documents = TopicCorpus(2, 6, 4.0, 3, 0.5).sample(5, trial_generator(4))
    result["documents"] = signature(documents.features, documents.labels)
    counts = np.array([[2, 1, 0, 3, 0, 1], [0, 4, 1, 1, 0, 1], [1, 0, 0, 2, 0, 0], [0, 0, 0, 5, 1, 1], [0, 0, 0, 1, 0, 0], [1, 0, 2, 0, 0, 0]])
    result["word weights"] = signature(tfidf(counts)) + signature(tfidf(counts, 3, 0.9))
    distances = np.sqrt(np.sum(np.square(GRID[:, np.newaxis] - GRID), axis=2))
    result["local widths"] = signature(*[local_width(rank)(distances) for rank in (1, 2, 3)]) + signature(distances)
    line = np.array([0.0, 1.0, 4.0, 5.0, 8.0, 8.5, 12.0])
    gaps = np.abs(np.subtract.outer(line, line))
    joined = np.logical_and(gaps > 0.0, gaps <= 1.0)
    mask, bridges = bridge_components(joined, gaps)
    result["bridges"] = signature(mask, bridges) + signature(joined)
    mask, bridges = bridge_components(np.zeros((9, 9), dtype=bool), np.square(distances))
    result["bridges, grid"] = signature(mask, bridges)
    lonely = weights_of(4, 1)
    lonely[2], lonely[:, 2] = 0.0, 0.0
    lonely[0, 1] = 3.0
    for kind in ("symmetric", "row", "column"):
        result[f"normalised, {kind}"] = signature(normalise(lonely, kind))
    partial = np.array([1, -1, 0, -1, 1, -1, 2])
    scores = np.array([[1.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0.5, 0.25, 0.5], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 4.0, -1.0], [0.0, 1.0, 2.0]])
    result["mass"] = signature(class_mass_normalise(scores, partial), scores)
    terms = theory.energy_terms(scores, weights_of(7, 2), partial, 0.75)
    result["smoothness"], result["fit"] = terms
    result["left out"] = signature(*[theory.leave_one_out(weights_of(7, key), partial, 0.9) for key in (2, 3, 4)])
    truth, predicted = np.array([0, 2, 2, 0, 0, 2, 4, 0]), np.array([0, 2, 3, 3, 0, 0, 4, 1])
    report = metrics.class_report(truth, predicted, np.array([-1, -1, -1, -1, -1, -1, 4, -1]))
    beyond = metrics.class_report(np.array([0, 1, 1, 0, 1]), np.array([0, 3, 1, 0, 2]), np.array([-1, -1, -1, 0, -1]))
    result["report, beyond"] = signature([beyond[name] for name in ("balanced", "f1", "kappa")])
    result["report"] = signature([report[name] for name in ("balanced", "f1", "kappa")])
    errors = np.array([[0.5, 0.25, 0.125], [0.25, 0.25, 0.0], [0.75, 0.5, 0.25]])
    rows = [metrics.summarise_curve([4, 10, 50], errors), metrics.summarise_curve([7], errors[:, :1])]
    result["curve"] = signature(*[values for row in rows for values in (row["mean"], row["deviation"], row["area"])])
    pairs = [([0.5, 0.25, 0.75, 0.5], [0.25, 0.5, 0.5, 0.625]), ([0.25, 0.25, 0.5], [0.25, 0.5, 0.25]), ([0.5, 0.25, 0.25, 0.75, 0.125], [0.25, 0.25, 0.5, 0.875, 0.5]), ([0.5, 0.25, 0.25, 0.5], [0.25, 0.5, 0.25, 0.0625])]
    rows = [metrics.paired_comparison(*pair) for pair in pairs]
    result["paired"] = signature([[row[name] for name in ("difference", "t", "wins", "p")] for row in rows])
    result["inputs"] = signature(kinds, counts, distances, gaps, joined, lonely, partial, scores, truth, predicted, errors)
    return result


@group
def solutions():
    result = {}
    partial = np.array([1, -1, 0, -1, 1, -1, 2, -1, -1])
    targets = np.equal.outer(partial, np.arange(3)).astype(float)
    matrix = normalise(weights_of(9, 5))
    for name in ("iteration", "chebyshev", "gradients"):
        for cap, tolerance in ((3, 0.0), (1000, 1e-4)):
            operator = Operator(matrix)
            solved = SOLVERS[name](operator, targets, 0.9, tolerance, cap)
            result[f"{name}, {cap}"] = signature(solved.scores, solved.iterations, solved.changes, operator.products)
    nothing = np.zeros((9, 9))
    for name in ("iteration", "chebyshev", "gradients"):
        for tolerance in (1.0, 0.0):
            solved = SOLVERS[name](Operator(nothing), targets.astype(int), 0.5, tolerance, 4)
            result[f"{name}, nothing, {tolerance:g}"] = signature(solved.scores, solved.iterations, solved.changes)
    result["targets"] = signature(targets)
    spread = np.diag(np.concatenate([[1.0, 0.9, 0.75], np.linspace(0.01, 0.3, 22)]))
    rotation, _ = np.linalg.qr(trial_generator(6).standard_normal((25, 25)))
    operator = Operator(rotation @ spread @ rotation.T)
    values, vectors = lanczos(operator, 5, 25, np.ones(25))
    result["eigenvalues"] = signature(np.round(values, 7), np.round(np.abs(vectors[:, :3]), 7))
    simple = Operator(np.diag([1.0, 1.0, 0.5, 0.5, -0.25]))
    values, vectors = lanczos(simple, 4, 5, np.array([1.0, 2.0, 2.0, 0.0, 1.0]))
    result["few eigenvalues"] = signature(np.round(values, 7), np.round(np.abs(vectors), 7), simple.products)
    two = lanczos(Operator(matrix), 2, 3, np.arange(1.0, 10.0))
    result["few steps"] = signature(two[0], np.abs(two[1]))
    across = np.arange(1.0, 80.0) / np.linalg.norm(np.arange(1.0, 80.0))
    mirror = np.eye(79) - 2.0 * np.outer(across, across)
    long = lanczos(Operator(mirror @ np.diag(1.0 / np.arange(1.0, 80.0) ** 2) @ mirror), 8, 60, np.ones(79))
    result["many steps"] = signature(np.round(long[0], 8))
    features = GRID + 0.125 * trial_generator(7).standard_normal(GRID.shape)
    points = Points(features, GraphBuilder(sigma=0.75))
    known = np.array([0, -1, -1, 1, -1, 1, -1, -1, -1])
    fresh = np.array([[0.5, 0.5], [1.0, 2.25], [0.0, 3.5]])
    for name, builder, base in (("all", GraphBuilder(sigma=0.75), features), ("near", GraphBuilder(sigma=0.75, neighbours=3, mode="mutual", bridged=True), features), ("ties", GraphBuilder(sigma=1.0, neighbours=2), GRID)):
        graph = Points(base, builder)
        model = Consistency(0.75).fit(graph, known)
        result[f"extended, {name}"] = signature(model.extend(graph, fresh))
    for name, options in (("harmonic", {}), ("harmonic-mass", {}), ("clamped", {"tolerance": 1e-3}), ("eigenspace", {}), ("knn5", {"k": 3}), ("knn", {"k": 1})):
        model = make_model(name, **options)
        graph = Points(GRID, GraphBuilder(sigma=0.75)) if name.startswith("knn") else points
        scores = model.score(graph, known)
        result[name] = signature(np.round(scores, 7)) + getattr(model, "iterations_", 0)
    most = np.array([0, -1, 1, 1, 0, 1, -1, 0, -1])
    varied = {
        "clamped, cap": ("clamped", {"tolerance": 0.0, "max_iterations": 3}),
        "clamped, loose": ("clamped", {"tolerance": 0.25}),
        "eigenspace, share": ("eigenspace", {"share": 0.6}),
        "eigenspace, steps": ("eigenspace", {"share": 0.9, "n_steps": 3}),
        "knn, all": ("knn", {"k": 9}),
        "harmonic-mass, most": ("harmonic-mass", {}),
    }
    for name, (base, options) in varied.items():
        model = make_model(base, **options)
        scores = model.score(points, most)
        result[name] = signature(np.round(scores, 7), getattr(model, "iterations_", 0))
    result["features"] = signature(points.features, points.weights, points.distances, known)
    rows = trial_generator(8).standard_normal((8, 2))
    kernel = np.exp(-np.sum(np.square(rows[:, np.newaxis] - rows), axis=2)) + 1.0
    trained = [KernelMachine(1.0, cost, 1e-3, cap).train(kernel, np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0])) for cost, cap in ((0.5, 50), (1000.0, 3))]
    wide = np.exp(-np.sum(np.square(rows[:, np.newaxis] - rows), axis=2) / 8.0) + 1.0
    trained.append(KernelMachine(1.0, 10.0, 1e-3, 20).train(wide, np.where(rows[:, 0] > 0.0, 1.0, -1.0)))
    signs = np.where(rows[:, 1] > 0.0, 1.0, -1.0)
    trained += [KernelMachine(1.0, 2.0, tolerance, 100).train(3.0 * wide, signs) for tolerance in (0.25, 1e-6)]
    result["machine"] = signature(*[values for pair in trained for values in pair])
    return result
