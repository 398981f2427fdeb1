"""Writes the collection: facets of invented subjects, each document a candidate question with its context."""
import argparse
import os
import random

ONSETS = ["b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v"]
VOWELS = ["a", "e", "i", "o", "u", "ea", "ou"]
CODAS = ["b", "ck", "d", "ft", "g", "ll", "m", "n", "nd", "p", "rt", "sk", "st", "t"]
SUFFIXES = ["", "", "", "s", "ed", "ing", "er", "ers"]


def make_roots(rng, count):
    roots = set()
    while len(roots) < count:
        root = rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
        if rng.random() < 0.5:
            root = rng.choice(ONSETS) + rng.choice(VOWELS) + root
        roots.add(root)
    return sorted(roots)


def inflect(rng, root):
    return root + rng.choice(SUFFIXES)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="corpus")
    parser.add_argument("--documents", type=int, default=7500)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--seed", type=int, default=13)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    roots = make_roots(rng, 2400)
    common = [1.0 / (rank + 3) for rank in range(len(roots))]
    subjects = []
    for _ in range(args.queries):
        words = rng.sample(roots, 14)
        subjects.append(words)

    os.makedirs(args.out, exist_ok=True)
    judged = {}
    with open(os.path.join(args.out, "documents.tsv"), "w") as f:
        f.write("doc_id\ttitle\tbody\n")
        for number in range(args.documents):
            subject = rng.randrange(args.queries)
            share = rng.choice([0.03, 0.06, 0.12, 0.2])
            length = int(rng.lognormvariate(4.1, 0.75)) + 12
            background = rng.choices(roots, weights=common, k=length)
            words = []
            hits = 0
            for word in background:
                if rng.random() < share:
                    word = rng.choice(subjects[subject])
                    hits += 1
                words.append(inflect(rng, word))
            grade = 2 if share >= 0.2 else 1 if share >= 0.12 else 0
            if hits and grade:
                judged.setdefault(subject, {})["D%05d" % number] = grade
            title = " ".join(words[:5])
            f.write("D%05d\t%s\t%s\n" % (number, title, " ".join(words[5:])))

    with open(os.path.join(args.out, "queries.tsv"), "w") as f:
        f.write("query_id\ttext\n")
        for subject, words in enumerate(subjects):
            terms = [inflect(rng, word) for word in rng.sample(words, 4)] + rng.choices(roots[:60], k=2)
            f.write("Q%03d\t%s\n" % (subject, " ".join(terms)))

    with open(os.path.join(args.out, "qrels.txt"), "w") as f:
        for subject in sorted(judged):
            for doc, grade in sorted(judged[subject].items()):
                f.write("Q%03d 0 %s %d\n" % (subject, doc, grade))
    print("wrote %d documents, %d queries to %s" % (args.documents, args.queries, args.out))


if __name__ == "__main__":
    main()
