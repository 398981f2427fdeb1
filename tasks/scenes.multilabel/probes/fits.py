"""ML-kNN learns two labels that two groups of points have."""
import sys

import numpy as np
from scipy.sparse import csr_matrix

sys.path.insert(0, ".")
try:
    import tune  # a driver may mend the package itself

    kind = tune.MLkNN
except ImportError:
    from skmultilearn.adapt import MLkNN as kind

rng = np.random.default_rng(2)
labels = (rng.random((40, 2)) < 0.5).astype(int)
points = labels * 6 + rng.normal(size=(40, 2))
model = kind(k=3, s=1.0)
model.fit(csr_matrix(points), csr_matrix(labels))
assert (model.predict(csr_matrix(points)).toarray() == labels).mean() > 0.95
assert model.knn_.n_neighbors == 3
print("reached")
