import sys

sys.path.insert(0, ".")
import settings

assert (settings.SEED, settings.TREES) == (7, 200)
assert (settings.DEPTH, settings.ROUNDS, settings.FOLDS) == (5, 100, 5)
print("reached")
