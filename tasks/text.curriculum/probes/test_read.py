"""Loads the training script as a module, whether its imports are relative or not."""
import importlib
import sys

sys.path[:0] = [".", "curriculum"]
try:
    script = importlib.import_module("train")
except ImportError:
    script = importlib.import_module("curriculum.train")
import contextlib
import io

import numpy as np


class First:
    """Says `council` of every text."""

    def predict(self, bags):
        return np.zeros(len(bags), dtype=int)


measured = {}
for split in ("dev", "test"):
    with open("data/%s.tsv" % split) as f:
        labels = [line.split("\t")[0] for line in f]
    classes = ["council", "harbour", "market", "sports", "theatre", "weather"]
    with contextlib.redirect_stdout(io.StringIO()):
        measured[split] = script.evaluate(First(), classes, split)
    assert abs(measured[split] - labels.count("council") / len(labels)) < 1e-9, (split, measured)
assert measured["dev"] != measured["test"]
print("reached")
