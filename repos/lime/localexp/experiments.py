"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import numpy as np

from . import metrics, pick, users
from .cases import GROUPS, rounded
from .corpus import plant_artifacts
from .datasets import load_parts
from .domains import Quartiles, Regions, Words
from .explainers import LocalExplainer, greedy_explanation
from .explanation import Explanation
from .images import add_snow, snow_pixels, superpixels
from .logistic import SparseLogistic
from .parzen import ParzenWindows
from .sampling import generator
from .trees import DecisionTree, RandomForest

EXPERIMENTS = {}

#: Purposes of generators, part of their keys.
FOREST, EXPLAIN, ARTIFACTS, UNTRUSTED, PICK, SNOW = range(10, 16)

#: Methods whose contributions add up to the prediction.
ADDITIVE = ("lime", "parzen")


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__] = function
    return function


def train(args, data, number=0):
    """A classifier of the kind that the arguments name."""
    if args.model == "tree":
        return DecisionTree(args.leaves).fit(data.features, np.eye(2)[data.labels])
    if args.model == "forest":
        rng = generator(args.seed, FOREST, number)
        return RandomForest(args.trees, args.leaves).fit(data.features, data.labels, rng)
    return SparseLogistic.with_at_most(10, data.features, data.labels)


def predictor(model, label=1):
    return lambda instances: model.probabilities(instances)[:, label]


def accuracy(model, data):
    return float(np.mean(np.argmax(model.probabilities(data.features), axis=1) == data.labels))


def explainer(args, domain, **options):
    settings = {"n_features": args.features, "n_samples": args.samples, "width": args.width}
    return LocalExplainer(domain, **{**settings, "selection": args.selection, **options})


def explain_all(args, explainer, predict, instances, *key):
    return [explainer.explain(predict, row, generator(args.seed, EXPLAIN, *key, i)) for i, row in enumerate(instances)]


def by_method(args, method, predict, parzen, instances):
    """Explanations of text by a method's name."""
    if method == "lime":
        return explain_all(args, explainer(args, Words()), predict, instances)
    if method == "parzen":
        return [parzen.explain(row, args.features) for row in instances]
    if method == "greedy":
        return [greedy_explanation(predict, row, args.features) for row in instances]
    rng = generator(args.seed, EXPLAIN)
    chosen = [rng.permutation(np.flatnonzero(row))[: args.features] for row in instances]
    return [Explanation(features, np.ones(len(features)), 0.5, 0.5) for features in chosen]


