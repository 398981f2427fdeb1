"""Small cases by hand: ties, values on edges, empty bins, few points. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

import numpy as np

from . import metrics
from .binning import BayesianBinning, HistogramBinning, IsotonicRegression, one_versus_rest
from .layers import BatchNormalisation
from .network import Network
from .optimisers import NesterovDescent, minimise, two_loop_direction
from .sampling import degrade, generator, stratified_split
from .scaling import AffineScaling, PlattScaling, TemperatureScaling, maximum_entropy
from .synthetic import Dataset, GaussianClasses, documents
from .training import Recipe, train

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


def drawn_on_edges():
    """Splits, images and data sets with options and numbers that no experiment uses."""
    result = {}
    data = GaussianClasses(4, 2, 1.0, 4.0).sample(5, generator(21))
    result["gaussians, turned over"] = signature(data.points, data.labels, data.posterior)
    one = GaussianClasses(2, 1).sample(1, generator(22))
    result["gaussians, one"] = signature(one.points, one.labels, one.posterior)
    pair = documents(6, generator(23), 2, 12)
    result["documents, two topics"] = signature(pair.points, pair.labels)
    hundred = np.repeat([2, -1], [100, 1])
    for shares in ((29, 71), (57, 1, 42), (1, 0, 2), [7, 7]):
        given = np.array(shares)
        parts = stratified_split(hundred, given, generator(24))
        result[f"split, {tuple(shares)}"] = signature([len(part) for part in parts], *parts, given)
    result["split, one share"] = signature(*stratified_split(hundred[:9], (4,), generator(25)), hundred)
    images = np.mod(7.0 * np.arange(160.0), 17.0).reshape(10, 16)
    for patch in (2, 4):
        result[f"degraded, patch {patch}"] = signature(degrade(images, generator(26), 0.125, patch), images)
    side = np.full((4, 1), 16.0)
    result["degraded, pixels"] = signature(degrade(side, generator(27), 3.0, 1), side)
    return result


def layers_on_edges():
    """Networks without blocks and with thin ones, arrays that must not be shared or changed, steps of no length."""
    result = {}
    for name, depth, width, normalise in (("flat", 0, 7, True), ("thin", 2, 1, True), ("three blocks", 3, 3, False)):
        network = Network.build(3, 4, generator(28), depth, width, normalise)
        points, labels = np.arange(12.0).reshape(4, 3) - 5.0, np.array([3, 0, 3, 1])
        first = network.gradients(points, labels)
        held = [np.array(gradient) for gradient in first[1]]
        second = network.gradients(points[:2] + 1.0, labels[:2], 0.5)
        result[f"{name}, gradients"] = signature(first[0], second[0], *first[1], *second[1], points)
        result[f"{name}, held"] = float(all(np.array_equal(*both) for both in zip(held, first[1])))
        for number, parameter in enumerate(network.parameters):
            parameter += number
        result[f"{name}, moved"] = signature(*network.parameters)
    layer = BatchNormalisation(2, 0.5, 0.25)
    inputs, upstream = np.array([[1, 2], [3, 8], [3, 5], [9, 1]]), np.array([[1, 0], [0, -2], [3, 1], [1, 1]])
    layer.parameters[0][:] = -2.0, 0.5
    outputs = layer.forward(inputs, True), layer.backward(upstream), layer.gradients[0], layer.gradients[1]
    result["whole numbers"] = signature(*outputs, inputs, upstream, *layer.parameters)
    parameters = [np.array([1.0, -2.0]), np.array([[4.0]])]
    descent = NesterovDescent(parameters, 0.5, 2, 0.5, (0.5,), 0.25, 2.0)
    given = [[np.array([2.0, 0.0]), np.array([[0.0]])], [np.zeros(2), np.zeros((1, 1))], [np.array([3.0, 0.0]), np.array([[4.0]])], [np.array([0.5, 0.5]), np.array([[-0.5]])]]
    for gradients in given:
        with np.errstate(divide="ignore"):
            descent.step(gradients)
    result["descent, resting"] = signature(*parameters, *[gradient for gradients in given for gradient in gradients], descent.taken)
    data = Dataset(np.arange(14.0).reshape(7, 2) / 7.0, np.array([0, 2, 1, 0, 2, 2, 0]))
    for epochs, size in ((1, 100), (2, 7), (2, 6), (1, 1), (3, 2)):
        network = Network.build(2, 3, generator(29), 1, 3, False)
        history = train(network, data, data.take([2]), generator(30), Recipe(epochs, size, 0.5, 0.0))
        result[f"trained, {epochs}, {size}"] = signature(history.objectives, history.losses, history.errors, *network.parameters)
    result["data"] = signature(data.points, data.labels)
    return result


@group
def networks():
    result = {}
    drawn = GaussianClasses(3, 2).sample(7, generator(1))
    result["gaussians"] = signature(drawn.points, drawn.labels, drawn.posterior)
    drawn = GaussianClasses(4, 3, 2.0, 0.125).sample(6, generator(11))
    result["gaussians, apart"] = signature(drawn.points, drawn.labels, drawn.posterior)
    for shape in (0.5, 3.0):
        drawn = documents(6, generator(2), 3, 8, shape)
        result[f"documents, {shape}"] = signature(drawn.points, drawn.labels)
    labels = np.array([4, 1, 1, 4, 1, 1, 1, 9, 1, 4, 1, 4, 4])
    result["split"] = signature(*stratified_split(labels, (5, 2, 3), generator(3)))
    many = np.repeat([0, 3], [10, 30])
    for shares in ((3, 3, 3, 1), (1, 1, 4), (7, 0, 3)):
        parts = stratified_split(many, shares, generator(12))
        result[f"split, {shares}"] = signature([len(part) for part in parts], *parts)
    images = np.arange(48.0).reshape(3, 16) % 17
    result["degraded"] = signature(degrade(images, generator(4), 0.5), images)
    for noise, patch in ((0.0, 3), (4.0, 1)):
        result[f"degraded, {patch}"] = signature(degrade(images.astype(int), generator(4), noise, patch))
    layer = BatchNormalisation(2)
    layer.parameters[0][:] = 1.5, 0.5
    layer.parameters[1][:] = 0.25, -2.0
    batch = np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 8.0]])
    outputs = [layer.forward(part, True) for part in (batch, batch[1:] - 3.0)]
    result["standardised"] = signature(*outputs, layer.running_mean, layer.running_variance)
    result["inputs"] = signature(layer.backward(np.array([[1.0, 2.0], [4.0, -3.0]])), *layer.gradients)
    result["outside"] = signature(layer.forward(batch, False), layer.running_mean, layer.running_variance)
    slow = BatchNormalisation(2, 0.75, 0.5)
    result["standardised, slow"] = signature(slow.forward(batch, True), slow.forward(batch + 1.0, False), slow.running_mean, slow.running_variance)
    result["inputs, slow"] = signature(slow.backward(batch), batch)
    for name, depth, normalise in (("plain", 1, False), ("deep", 2, True)):
        network = Network.build(3, 2, generator(5), depth, 4, normalise)
        result[f"{name}, built"] = signature(*network.parameters)
        points, labels = generator(6).standard_normal((5, 3)), np.array([0, 1, 1, 0, 1])
        objective, gradients = network.gradients(points, labels, 0.1)
        result[f"{name}, objective"], result[f"{name}, gradients"] = objective, signature(*gradients)
    parameters = [np.array([1.0, 2.0]), np.array([[3.0]])]
    descent = NesterovDescent(parameters, 0.5, 4)
    for size in (0.25, 1.0, 4.0, 0.5):
        descent.step([np.array([size, -size]), np.array([[2.0 * size]])])
    result["descent"] = signature(*parameters)
    parameters = [np.array([1.0, 2.0]), np.array([[3.0]])]
    descent = NesterovDescent(parameters, 0.25, 5, 0.5, (0.2, 0.4, 0.6), 0.5, 3.0)
    for size in (0.25, 1.0, 4.0, 0.5, 1.0):
        descent.step([np.array([size, -size]), np.array([[2.0 * size]])])
    result["descent, options"] = signature(*parameters)
    data = Dataset(generator(7).standard_normal((7, 3)), np.array([0, 1, 0, 0, 1, 1, 0]))
    watched = Dataset(generator(8).standard_normal((4, 3)), np.array([1, 0, 0, 1]))
    network = Network.build(3, 2, generator(9), 1, 4)
    history = train(network, data, watched, generator(10), Recipe(4, 3, 0.2, 0.05))
    result["objectives"], result["losses"] = signature(history.objectives), signature(history.losses)
    result["errors"], result["trained"] = signature(history.errors), signature(*network.parameters)
    return dict(**result, **drawn_on_edges(), **layers_on_edges())


def grids(key, size, steps):
    """Numbers on a grid from 0 to 1, so many of them tied and on edges, and outcomes without a pattern."""
    rng = generator(31, key)
    return rng.integers(0, steps + 1, size=size) / steps, rng.integers(0, 2, size=size)


def measured_on_grids():
    """The measures where confidences and edges are multiples of an eighth."""
    result = {}
    for key in range(6):
        values, outcomes = grids(key, 13, 8)
        diagrams = [metrics.reliability(values, it, n_bins) for n_bins in (2, 4, 8) for it in (outcomes, outcomes == 0)]
        rows = [[*it.counts, *it.accuracy, *it.confidence, it.expected, it.largest, it.excess] for it in diagrams]
        result[f"diagrams, {key}"] = signature(*rows)
        labels = np.mod(np.cumsum(outcomes), 3)
        chances = np.column_stack([values / 2.0, (1.0 - values) / 2.0, np.full(len(values), 0.5)])
        for n_bins in (1, 4, 8):
            parts = metrics.brier_parts(chances, labels, n_bins)
            measured = [*parts.values(), metrics.classwise_error(chances, labels, n_bins)]
            result[f"classes, {key}, {n_bins}"] = signature(len(parts), measured)
    sure, low = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), np.full(6, 0.125)
    hits = np.array([0, 1, 0, 1, 1, 0])
    result["surely wrong"] = signature(*[[it.expected, it.largest, it.excess] for it in (metrics.reliability(sure, hits, 2), metrics.reliability(low, hits, 2))])
    mixed = np.array([0.75, 0.5, 0.75, 0.5, 0.75, 0.5, 0.75, 0.5, 0.75, 0.5])
    for name, order in (("", np.arange(10)), (", reversed", np.arange(10)[::-1])):
        found = [metrics.adaptive_error(mixed[order], np.array([1, 0, 1, 0, 0, 1, 1, 0, 0, 1]), n_bins) for n_bins in (1, 3, 4, 5)]
        result[f"adaptive, mixed{name}"] = signature(np.round(found, 7))
    many = np.arange(60) % 3 / 4.0 + 0.25
    result["adaptive, many"] = signature(*[metrics.adaptive_error(many, np.arange(60) * key % 7 < 3, 4) for key in (1, 3, 5)])
    result["adaptive, lists"] = metrics.adaptive_error([0.5, 1.0, 0.5, 0.75, 1.0, 0.25], [True, False, False, True, False, True], 2)
    thin = np.array([[0.025, 0.0, 0.975], [0.0, 0.03125, 0.96875], [0.0, 0.0, 1.0]])
    result["classwise, thin"] = metrics.classwise_error(thin, np.array([2, 1, 2]), 8)
    tenths = np.array([[0.05, 0.95], [0.05, 0.95], [0.0, 1.0], [0.25, 0.75]])
    result["classwise, floor"] = metrics.classwise_error(tenths, np.array([1, 1, 1, 1]), 4)
    result["kept"] = signature(mixed, thin, tenths, sure, low)
    return result


def calibrated_on_grids():
    """The calibrators where scores and edges are multiples of an eighth, and for few or equal scores."""
    result = {}
    new = np.arange(0.0, 17.0) / 16.0
    for key in range(6):
        scores, outcomes = grids(10 + key, 12, 8)
        fitted = [HistogramBinning(n_bins, mass).fit(scores, outcomes) for n_bins in (1, 4, 8) for mass in (False, True)]
        fitted.append(HistogramBinning(12, True).fit(scores, outcomes))
        result[f"histograms, {key}"] = signature(*[values for it in fitted for values in (it.edges, it.values, it.predict(new))])
        steps = IsotonicRegression().fit(scores, outcomes)
        result[f"steps, {key}"] = signature(steps.predict(new), scores, outcomes)
        inside = (scores + 0.5) / 2.0
        bayes = BayesianBinning(2.0, 1.5).fit(np.concatenate([inside, inside + 0.03125]), np.tile(outcomes, 2))
        result[f"bayesian, {key}"] = signature(len(bayes.schemes), bayes.weights, bayes.predict(new))
    result["histogram, default"] = signature(HistogramBinning().fit(np.array([0.05, 0.95, 0.96]), [1, 0, 1]).predict(new))
    for name, scores, outcomes in (("one", [0.25], [1]), ("equal", [0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0]), ("falling", [0.75, 0.25, 0.5, 0.875], [0, 1, 1, 0]), ("rising", [0.75, 0.25, 0.5, 0.25], [1, 0, 1, 0])):
        given = np.array(scores), np.array(outcomes)
        result[f"steps, {name}"] = signature(IsotonicRegression().fit(*given).predict(new), *given)
    known = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.75, 0.125, 0.125], [0.125, 0.75, 0.125], [0.25, 0.25, 0.5], [0.5, 0.375, 0.125]])
    fresh = np.array([[0.125, 0.25, 0.625], [0.0, 0.0, 1.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0], [0.375, 0.5, 0.125]])
    for name, labels in (("two of three", [0, 1, 0, 1, 1, 0]), ("one", [2, 2, 2, 2, 2, 2]), ("turned", [1, 0, 1, 0, 2, 1])):
        chances = [one_versus_rest("isotonic", known, np.array(labels), fresh)]
        chances.append(one_versus_rest("histogram", known, np.array(labels), fresh))
        result[f"rest, {name}"] = signature(*chances, fresh, known)
    many = np.clip(np.tile(known, (5, 1)) + 0.01 * np.arange(30.0)[:, np.newaxis], 0.0, 1.0)
    result["rest, bbq"] = signature(one_versus_rest("bbq", many, np.mod(np.arange(30), 3), fresh))
    return result


@group
def binning():
    result = {}
    confidences = np.array([0.0, 0.2, 0.2 + 1e-12, 0.4, 0.45, 0.6, 0.95, 1.0, 0.65])
    correct = np.array([False, True, False, False, True, True, True, False, True])
    diagram = metrics.reliability(confidences, correct, 5)
    result["diagram"] = signature(diagram.counts, diagram.accuracy, diagram.confidence)
    result["expected"], result["largest"], result["excess"] = diagram.expected, diagram.largest, diagram.excess
    tied = np.array([0.5, 0.75, 0.5, 0.5, 1.0, 0.75, 0.5, 0.25])
    right = np.array([1, 0, 1, 0, 1, 1, 0, 1])
    result["adaptive"] = metrics.adaptive_error(tied, right, 3)
    result["adaptive, negative"] = metrics.adaptive_error(np.array([0.5, 0.5, 0.5, 0.75, 0.75]), np.array([1, 0, 1, 1, 0]), 2)
    chances = np.array([[0.05, 0.95], [0.5, 0.5], [0.04, 0.96], [0.75, 0.25], [0.6, 0.4], [1.0, 0.0]])
    labels = np.array([0, 1, 0, 0, 1, 0])
    result["classwise"] = metrics.classwise_error(chances, labels, 4)
    parts = metrics.brier_parts(chances, labels, 4)
    result["parts"] = signature([parts[name] for name in ("score", "reliability", "resolution", "uncertainty", "within")])
    scores = np.array([0.25, 0.25, 0.5, 0.1, 0.8, 0.5, 0.3, 0.9, 0.25, 0.45, 0.5])
    outcomes = np.array([1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0])
    new = np.array([0.0, 0.1, 0.2, 0.25, 0.26, 0.3, 0.4, 0.5, 0.6, 0.75, 0.85, 1.0])
    for n_bins, mass in ((4, False), (4, True), (12, False), (3, True)):
        histogram = HistogramBinning(n_bins, mass).fit(scores, outcomes)
        result[f"histogram, {n_bins}, {mass}"] = signature(histogram.values, histogram.predict(new))
    ends = HistogramBinning(4).fit(np.array([0.0, 0.25, 0.75, 1.0, 0.75, 0.0]), np.array([True, False, True, True, False, False]))
    result["histogram, ends"] = signature(ends.edges, ends.values, ends.predict(new))
    result["isotonic"] = signature(IsotonicRegression().fit(scores, outcomes).predict(new))
    order = np.arange(len(scores))[::-1]
    result["isotonic, reversed"] = signature(IsotonicRegression().fit(scores[order], outcomes[order]).predict(new))
    many = np.tile(scores, 3) * np.repeat([1.0, 0.5, 0.75], len(scores))
    for name, times in (("few", 1), ("many", 3)):
        bayes = BayesianBinning().fit(many[: 11 * times], np.tile(outcomes, times))
        result[f"bayesian, {name}"] = signature(bayes.weights, bayes.predict(new))
    for strength, widest in ((0.5, 2.0), (8.0, 2.0), (2.0, 1.5), (2.0, 3.0)):
        bayes = BayesianBinning(strength, widest).fit(np.tile(many, 3) * np.repeat([1.0, 0.9, 0.8], len(many)), np.tile(outcomes, 9))
        result[f"bayesian, {strength:g}, {widest:g}"] = signature(bayes.weights, bayes.predict(new))
    evenly = np.arange(3000) / 3000.0
    for widest in (2.0, 3.0):
        bayes = BayesianBinning(widest=widest).fit(evenly, np.mod(7.0 * np.arange(3000), 3.0) + np.sin(40.0 * evenly) > 1.5)
        result[f"bayesian, thousands, {widest:g}"] = signature(len(bayes.schemes), bayes.weights, bayes.predict(new))
    known = np.array([[0.9, 0.05, 0.05], [0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.15, 0.7, 0.15], [0.3, 0.3, 0.4], [0.45, 0.35, 0.2], [0.6, 0.15, 0.25]])
    fresh = np.array([[0.9, 0.05, 0.05], [0.31, 0.32, 0.37], [0.35, 0.12, 0.53], [0.45, 0.27, 0.28]])
    for name in ("histogram", "isotonic"):
        result[f"rest, {name}"] = signature(one_versus_rest(name, known, np.array([0, 1, 1, 2, 0, 1, 0]), fresh))
    result["inputs"] = signature(known, fresh, scores, outcomes, chances, labels, tied, right, confidences)
    return dict(**result, **measured_on_grids(), **calibrated_on_grids())


def double_well(point):
    """A function with a stretch of negative curvature, and its gradient."""
    x, y = point
    value = x**4 / 4.0 - x**2 / 2.0 + y**2 + 0.25 * x * y
    return value, np.array([x**3 - x + 0.25 * y, 2.0 * y + 0.25 * x])


def bowl(point):
    """A narrow bowl and its gradient."""
    scales = np.array([1.0, 10.0, 100.0, 2.0, 30.0, 5.0])
    return 0.5 * float(np.sum(scales * (point - 1.0) ** 2)), scales * (point - 1.0)


def slide(point):
    """A slope that falls at the same rate everywhere: its gradient never changes."""
    return -2.0 * float(np.sum(point)), np.full(len(point), -2.0)


def halfway(point):
    """Half the squared length, and its gradient: a step that takes what the slope promises by half reaches 0."""
    return 0.5 * float(np.sum(np.square(point))), np.array(point)


def minima_on_edges():
    """L-BFGS where a gradient equals the tolerance, a decrease just suffices, or curvature is 0."""
    result = {}
    for name, objective, start, options in (
        ("at the tolerance", bowl, np.zeros(6), {"tolerance": 100.0}),
        ("at 1", halfway, np.array([1.0, 0.0]), {"tolerance": 1.0}),
        ("no steps", bowl, np.zeros(6), {"max_iterations": 0}),
        ("half of the promise", halfway, np.array([1.0]), {"decrease": 0.5}),
        ("more than half", halfway, np.array([1.0]), {"decrease": 0.5000001, "max_iterations": 2}),
        ("whole numbers", bowl, np.array([3, 1, 0, 2, 1, 1]), {"max_iterations": 3}),
        ("slide", slide, np.array([1.0, 2.0]), {"max_iterations": 3}),
        ("long", bowl, np.full(6, -3.0), {"max_iterations": 12, "memory": 2}),
    ):
        point, value, steps, evaluations = minimise(objective, start, **options)
        result[f"minimum, {name}"] = signature(np.round(point, 6), round(value, 6), steps, evaluations, start)
    gradient = np.array([0.5, -0.25, 0.25])
    moves = [np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.5, 2.0])]
    changes = [np.array([2.0, 0.0, 0.25]), np.array([0.0, 4.0, 1.0]), np.array([1.0, 0.0, 0.5])]
    result["direction, three"] = signature(two_loop_direction(gradient, moves, changes), gradient, len(moves), len(changes), *moves, *changes)
    result["direction, edge"] = signature(two_loop_direction(gradient, [], []), two_loop_direction(1.5 * gradient, [], []))
    return result


def fits_on_edges():
    """Parametric fits where the start is the answer, where steps must be cut, and for one-sided data."""
    result = {}
    even = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1, 1, 0, 0])
    wide = np.array([9.0, -1.0, 0.5, 14.0, -0.25, 0.125, -12.0, 30.0]), np.array([1, 0, 1, 1, 0, 0, 0, 1])
    for name, (margins, outcomes), options in (
        ("at the tolerance", even, {"tolerance": 0.25}),
        ("below", even, {"tolerance": 0.249}),
        ("no steps", wide, {"max_iterations": 0}),
        ("all positive", (even[0] + 0.5, np.ones(4, dtype=bool)), {}),
        ("none positive", (even[0] + 0.5, np.zeros(4, dtype=int)), {}),
        ("whole numbers", (np.array([3, -1, 2, -2, 1]), np.array([1, 0, 1, 0, 0])), {}),
        ("wide", wide, {}),
        ("far", (wide[0] * 8.0, wide[1]), {}),
        ("halved", (np.repeat([-141.1, 6.8, -2.6], [1, 1, 60]), np.repeat([1, 0, 1], [1, 1, 60])), {}),
        ("halved twice", (np.repeat([-0.2, 25.6, 0.4], [5, 1, 60]), np.repeat([0, 1, 1], [5, 1, 60])), {}),
    ):
        fit = PlattScaling(**options).fit(margins, outcomes)
        result[f"platt, {name}"] = signature(fit.slope, fit.offset, fit.iterations, margins, outcomes)
    logits = np.array([[4.0, 0.0, -1.0], [0.5, 1.0, 0.25], [3.0, 2.5, 0.0], [-1.0, 0.0, 4.0]])
    labels = np.array([1, 0, 2, 1])
    flat = TemperatureScaling(tolerance=0.0).fit(np.zeros((3, 2)), labels[[0, 1, 3]])
    still = TemperatureScaling(0).fit(logits, labels)
    whole = TemperatureScaling(6).fit(np.array([[4, 0], [3, 1], [0, 2]]), np.array([0, 1, 1]))
    worst = TemperatureScaling(5).fit(logits, labels)
    result["temperatures"] = signature(*[[it.temperature, it.iterations] for it in (flat, still, whole, worst)])
    for diagonal in (False, True):
        parameters = np.array([0.5, -1.0, 0.25, 2.0] if diagonal else [1.0, -2.0, 0.5, 3.0, 0.25, -0.5])
        scaling = AffineScaling(diagonal)
        value, slopes = scaling.objective(parameters, logits[:, :2], labels[:2].repeat(2))
        result[f"objective, pair, {diagonal}"] = signature(value, slopes, parameters)
    for name, aims, tolerance in (("worst", [2, 2, 2, 0], 1e-3), ("width", [0, 1, 0, 1], 0.0625), ("wide", [0, 1, 0, 1], 1.0)):
        multiplier, entropy, tried = maximum_entropy(0.5 * logits, np.array(aims), tolerance)
        result[f"entropy, {name}"] = signature(multiplier, entropy, tried)
    result["kept"] = signature(logits, labels)
    return result


@group
def fits():
    result = {}
    gradient = np.array([0.25, -0.5, 0.125])
    pairs = [np.array([0.5, 0.25, 0.0]), np.array([-0.25, 0.5, 1.0])], [np.array([1.0, 0.125, 0.25]), np.array([0.0, 1.0, 0.5])]
    result["direction"] = signature(two_loop_direction(gradient, [], []), two_loop_direction(8.0 * gradient, [], []))
    result["direction, pairs"] = signature(two_loop_direction(gradient, pairs[0][:1], pairs[1][:1]), two_loop_direction(gradient, *pairs))
    result["gradient"] = signature(gradient)
    start = np.array([0.125, 2.0])
    for name, options in (("wells", {}), ("wells, cap", {"max_iterations": 3}), ("wells, memory", {"memory": 1, "tolerance": 0.01})):
        point, value, steps, evaluations = minimise(double_well, start, **options)
        result[name] = signature(np.round(point, 6), round(value, 6), steps, evaluations)
    point, value, steps, evaluations = minimise(bowl, np.zeros(6), max_iterations=8, memory=3)
    result["bowl"] = signature(point, value, steps, evaluations)
    steps = [minimise(bowl, np.zeros(6), tolerance=tolerance)[2] for tolerance in (20.0, 5.0, 2.0, 1.0, 0.3)]
    result["bowl, steps"] = signature(steps)
    for decrease in (0.45, 0.9):
        point, value, steps, evaluations = minimise(bowl, np.full(6, 4.0), 8, decrease=decrease)
        result[f"bowl, {decrease}"] = signature(np.round(point, 6), round(value, 6), steps, evaluations)
    result["start"] = signature(start) + minimise(bowl, np.ones(6))[3]
    margins = np.array([-1.0, 0.5, 2.0, 0.25, -0.5, 1.5, 40.0, -0.25])
    outcomes = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    for name, rows, cap in (("platt", slice(None), 20), ("platt, few", slice(2, 7), 20), ("platt, cap", slice(2, 7), 2)):
        fit = PlattScaling(cap).fit(margins[rows], outcomes[rows])
        result[name] = signature(fit.slope, fit.offset, fit.iterations)
    for tolerance in (0.05, 1e-3):
        fit = PlattScaling(20, tolerance).fit(margins[2:7], outcomes[2:7])
        result[f"platt, {tolerance}"] = signature(fit.slope, fit.offset, fit.iterations)
    logits = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0], [3.0, 2.5, 0.0], [-1.0, 0.0, 4.0], [1.0, 1.0, 0.0]])
    labels = np.array([0, 1, 1, 2, 0])
    for name, rows, scale, cap in (("temperature", slice(None), 1.0, 30), ("temperature, hot", slice(None), 30.0, 30), ("temperature, sure", slice(0, 2), 1.0, 4)):
        fit = TemperatureScaling(cap).fit(scale * logits[rows], labels[rows])
        result[name] = signature(fit.temperature, fit.iterations)
    for name, scale, options in (("far", 1.0, {}), ("loose", 4.0, {"tolerance": 0.05}), ("short", 8.0, {"longest": 0.25}), ("long", 0.02, {"longest": 2.0})):
        fit = TemperatureScaling(**options).fit(scale * logits + (800.0 if name == "far" else 0.0), labels)
        result[f"temperature, {name}"] = signature(fit.temperature, fit.iterations)
    for diagonal in (False, True):
        scaling = AffineScaling(diagonal)
        flat = np.arange(6.0 if diagonal else 12.0) / 4.0 - 0.5
        value, slopes = scaling.objective(flat, logits, labels)
        result[f"objective, {diagonal}"] = signature(value, slopes)
        value, slopes = AffineScaling(diagonal, 2.0, 0.75).objective(flat, 50.0 * logits, labels)
        result[f"objective, {diagonal}, far"] = signature(value, slopes)
    for name, scale in (("entropy", 1.0), ("entropy, small", 0.125)):
        multiplier, entropy, tried = maximum_entropy(scale * logits, labels, 1e-3)
        result[name] = signature(multiplier, entropy, tried)
    result["inputs"] = signature(logits, labels, margins, outcomes, *pairs[0], *pairs[1])
    return dict(**result, **minima_on_edges(), **fits_on_edges())
