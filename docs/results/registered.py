#!/usr/bin/env python3
"""The table of registered.md: `registered.py RUNS` prints each hypothesis with its difference, samples and adjusted p."""

import collections
import json
import math
import pathlib
import random
import sys

LOST = {"model_error", "model_denied", "sandbox_lost", "cancelled"}
PERMUTATIONS = 20_000


def samples(run, n):
    """Of each sample of a run at this n, whether its attempts passed."""
    found = collections.defaultdict(list)
    path = run / "attempts.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        attempt = json.loads(line)
        if attempt["n"] == n and attempt["end"] not in LOST:
            found[run.name.split("-")[0] + " " + attempt["sample"]].append(bool(attempt["pass"]))
    return found


def rates(runs, part, n, suites=("primer", "conventions")):
    found = {}
    for suite in suites:
        found |= samples(runs / f"{suite}-{part}", n)
    return {sample: sum(passed) / len(passed) for sample, passed in found.items()}


def mean(values):
    return math.fsum(values) / len(values)


def by_signs(differences):
    """How likely so large a mean is if each difference had either sign."""
    draw, told = random.Random(1), mean(differences)
    as_large = sum(mean([d if draw.random() < 0.5 else -d for d in differences]) >= told - 1e-12 for _ in range(PERMUTATIONS))
    return told, (as_large + 1) / (PERMUTATIONS + 1)


def by_labels(first, second):
    """The same for the difference of two means, if it did not matter which sample is in which."""
    draw, told, pool = random.Random(1), mean(first) - mean(second), first + second
    as_large = 0
    for _ in range(PERMUTATIONS):
        draw.shuffle(pool)
        as_large += mean(pool[: len(first)]) - mean(pool[len(first) :]) >= told - 1e-12
    return told, (as_large + 1) / (PERMUTATIONS + 1)


def paired(first, second):
    return [first[sample] - second[sample] for sample in sorted(first.keys() & second.keys())]


def main():
    runs = pathlib.Path(sys.argv[1])
    fall = {n: rates(runs, "fall", n) for n in (1, 3)}
    text = {n: rates(runs, "text", n) for n in (1, 3)}
    only = ("conventions",)
    of_rules = [d for n in (1, 2, 3) for d in paired(rates(runs, "fall", n, only), rates(runs, "text", n, only))]
    helps = {n: paired(fall[n], text[n]) for n in (1, 3)}
    tests = [
        ("H1", by_labels, (list(fall[1].values()), list(fall[3].values()))),
        ("H2", by_signs, ([float(rate > 0) - rate - 0.1 for rate in fall[1].values()],)),
        ("H3", by_signs, (paired(rates(runs, "dynamic", 1), fall[1]),)),
        ("H4", by_signs, (of_rules,)),
        ("H5", by_labels, (helps[3], helps[1])),
    ]
    told = {name: (*test(*data), [len(part) for part in data]) for name, test, data in tests if all(data)}
    adjusted, most = {}, 0.0
    for place, name in enumerate(sorted(told, key=lambda name: told[name][1])):
        most = max(most, min(1.0, (len(tests) - place) * told[name][1]))
        adjusted[name] = most
    print("| | difference in points | samples | adjusted p | holds |\n|---|---|---|---|---|")
    for name, *_ in tests:
        if name not in told:
            print(f"| {name} | not tested | | | |")
            continue
        difference, _, counts = told[name]
        holds = "yes" if adjusted[name] < 0.05 else "not shown"
        print(f"| {name} | {100 * difference:+.1f} | {' and '.join(map(str, counts))} | {adjusted[name]:.3f} | {holds} |")


if __name__ == "__main__":
    main()
