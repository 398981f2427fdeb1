"""Measures of explanations and of users' verdicts."""

import itertools

import numpy as np


def agreement(truth, claims):
    """How well claims (a mask) find the true cases: ``precision``, ``recall``, ``f1`` and ``kappa``.

    Precision is 0 without claims, recall without true cases, and F1 without either. Kappa is (observed - chance) /
    (1 - chance), where chance is the agreement of independent masks with the same shares, and 0 if chance is 1.
    """
    hits = float(np.count_nonzero(np.logical_and(truth, claims)))
    positive, claimed = float(np.count_nonzero(truth)), float(np.count_nonzero(claims))
    size = float(len(truth))
    observed = float(np.mean(np.equal(truth, claims)))
    chance = (positive * claimed + (size - positive) * (size - claimed)) / size**2
    return {
        "precision": hits / max(claimed, 1.0),
        "recall": hits / max(positive, 1.0),
        "f1": 2.0 * hits / max(positive + claimed, 1.0),
        "kappa": (observed - chance) / (1.0 - chance) if chance < 1.0 else 0.0,
    }


def stability(explanations, n_features):
    """How much repeated explanations of one prediction agree: overlap and spread.

    Overlap is the mean over all pairs of common features over features of either. Spread is the mean, over the features
    that occur in at least two explanations, of the standard deviation (divisor count minus 1) of their weights in
    those, over the mean absolute weight in those.
    """
    overlaps = []
    for first, second in itertools.combinations(explanations, 2):
        common = np.intersect1d(first.features, second.features)
        overlaps.append(len(common) / len(np.union1d(first.features, second.features)))
    spreads = []
    for feature in range(n_features):
        weights = np.concatenate([explanation.weights[explanation.among(feature)] for explanation in explanations])
        if len(weights) >= 2:
            spreads.append(np.std(weights, ddof=1) / np.mean(np.abs(weights)))
    return float(np.mean(overlaps)), float(np.mean(spreads))
