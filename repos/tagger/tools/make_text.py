"""Writes data/train.conll and data/test.conll: columns number, word, lemma, tag. Endings and word order tell the tag."""
import random

ENDINGS = {
    "NOUN": ["ar", "ol", "um", "isk"],
    "VERB": ["en", "et", "isk", "ade"],
    "ADJ": ["ig", "sam", "ol", "ade"],
    "ADV": ["vis", "ligen", "et"],
}
CLOSED = {"DET": ["ta", "en", "dol"], "PREP": ["po", "vid", "ta"], "CONJ": ["och", "mo"]}
ORDERS = [
    ["DET", "NOUN", "VERB", "DET", "ADJ", "NOUN"],
    ["DET", "ADJ", "NOUN", "VERB", "ADV"],
    ["NOUN", "VERB", "PREP", "DET", "NOUN", "CONJ", "NOUN", "VERB"],
    ["ADV", "VERB", "DET", "NOUN", "PREP", "NOUN"],
    ["DET", "NOUN", "CONJ", "DET", "NOUN", "VERB", "ADJ"],
]
LETTERS = ["b", "br", "d", "f", "gl", "h", "k", "l", "m", "n", "p", "r", "s", "sk", "t", "v"]


def stem(rng):
    return "".join(rng.choice(LETTERS) + rng.choice("aeiouy") for _ in range(rng.choice([1, 2, 2]))) + rng.choice("bdklmnrst")


def word(rng, tag):
    if tag in CLOSED:
        form = rng.choice(CLOSED[tag])
        return form, form
    base = stem(rng)
    if rng.random() < 0.15:
        return base, base
    return base + rng.choice(ENDINGS[tag]), base


def sentence(rng):
    order = list(rng.choice(ORDERS))
    if rng.random() < 0.3:
        order.insert(rng.randrange(len(order)), rng.choice(["ADV", "ADJ"]))
    return [(*word(rng, tag), tag) for tag in order]


def main():
    rng = random.Random(404)
    for name, count in (("train", 520), ("test", 200)):
        with open("data/%s.conll" % name, "w") as f:
            for _ in range(count):
                for number, (form, lemma, tag) in enumerate(sentence(rng)):
                    f.write("%d\t%s\t%s\t%s\n" % (number + 1, form, lemma, tag))
                f.write("\n")


if __name__ == "__main__":
    main()
