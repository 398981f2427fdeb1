"""Writes data/split.json: so many reports of each county to train on, then some to watch; the rest are for the test."""
import argparse
import json
import random

import networkx as nx


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-county", type=int, default=10)
    parser.add_argument("--watch", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="data/split.json")
    args = parser.parse_args()

    graph = nx.read_edgelist("data/reports.edgelist")
    with open("data/reports.json") as f:
        reports = json.load(f)
    names = sorted(name for name in reports if name in graph)
    random.Random(args.seed).shuffle(names)
    train, rest, had = [], [], {}
    for name in names:
        county = reports[name]["county"]
        had[county] = had.get(county, 0) + 1
        (train if had[county] <= args.per_county else rest).append(name)
    split = {"train": train, "watch": rest[: args.watch], "test": rest[args.watch :]}
    with open(args.out, "w") as f:
        json.dump(split, f)
    print("split: %s" % ", ".join("%d %s" % (len(split[part]), part) for part in split))


if __name__ == "__main__":
    main()
