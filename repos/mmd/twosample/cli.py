"""The command line: ``python -m twosample EXPERIMENT --problem NAME ...``."""

import argparse
import json
import os

from .baselines import BASELINES
from .experiments import EXPERIMENTS
from .nulls import NULLS
from .synthetic import PROBLEMS


def numbers(kind):
    """Parser of comma-separated lists."""

    def parse(text):
        return [kind(part) for part in text.split(",")]

    return parse


def build_parser():
    parser = argparse.ArgumentParser(prog="twosample", description="Experiments with kernel two-sample tests.")
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--problem", default="means", choices=sorted(PROBLEMS))
    parser.add_argument("--data", type=numbers(str), default=["cancer"], help="for matching: iris, wine, cancer")
    parser.add_argument("--size", type=int, default=100, help="points of each sample")
    parser.add_argument("--share", type=float, default=1.0, help="part of the second sample that is kept")
    parser.add_argument("--dimensions", type=numbers(int), default=[2])
    parser.add_argument("--effects", type=numbers(float), default=[1.0], help="sizes of the difference")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2012)
    parser.add_argument("--level", type=float, default=0.05)
    parser.add_argument("--methods", type=numbers(str), default=["permutation"], help=", ".join([*NULLS, *BASELINES]))
    parser.add_argument("--columns", type=numbers(str), default=["rate", "statistic", "threshold"])
    parser.add_argument("--kernel", default="gaussian", choices=["gaussian", "laplace"])
    parser.add_argument("--bandwidth", type=float, help="of the kernel, otherwise by the median heuristic")
    parser.add_argument("--limit", type=int, default=100, help="points of a sample that the median heuristic looks at")
    parser.add_argument("--length", type=int, default=20, help="letters of a string")
    parser.add_argument("--letters", type=int, default=3, help="letters of a substring")
    parser.add_argument("--block", type=int, default=20, help="points of a block")
    parser.add_argument("--pieces", type=int, default=10, help="cuts of a stream")
    parser.add_argument("--attributes", type=int, default=10, help="attributes to match")
    parser.add_argument("--features", type=numbers(int), default=[10, 100])
    parser.add_argument("--group", default="draws", help="of small cases: draws, estimates, tests")
    parser.add_argument("--out", help="write the result here as JSON, too")
    parser.add_argument("--plain", action="store_true", help="print `name: value` lines, not JSON")
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
