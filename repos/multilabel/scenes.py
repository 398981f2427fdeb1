import csv

import numpy as np


def load(path):
    """Names of the labels, features (floats) and labels (0 or 1), a row for each picture."""
    with open(path) as f:
        reader = csv.reader(f)
        head = next(reader)
        rows = list(reader)
    # features are f0, f1, ...; the rest are labels
    first = next(i for i, name in enumerate(head) if i > 0 and not name[1:].isdigit())
    features = np.array([[float(v) for v in row[1:first]] for row in rows])
    labels = np.array([[int(v) for v in row[first:]] for row in rows])
    return head[first:], features, labels


def standardise(train, other):
    mean, scale = train.mean(axis=0), train.std(axis=0) + 1e-9
    return (train - mean) / scale, (other - mean) / scale
