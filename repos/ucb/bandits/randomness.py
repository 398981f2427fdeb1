"""Random number generators, named by integers."""

import numpy as np


def generator(seed, *key):
    """An independent generator for one purpose."""
    return np.random.default_rng([seed, *key])
