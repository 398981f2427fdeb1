"""Reads sentences: a token on each line, columns apart by a tab, an empty line after each sentence."""

WORD = 0
TAG = 1


def read(path):
    """Sentences as lists of (word, tag)."""
    sentences, current = [], []
    with open(path) as f:
        for line in f:
            line = line.rstrip("\n")
            if not line:
                if current:
                    sentences.append(current)
                current = []
                continue
            columns = line.split("\t")
            current.append((columns[WORD], columns[TAG]))
    if current:
        sentences.append(current)
    return sentences


def tags(sentences):
    return [[tag for _, tag in sentence] for sentence in sentences]
