"""Submodular pick: a few instances whose explanations together show what a classifier does."""

import numpy as np


def coverage(table, chosen):
    """Share of the importance of all features that belongs to features in the explanations of the chosen instances."""
    weights = np.sqrt(np.sum(table, axis=0))
    return float(np.dot(np.any(table[chosen] > 0.0, axis=0), weights) / np.sum(weights))


def submodular_pick(table, budget):
    """Pick instances greedily so that the importance of the features that their explanations show is large.

    ``table`` holds the absolute weights of explanations, shape (instances, features); the importance of a feature is
    the root of the sum of its absolute weights. A step adds the instance whose
    explanation adds the most importance of features not yet shown (lowest index among those less than 1e-9 apart). It
    ends at ``budget`` instances, or when nothing more can be shown: then the pick is filled up with the instances with
    the largest sums of weights that are not in it. Returns their numbers in the order of picking.
    """
    weights = np.sqrt(np.sum(table, axis=0))
    shows = np.greater(table, 0.0)
    shown = np.zeros(len(weights), dtype=bool)
    picked = []
    while len(picked) < min(budget, len(table)):
        gains = np.dot(np.logical_and(shows, ~shown), weights)
        if np.max(gains) < 1e-9:
            order = np.argsort(-np.sum(table, axis=1), kind="stable")
            others = [int(row) for row in order if row not in picked]
            picked.extend(others[: budget - len(picked)])
            break
        picked.append(int(np.argmax(gains > np.max(gains) - 1e-9)))
        shown = np.logical_or(shown, shows[picked[-1]])
    return picked
