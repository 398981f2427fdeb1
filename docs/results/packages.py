#!/usr/bin/env python3
"""Prints the tables of docs/factory.md about a list of packages.

    docs/results/packages.py tasks/factory.json
"""

import json
import statistics
import sys
from collections import Counter


def row(entry):
    funnel, minutes = entry["funnel"], entry.get("stages", {})
    noticed = f"{funnel['mutants'][1]} of {funnel['mutants'][0]}"
    combinations = f"{funnel['combinations'][1]} of {funnel['combinations'][0]}"
    times = ", ".join(f"{value:.1f}" for value in (minutes.get("gold", 0), minutes.get("functions", 0), entry["minutes"]))
    cells = [f"{entry['name']} {entry['version']}", *(funnel[key] for key in ("tests", "functions", "entered", "candidates", "tried", "kept"))]
    return "| " + " | ".join(map(str, [*cells, noticed, combinations, times])) + " |"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    given = [entry for entry in packages if entry.get("measured")]
    print("| package | tests | functions | entered | candidates | measured | kept | mutants noticed | combinations | minutes: gold, functions, all |")
    print("|" + "---|" * 10)
    for entry in sorted(given, key=lambda entry: -entry["funnel"]["kept"]):
        print(row(entry))
    kept = [entry["funnel"]["kept"] for entry in given]
    reasons = Counter()
    for entry in packages:
        for reason, functions in entry["funnel"]["dropped"].items():
            reasons[reason] += len(functions)
    print()
    print(f"{len(given)} of {len(packages)} packages give tasks; {sum(kept)} functions, {statistics.median(kept)} in the median")
    print("Refused:")
    for entry in packages:
        if not entry.get("measured"):
            print(f"- {entry['package']}: {entry.get('refused')} ({entry['minutes']:.1f} minutes)")
    print("Dropped:", ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common()))


main()
