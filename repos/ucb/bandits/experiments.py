"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import numpy as np

from .bounds import greedy_bound, lower_rate, normal_bound, ucb1_bound, ucb2_bound
from .cases import GROUPS, rounded
from .metrics import crossing, friedman, growth, paired, sensitivity, summarise
from .policies import POLICIES, Elimination
from .problems import PROBLEMS, random_coins
from .randomness import generator
from .simulation import log_times, play
from .tails import conjecture_ratios

EXPERIMENTS = {}


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__] = function
    return function


def make_policy(text, problem):
    """A policy from text like ``ucb2:alpha=0.1``. Of ``greedy``, ``scale`` is its gap over the problem's least gap."""
    name, _, rest = text.partition(":")
    options = {key: float(value) for key, _, value in (part.partition("=") for part in rest.split(",") if part)}
    if name == "greedy":
        options["gap"] = options.pop("scale", 1.0) * problem.least_gap
    return POLICIES[name](**options)


def traces(args, problem, seed=None):
    """One trace for each policy of the arguments."""
    times = log_times(args.horizon, args.per_decade, args.first)
    seed = args.seed if seed is None else seed
    for text in args.policies:
        yield text, play(make_policy(text, problem), problem, args.horizon, args.runs, seed, times)


def columns_of(args, row):
    return {column: row[column] for column in args.columns}


@experiment
def curve(args):
    """Mean regret at each look, and when the share of plays of the best machine reaches a level."""
    result = {}
    for text, trace in traces(args, PROBLEMS[args.problems[0]]):
        row = {f"n={time}": float(np.mean(regret)) for time, regret in zip(trace.times, trace.regret)}
        result[text] = {**row, "crossing": crossing(trace, args.level)}
    return result


@experiment
def table(args):
    """Summary of each policy on each problem."""
    result = {}
    for name in args.problems:
        for text, trace in traces(args, PROBLEMS[name]):
            row = summarise(trace)
            row["slope"], row["fitted"] = growth(trace)
            row["crossing"] = crossing(trace, args.level)
            result[f"{name} {text}"] = columns_of(args, row)
    return result


@experiment
def sweep(args):
    """Mean regret of one policy by one parameter, and how much the choice matters; on each problem."""
    result = {}
    for name in args.problems:
        problem = PROBLEMS[name]
        rows = [play(make_policy(f"{args.policies[0]}{value:g}", problem), problem, args.horizon, args.runs, args.seed)
                for value in args.values]
        regrets = [float(np.mean(trace.regret[-1])) for trace in rows]
        points = {f"{value:g}": regret for value, regret in zip(args.values, regrets)}
        result[name] = {**points, **sensitivity(args.values, regrets)}
    return result


@experiment
def bounds(args):
    """Growth of the regret; the paper's bounds at the first look, and their rise up to ``reach`` times the horizon."""
    result = {}
    for name in args.problems:
        problem = PROBLEMS[name]
        result[name] = {"lower": lower_rate(problem)}
        for text, trace in traces(args, problem):
            policy = make_policy(text, problem)
            bound = {
                "ucb1": lambda times: ucb1_bound(problem, times),
                "ucb2": lambda times: ucb2_bound(problem, times, policy.alpha),
                "greedy": lambda times: greedy_bound(problem, times, policy.gap, policy.c),
                "normal": lambda times: normal_bound(problem, times),
            }.get(text.partition(":")[0])
            row = {"slope": growth(trace)[0]}
            if bound is not None:
                early, late = bound(np.array([args.first, args.reach * args.horizon]))
                row["bound"], row["rise"] = float(early), float(late - early)
            result[name][text] = row
    return result


@experiment
def duel(args):
    """The first policy against each of the others, run by run."""
    result = {}
    for name in args.problems:
        (_, champion), *others = traces(args, PROBLEMS[name])
        for text, trace in others:
            result[f"{name} {text}"] = columns_of(args, paired(champion, trace))
    return result


@experiment
def tournament(args):
    """Policies on problems of five random machines, ranked by the runs that played another than the best one most."""
    misses, regrets = [], []
    for number in range(args.count):
        problem = random_coins(5, args.gap, generator(args.seed, 3, number))
        seen = [trace for _, trace in traces(args, problem, args.seed + number)]
        misses.append([np.mean(np.argmax(trace.plays[-1], axis=1) != np.argmax(problem.means)) for trace in seen])
        regrets.append([np.mean(trace.regret[-1]) for trace in seen])
    ranks, statistic, p = friedman(misses)
    result = {text: {"rank": float(rank), "regret": float(mean)}
              for text, rank, mean in zip(args.policies, ranks, np.mean(regrets, axis=0))}
    return {**result, "statistic": statistic, "p": p}


@experiment
def elimination(args):
    """When successive elimination has settled for one machine, against a measure of hardness; and its regret."""
    result = {}
    for name in args.problems:
        policy = Elimination(shrink=args.shrink)
        trace = play(policy, PROBLEMS[name], args.horizon, args.runs, args.seed)
        settled = np.minimum(policy.settled, args.horizon)
        worse = PROBLEMS[name].gaps > 0
        hardness = np.sum(PROBLEMS[name].variances[worse] / PROBLEMS[name].gaps[worse] ** 2)
        row = {"settled": float(np.mean(settled)), "hardness": float(hardness)}
        result[name] = {**row, "crossing": crossing(trace, args.level), **columns_of(args, summarise(trace))}
    return result


@experiment
def conjectures(args):
    """How tight the paper's conjectures are, by degrees of freedom."""
    result = {}
    for freedom in args.freedoms:
        result[f"s={freedom}"] = dict(zip(["student", "end", "chi-square"], conjecture_ratios(freedom)))
    return result


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
