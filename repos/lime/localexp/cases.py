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
    """A generator whose uniform numbers are multiples of an eighth, many of them on an edge, and whose normal ones are given."""

    def random(self, size):
        places = np.arange(float(np.prod(size)))
        return np.mod(places * (places + 1.0) / 2.0, 8.0).reshape(size) / 8.0

    def standard_normal(self, size):
        return np.cos(np.arange(float(np.prod(size)))).reshape(size)


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
    return result


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
    return result


def tree_numbers(tree):
    return [[node.split.feature + 1, node.split.threshold, *node.children] if node.split else [-1.0, node.value[0]] for node in tree.nodes]


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
    return result
