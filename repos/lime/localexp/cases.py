"""Small cases by hand: ties, values on edges, constant features, few cases. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

import numpy as np

from .corpus import ReviewCorpus, plant_artifacts
from .domains import Quartiles, Words
from .explainers import LocalExplainer, greedy_explanation
from .explanation import Explanation
from .images import superpixels
from .logistic import SparseLogistic, sigmoid
from .metrics import agreement, stability
from .parzen import ParzenWindows
from .pick import submodular_pick
from .sampling import Dataset, generator, stratified_split
from .selection import forward_selection, lasso_path, weighted_ridge
from .trees import DecisionTree, RandomForest, best_split
from .users import choose_classifier, mistrusts

GROUPS = {}


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


#: Nine cases of four features: with ties, in steps, constant, and continuous.
TABLE = np.array([
    [3.0, 0.0, 2.0, 0.31], [1.0, 1.0, 2.0, -0.52], [3.0, 0.0, 2.0, 1.17], [2.0, 1.0, 2.0, 0.08], [5.0, 0.0, 2.0, -1.4],
    [3.0, 1.0, 2.0, 0.66], [4.0, 1.0, 2.0, 0.9], [1.0, 0.0, 2.0, -0.3], [6.0, 1.0, 2.0, 2.2],
])
CLASSES = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1])


class Given:
    """A generator whose uniform numbers are multiples of an eighth, many of them on an edge, and whose normal ones are given.

    With ``below``, the uniform numbers other than 0 are so much smaller.
    """

    def __init__(self, below=0.0):
        self.below = below

    def random(self, size):
        places = np.arange(float(np.prod(size)))
        return np.maximum(np.mod(places * (places + 1.0) / 2.0, 8.0).reshape(size) / 8.0 - self.below, 0.0)

    def standard_normal(self, size):
        return np.cos(np.arange(float(np.prod(size)))).reshape(size)


def drawn_on_edges():
    """Splits on bounds, single parts, images whose pixels are tied, and tables and texts of whole numbers."""
    result = {}
    for name, sizes, shares in (("halves", [1, 3, 2], (1, 1)), ("quarters", [2, 1, 4], (1, 1, 2)), ("none", [5, 1, 2], (0, 3, 0, 1))):
        labels = np.repeat([-1, 7, 2], sizes)
        whole = Dataset(np.arange(float(len(labels)))[:, np.newaxis], labels)
        parts = stratified_split(whole, np.array(shares), generator(21))
        result[f"split, {name}"] = signature([len(part.labels) for part in parts], *[values for part in parts for values in part], *whole)
    reviews = ReviewCorpus(5, 1, 2, 1.0, 3.0).sample(3, generator(22))
    given = np.array(reviews.features)
    for name, parts in (("single", [reviews]), ("two", [reviews, reviews])):
        planted = plant_artifacts(parts, 4, generator(23))
        result[f"artifacts, {name}"] = signature(*[values for part in planted for values in part], given, reviews.features, reviews.labels)
    for side in (3, 4, 5, 6):
        rows, columns = np.divmod(np.arange(side * side), side)
        for name, image in (("flat", np.full(side * side, 2)), ("cross", np.where(rows == columns, 1.0, 0.0)), ("sides", np.where(2 * columns < side, 1.0, 0.0) + 1e-10 * columns)):
            regions = [superpixels(image, per_side, compactness, rounds) for per_side in (1, 2, 3, 4) for compactness, rounds in ((0.5, 1), (0.5, 3), (0.0625, 4))]
            result[f"regions, {side}, {name}"] = signature(*regions, image)
    words = Words().perturb(np.array([3, 0, -2, 1, 0, 5]), 6, generator(24))
    word = Words().perturb(np.array([0.0, 0.25]), 3, generator(25))
    alone = Words().perturb(np.array([1.0, 0.25]), 1, generator(25))
    result["words, whole"] = signature(*words, *word, *alone)
    whole = np.array([[0, 5, 1, 4], [1, 5, 1, 0], [2, 5, 9, 4], [3, 5, 1, 8], [4, 5, 1, 4]])
    quartiles = Quartiles().fit(whole)
    arrays = [quartiles.edges, quartiles.shares, quartiles.means, quartiles.deviations, quartiles.lows, quartiles.highs]
    drawn = [quartiles.perturb(whole[row], size, generator(26)) for row, size in ((0, 1), (3, 5))]
    result["quarters, whole"] = signature(*arrays, *[values for it in drawn for values in it], whole)
    single = Quartiles().fit(np.array([[1.0, -2.0]]))
    result["quarters, single"] = signature(single.shares, single.means, single.deviations, single.lows, single.highs)
    return result


def fitted_on_edges():
    """Logistic regressions that end at once, and Parzen windows of cases that are equally near or equally good."""
    result = {}
    resting = SparseLogistic(0.0, 0.0, 9).fit(np.zeros((4, 2)), np.array([0, 1, 1, 0]))
    heavy = SparseLogistic(9.0, 1e-9, 400).fit(TABLE, CLASSES)
    free = SparseLogistic(0.0, 1e-4, 60).fit(np.array([[3, 0], [1, 2], [0, 1], [2, 2]]), np.array([1, 0, 1, 1], dtype=bool))
    result["logistic, edges"] = signature(*[values for it in (resting, heavy, free) for values in (it.weights, it.offset, it.iterations)])
    centred = TABLE[:, [0, 1, 3]] - TABLE[:, [0, 1, 3]].mean(axis=0)
    given = np.array(centred)
    for most, factor in ((1, 0.9), (2, 0.75)):
        model = SparseLogistic.with_at_most(most, centred + 0.0, CLASSES, factor)
        result[f"logistic, {most}, {factor}"] = signature(model.weights, model.offset, model.penalty, given - centred)
    shifted = SparseLogistic.with_at_most(1, TABLE[:, [0, 3]] + 1.0, np.array([0, 1, 1, 1, 1, 1, 1, 0, 1]))
    result["logistic, uneven"] = signature(shifted.weights, shifted.offset, shifted.penalty)
    windows = ParzenWindows()
    # All kept cases are equally near to the instance, so that all numbers are exact.
    windows.width = 2.0
    instance = np.array([2.0, 0.0, -1.0, 1.0, 4.0, 1.0])
    windows.features = instance + 4.0 * np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, -1], [-1, 0, 0, 0, -1, 0]])
    for decisions in ([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]):
        windows.decisions = np.array(decisions)
        found = [windows.explain(instance, most) for most in (0, 1, 2, 3, 9)]
        result[f"parzen, even, {decisions}"] = signature(*[values for it in found for values in (it.features, it.weights, [it.local, it.predicted, it.score])], instance, windows.features)
    windows.features = np.concatenate([np.ones((1, 40)), -np.ones((1, 40))]) * (np.arange(40) % 3 + 1.0)
    windows.decisions = np.array([1.0, 0.0])
    result["parzen, many"] = signature(windows.explain(np.where(np.arange(40) % 4, 2.0, 0.0), 25).features)
    square = np.array([[0, 0], [0, 2], [2, 0], [2, 2], [0, 0]])
    fits = [ParzenWindows().fit(square, decisions, factors) for decisions, factors in (([1, 1, 1, 1, 1], (0.5, 1.0, 2.0)), ([0, 1, 1, 0, 0], (2.0, 0.25, 2.0)), (np.array([True, False, False, True, True]), (0.125,)))]
    fits.append(ParzenWindows().fit(TABLE, CLASSES))
    result["parzen, square"] = signature(*[[it.width, it.loss] for it in fits], square)
    return result


@group
def data():
    result = {}
    features = np.arange(24.0).reshape(12, 2)
    labels = np.array([2, 0, 0, 2, 0, 0, 0, 5, 0, 2, 0, 2])
    result["split"] = signature(*[part.features[:, 0] for part in stratified_split(Dataset(features, labels), (5, 2, 3), generator(1))])
    result["halves"] = signature(*[part.labels + 1 for part in stratified_split(Dataset(features, labels), (1, 1), generator(2))])
    many = Dataset(np.arange(40.0)[:, np.newaxis], np.repeat([0, 3], [10, 30]))
    for shares in ((3, 3, 3, 1), (1, 1, 4)):
        parts = stratified_split(many, shares, generator(11))
        result[f"split, {len(shares)} parts"] = signature(*[values for part in parts for values in (part.features, part.labels)])
    reviews = ReviewCorpus(7, 2, 3, 4.0).sample(5, generator(3))
    result["reviews"] = signature(reviews.features, reviews.labels)
    dense = ReviewCorpus(6, 3, 20, 2.0, 4.0).sample(6, generator(8))
    result["reviews, dense"] = signature(dense.features, dense.labels)
    on_edges = plant_artifacts([reviews, reviews], 3, Given(), 0.25, 0.75)
    result["artifacts, edges"] = signature(*[part.features[:, 7:] for part in on_edges])
    below = plant_artifacts([reviews, reviews], 3, Given(2.0**-30), 0.25, 0.75)
    result["artifacts, below edges"] = signature(*[part.features[:, 7:] for part in below])
    planted = plant_artifacts([reviews, reviews, reviews], 3, generator(4), 0.3, 0.7)
    result["artifacts"] = signature(*[part.features[:, 7:] for part in planted])
    result["appended"] = signature(*[part.features for part in planted])
    result["regions, even"] = signature(superpixels(np.full(9, 0.5), 2, 0.6, 2))
    shaded = 4.0 * generator(5).random(36)
    for rounds in (1, 4):
        result[f"regions, {rounds}"] = signature(superpixels(shaded, 3, 0.6, rounds))
    result["regions, dark"] = signature(superpixels(np.where(np.arange(25) % 5 > 2, 3.0, 0.0), 2, 0.25, 3))
    spots = np.array([2.0, 2, 1, 1, 0, 0, 0, 0, 3, 2, 3, 2, 2, 3, 2, 2, 2, 2, 3, 1, 3, 2, 0, 1, 3])
    for per_side, compactness in ((2, 0.6), (4, 0.6), (3, 0.125)):
        result[f"regions, {per_side}, {compactness}"] = signature(superpixels(shaded, per_side, compactness), shaded)
    result["regions, dark"] += signature(superpixels(spots, 3, 0.05, 4))
    parts, switches, samples = Words().perturb(np.array([0.0, 2.0, 0.5, 0.0, 1.5, 3.0]), 8, generator(6))
    result["words"] = signature(parts, switches, samples)
    quartiles = Quartiles().fit(TABLE)
    result["edges"] = signature(quartiles.edges, quartiles.shares, quartiles.lows, quartiles.highs)
    result["quarters"] = signature(quartiles.means, quartiles.deviations)
    for row in (0, 4):
        parts, switches, samples = quartiles.perturb(TABLE[row], 7, generator(7))
        result[f"perturbed, {row}"] = signature(parts, switches, samples)
    eighths = Quartiles().fit(np.column_stack([TABLE[:8, :3], np.arange(8.0)]))
    result["perturbed, edges"] = signature(*eighths.perturb(np.append(TABLE[0, :3], 3.0), 7, Given()))
    result["perturbed, below edges"] = signature(*eighths.perturb(np.append(TABLE[0, :3], 3.0), 7, Given(2.0**-30)))
    result["inputs"] = signature(TABLE, features, labels, shaded, reviews.features)
    for cap, tolerance in ((3, 1e-5), (500, 1e-3)):
        model = SparseLogistic(0.05, tolerance, cap).fit(TABLE, CLASSES)
        result[f"logistic, {cap}"] = signature(model.weights, model.offset, model.iterations)
    for most in (1, 2):
        model = SparseLogistic.with_at_most(most, TABLE - TABLE.mean(axis=0), CLASSES, 0.5)
        result[f"logistic, at most {most}"] = signature(model.weights, model.offset, model.penalty)
    parzen = ParzenWindows().fit(TABLE[:6], CLASSES[:6] > 0, (0.5, 0.03, 0.5, 2.0))
    result["parzen"] = signature(parzen.width, parzen.loss)
    pure = ParzenWindows().fit(np.array([[0.0], [0.1], [10.0], [10.1]]), np.array([0, 0, 1, 1]), (0.125, 0.1))
    result["parzen"] += signature(pure.width, 100.0 * pure.loss)
    clumps = np.array([[0.0], [0.125], [0.25], [0.5], [90.0], [90.5], [400.0]])
    apart = ParzenWindows().fit(clumps, np.array([0, 1, 0, 0, 1, 1, 0]), (0.01, 0.02))
    result["parzen, apart"] = signature(apart.width, apart.loss)
    away = [apart.explain(np.array([at]), 1) for at in (95.0, -600.0)]
    result["parzen, away"] = signature(*[values for it in away for values in (it.features, it.weights, it.local)])
    explained = [parzen.explain(row, k) for row, k in ((TABLE[1], 2), (TABLE[7], 4))]
    result["parzen, explained"] = signature(*[values for it in explained for values in (it.features, it.weights, it.local)])
    return {**result, **drawn_on_edges(), **fitted_on_edges()}


class Switches:
    """A domain whose samples are given."""

    def __init__(self, switches, distance):
        self.switches, self.distance = np.array(switches, dtype=float), distance

    def perturb(self, instance, n_samples, rng):
        parts = np.array([7, 2, 5, 9])
        return parts, self.switches, self.switches * instance


SAMPLES = [[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]]


def explanation(features, weights, local=0.625):
    return Explanation(np.array(features), np.array(weights, dtype=float), local, local)


def explanation_row(it):
    return np.concatenate([it.features, it.weights, [it.local, it.predicted, it.score, it.base]])


def nearly_equal(gain, times):
    """Targets and features of which each is a better one than the feature before it by about ``gain``."""
    targets = np.array([1.0, -1.0, 1.0, -1.0, 2.0, -2.0, 0.0, 0.0])
    aside = np.array([1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 2.0, -2.0])
    columns = [targets + np.sqrt(0.25 - number * gain) * aside for number in range(times)]
    return np.column_stack([column / np.linalg.norm(column) for column in columns]), targets


def chosen_on_edges():
    """Regressions without penalty, cases without weight, and features and instances that are almost equally good."""
    result = {}
    rng = generator(31)
    design, targets = np.rint(3.0 * rng.standard_normal((9, 4))), np.rint(4.0 * rng.standard_normal(9))
    weights = np.array([1, 0, 2, 1, 4, 1, 0, 1, 1])
    for name, columns, aims, masses, penalty in (
        ("free", design, targets, weights, 0.0),
        ("whole", design.astype(int), targets.astype(int), weights, 2),
        ("heavy", design, targets, 64.0 * weights, 1.0),
        ("hardly varied", design, 1.0 + 1e-7 * targets, weights, 1.0),
        ("varied", design, 1.0 + 1e-5 * targets, weights, 1.0),
        ("without features", design[:, :0], targets, weights, 1.0),
    ):
        intercept, coefficients, score = weighted_ridge(columns, aims, masses, penalty)
        result[f"ridge, {name}"] = signature(intercept, coefficients, score, columns, aims, masses)
    given = weighted_ridge(design, targets, weights)
    result["ridge, default"] = signature(*given)
    for key in range(8):
        rng = generator(32, key)
        columns = rng.standard_normal((7, 5)) + 1.5 * rng.standard_normal((7, 1))
        aims, masses = columns @ rng.standard_normal(5) + 0.25 * rng.standard_normal(7), rng.uniform(0.25, 2.0, 7)
        paths = [lasso_path(columns, aims, masses, most) + 1 for most in (1, 2, 3, 4)]
        result[f"lasso, {key}"] = signature([len(path) for path in paths], *paths, columns)
        forward = [forward_selection(columns, aims, masses, most) + 1 for most in (1, 3, 9)]
        result[f"forward, {key}"] = signature(*forward, columns, aims, masses)
    # Features whose coefficients reach 0 on the way, and correlations that are small from the start.
    for key in (11, 26, 75, 119):
        rng = generator(32, key)
        columns = rng.standard_normal((7, 5)) + 1.5 * rng.standard_normal((7, 1))
        aims, masses = columns @ rng.standard_normal(5) + 0.25 * rng.standard_normal(7), rng.uniform(0.25, 2.0, 7)
        paths = [lasso_path(columns, scale * aims, masses, most) + 1 for most in (2, 3, 4) for scale in (1.0, 1e-7)]
        result[f"lasso, leaving, {key}"] = signature([len(path) for path in paths], *paths)
    for gain in (0.0, 1.25e-9, 1e-6):
        columns, aims = nearly_equal(gain, 3)
        result[f"forward, gain {gain:g}"] = signature(*[forward_selection(columns[:, order], aims, np.ones(8), most) + 1 for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]) for most in (1,)])
    nearly = np.array([[1.0, 0.0, 0.0], [0.0, 1.0 + 1e-9, 0.0], [0.0, 0.0, 1.0 + 1e-7]])
    level = np.zeros((40, 3))
    level[7, 1], level[:, 0] = 1.0, 1.0
    tables = [level, nearly, nearly[:2], nearly[::-1], np.array([[2, 0, 0], [2, 0, 0], [0, 0, 2], [9, 0, 0], [0, 0, 0]]), np.array([[1e-20, 0.0], [0.0, 1e-20], [1e-20, 1e-20]]), np.zeros((3, 2))]
    picks = [np.array(submodular_pick(table, budget)) + 1 for table in tables for budget in (0, 1, 2, 3, 5, 30)]
    result["picks, nearly"] = signature([len(rows) for rows in picks], *picks, *tables)
    result["artless"] = signature(mistrusts([explanation([], [], 0.75), explanation([1], [0.25], 0.75), explanation([1], [0.25], 0.5), explanation([1], [-0.25], 0.5), explanation([1, 2], [0.5, -0.5], 0.75), explanation([1], [0.25 + 1e-9], 0.75)], np.array([1, 2]), True), mistrusts([explanation([], [])], np.array([1]), False))
    return result


def explained_on_edges():
    """Explanations of constant predictions, of predictions that differ by rounding only, and of 1/2 after a step."""
    result = {}
    instance = np.array([1.0, 0.0, 2.0, 3.0, 0.5])
    for way in ("lasso", "forward"):
        for most in (2, 9):
            found = LocalExplainer(Words(), most, 12, 0.5, way).explain(lambda rows: np.full(len(rows), 0.75), instance, generator(33))
            # Its weights are 0 up to rounding, so their order is not reported.
            found.features = np.sort(found.features)
            result[f"constant, {way}, {most}"] = signature(explanation_row(found), instance)
    for number, (switches, distance) in enumerate((([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1]], "cosine"), ([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]], "euclidean"))):
        local = LocalExplainer(Switches(switches, distance), 2, 4, selection="forward")
        found = local.explain(lambda rows: rows @ np.array([0.5, -0.25, 0.125, 0.75]), np.array([1.0, 2.0, 1.0, 0.5]), None)
        result[f"default width, {number}"] = signature(explanation_row(found))

    def steps(rows):
        """Probabilities that fall by eighths, with differences below the slack that favour later features."""
        return 0.75 - 0.125 * np.sum(rows == 0.0, axis=1) + 1e-10 * (rows @ np.arange(len(rows[0])))

    def rises(rows):
        return 0.25 + 0.25 * np.sum(rows == 0.0, axis=1) - 1e-6 * rows[:, 1]

    for number, (predict, row, most) in enumerate((
        (steps, np.array([1.0, 1.0, 1.0, 1.0]), 9),
        (steps, np.array([4.0, 3.0, 2.0, 1.0]), 1),
        (rises, np.array([-1.0, 2.0, 0.5, 1.0]), 4),
        (rises, np.array([1, 2, 3]), 2),
    )):
        given = np.array(row)
        result[f"removed, {number}"] = signature(explanation_row(greedy_explanation(predict, row, most)), given, row)
    repeated = [explanation([2, 5], [0.5, -0.5]), explanation([5, 2], [0.25, 0.25]), explanation([2], [-0.5]), explanation([7, 1, 2], [1.0, 1.0, 0.25])]
    result["stability, four"], result["stability, two"] = signature(stability(repeated, 8)), signature(stability(repeated[:2], 8))
    masks = [([1, 1, 1, 1], [0, 0, 0, 0]), ([0, 0, 0, 0], [0, 0, 0, 0]), ([1, 0, 0, 0], [0, 1, 1, 1]), ([1, 1, 0, 1], [1, 1, 1, 1]), ([1], [1])]
    rows = [agreement(np.array(truth) > 0, np.array(claims) > 0) for truth, claims in masks]
    result["agreements"] = signature([[row[name] for name in ("precision", "recall", "f1", "kappa")] for row in rows])
    rivals = [explanation([1, 2], [0.25, 0.125], 0.625), explanation([2], [-0.25], 0.375)], [explanation([3], [0.5], 0.75), explanation([1], [0.25], 0.625)]
    choices = [choose_classifier(pair, picks, np.array(artifacts), additive) for pair in (rivals, rivals[::-1]) for picks in (([0], [1]), ([0, 1], [0, 1]), ([1, 1], [0])) for artifacts in ([1], [2, 3], [9]) for additive in (True, False)]
    result["choices, two"] = signature([choice for choice, _ in choices], [counts for _, counts in choices])
    return result


@group
def explanations():
    result = {}
    rng = generator(9)
    design = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 5)) + 0.5 * rng.standard_normal((8, 5))
    design = np.round(design, 2)
    targets = np.round(design @ rng.standard_normal(5) + rng.standard_normal(8), 2)
    weights = np.round(rng.uniform(0.2, 1.0, 8), 2)
    for name, penalty, aims in (("ridge", 0.5, targets), ("ridge, constant", 1.0, np.full(8, 0.375))):
        intercept, coefficients, score = weighted_ridge(design, aims, weights, penalty)
        result[name] = signature(intercept, coefficients, score)
    result["lasso"] = signature(*[lasso_path(design, targets, weights, most) + 1 for most in range(1, 6)])
    result["lasso, constant"] = len(lasso_path(design, np.full(8, 0.5), weights, 3))
    doubled = np.column_stack([design[:, 2], design[:, 0], design[:, 2], design[:, 1]])
    result["forward"] = signature(forward_selection(doubled, targets, weights, 3) + 1, forward_selection(doubled[:, :3], targets, weights, 9) + 1)
    local = [LocalExplainer(Switches(SAMPLES, name), most, 8, width, way, penalty) for name, most, width, way, penalty in
             (("cosine", 2, 0.25, "lasso", 1.0), ("euclidean", 3, 0.75, "forward", 0.25), ("euclidean", 2, 0.5, "weights", 2.0))]
    instance = np.array([0.5, 1.0, -2.0, 0.25])
    found = [it.explain(lambda rows: sigmoid(rows @ np.array([1.0, -0.5, 0.75, 2.0]) + rows[:, 0] * rows[:, 3]), instance, generator(1)) for it in local]
    texts = [LocalExplainer(Words(), 3, n_samples, 0.5, "forward", 0.5) for n_samples in (12, 40)]
    rest = np.array([1.0, 0.0, 2.0, 1.0, 3.0, 0.5])
    found += [it.explain(lambda rows: sigmoid(rows @ np.array([1.0, 9.0, -0.5, 0.25, 0.75, -2.0])), rest, generator(2)) for it in texts]
    result["local"] = signature(*[explanation_row(it) for it in found])
    flat = local[0].explain(lambda rows: np.full(len(rows), 0.25), instance, generator(1))
    result["local, constant"] = signature(flat.weights, flat.local, flat.base, flat.score)
    coefficients = np.array([2.0, -1.0, 1.0, 1.0, 0.5])
    removals = [(np.array([1.0, 0.0, 1.0, 2.0, 0.0]), -0.5, 4), (np.array([1.0, 1.0, 2.0, 2.0, 1.0]), -8.0, 2), (np.array([0.0, 1.0, 1.0, 0.0, 0.0]), 0.0, 3), (np.array([3, 1, 0, 2, 2], dtype=np.int32), -1.0, 4), (np.array([1.0, 2.0, 0.0, 0.0, 1.0]), -9.0, 0), (np.array([1.0, 1.0, 1.0, 1.0, 1.0]), 3.0, 9)]
    found = [greedy_explanation(lambda rows, offset=offset: sigmoid(rows @ coefficients + offset), row, most) for row, offset, most in removals]
    result["greedy"] = signature(*[explanation_row(it) for it in found])
    tables = [[[1.0, 0.0, 4.0], [0.0, 0.0, 9.0], [4.0, 9.0, 0.0], [1.0, 0.0, 4.0], [4.0, 0.0, 12.0]], [[1.0, 1.0], [2.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    picks = [np.array(submodular_pick(np.array(table), budget)) + 1 for table, budget in zip(tables * 2, (4, 2, 1, 9, 9, 9))]
    result["picks"] = signature(*picks)
    several = [explanation([3, 1], [0.25, -0.125]), explanation([1, 4], [0.125, 0.0], 0.5), explanation([2, 3], [-0.5, 0.125], 0.25), explanation([4], [0.75], 0.375)]
    masks = [mistrusts(several, np.array(untrusted), additive) for untrusted in ([1, 4], [2, 3], []) for additive in (True, False)]
    result["mistrusted"] = signature(*masks)
    rivals = [several, several[::-1]], [several, [explanation([4], [0.25], 0.5)] * 4], [several[:2] * 2, several]
    choices = [choose_classifier(pair, picks, np.array(artifacts), additive) for pair in rivals for picks in (([0, 1], [2]), ([3], [3, 0])) for artifacts in ([1, 4], [3, 2]) for additive in (True, False)]
    result["choices"], result["shares"] = signature([choice for choice, _ in choices]), signature([counts for _, counts in choices])
    masks = [([1, 1, 0, 0, 1], [1, 0, 0, 1, 1]), ([0, 0, 0], [0, 1, 0]), ([0, 0], [0, 0]), ([1, 1, 0, 1], [0, 0, 0, 0]), ([1, 1], [1, 1]), ([1, 1, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0])]
    result["inputs"] = signature(instance, rest, design, targets, weights, *[row for row, _, _ in removals], *[np.array(table) for table in tables])
    for name in ("precision", "recall", "f1", "kappa"):
        result[name] = signature([agreement(np.array(truth, dtype=bool), np.array(claims, dtype=bool))[name] for truth, claims in masks])
    overlap, spread = stability(several, 6)
    result["overlap"], result["spread"] = overlap, spread
    return {**result, **chosen_on_edges(), **explained_on_edges()}


def tree_numbers(tree):
    return [[node.split.feature + 1, node.split.threshold, *node.children] if node.split else [-1.0, node.value[0]] for node in tree.nodes]


def grown_on_edges():
    """Splits and trees of small whole numbers, where most gains are tied, and forests of classes with gaps."""
    result = {}
    for key in range(8):
        rng = generator(41, key)
        features, labels = rng.integers(0, 4, (10, 4)), rng.integers(0, 3, 10)
        targets = np.eye(3)[labels]
        splits = [best_split(features, targets, np.array(candidates), smallest) for candidates in ([0, 1, 2, 3], [3, 1], [2], [1, 0]) for smallest in (1, 2, 4, 5, 6)]
        result[f"splits, {key}"] = signature(*[[-1.0] if split is None else split for split in splits], features, targets)
        grown = [DecisionTree(leaves, smallest).fit(features, targets) for leaves, smallest in ((1, 1), (3, 1), (4, 2), (20, 1), (20, 3))]
        grown.append(DecisionTree(5, 1, 3).fit(features, targets, generator(42, key)))
        result[f"trees, {key}"] = signature(*[values for tree in grown for values in tree_numbers(tree)], *[tree.probabilities(features) for tree in grown])
        forests = [RandomForest(count, 3, 1).fit(features[:, :columns], 2 * labels, generator(43, key)) for count, columns in ((1, 4), (4, 3), (2, 1))]
        result[f"forests, {key}"] = signature(*[[*np.ravel(forest.probabilities(features)), forest.unseen_error] for forest in forests], features, labels)
    wide = np.array([[-1e9, 1.0], [1e9, 1.0], [1.0, 1.0 + 2.0**-30], [3.0, 1.0]])
    splits = [best_split(wide, np.eye(2)[[0, 1, 1, 0]], np.array(candidates), 1) for candidates in ([0], [1], [0, 1])]
    result["splits, wide"] = signature(*splits)
    # Their middle is one of the two values, rounded.
    adjacent = DecisionTree(4, 1).fit(np.array([[1.0], [1.0 + 2.0**-52], [1.0]]), np.eye(2)[[0, 1, 0]])
    result["tree, adjacent"] = signature(len(adjacent.nodes), [node.value[0] for node in adjacent.nodes])
    steps, even = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]]), np.eye(2)[[0, 1, 0, 1]]
    later, faint = even + 1e-10 * steps, 1e-5 * even
    nearly = [best_split(steps, targets, np.array(candidates), 1) for targets in (later, later[::-1], even * (1.0 + 1e-6 * steps)) for candidates in ([0], [1], [0, 1], [1, 0])]
    result["splits, nearly tied"] = signature(*[split[1:] for split in nearly])
    result["splits, faint"] = sum(best_split(steps, targets, np.arange(2), 1) is None for targets in (faint, 2.0 * faint, 100.0 * faint))
    return result


@group
def trees():
    result = {}
    labels = np.array([0, 1, 1, 0, 1, 1, 0, 0, 1])
    targets = np.eye(2)[labels]
    for name, candidates, smallest in (("all", [0, 1, 2, 3], 1), ("order", [3, 0], 2), ("large", [0, 3], 4)):
        split = best_split(TABLE, targets, np.array(candidates), smallest)
        result[f"split, {name}"] = signature(split.gain, split.feature, split.threshold)
    steps = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]])
    even = np.eye(2)[[0, 1, 0, 1]]
    for name, candidates in (("tied", [0, 1]), ("tied, other", [1, 0])):
        split = best_split(steps, even, np.array(candidates), 1)
        result[f"split, {name}"] = signature(split.gain, split.feature, split.threshold)
    none = [best_split(TABLE, targets, np.array([2]), 1), best_split(TABLE, targets, np.arange(4), 5), best_split(steps, even[[0, 0, 0, 0]], np.arange(2), 1)]
    result["split, none"] = sum(split is None for split in none)
    for leaves, smallest in ((2, 1), (3, 1), (9, 1), (9, 3)):
        tree = DecisionTree(leaves, smallest).fit(TABLE, targets)
        result[f"tree, {leaves}, {smallest}"] = signature(*tree_numbers(tree))
    twice = np.vstack([steps, steps + 10.0])
    result["tree, tied"] = signature(*tree_numbers(DecisionTree(4, 1).fit(twice, np.eye(2)[[0, 1, 0, 1, 0, 1, 0, 1]])))
    mirrored = np.arange(14.0)[:, np.newaxis]
    for leaves in (3, 4):
        tree = DecisionTree(leaves, 1).fit(mirrored, np.eye(2)[[0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1]])
        result[f"tree, mirrored, {leaves}"] = signature(*tree_numbers(tree))
    result["tree, drawn"] = signature(*tree_numbers(DecisionTree(4, 1, 2).fit(TABLE, targets, generator(2))))
    for trees in (1, 5):
        forest = RandomForest(trees, 4, 2).fit(TABLE, labels, generator(3, trees))
        result[f"forest, {trees}"], result[f"unseen, {trees}"] = signature(forest.probabilities(TABLE)), forest.unseen_error
    three = RandomForest(3, 4, 1).fit(TABLE, np.array([0, 1, 2, 2, 1, 0, 0, 1, 2]), generator(4))
    result["forest, three classes"] = signature(three.probabilities(TABLE)) + three.unseen_error
    return {**result, **grown_on_edges()}
