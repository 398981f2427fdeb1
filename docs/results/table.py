#!/usr/bin/env python3
"""The tables of docs/results.md that count how attempts ended: `table.py RUNS/NAME...` prints a row for each run and n.

Reads attempts.jsonl alone. An attempt counts for the first that fits: it passed; there was no function to splice in, or none
that parses; its function had no code; its experiments gave values, and some were wrong; some experiment gave none.
"""

import collections
import json
import pathlib
import sys

LOST = {"model_error", "model_denied", "sandbox_lost", "cancelled"}
KINDS = ["passed", "wrong values", "crashed", "no code", "no function", "limit"]


def kind(attempt):
    said = attempt.get("end_detail") or ""
    if attempt["pass"]:
        return "passed"
    if "no Python code" in said or "does not parse" in said:
        return "no function"
    if "has no code" in said or "still only raises" in said:
        return "no code"
    if attempt["end"] not in ("answered", "gave_up"):
        return "limit"
    return "crashed" if said or attempt["end"] == "gave_up" else "wrong values"


def main():
    print("| run | n | samples | attempts | " + " | ".join(KINDS) + " | lost | calls | tokens read (cached) | written | minutes waited |")
    print("|---" * (10 + len(KINDS) - 1) + "|")
    for run in map(pathlib.Path, sys.argv[1:]):
        attempts = [json.loads(line) for line in (run / "attempts.jsonl").read_text().splitlines()]
        for n in sorted({attempt["n"] for attempt in attempts}):
            of_n = [attempt for attempt in attempts if attempt["n"] == n]
            ended = [attempt for attempt in of_n if attempt["end"] not in LOST]
            kinds = collections.Counter(map(kind, ended))
            tokens = collections.Counter()
            for attempt in of_n:
                tokens.update(attempt["usage"])
            row = [run.name, n, len({attempt["sample"] for attempt in ended}), len(ended)]
            row += [kinds[name] for name in KINDS] + [len(of_n) - len(ended), sum(attempt["steps"] for attempt in of_n)]
            row += [f"{tokens['input']:,} ({tokens['cached']:,})", f"{tokens['output']:,}"]
            row += [round(sum(attempt["model_seconds"] for attempt in of_n) / 60)]
            print("| " + " | ".join(map(str, row)) + " |")


main()
