"""gplearn finds a product, with the driver's own way of building the search where it still exists."""
import contextlib
import io
import sys

import numpy as np

sys.path.insert(0, ".")
try:
    from symreg.search import build

    search = dict(population=300, generations=5, tournament=20, parsimony=0.001, functions=["add", "mul"], seed=0)
    model = build(search, 1, ["a", "b"])
except ImportError:
    from gplearn.genetic import SymbolicRegressor

    model = SymbolicRegressor(population_size=300, generations=5, function_set=("add", "mul"), random_state=0)
x = np.random.default_rng(0).uniform(0, 2, (60, 2))
with contextlib.redirect_stdout(io.StringIO()):
    model.fit(x, x[:, 0] * x[:, 1])
assert np.allclose(model.predict(x), x[:, 0] * x[:, 1], atol=1e-6)
print("reached")
