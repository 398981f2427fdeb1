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
    return result


def double_well(point):
    """A function with a stretch of negative curvature, and its gradient."""
    x, y = point
    value = x**4 / 4.0 - x**2 / 2.0 + y**2 + 0.25 * x * y
    return value, np.array([x**3 - x + 0.25 * y, 2.0 * y + 0.25 * x])


def bowl(point):
    """A narrow bowl and its gradient."""
    scales = np.array([1.0, 10.0, 100.0, 2.0, 30.0, 5.0])
    return 0.5 * float(np.sum(scales * (point - 1.0) ** 2)), scales * (point - 1.0)


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
    return result
