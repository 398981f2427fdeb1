"""Writes data/reports.edgelist and data/reports.json: a network in which reports mostly cite their own county."""
import json
import random

COUNTIES = ["alder", "birk", "corran", "dunmoor", "esk"]


def main():
    rng = random.Random(55)
    count, vocabulary = 900, 240
    county = [rng.randrange(len(COUNTIES)) for _ in range(count)]
    liked = [rng.sample(range(vocabulary), 40) for _ in COUNTIES]
    edges = set()
    for i in range(count):
        for _ in range(rng.choice([1, 1, 2, 3])):
            own = rng.random() < 0.72
            others = [j for j in range(count) if j != i and (county[j] == county[i]) == own]
            j = rng.choice(others)
            edges.add((min(i, j), max(i, j)))
    with open("data/reports.edgelist", "w") as f:
        for i, j in sorted(edges):
            f.write("r%03d r%03d\n" % (i, j))
    reports = {}
    for i in range(count):
        words = set()
        while len(words) < 12:
            words.add(rng.choice(liked[county[i]]) if rng.random() < 0.22 else rng.randrange(vocabulary))
        reports["r%03d" % i] = {"words": sorted(words), "county": COUNTIES[county[i]]}
    with open("data/reports.json", "w") as f:
        json.dump(reports, f)


if __name__ == "__main__":
    main()
