"""The readings as the program loads them: by the settings' own names, in the order of the file."""
import re
import sys

import numpy as np

sys.path.insert(0, ".")
from symreg.readings import load, split

with open("settings.yaml") as f:
    text = f.read()
inputs = [name.strip(" '\"") for name in re.search(r"inputs:\s*\[(.*?)\]", text).group(1).split(",")]
target = re.search(r"target:\s*[\"']?(\w+)", text).group(1)
path = re.search(r"path:\s*[\"']?([\w./-]+)", text).group(1)
x, y = load(path, inputs, target)
assert x.shape == (600, 3) and len(y) == 600
law = 0.5 * x[:, 1] * x[:, 2] * x[:, 0] ** 2 + 0.3 * x[:, 0]
assert 0.03 < np.std(y - law) < 0.07, np.std(y - law)
assert len(split(x, y, 0.75)[2]) == 150
print("reached")
