import csv

import numpy as np


def load(path, inputs, target):
    """Inputs as a matrix, target as a vector, in the order of the file."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    x = np.array([[float(row[name]) for name in inputs] for row in rows])
    y = np.array([float(row[target]) for row in rows])
    return x, y


def split(x, y, share):
    cut = int(len(x) * share)
    return x[:cut], y[:cut], x[cut:], y[cut:]
