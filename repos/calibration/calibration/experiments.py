"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import dataclasses

import numpy as np

from . import metrics
from .binning import BINARY, HistogramBinning, one_versus_rest
from .cases import GROUPS, rounded
from .datasets import load_parts
from .network import Network
from .probabilities import decide, log_likelihood_loss, softmax
from .sampling import generator
from .scaling import AffineScaling, PlattScaling, TemperatureScaling, maximum_entropy
from .training import Recipe, train

EXPERIMENTS = {}

#: name -> maker of a calibrator of logits
SCALINGS = {
    "temperature": TemperatureScaling,
    "vector": lambda: AffineScaling(diagonal=True),
    "matrix": AffineScaling,
}


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__.replace("_", "-")] = function
    return function


def measures(probabilities, uncalibrated, labels, columns):
    """The measures named by ``columns``, of calibrated probabilities, as a dictionary in their order."""
    predicted, confidences = decide(probabilities, uncalibrated)
    correct = predicted == labels
    diagram = metrics.reliability(confidences, correct)
    row = {
        "error": lambda: float(np.mean(~correct)),
        "confidence": lambda: float(np.mean(confidences)),
        "nll": lambda: log_likelihood_loss(probabilities, labels),
        "ece": lambda: diagram.expected,
        "mce": lambda: diagram.largest,
        "over": lambda: diagram.excess,
        "adaptive": lambda: metrics.adaptive_error(confidences, correct),
        "classwise": lambda: metrics.classwise_error(probabilities, labels),
    }
    parts = metrics.brier_parts(probabilities, labels) if set(columns) - set(row) else {}
    return {name: row[name]() if name in row else parts[name] for name in columns}


def fitted_network(args, parts, **changes):
    """A network trained on the training part, and its history on the test part."""
    training, _, test = parts
    n_classes = int(np.max(training.labels)) + 1
    shape = {"depth": args.depth, "width": args.width, "normalise": args.normalise} | {
        name: value for name, value in changes.items() if name in ("depth", "width", "normalise")
    }
    recipe = Recipe(args.epochs, args.batch, args.rate, args.decay)
    recipe = dataclasses.replace(recipe, **{name: value for name, value in changes.items() if name not in shape})
    network = Network.build(training.points.shape[1], n_classes, generator(args.seed, 1), **shape)
    return network, train(network, training, test, generator(args.seed, 2), recipe)


@experiment
def vary(args):
    """Error and calibration by depth, width, normalisation (0 or 1) or decay, everything else equal."""
    parts = load_parts(args.data, args.n, args.seed)
    kind = {"depth": int, "width": int, "normalise": bool, "decay": float}[args.what]
    result = {}
    for value in args.values:
        network, _ = fitted_network(args, parts, **{args.what: kind(value)})
        chances = softmax(network.logits(parts[2].points))
        result[f"{args.what}={value:g}"] = measures(chances, chances, parts[2].labels, args.columns)
    return result


@experiment
def overfitting(args):
    """Loss and error over the epochs: the best of each, and where the end stands."""
    parts = load_parts(args.data, args.n, args.seed)
    _, history = fitted_network(args, parts)
    return {
        "loss-epoch": history.best_epoch(history.losses),
        "error-epoch": history.best_epoch(history.errors),
        "loss-best": min(history.losses),
        "loss-last": history.losses[-1],
        "error-best": min(history.errors),
        "error-last": history.errors[-1],
        "objective-first": history.objectives[0],
        "objective-last": history.objectives[-1],
    }


@experiment
def methods(args):
    """The table of calibration methods on one network: measures on the test part by method."""
    parts = load_parts(args.data, args.n, args.seed)
    network, _ = fitted_network(args, parts)
    (held, labels), (logits, truth) = ((network.logits(part.points), part.labels) for part in parts[1:])
    result = {}
    for method in args.methods:
        if method == "none":
            chances = softmax(logits)
        elif method in BINARY:
            chances = one_versus_rest(method, softmax(held), labels, softmax(logits))
        else:
            chances = SCALINGS[method]().fit(held, labels).predict(logits)
        result[method] = measures(chances, softmax(logits), truth, args.columns)
    return result


@experiment
def binary(args):
    """Two classes: calibrators of one probability, by the errors of the probability of class 1, and Platt's fit."""
    parts = load_parts(args.data, args.n, args.seed)
    network, _ = fitted_network(args, parts)
    (held, outcomes), (logits, truth) = ((network.logits(part.points), part.labels) for part in parts[1:])
    margins, new_margins = held[:, 1] - held[:, 0], logits[:, 1] - logits[:, 0]
    scores, new_scores = softmax(held)[:, 1], softmax(logits)[:, 1]
    platt = PlattScaling().fit(margins, outcomes)
    chances = {"none": new_scores, "platt": platt.predict(new_margins)}
    chances["mass"] = HistogramBinning(equal_mass=True).fit(scores, outcomes).predict(new_scores)
    for name, calibrator in BINARY.items():
        chances[name] = calibrator().fit(scores, outcomes).predict(new_scores)
    result = {"slope": platt.slope, "offset": platt.offset, "steps": platt.iterations}
    for name, values in chances.items():
        diagram = metrics.reliability(values, truth)
        result[name] = {"ece": diagram.expected, "mce": diagram.largest}
    return result


@experiment
def diagram(args):
    """The reliability diagram before and after temperature scaling, over few bins, and the measures of both."""
    parts = load_parts(args.data, args.n, args.seed)
    network, _ = fitted_network(args, parts)
    scaling = TemperatureScaling().fit(network.logits(parts[1].points), parts[1].labels)
    logits, labels = network.logits(parts[2].points), parts[2].labels
    result = {}
    for name, chances in (("before", softmax(logits)), ("after", scaling.predict(logits))):
        predicted, confidences = decide(chances, chances)
        found = metrics.reliability(confidences, predicted == labels, args.bins)
        result[name] = measures(chances, chances, labels, args.columns)
        for position in range(args.bins - 3, args.bins):
            result[name][f"share-{position + 1}"] = float(found.counts[position] / len(labels))
            result[name][f"accuracy-{position + 1}"] = float(found.accuracy[position])
    return result


@experiment
def posterior(args):
    """Where the true posterior is known: mean divergence from it by method, and how the fits went."""
    parts = load_parts(args.data, args.n, args.seed)
    network, _ = fitted_network(args, parts)
    held, logits = network.logits(parts[1].points), network.logits(parts[2].points)
    truth = parts[2].posterior

    def divergence(chances):
        return float(np.mean(np.sum(truth * (np.log(truth + 1e-300) - np.log(chances + 1e-300)), axis=1)))

    result = {"bayes": {"confidence": float(np.mean(np.max(truth, axis=1)))}}
    result["none"] = {"divergence": divergence(softmax(logits))}
    for name, make in SCALINGS.items():
        fit = make().fit(held, parts[1].labels)
        result[name] = {"divergence": divergence(fit.predict(logits)), "iterations": fit.iterations}
        if name == "temperature":
            result[name]["temperature"] = fit.temperature
        else:
            result[name] |= {"objective": fit.value, "evaluations": fit.evaluations}
    multiplier, entropy, tried = maximum_entropy(held, parts[1].labels)
    result["entropy"] = {"multiplier": multiplier, "entropy": entropy, "tried": tried}
    return result


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