def mean_rows(rows):
    """Means of the values of equal dictionaries."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def fidelity(explanations):
    """How well explanations fit: score, error at the instance itself, sum of absolute weights, intercept."""
    rows = [(e.score, abs(e.local - e.predicted), np.sum(np.abs(e.weights)), e.base) for e in explanations]
    return dict(zip(("score", "error", "size", "base"), np.mean(rows, axis=0).tolist()))


@experiment
def faithfulness(args):
    """Recall of the features that an interpretable classifier really uses, for each method."""
    training, _, test = load_parts(args.data, args.n, args.seed)
    model = train(args, training)
    predict = predictor(model)
    parzen = ParzenWindows().fit(training.features, predict(training.features) > 0.5)
    pairs = [(row, np.intersect1d(model.used_for(row), np.flatnonzero(row))) for row in test.features[: args.instances]]
    pairs = [(row, gold) for row, gold in pairs if len(gold) > 0]
    result = {"gold": float(np.mean([len(gold) for _, gold in pairs])), "loss": parzen.loss}
    for method in args.methods:
        explanations = by_method(args, method, predict, parzen, [row for row, _ in pairs])
        recalls = [np.mean(np.isin(gold, e.features)) for e, (_, gold) in zip(explanations, pairs)]
        result[method] = {"recall": float(np.mean(recalls))}
        if method != "random":
            result[method]["largest"] = float(np.mean([np.max(np.abs(e.weights), initial=0.0) for e in explanations]))
    return result


@experiment
def trust(args):
    """How well users with explanations find the predictions that rest on untrustworthy words."""
    training, _, test = load_parts(args.data, args.n, args.seed)
    model = train(args, training)
    predict, instances = predictor(model), test.features[: args.instances]
    parzen = ParzenWindows().fit(training.features, predict(training.features) > 0.5)
    rng, n_words = generator(args.seed, UNTRUSTED), instances.shape[1]
    trials = [rng.permutation(n_words)[: n_words // 4] for _ in range(args.trials)]
    truths = [users.rests_on(predict, instances, untrusted) for untrusted in trials]
    result = {"changed": float(np.mean(truths)), "unseen": model.unseen_error}
    for method in args.methods:
        explanations = by_method(args, method, predict, parzen, instances)
        verdicts = [users.mistrusts(explanations, untrusted, method in ADDITIVE) for untrusted in trials]
        row = mean_rows([metrics.agreement(truth, verdict) for truth, verdict in zip(truths, verdicts)])
        result[method] = {key: row[key] for key in ("precision", "f1", "kappa")}
    return result


@experiment
def choose(args):
    """Choosing the better of two forests that validation hardly tells apart, from a few explanations of each."""
    parts = load_parts(args.data, args.n, args.seed)
    n_artifacts, n_words = 10, parts[0].features.shape[1]
    training, validation, test = plant_artifacts(parts, n_artifacts, generator(args.seed, ARTIFACTS))
    artifacts, instances = np.arange(n_words, n_words + n_artifacts), validation.features[: args.instances]
    models = [train(args, training, number) for number in range(args.forests)]
    scores = [[accuracy(model, part) for model in models] for part in (validation, test)]
    gaps = np.subtract.outer(scores[1], scores[1])
    close = np.abs(np.subtract.outer(scores[0], scores[0])) <= args.closeness + 1e-9
    pairs = np.argwhere(np.logical_and(close, gaps >= args.gap - 1e-9)).tolist()
    result = {"pairs": len(pairs), "apart": float(np.mean([gaps[a, b] for a, b in pairs]))}
    for method in args.methods:
        explained = [by_method(args, method, predictor(model), None, instances) for model in models]
        tables = [np.array([e.row(n_words + n_artifacts) for e in explanations]) for explanations in explained]
        for name in ("submodular", "random"):
            result[f"{name} {method}"] = row = {}
            for budget in map(int, args.values):
                choices = []
                for number, pair in enumerate(pairs):
                    rng = generator(args.seed, PICK, budget, number)
                    picks = [rng.permutation(len(instances))[:budget] for _ in pair]
                    if name == "submodular":
                        picks = [pick.submodular_pick(tables[model], budget) for model in pair]
                    rivals = [explained[model] for model in pair]
                    choices.append(users.choose_classifier(rivals, picks, artifacts, method in ADDITIVE))
                row[f"B={budget}"] = float(np.mean([1.0 - choice for choice, _ in choices]))
            row["mistrust"] = float(np.mean([counts for _, counts in choices]))
    return result


@experiment
def coverage(args):
    """Share of the importance of all features that picked explanations show, and the fit of all explanations."""
    training, validation, test = load_parts(args.data, args.n, args.seed)
    model = train(args, training)
    instances = np.vstack([validation.features, test.features])[: args.instances]
    labels = np.argmax(model.probabilities(instances), axis=1)
    local = explainer(args, Quartiles().fit(training.features))
    rngs = [generator(args.seed, EXPLAIN, number) for number in range(len(instances))]
    explanations = [local.explain(predictor(model, y), x, rng) for x, y, rng in zip(instances, labels, rngs)]
    table = np.array([explanation.row(instances.shape[1]) for explanation in explanations])
    rng = generator(args.seed, PICK)
    result = {"fit": fidelity(explanations), "unseen": model.unseen_error}
    for budget in map(int, args.values):
        draws = [rng.permutation(len(table))[:budget] for _ in range(args.trials)]
        picked = pick.submodular_pick(table, budget)
        row = {"submodular": pick.coverage(table, picked), "weight": float(np.mean(table[picked]))}
        row["random"] = float(np.mean([pick.coverage(table, rows) for rows in draws]))
        result[f"B={budget}"] = row
    return result


@experiment
def selectors(args):
    """Ways to choose an explanation's features: how well explanations of text fit."""
    training, _, test = load_parts(args.data, args.n, args.seed)
    model = train(args, training)
    local = {name: explainer(args, Words(), selection=name) for name in args.methods}
    instances = test.features[: args.instances]
    return {name: fidelity(explain_all(args, local[name], predictor(model), instances)) for name in args.methods}


def snowy_parts(args, rates):
    """Digits with snow: by class at the given rates in training and validation, in half of the test images."""
    parts = load_parts("digits", args.n, args.seed)
    rng = generator(args.seed, SNOW)
    return [add_snow(part, chance, rng) for part, chance in zip(parts, (rates, rates, (0.5, 0.5)))]


@experiment
def stability(args):
    """Agreement and fit of repeated explanations of a prediction, by the number of samples or the kernel's width."""
    digits = args.data == "digits"
    training, _, test = snowy_parts(args, (0.2, 0.8)) if digits else load_parts(args.data, args.n, args.seed)
    predict = predictor(train(args, training))
    domain = (Regions if digits else Quartiles)().fit(training.features)
    result = {}
    for number, value in enumerate(args.values):
        option = {"n_samples": int(value)} if args.vary == "samples" else {"width": value}
        local, rows = explainer(args, domain, **option), []
        for case, row in enumerate(test.features[: args.instances]):
            repeats = explain_all(args, local, predict, [row] * args.trials, number, case)
            overlap, spread = metrics.stability(repeats, len(row))
            rows.append({"overlap": overlap, "spread": spread, **fidelity(repeats)})
        result[f"{args.vary}={value:g}"] = mean_rows(rows)
    return result


@experiment
def snow(args):
    """What a classifier of animals looks at, if most pictures of one kind show snow, and if snow means nothing."""
    ground, result = snow_pixels(8), {}
    for name, rates in {"misleading": (0.1, 0.9), "harmless": (0.5, 0.5)}.items():
        training, validation, test = snowy_parts(args, rates)
        model, domain = train(args, training), Regions().fit(training.features)
        instances = test.features[: args.instances]
        explanations = explain_all(args, explainer(args, domain), predictor(model), instances)
        shares = []
        for image, explanation in zip(instances, explanations):
            owners = superpixels(image)
            on_ground = np.bincount(owners, weights=ground) / np.bincount(owners) > 0.5
            weights = np.abs(explanation.weights)
            shares.append(np.sum(weights[on_ground[explanation.features]]) / np.sum(weights))
        result[name] = {"ground": float(np.mean(shares)), **fidelity(explanations)}
        result[name]["validation"], result[name]["test"] = accuracy(model, validation), accuracy(model, test)
    return result


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
