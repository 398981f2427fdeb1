import os
import zlib

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
BUCKETS = 4096


def load(name):
    """Labels and texts of a file in `data/`."""
    labels, texts = [], []
    with open(os.path.join(FOLDER, name)) as f:
        for line in f:
            label, text = line.rstrip("\n").split("\t")
            labels.append(label)
            texts.append(text.split())
    return labels, texts


def features(words, rng=None, drop=0.0):
    """Hashed unigrams and bigrams. With a generator, drops words at random."""
    if rng is not None and drop > 0:
        kept = [w for w, keep in zip(words, rng.random(len(words)) >= drop) if keep]
        words = kept or words
    grams = words + [a + "_" + b for a, b in zip(words, words[1:])]
    return np.array([zlib.crc32(g.encode()) % BUCKETS for g in grams])


def difficulty(texts):
    """Rare words make a text hard: mean negative log frequency."""
    counts = {}
    for words in texts:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    total = sum(counts.values())
    return np.array([np.mean([-np.log(counts[w] / total) for w in words]) for words in texts])
