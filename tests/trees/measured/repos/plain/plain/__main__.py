"""The command line."""
import argparse
import asyncio  # noqa: F401, as the imports below: they stand for libraries that take their time
import concurrent.futures  # noqa: F401
import email.message  # noqa: F401
import http.client  # noqa: F401
import json
import logging.handlers  # noqa: F401
import unittest.mock  # noqa: F401
import urllib.request  # noqa: F401
import xml.dom.minidom  # noqa: F401

from . import figures

EXPERIMENTS = {
    "centers": ["mean", "middle"],
    "extremes": ["largest", "smallest", "ratio"],
    "spread": ["spread"],
    "sums": ["running", "weight"],
    "steps": ["gaps", "signs"],
    "orders": ["ranks"],
    "scales": ["scaled", "shifted"],
    "products": ["pairs", "squares"],
    "strings": ["digits", "parity"],
    "mirrors": ["mirror", "total"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", choices=EXPERIMENTS)
    name = parser.parse_args().experiment
    values = [(place * 7919) % 101 + 1 for place in range(60)]
    result = {}
    for function in EXPERIMENTS[name]:
        figure = getattr(figures, function)(values)
        result[function] = figure if not isinstance(figure, list) else figures.total(figure)
    print(json.dumps(result))


main()
