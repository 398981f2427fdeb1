import os
from collections import Counter


def read(folder, documents=0):
    """Sentences as lists of words. `documents`: how many, in the order of their names; 0 for all."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".txt"))
    sentences = []
    for name in names:
        with open(os.path.join(folder, name)) as f:
            sentences += [line.split() for line in f]
    print("%d documents, %d sentences" % (len(names), len(sentences)), flush=True)
    return sentences


def vocabulary(sentences, min_count):
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted((w for w, c in counts.items() if c >= min_count), key=lambda w: (-counts[w], w))
    return words, [counts[w] for w in words]


def pairs(sentences, index, window):
    """(center, context) for each word and its neighbours."""
    found = []
    for sentence in sentences:
        ids = [index[w] for w in sentence if w in index]
        for i, center in enumerate(ids):
            for j in range(max(0, i - window), min(len(ids), i + window + 1)):
                if j != i:
                    found.append((center, ids[j]))
    return found
