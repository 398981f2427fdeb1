"""Explanations of single predictions: LIME, and the ways that it is compared with.

A classifier is any function ``predict`` from instances, shape (n, d), to the probabilities of one class, shape (n,).
"""

import numpy as np

from .explanation import Explanation
from .selection import SELECTORS, weighted_ridge


class LocalExplainer:
    """LIME: a sparse linear model of the classifier in the neighbourhood of one instance."""

    def __init__(self, domain, n_features=6, n_samples=200, width=0.25, selection="lasso", penalty=1.0):
        self.domain = domain
        self.n_features = n_features
        self.n_samples = n_samples
        self.width = width
        self.selection = selection
        self.penalty = penalty

    def explain(self, predict, instance, rng):
        """Sample around the instance, weigh by proximity, choose features and fit ridge regression on them.

        A sample weighs exp(-D^2 / width^2), with D its distance to the row of switches that are all on: one minus the
        cosine of the angle between them ("cosine"; 1 for a row of zeros), or the Euclidean distance over the root of
        the number of switches ("euclidean"). Features come in falling order of their absolute weights (lower number
        first on ties). ``local`` is the linear model's value for the instance, where all switches are on.
        """
        parts, switches, samples = self.domain.perturb(instance, self.n_samples, rng)
        targets = predict(samples)
        shares = np.mean(switches, axis=1)
        gaps = 1.0 - np.sqrt(shares) if self.domain.distance == "cosine" else np.sqrt(1.0 - shares)
        weights = np.exp(-np.square(gaps / self.width))
        chosen = np.sort(SELECTORS[self.selection](switches, targets, weights, self.n_features)).astype(int)
        design = np.take(switches, chosen, axis=1)
        intercept, coefficients, score = weighted_ridge(design, targets, weights, self.penalty)
        order = np.argsort(-np.abs(coefficients), kind="stable")
        features, effects = np.take(parts, chosen[order]), np.take(coefficients, order)
        local = intercept + float(np.sum(effects))
        return Explanation(features, effects, local, float(targets[0]), score, intercept)


def greedy_explanation(predict, instance, n_features):
    """Remove the feature that supports the predicted class most, again and again, until the prediction changes.

    The prediction is the class if its probability is above 1/2. Each step sets one of the present features (not 0) to
    0: the one after whose removal the probability moves furthest away from the predicted class (lowest index on ties
    of less than 1e-9). It ends after the step that changes the prediction, after ``n_features`` steps, or when nothing
    is left; a probability of exactly 1/2 ends it, too. A contribution is the probability before the step minus the one
    after it.
    """
    current, remaining = np.array(instance, dtype=float), list(np.flatnonzero(instance))
    first = level = float(predict(current[np.newaxis])[0])
    side = 1.0 if first > 0.5 else -1.0
    removed, effects = [], []
    while remaining and len(removed) < n_features and side * (level - 0.5) > 0.0:
        trials = np.repeat(current[np.newaxis], len(remaining), axis=0)
        np.put_along_axis(trials, np.reshape(remaining, (-1, 1)), 0.0, axis=1)
        support = side * predict(trials)
        best = int(np.argmax(support < np.min(support) + 1e-9))
        effects.append(level - side * float(support[best]))
        level -= effects[-1]
        removed.append(remaining.pop(best))
        current[removed[-1]] = 0.0
    return Explanation(np.array(removed, dtype=int), np.array(effects), first, first)
