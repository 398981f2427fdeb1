"""The command line: ``python -m localexp EXPERIMENT --data NAME ...``."""

import argparse
import json
import os

from .experiments import EXPERIMENTS


def listed(kind):
    """Parser of comma-separated lists."""
    return lambda text: [kind(part) for part in text.split(",")]


def build_parser():
    parser = argparse.ArgumentParser(prog="localexp", description="Experiments with local explanations.")
    add = parser.add_argument
    add("experiment", choices=sorted(EXPERIMENTS))
    add("--data", default="books", help="books, films, wine, cancer, digits")
    add("--n", type=int, default=1000, help="cases, all parts together")
    add("--seed", type=int, default=2016)
    add("--model", default="logistic", help="logistic, tree, forest")
    add("--trees", type=int, default=30, help="trees of a forest")
    add("--leaves", type=int, default=11, help="leaves of a tree, at most")
    add("--instances", type=int, default=100, help="predictions to explain")
    add("--features", type=int, default=6, help="features of an explanation")
    add("--samples", type=int, default=500, help="perturbed samples for an explanation")
    add("--width", type=float, default=0.25, help="kernel width")
    add("--selection", default="lasso", help="lasso, forward, weights")
    add("--methods", type=listed(str), default=["random", "parzen", "greedy", "lime"])
    add("--values", type=listed(float), default=[], help="what the experiment varies, a list")
    add("--vary", default="samples", help="stability: samples, width")
    add("--trials", type=int, default=100)
    add("--forests", type=int, default=10, help="choose: forests to make pairs of")
    add("--gap", type=float, default=0.05, help="choose: difference in test accuracy, at least")
    add("--closeness", type=float, default=0.02, help="choose: difference in validation accuracy, at most")
    add("--group", default="data", help="of small cases: data, explanations, trees")
    add("--out", help="write the result to this JSON file instead of standard output")
    return parser


def main(arguments=None):
    args = build_parser().parse_args(arguments)
    result = EXPERIMENTS[args.experiment](args)
    if args.out:
        os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
        with open(args.out, "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)
    else:
        print(json.dumps(result))
    return 0
