"""The command line: ``python -m bandits EXPERIMENT --problems NAMES ...``."""

import argparse
import json
import os

from .experiments import EXPERIMENTS
from .policies import POLICIES
from .problems import PROBLEMS


def listed(kind, separator=","):
    """Parser of lists."""

    def parse(text):
        return [kind(part) for part in text.split(separator)]

    return parse


def build_parser():
    parser = argparse.ArgumentParser(prog="bandits", description="Experiments with bandit policies.")
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--problems", type=listed(str), default=["1"], help=", ".join(PROBLEMS))
    parser.add_argument("--policies", type=listed(str, "+"), default=["ucb1"], help="joined by +: " + ", ".join(POLICIES))
    parser.add_argument("--horizon", type=int, default=10000, help="plays of a run")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2002)
    parser.add_argument("--first", type=int, default=10, help="time of the first look")
    parser.add_argument("--per-decade", type=int, default=4, help="looks for each factor of ten")
    parser.add_argument("--columns", type=listed(str), default=["regret", "best"])
    parser.add_argument("--level", type=float, default=0.5, help="share of plays of the best machine")
    parser.add_argument("--values", type=listed(float), default=[0.1], help="of the parameter of a sweep")
    parser.add_argument("--count", type=int, default=10, help="random problems")
    parser.add_argument("--gap", type=float, default=0.1, help="least gap of a random problem")
    parser.add_argument("--shrink", type=float, default=1.0, help="factor of the intervals of elimination")
    parser.add_argument("--reach", type=int, default=100, help="how far beyond the horizon bounds are followed")
    parser.add_argument("--freedoms", type=listed(int), default=[1], help="degrees of freedom")
    parser.add_argument("--group", default="policies", help="of small cases: policies, measures")
    parser.add_argument("--out", help="write the result here as JSON, too")
    return parser


def main(arguments=None):
    args = build_parser().parse_args(arguments)
    result = EXPERIMENTS[args.experiment](args)
    print(json.dumps(result))
    if args.out:
        os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
        with open(args.out, "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)
    return 0
