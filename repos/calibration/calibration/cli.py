"""The command line: ``python -m calibration EXPERIMENT --data NAME ...``."""

import argparse
import json
import os

from .experiments import EXPERIMENTS


def listed(kind):
    """Parser of comma-separated lists."""

    def parse(text):
        return [kind(part) for part in text.split(",")]

    return parse


def build_parser():
    parser = argparse.ArgumentParser(prog="calibration", description="Experiments with the calibration of networks.")
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--data", default="digits", help="digits, cancer, gaussians, documents")
    parser.add_argument("--n", type=int, default=600, help="points, all parts together")
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--depth", type=int, default=2, help="hidden layers")
    parser.add_argument("--width", type=int, default=32, help="units a hidden layer")
    parser.add_argument("--plain-layers", dest="normalise", action="store_false", help="no batch normalisation")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32, help="points a batch, at most")
    parser.add_argument("--rate", type=float, default=0.1, help="first learning rate")
    parser.add_argument("--decay", type=float, default=1e-4, help="weight decay")
    parser.add_argument("--what", default="depth", help="vary: depth, width, normalise or decay")
    parser.add_argument("--values", type=listed(float), default=[1.0, 2.0], help="vary: its values, a list")
    parser.add_argument("--methods", type=listed(str), default=["none", "temperature"])
    parser.add_argument("--columns", type=listed(str), default=["error", "nll", "ece"])
    parser.add_argument("--bins", type=int, default=5, help="diagram: bins shown")
    parser.add_argument("--group", default="networks", help="of small cases: networks, binning, fits")
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
