"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import numpy as np

from . import metrics, theory
from .cases import GROUPS, rounded
from .datasets import load
from .graph import GraphBuilder, Points
from .labels import decide
from .models import make_model
from .sampling import draw_labelled, trial_generator

EXPERIMENTS = {}

#: Options of methods that are set on the command line: method -> {option: argument}
OPTIONS = {
    "consistency": {"alpha": "alpha"},
    "row": {"alpha": "alpha"},
    "column": {"alpha": "alpha"},
    "svm": {"width": "svm_width"},
}


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__.replace("_", "-")] = function
    return function


def builder_of(args, sigma=None):
    return GraphBuilder(args.metric, sigma or args.sigma, args.width, args.neighbours, args.mode, args.bridged)


def model_of(method, args, **options):
    wanted = {option: getattr(args, argument) for option, argument in OPTIONS.get(method, {}).items()}
    return make_model(method, **{**wanted, **options})


def draws(labels, count, args):
    """Partial labels of all trials. Trial t with a count uses the same ones whatever the method."""
    return [draw_labelled(labels, count, trial_generator(args.seed, count, trial)) for trial in range(args.trials)]


def mean_rows(rows):
    """Means of the values of equal dictionaries."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


@experiment
def curve(args):
    """Learning curves: mean test error by number of labelled points, for each method, and the area under it."""
    data = load(args.data, args.n, args.seed)
    points = Points(data.features, builder_of(args))
    trials = {count: draws(data.labels, count, args) for count in args.labelled}
    result = {}
    for method in args.methods:
        errors = np.zeros((args.trials, len(args.labelled)))
        for column, count in enumerate(args.labelled):
            for row, partial in enumerate(trials[count]):
                model = model_of(method, args).fit(points, partial)
                errors[row, column] = metrics.error_rate(data.labels, model.labels_, partial)
        summary = metrics.summarise_curve(args.labelled, errors)
        result[method] = {f"l={count}": mean for count, mean in zip(args.labelled, summary["mean"])}
        result[method]["area"] = summary["area"]
        if args.deviations:
            result[method]["deviation"] = summary["deviation"][0]
    return result


@experiment
def compare(args):
    """The first method against each of the others, trial by trial; and each one's measures that treat classes alike."""
    data = load(args.data, args.n, args.seed)
    points = Points(data.features, builder_of(args))
    trials = draws(data.labels, args.labelled[0], args)
    errors, result = {}, {}
    for method in args.methods:
        models = [model_of(method, args).fit(points, partial) for partial in trials]
        errors[method] = [metrics.error_rate(data.labels, m.labels_, partial) for m, partial in zip(models, trials)]
        row = mean_rows([metrics.class_report(data.labels, m.labels_, partial) for m, partial in zip(models, trials)])
        row["confidence"] = float(np.mean([metrics.confidence(m.scores_, p) for m, p in zip(models, trials)]))
        row["strength"] = float(np.mean([np.abs(m.scores_) for m in models]))
        if hasattr(models[0], "iterations_"):
            row["iterations"] = float(np.mean([m.iterations_ for m in models]))
        if len(errors) > 1:
            row.update(metrics.paired_comparison(errors[args.methods[0]], errors[method]))
        result[method] = {key: row[key] for key in args.columns if key in row}
    return result


@experiment
def spreading(args):
    """How labels spread: error and energy after given numbers of iterations, and in the limit."""
    data = load(args.data, args.n, args.seed)
    points = Points(data.features, builder_of(args))
    result = {}
    for steps in [*args.steps, None]:
        options = {} if steps is None else {"solver": "iteration", "tolerance": 0.0, "max_iterations": steps}
        rows = []
        for partial in draws(data.labels, args.labelled[0], args):
            model = model_of("consistency", args, **options).fit(points, partial)
            smoothness, fit = theory.energy_terms(model.scores_, points.weights, partial, args.alpha)
            error = metrics.error_rate(data.labels, model.labels_, partial)
            rows.append({"error": error, "smoothness": smoothness, "fit": fit})
        result["limit" if steps is None else f"t={steps}"] = mean_rows(rows)
    return result


