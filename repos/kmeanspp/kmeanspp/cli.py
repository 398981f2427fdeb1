"""The command line: ``python -m kmeanspp EXPERIMENT --data NAME ...``."""

import argparse
import json
import os

from .experiments import EXPERIMENTS
from .seeding import SEEDINGS


def numbers(kind):
    """Parser of comma-separated lists."""

    def parse(text):
        return [kind(part) for part in text.split(",")]

    return parse


def build_parser():
    parser = argparse.ArgumentParser(prog="kmeanspp", description="Experiments with k-means++ seeding.")
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--data", default="norm10", help="norm10, norm25, wide, cloud, intrusion, iris, wine, cancer, digits")
    parser.add_argument("--n", type=int, default=1000, help="points, for synthetic data")
    parser.add_argument("--k", type=numbers(int), default=[10], help="clusters, a list")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2007)
    parser.add_argument("--methods", type=numbers(str), default=["random", "kmeans++"], help=", ".join(SEEDINGS))
    parser.add_argument("--columns", type=numbers(str), default=["mean", "min", "iterations"])
    parser.add_argument("--exponents", type=numbers(float), default=[1.0, 2.0, 4.0])
    parser.add_argument("--tolerances", type=numbers(float), default=[0.0])
    parser.add_argument("--iterations", type=int, default=300, help="cap on Lloyd's iterations, for stopping")
    parser.add_argument("--batches", type=int, default=60, help="mini-batches")
    parser.add_argument("--swaps", type=int, default=20, help="exchanges tried by the local search")
    parser.add_argument("--group", default="seeds", help="of small cases: seeds, iterations, measures")
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
