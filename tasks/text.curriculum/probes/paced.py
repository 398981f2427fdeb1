"""Loads the training script as a module, whether its imports are relative or not."""
import importlib
import sys

sys.path[:0] = [".", "curriculum"]
try:
    script = importlib.import_module("train")
except ImportError:
    script = importlib.import_module("curriculum.train")
from types import SimpleNamespace

import numpy as np

used = []
kind = script.Pacing


class Recorded(kind):
    def share(self, progress):
        used.append((progress, super().share(progress)))
        return used[-1][1]


script.Pacing = Recorded
options = dict(pacing="root", start=0.1, epochs=1, batch=24, rate=0.05, seed=5)
script.train(SimpleNamespace(**options))
progress, share = np.array(used).T
assert len(used) > 10
assert np.allclose(share, np.minimum(1, np.sqrt(0.01 + 0.99 * progress / 0.7)))
print("reached")
