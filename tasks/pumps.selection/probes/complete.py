import sys

import numpy as np

sys.path.insert(0, ".")
import pumps

readings, names, worn = pumps.load("data/pumps.csv")
assert np.shape(readings) == (600, 24) and len(names) == 24, np.shape(readings)
assert np.isfinite(readings).all() and int(np.sum(worn)) == 284
print("reached")
