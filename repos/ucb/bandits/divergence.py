"""Divergences between reward distributions: what telling them apart costs at least."""

import numpy as np

from .arms import Gaussian


def bernoulli_divergence(p, q):
    """Kullback-Leibler divergence of Bernoulli variables with means ``p`` and ``q``, elementwise; 0 log 0 is 0."""
    p, q = np.asarray(p, dtype=float), np.clip(q, 1e-15, 1.0 - 1e-15)
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(p > 0.0, p * np.log(p / q), 0.0)
        miss = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    return hit + miss


def bounded_divergence(values, weights, target, halvings=60):
    """Least divergence of a finite distribution on [0, 1] to one on [0, 1] whose mean is at least ``target``.

    By duality this is the largest value, for t in [0, 1 / (1 - target)], of the mean of log(1 - t (X - target)). The
    function is concave in t: the interval is halved, and its lower half kept where the slope in the middle is
    negative. The result is the value in the middle of the last interval.
    """
    distance = np.subtract(values, target)
    low, high = 0.0, 1.0 / (1.0 - target)
    for _ in range(halvings):
        middle = (low + high) / 2.0
        slope = -np.sum(weights * np.divide(distance, 1.0 - middle * distance))
        if slope < 0.0:
            high = middle
        else:
            low = middle
    return float(np.sum(weights * np.log1p(-(low + high) / 2.0 * distance)))


def arm_divergence(arm, target):
    """Least divergence of a machine to one that would be the best: of its family, with a mean of ``target``."""
    if isinstance(arm, Gaussian):
        return float(0.5 * np.log1p((target - arm.mean) ** 2 / arm.variance))
    return bounded_divergence(*arm.atoms(), target)