@experiment
def solvers(args):
    """Work of the solvers and quality of their result: products, deviation from the limit in percent, changes.

    The deviation is the norm of the difference, over the norm of the limit.
    """
    data = load(args.data, args.n, args.seed)
    points = Points(data.features, builder_of(args))
    trials = draws(data.labels, args.labelled[0], args)
    result = {}
    for name in args.methods:
        options = {"rank": args.rank} if name == "spectral" else {"tolerance": args.tolerance}
        rows = []
        for partial in trials:
            exact = model_of("consistency", args).fit(points, partial).scores_
            model = model_of("consistency", args, solver=name, **options).fit(points, partial)
            solution = model.solution_
            deviation = 100.0 * np.linalg.norm(solution.scores - exact) / np.linalg.norm(exact)
            row = {"products": model.operator_.products / exact.shape[1], "deviation": float(deviation)}
            row.update(middle=float(np.median(solution.changes)), least=float(np.min(solution.changes)))
            rows.append(row)
        result[name] = mean_rows(rows)
    return result


@experiment
def graphs(args):
    """Neighbourhood graphs of several sizes: edges a point, bridges, mean weight of an edge, error of each method.

    Also, as ``loose``, the same of the method without the bridges, where some points reach no label.
    """
    data = load(args.data, args.n, args.seed)
    trials = draws(data.labels, args.labelled[0], args)
    result = {}
    for count in args.sizes:
        builder = GraphBuilder(args.metric, args.sigma, args.width, count, args.mode, bridged=True)
        points = Points(data.features, builder)
        loose = Points(data.features, GraphBuilder(args.metric, args.sigma, args.width, count, args.mode))
        mask, bridges = points.edges
        row = {"edges": float(np.mean(np.sum(mask, axis=1))), "bridges": float(bridges)}
        row["weight"] = float(np.mean(points.weights[mask]))
        for name in [*args.methods, "loose"]:
            method, graph = ("consistency", loose) if name == "loose" else (name, points)
            models = [model_of(method, args).fit(graph, partial) for partial in trials]
            errors = [metrics.error_rate(data.labels, m.labels_, partial) for m, partial in zip(models, trials)]
            row[name] = float(np.mean(errors))
            margins = [metrics.confidence(m.scores_, partial) for m, partial in zip(models, trials)]
            row[f"{name} confidence"] = float(np.mean(margins))
        result[f"k={count}"] = row
    return result


@experiment
def induction(args):
    """New points: the graph is built on all but ``held`` of the points, and the others are scored without it."""
    data = load(args.data, args.n, args.seed)
    base, held = slice(args.held, None), slice(0, args.held)
    labels, none = data.labels[base], np.full(args.held, -1)
    points = Points(data.features[base], builder_of(args))
    rows = []
    for partial in draws(labels, args.labelled[0], args):
        model = model_of("consistency", args).fit(points, partial)
        scores = model.extend(points, data.features[held])
        row = {"inside": metrics.error_rate(labels, model.labels_, partial)}
        row["outside"] = metrics.error_rate(data.labels[held], decide(scores, partial), none)
        row["confidence inside"] = metrics.confidence(model.scores_, partial)
        row["confidence outside"] = metrics.confidence(scores, none)
        row["size"] = float(100.0 * np.mean(np.sum(scores, axis=1)))
        rows.append(row)
    return mean_rows(rows)


@experiment
def selection(args):
    """Width and alpha by leaving labels out, against the given ones."""
    data = load(args.data, args.n, args.seed)
    rows = []
    for partial in draws(data.labels, args.labelled[0], args):
        best = theory.choose_parameters(
            data.features, partial, lambda sigma: builder_of(args, sigma), args.sigmas, args.alphas
        )
        chosen = model_of("consistency", args, alpha=best["alpha"]).fit(best["points"], partial)
        given = model_of("consistency", args).fit(Points(data.features, builder_of(args)), partial)
        row = {"sigma": best["sigma"], "alpha gap": 1.0 - best["alpha"], "loss": best["loss"]}
        row.update({"left out": best["error"], "spread": best["spread"]})
        row["chosen"] = metrics.error_rate(data.labels, chosen.labels_, partial)
        row["given"] = metrics.error_rate(data.labels, given.labels_, partial)
        rows.append(row)
    return mean_rows(rows)


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
