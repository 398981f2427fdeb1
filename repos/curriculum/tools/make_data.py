"""Writes train, dev and test: invented notices of six kinds, some of them hard to tell apart."""
import os
import random

KINDS = ["weather", "harbour", "market", "council", "sports", "theatre"]
SYLLABLES = ["ba", "de", "fo", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "ta", "ve", "wi", "zo", "sha", "tre", "lin"]


def vocabulary(rng, count):
    words = set()
    while len(words) < count:
        words.add("".join(rng.choice(SYLLABLES) for _ in range(rng.choice([2, 2, 3]))))
    return sorted(words)


def notice(rng, words, topics, kind, share):
    other = rng.randrange(len(KINDS))
    text = []
    for _ in range(rng.randint(6, 16)):
        draw = rng.random()
        if draw < share:
            text.append(rng.choice(topics[kind]))
        elif draw < share + 0.12:
            text.append(rng.choice(topics[other]))
        else:
            text.append(rng.choice(words))
    return " ".join(text)


def main():
    rng = random.Random(77)
    words = vocabulary(rng, 900)
    topics = [rng.sample(words, 60) for _ in KINDS]
    os.makedirs("data", exist_ok=True)
    for split, count, shares in (("train", 1800, [0.45, 0.25, 0.15]), ("dev", 500, [0.4, 0.25]), ("test", 500, [0.3, 0.2])):
        with open("data/%s.tsv" % split, "w") as f:
            for _ in range(count):
                kind = rng.randrange(len(KINDS))
                label = rng.randrange(len(KINDS)) if split == "train" and rng.random() < 0.1 else kind
                f.write("%s\t%s\n" % (KINDS[label], notice(rng, words, topics, kind, rng.choice(shares))))


if __name__ == "__main__":
    main()
