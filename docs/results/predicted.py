#!/usr/bin/env python3
"""What the `mutant` baseline must measure: `predicted.py SUITE RUNS/NAME` prints predicted and measured percent for each P and n.

An attempt passes with the product over its functions of 1 - P x (killed / not equivalent), from the papers' evidence.json.
"""

import collections
import json
import math
import pathlib
import sys
import tomllib


def main():
    papers, run = pathlib.Path(sys.argv[1]) / "papers", pathlib.Path(sys.argv[2])
    groups = collections.defaultdict(list)
    for line in (run / "attempts.jsonl").read_text().splitlines():
        attempt = json.loads(line)
        chance = float(attempt["agent"].removeprefix("mutant-"))
        paper = papers / attempt["paper"]
        evidence = json.loads((paper / "evidence.json").read_text())["functions"]
        names = [function["at"] for function in tomllib.loads((paper / "paper.toml").read_text())["function"]]
        expected = 1.0
        for number in attempt["sample"].rpartition("_")[2].split(","):
            of = evidence[names[int(number)]]
            expected *= 1 - chance * of["killed"] / (of["mutants"] - of["equivalent"])
        groups[chance, attempt["n"]].append((expected, attempt["pass"]))
    print("   P  n  attempts  predicted  measured  standard errors off")
    for (chance, n), attempts in sorted(groups.items()):
        expected, passed = (sum(values) for values in zip(*attempts))
        error = math.sqrt(sum(p * (1 - p) for p, _ in attempts))
        percent = 100 / len(attempts)
        print(f"{chance:4} {n:2} {len(attempts):9} {expected * percent:10.1f} {passed * percent:9.1f} {(passed - expected) / error:20.2f}")


main()
