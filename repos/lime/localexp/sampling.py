"""Random generators and the division of data into parts."""

from collections import namedtuple

import numpy as np

#: features (n, d); labels (n,), classes 0, 1, ...
Dataset = namedtuple("Dataset", "features labels")


def generator(seed, *key):
    """An independent generator for one purpose, named by integers."""
    return np.random.default_rng([seed, *key])


def stratified_split(data, shares, rng):
    """Divide a data set into parts in which the classes have the same shares.

    ``shares`` are whole numbers, relative to their sum. Classes are visited in increasing order and their members
    permuted. Member r = 0, 1, ... of the m in the permutation belongs to the part on whose stretch of the cumulative
    shares, from 0 to 1, the number (r + 1/2) / m lies; a bound belongs to the part above it. Parts keep the order of
    the data.
    """
    bounds = np.divide(np.cumsum(shares), np.sum(shares))
    part = np.empty(len(data.labels), dtype=int)
    for label in np.unique(data.labels):
        members = rng.permutation(np.flatnonzero(data.labels == label))
        places = np.divide(np.arange(len(members)) + 0.5, len(members))
        part[members] = np.searchsorted(bounds, places, side="right")
    chosen = [np.flatnonzero(part == number) for number in range(len(shares))]
    return [Dataset(data.features[rows], data.labels[rows]) for rows in chosen]
