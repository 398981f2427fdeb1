"""Small cases by hand: ties, repeated points, lonely points, classes without members. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

from types import SimpleNamespace

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


def refused(function, *arguments):
    """Whether a call ends with the error for wrong arguments."""
    try:
        function(*arguments)
    except ValueError:
        return 1.0
    return 0.0


def drawn_on_edges():
    """Subsets of all sizes, few labels, few points, and words that are everywhere or nowhere."""
    result = {}
    for name, labels in (("thirds", [7, 2, 2, 7, 4, 4]), ("alone", [-3, 5, 5, 5, 5, 5, 5, 5, 0]), ("one class", [1, 1, 1, 1])):
        labels = np.array(labels, dtype=np.int8)
        chosen = [stratified_subset(labels, size, trial_generator(21, size)) for size in range(len(labels) + 1)]
        result[f"subsets, {name}"] = signature([len(rows) for rows in chosen], *chosen, labels)
    gaps = np.array([9, 4, 4, 9, 9, 6, 4, 9])
    drawn = [draw_labelled(gaps, count, trial_generator(22, count)) for count in (3, 4, 7)]
    many = np.arange(80) % 40
    result["subsets, many"] = signature(*[stratified_subset(many, size, trial_generator(25, size)) for size in (11, 55)])
    result["labelled, gaps"] = signature(*drawn, gaps) + refused(draw_labelled, gaps, 2, trial_generator(22))
    for size in (1, 2, 5):
        moons = two_moons(size, trial_generator(23, size), 0.0 if size == 5 else 0.5)
        result[f"moons, {size}"] = signature(moons.features, moons.labels)
    short = TopicCorpus(5, 3, 1.0, 1, 2.0).sample(3, trial_generator(24))
    result["documents, short"] = signature(short.features, short.labels)
    counts = np.array([[1, 0, 2, 0, 1], [1, 3, 0, 0, 0], [2, 1, 0, 0, 1], [4, 0, 0, 0, 1]])
    for fewest, most in ((1, 1.0), (2, 0.5), (2, 0.75), (3, 0.74), (5, 1.0), (1, 0.25)):
        weighted = tfidf(counts, fewest, most)
        result[f"word weights, {fewest}, {most}"] = signature(weighted.shape, weighted)
    result["counts"] = signature(counts)
    return result


def graphs_on_edges():
    """Graphs of whole numbers, tiny distances, graphs that are joined already, and masses of classes that have none."""
    result = {}
    distances = np.abs(np.subtract.outer([0, 1, 3, 7, 7], [0, 1, 3, 7, 7]))
    for name, given in (("whole numbers", distances), ("tiny", distances * 2.0**-20)):
        result[f"local widths, {name}"] = signature(*[local_width(rank)(given) for rank in (1, 2.0, 4)], given)
    for name, joined in (("joined", np.ones((5, 5)) - np.eye(5)), ("apart", np.zeros((5, 5))), ("pairs", np.abs(np.subtract.outer(np.arange(5), np.arange(5))) == 2)):
        joined = np.array(joined, dtype=bool)
        mask, bridges = bridge_components(joined, distances)
        mask[0, 0] = True
        result[f"bridges, {name}"] = signature(mask, bridges, joined, distances)
    mask, bridges = bridge_components(np.zeros((1, 1), dtype=bool), np.zeros((1, 1)))
    result["bridges, one"] = signature(mask, bridges)
    whole = np.array([[0, 3, 1, 0], [3, 0, 0, 0], [0, 0, 0, 0], [1, 1, 2, 0]])
    for kind in ("symmetric", "row", "column"):
        result[f"normalised, whole, {kind}"] = signature(normalise(whole, kind), whole)
    result["normalised, default"] = signature(normalise(whole)) + refused(normalise, whole, "both")
    scores = np.array([[1, 2, 0, 1], [0, 1, 0, -1], [2, 0, 0, -2], [0, 0, 0, 1], [3, 1, 0, -3]])
    for name, partial in (("all given", [0, 1, 2, 0, 0]), ("few", [-1, -1, 1, -1, -1]), ("gap", [2, -1, 0, 0, -1]), ("high", [-1, 3, -1, 3, -1])):
        given, partial = scores / 4.0, np.array(partial)
        result[f"mass, {name}"] = signature(class_mass_normalise(given, partial), given, partial)
    result["mass, whole numbers"] = signature(class_mass_normalise(scores, np.array([0, -1, 1, -1, 0])), scores)
    return result


def measured_on_edges():
    """Energies and errors for labels with gaps, and tables of trials with ties and of one kind."""
    result = {}
    partial = np.array([2, -1, 0, -1, 2])
    scores = np.array([[1, 0, 2], [0, 0, 0], [3, -1, 1], [1, 1, 1], [0, 2, 0]])
    whole = np.rint(8.0 * weights_of(5, 12)).astype(int)
    for alpha in (0.25, 0.5):
        result[f"energy, {alpha}"] = signature(theory.energy_terms(scores, whole, partial, alpha), scores, whole, partial)
    for name, given in (("alone", [0, 0, -1, 1, -1, 0, -1]), ("gaps", [4, -1, 4, 2, 2, -1, -1]), ("all", [0, 1, 1, 0, 2, 2, 2])):
        given = np.array(given)
        result[f"left out, {name}"] = signature(*[theory.leave_one_out(weights_of(7, key), given, alpha) for key, alpha in ((13, 0.5), (14, 0.99))], given)
    # The fourth point sees no other label: its scores are 0, so no class has a larger one, and its share is not defined.
    lonely = weights_of(6, 18) * np.equal.outer(np.arange(6) < 3, np.arange(6) < 3)
    with np.errstate(invalid="ignore"):
        result["left out, lonely"] = theory.leave_one_out(lonely, np.array([0, 0, 1, 1, -1, -1]), 0.5)[0]
    far = weights_of(6, 15) * np.where(np.equal.outer(np.arange(6) < 3, np.arange(6) < 3), 1.0, 1e-7)
    result["left out, far"] = signature(theory.leave_one_out(far, np.array([0, 1, 1, 1, 0, 0]), 0.5), theory.leave_one_out(far, np.array([0, -1, 1, 1, 0, -1]), 0.5))
    reports = [([0, 1, 1, 0, 2, 2], [0, 1, 1, 0, 2, 2]), ([0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]), ([3, 3, 0, 0, 3, 0], [0, 0, 3, 3, 0, 3]), ([0, 1, 4, 4, 1, 0], [0, 1, 1, 1, 1, 0])]
    hidden = np.array([-1, -1, -1, -1, 2, -1])
    rows = [metrics.class_report(np.array(truth), np.array(predicted), hidden) for truth, predicted in reports]
    result["reports"] = signature([[row[name] for name in ("balanced", "f1", "kappa")] for row in rows], hidden)
    curves = [metrics.summarise_curve(counts, errors) for counts, errors in (([2, 8], [[1, 0], [0, 0]]), ([1, 2, 16, 17], [[0.5, 0.25, 0.25, 0.0], [0.5, 0.75, 0.0, 1.0], [0.0, 0.5, 0.5, 0.25], [1.0, 0.5, 0.75, 0.25]]))]
    result["curves"] = signature(*[values for row in curves for values in (row["mean"], row["deviation"], row["area"])])
    pairs = [([1, 0, 1, 1], [0, 0, 0, 1]), ([0, 0, 0, 1], [1, 1, 1, 1]), (np.arange(30) % 4 / 4.0, np.arange(30) % 3 / 4.0), ([0.5, 0.25], [0.25, 0.5]), ([2, 1, 0, 0, 0], [1, 1, 1, 0, 0])]
    rows = [metrics.paired_comparison(*pair) for pair in pairs]
    result["pairs"] = signature([[row[name] for name in ("difference", "t", "wins", "p")] for row in rows])
    return result


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
    return {**result, **drawn_on_edges(), **graphs_on_edges(), **measured_on_edges()}


def solved_on_edges():
    """Solvers with no steps, negative entries and one column, and bases that end after a step."""
    result = {}
    targets = np.array([[1, 0], [0, 1], [-3, 0], [0, 0], [0, 2]])
    matrix = normalise(weights_of(5, 16))
    for name in ("iteration", "chebyshev", "gradients"):
        for cap, alpha, given in ((0, 0.5, targets), (1, 0.25, targets), (2, 0.5, targets), (4, 0.75, -targets[:, :1] * 1.0)):
            operator = Operator(-matrix if cap == 4 else matrix)
            solved = SOLVERS[name](operator, given, alpha, 0.0, cap)
            result[f"{name}, {cap} steps"] = signature(solved.scores, solved.iterations, solved.changes, operator.products, given)
    # The first change is exactly 1, that of conjugate gradients a quarter.
    halves = np.array([[0.0, 0.5], [0.5, 0.0]])
    for name in ("iteration", "chebyshev", "gradients"):
        for tolerance in (1.0, 0.5, 0.25, 0.125):
            solved = SOLVERS[name](Operator(halves), np.array([[1.0], [0.0]]), 0.5, tolerance, 9)
            result[f"{name}, halves, {tolerance}"] = signature(np.round(solved.scores, 7), solved.iterations)
    start = np.array([3.0, 0.0, 4.0])
    for name, entries, given, pairs, steps in (
        ("one step", [2.0, 1.0, 2.0], start, 2, 3),
        ("two steps", [2.0, 1.0, -5.0], start, 3, 3),
        ("capped", [2.0, 1.0, -5.0], start + 1.0, 2, 2),
        ("negative", [-2.0, -1.0, -5.0], start + 1.0, 1, 3),
        ("whole numbers", [4.0, 1.0, 0.0], np.array([1, 1, 2]), 2, 3),
    ):
        operator = Operator(np.diag(entries))
        values, vectors = lanczos(operator, pairs, steps, given)
        result[f"basis, {name}"] = signature(np.round(values, 7), np.round(np.abs(vectors), 7), operator.products, given)
    return result


def voted(distances, partial, k):
    """Scores of the nearest labelled points by given distances."""
    return make_model("knn", k=k).score(SimpleNamespace(distances=distances), partial)


def modelled_on_edges():
    """Classifiers for labels with gaps, tied distances, and changes that equal the tolerance."""
    result = {}
    features = GRID + 0.125 * trial_generator(17).standard_normal(GRID.shape)
    points = Points(features, GraphBuilder(sigma=0.75))
    gap = np.array([2, -1, -1, 0, -1, 2, -1, -1, -1])
    for name, options in (("harmonic", {}), ("harmonic-mass", {}), ("clamped", {}), ("clamped", {"max_iterations": 0}), ("eigenspace", {}), ("eigenspace", {"share": 0.9}), ("knn5", {}), ("svm", {"cost": 0.5})):
        model = make_model(name, **options)
        scores = model.score(points, gap)
        result[f"{name}, gap, {len(options)}, {max(options.values(), default=0)}"] = signature(np.round(scores, 7), getattr(model, "iterations_", 0))
    pair = np.array([1, -1, -1, 1, -1, 0, 0, -1, 0])
    for share, steps in ((0.6, 40), (0.8, 40), (1.0, 4), (1.0, 1)):
        scores = make_model("eigenspace", share=share, n_steps=steps).score(points, pair)
        result[f"eigenspace, {share}, {steps}"] = signature(np.round(scores, 7))
    # The free point moves from the middle to three quarters, and stays there.
    uneven = SimpleNamespace(weights=np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [3.0, 1.0, 0.0]]))
    for tolerance in (0.5, 0.25, 0.75):
        model = make_model("clamped", tolerance=tolerance, max_iterations=9)
        scores = model.score(uneven, np.array([0, 1, -1]))
        result[f"clamped, moves, {tolerance}"] = signature(scores, model.iterations_, uneven.weights)
    for key in range(4):
        distances = np.rint(3.0 * weights_of(7, 20 + key))
        partial = np.array([[0, 1, -1, 0, 1, 0, -1], [1, 1, 0, -1, -1, 0, 0], [3, -1, 3, 0, 0, 3, 0], [0, 1, 2, 0, 1, 2, 0]][key])
        result[f"votes, {key}"] = signature(*[voted(distances, partial, k) for k in (1, 2, 3, 4, 5, 9)], distances, partial)
    far = np.where(np.arange(24) % 2, 5.0, 4.0) * np.ones((24, 1))
    result["votes, many"] = signature(*[voted(far, np.arange(24) % 5, k) for k in (3, 11, 12, 13, 20)])
    wide = Points(np.stack(np.divmod(np.arange(48.0), 8.0), axis=1), GraphBuilder(sigma=2.0, neighbours=6))
    model = Consistency(0.5).fit(wide, np.where(np.arange(48) % 5, -1, np.arange(48) % 2))
    result["extended, wide"] = signature(np.round(model.extend(wide, np.array([[2.0, 3.0], [2.5, 3.5], [4.0, 4.5]])), 7))
    fresh = np.array([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0], [30.0, -2.0]])
    for count, mode in ((1, "union"), (4, "mutual"), (20, "union")):
        graph = Points(GRID, GraphBuilder(sigma=8.0, neighbours=count, mode=mode, bridged=True))
        model = Consistency(0.5).fit(graph, pair)
        result[f"extended, {count}"] = signature(np.round(model.extend(graph, fresh), 7), fresh, graph.weights)
    return result


def trained_on_edges():
    """Machines whose kernels have powers of two on the diagonal, so that moves equal tolerances and limits exactly."""
    result = {}
    kernels = {
        "apart": np.diag([2.0, 1.0, 4.0, 2.0]),
        "pairs": np.array([[2.0, 1.0, 0.5, 0.0], [1.0, 2.0, 0.0, 0.5], [0.5, 0.0, 2.0, 1.0], [0.0, 0.5, 1.0, 2.0]]),
        "scales": np.array([[1.0, 0.5, 0.25, 0.5], [0.5, 2.0, 0.5, 0.25], [0.25, 0.5, 4.0, 1.0], [0.5, 0.25, 1.0, 2.0]]),
    }
    for name, kernel in kernels.items():
        for number, signs in enumerate(([1.0, -1.0, 1.0, 1.0], [1, 1, -1, -1], [-1.0, -1.0, -1.0, -1.0])):
            for cost in (0.25, 1.0, 8.0):
                settings = [(tolerance, 8) for tolerance in (1.0, 0.5, 0.25, 0.125, 0.0625)] + [(0.0, 3)]
                given = np.array(signs)
                trained = [KernelMachine(1.0, cost, tolerance, cap).train(kernel, given) for tolerance, cap in settings]
                result[f"machine, {name}, {number}, {cost}"] = signature(*[values for pair in trained for values in pair], kernel, given)
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
    return {**result, **solved_on_edges(), **modelled_on_edges(), **trained_on_edges()}
