"""Boruta tells two telling columns from six that are noise, as the driver would call it."""
import sys

import numpy as np

sys.path.insert(0, ".")
import boruta
from sklearn.ensemble import RandomForestClassifier

try:
    import select_features  # a driver may mend numpy's names itself
except Exception:
    pass

rng = np.random.default_rng(3)
readings = rng.normal(size=(160, 8))
target = (readings[:, 1] - readings[:, 6] > 0).astype(int)
forest = RandomForestClassifier(max_depth=4, n_jobs=1, random_state=0)
selector = boruta.BorutaPy(forest, n_estimators=30, max_iter=25, random_state=0, verbose=0).fit(readings, target)
assert {1, 6} <= set(np.flatnonzero(selector.support_)), selector.support_
assert selector.support_.sum() <= 4
print("reached")
