"""The command line: ``python -m consistency EXPERIMENT --data NAME ...``."""

import argparse
import json
import os

from .experiments import EXPERIMENTS
from .models import MODELS
from .solvers import SOLVERS


def numbers(kind):
    """Parser of comma-separated lists."""

    def parse(text):
        return [kind(part) for part in text.split(",")]

    return parse


def build_parser():
    parser = argparse.ArgumentParser(prog="consistency", description="Experiments with few labels on graphs.")
    add = parser.add_argument
    add("experiment", choices=sorted(EXPERIMENTS))
    add("--data", default="moons", help="moons, text, digits, iris, wine, cancer")
    add("--n", type=int, default=10000, help="points; all of a real data set, if it has fewer")
    add("--labelled", type=numbers(int), default=[10], help="labelled points, a list")
    add("--trials", type=int, default=100)
    add("--seed", type=int, default=2004)
    add("--methods", type=numbers(str), default=["consistency"], help=", ".join([*MODELS, *SOLVERS]))
    add("--columns", type=numbers(str), default=["balanced", "f1", "kappa"])
    add("--metric", default="euclidean", help="euclidean, cosine")
    add("--sigma", type=float, default=1.25, help="width of the Gaussian; rank of a neighbour for local widths")
    add("--width", default="fixed", help="fixed, local")
    add("--neighbours", type=int, help="a neighbourhood graph of this size; all pairs without it")
    add("--mode", default="union", help="union, mutual")
    add("--bridged", action="store_true", help="join the components of a neighbourhood graph")
    add("--alpha", type=float, default=0.99)
    add("--svm-width", type=float, default=5.0)
    add("--deviations", action="store_true", help="for curve: standard error at the first count, too")
    add("--steps", type=numbers(int), default=[1, 10, 100], help="for spreading")
    add("--tolerance", type=float, default=1e-3, help="for solvers")
    add("--rank", type=int, default=10, help="for solvers")
    add("--sizes", type=numbers(int), default=[5, 10], help="for graphs")
    add("--held", type=int, default=100, help="for induction: points that the graph does not see")
    add("--sigmas", type=numbers(float), default=[0.5, 1.0, 2.0], help="for selection")
    add("--alphas", type=numbers(float), default=[0.5, 0.9, 0.99], help="for selection")
    add("--group", default="parts", help="of small cases: parts, solutions")
    add("--out", help="write the result here as JSON, too")
    add("--plain", action="store_true", help="print `name: value` lines, not JSON")
    return parser


def leaves(result, prefix=()):
    """All numbers of a nested dictionary with their dotted names."""
    for key, value in result.items():
        if isinstance(value, dict):
            yield from leaves(value, (*prefix, key))
        else:
            yield ".".join((*prefix, key)), float(value)


def main(arguments=None):
    args = build_parser().parse_args(arguments)
    result = EXPERIMENTS[args.experiment](args)
    if args.plain:
        for name, value in leaves(result):
            print(f"{name}: {value:.10g}")
    else:
        print(json.dumps(result))
    if args.out:
        os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
        with open(args.out, "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)
    return 0
