"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import numpy as np

from . import metrics, theory
from .accelerated import HamerlyKMeans, MiniBatchKMeans
from .cases import GROUPS, rounded
from .datasets import load
from .distances import COUNTER, potential
from .lloyd import KMeans, StoppingRule
from .sampling import trial_generator
from .seeding import make_seeding, swap_search

EXPERIMENTS = {}


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__.replace("_", "-")] = function
    return function


def run_trials(points, args, make_model, k):
    """Fit one new model a trial. Trial t of a seed uses the same generator whatever the method."""
    return [make_model().fit(points, trial_generator(args.seed, k, trial)) for trial in range(args.trials)]


@experiment
def table(args):
    """The paper's tables: methods by potential and iterations, for each k."""
    points = load(args.data, args.n, args.seed).points
    rows = {}
    for k in args.k:
        baseline = None
        for method in args.methods:
            runs = run_trials(points, args, lambda: KMeans(k, method), k)
            row = theory.summarise(runs, baseline)
            baseline = baseline or row
            rows[f"{method}, k={k}"] = {key: row[key] for key in args.columns if key in row}
    return rows


@experiment
def seedings(args):
    """Potential of each method's centers before Lloyd's iteration, over the planted optimum, and coverage."""
    data = load(args.data, args.n, args.seed)
    k = args.k[0]
    optimum = float(np.sum(theory.optimal_potentials(data.points, data.labels)))
    result = {"bound": theory.approximation_bound(k)}
    for method in args.methods:
        ratios, covers = [], []
        for trial in range(args.trials):
            centers = make_seeding(method, k)(data.points, trial_generator(args.seed, k, trial))
            ratios.append(potential(data.points, centers) / optimum)
            covers.append(theory.coverage(data.points, data.labels, centers))
        covered, missed, crowding = np.mean(covers, axis=0)
        result[method] = {"ratio": float(np.mean(ratios)), "covered": covered, "missed": missed, "crowding": crowding}
    return result


@experiment
def lemmas(args):
    """The two lemmas behind the guarantee, as exact expectations on known classes and on clusters found."""
    data = load(args.data, args.n, args.seed)
    k = args.k[0]
    centers = make_seeding("kmeans++", k)(data.points, trial_generator(args.seed, k))
    found = KMeans(k, stopping=StoppingRule(max_iterations=3)).fit(data.points, None, centers=centers)
    result = {}
    for name, labels in (("classes", data.labels), ("clusters", found.labels_)):
        expected, deviation = theory.expected_uniform_potentials(data.points, labels)
        weighted = theory.expected_weighted_ratios(data.points, labels, centers[:2])
        steep = theory.expected_weighted_ratios(data.points, labels, centers[:2], exponent=6.0)
        result[name] = {
            "uniform": float(np.mean(expected)),
            "deviation": float(np.mean(deviation)),
            "weighted": float(np.mean(weighted)),
            "largest": float(np.max(weighted)),
            "steep": float(np.mean(steep)),
        }
    return result


@experiment
def exponents(args):
    """D^l seeding: mean potential of the same exponent after seeding, and the guarantee, for each l."""
    points = load(args.data, args.n, args.seed).points
    k = args.k[0]
    result = {}
    for exponent in args.exponents:
        costs = []
        for trial in range(args.trials):
            centers = make_seeding("kmeans++", k, exponent=exponent)(points, trial_generator(args.seed, k, trial))
            costs.append(potential(points, centers, exponent))
        result[f"l={exponent:g}"] = {
            "mean": float(np.mean(costs)),
            "min": float(np.min(costs)),
            "bound": theory.approximation_bound(k, exponent),
        }
    return result


@experiment
def classes(args):
    """Agreement of clusters with the known classes, and geometric quality, of the best run of several.

    Stability is the matched accuracy of each run against the one before.
    """
    data = load(args.data, args.n, args.seed)
    k = args.k[0]
    result = {}
    for method in args.methods:
        runs = run_trials(data.points, args, lambda: KMeans(k, method), k)
        best = min(runs, key=lambda run: run.potential_)
        pairs = zip(runs, runs[1:])
        result[method] = {
            "rand": metrics.adjusted_rand_index(data.labels, best.labels_),
            "information": metrics.normalised_mutual_information(data.labels, best.labels_),
            "accuracy": metrics.matched_accuracy(data.labels, best.labels_),
            "silhouette": metrics.silhouette(data.points, best.labels_),
            "davies_bouldin": metrics.davies_bouldin(data.points, best.labels_, best.centers_),
            "stability": float(np.mean([metrics.matched_accuracy(one.labels_, two.labels_) for one, two in pairs])),
        }
    return result


@experiment
def acceleration(args):
    """Distance evaluations of Lloyd, Hamerly and mini-batches from the same seeds."""
    points = load(args.data, args.n, args.seed).points
    k = args.k[0]
    models = {
        "lloyd": lambda: KMeans(k),
        "hamerly": lambda: HamerlyKMeans(k),
        "minibatch": lambda: MiniBatchKMeans(k, n_batches=args.batches),
    }
    result = {}
    for name, make_model in models.items():
        COUNTER.reset()
        runs = run_trials(points, args, make_model, k)
        result[name] = {
            "evaluations": COUNTER.reset() / len(points) / args.trials,
            "potential": float(np.mean([potential(points, run.centers_) for run in runs])),
        }
        if name == "hamerly":
            result[name]["iterations"] = float(np.mean([run.n_iterations_ for run in runs]))
            result[name]["searched"] = float(np.mean([np.mean(run.searched_) for run in runs]))
        elif name == "minibatch":
            result[name]["smoothed"] = float(np.mean([run.smoothed_ for run in runs]))
            result[name]["heaviest"] = float(np.mean([np.max(run.counts_) for run in runs]))
    return result


@experiment
def swaps(args):
    """Local search on top of random seeds, against k-means++ and the greedy variant."""
    points = load(args.data, args.n, args.seed).points
    k = args.k[0]
    before, after, accepted, final = [], [], [], []
    for trial in range(args.trials):
        rng = trial_generator(args.seed, k, trial)
        seeds = make_seeding("random", k)(points, rng)
        better, exchanges = swap_search(points, seeds, rng, args.swaps)
        before.append(potential(points, seeds))
        after.append(potential(points, better))
        accepted.append(exchanges)
        final.append(KMeans(k).fit(points, rng, centers=better).potential_)
    names = ("before", "after", "accepted", "final")
    result = {name: float(np.mean(values)) for name, values in zip(names, (before, after, accepted, final))}
    for method in args.methods:
        runs = run_trials(points, args, lambda: KMeans(k, method), k)
        result[method] = theory.summarise(runs)["mean"]
    return result


@experiment
def stopping(args):
    """What the stopping rule costs and saves: iterations and potential by tolerance, and empty clusters met."""
    points = load(args.data, args.n, args.seed).points
    k = args.k[0]
    result = {}
    for tolerance in args.tolerances:
        for method in args.methods:
            runs = run_trials(points, args, lambda: KMeans(k, method, StoppingRule(args.iterations, tolerance)), k)
            row = {
                "iterations": float(np.mean([run.n_iterations_ for run in runs])),
                "potential": float(np.mean([run.potential_ for run in runs])),
                "repairs": float(np.sum([run.repairs_ for run in runs])),
                "capped": float(np.mean([run.reason_ == "iterations" for run in runs])),
            }
            result[f"{method}, tolerance={tolerance:g}"] = {key: row[key] for key in args.columns if key in row}
    return result


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
