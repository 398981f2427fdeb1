"""The network as the program reads it."""
import sys

import numpy as np

sys.path.insert(0, ".")
from gnn.graph import read

names, adjacency, words, labels = read("data/reports.edgelist", "data/reports.json")
assert len(names) == 900 and names[0] == "r000" and words.shape == (900, 240)
assert adjacency.shape == (900, 900) and adjacency.nnz == 4066
assert abs(float(adjacency.sum()) - 881.242049) < 1e-4
assert np.bincount(labels).tolist() == [169, 184, 186, 177, 184]
print("reached")
