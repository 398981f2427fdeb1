"""Measures of predictions, of scores, and of several trials."""

from math import comb

import numpy as np


def error_rate(truth, predicted, partial):
    """Share of the points without label that are predicted wrongly."""
    hidden = partial < 0
    return float(np.mean(truth[hidden] != predicted[hidden]))


def class_report(truth, predicted, partial):
    """Measures that count every class the same, over the points without label.

    A dictionary: ``balanced``, one minus the mean recall; ``f1``, the mean over classes of 2 hits / (true members +
    predicted members), 0 for a class without any; ``kappa``, (agreement - chance) / (1 - chance), where chance is
    the agreement of independent labels with the same class sizes
    """
    hidden = np.less(partial, 0)
    n_classes = int(max(np.max(truth), np.max(predicted))) + 1
    table = np.zeros((n_classes, n_classes))
    np.add.at(table, (truth[hidden], predicted[hidden]), 1.0)
    hits, members, claims = np.diag(table), np.sum(table, axis=1), np.sum(table, axis=0)
    recall = hits / np.maximum(members, 1.0)
    f1 = 2.0 * hits / np.maximum(members + claims, 1.0)
    total = np.sum(table)
    chance = float(np.dot(members, claims)) / total**2
    agreement = float(np.sum(hits)) / total
    return {
        "balanced": float(1.0 - np.mean(recall)),
        "f1": float(np.mean(f1)),
        "kappa": (agreement - chance) / (1.0 - chance),
    }


def confidence(scores, partial):
    """Mean, over unlabelled points, of (largest - second largest score) / sum of absolute scores; 0 for rows of zeros."""
    hidden = np.compress(partial < 0, scores, axis=0)
    ordered = np.sort(hidden, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    totals = np.sum(np.abs(hidden), axis=1)
    return float(np.mean(np.divide(margins, totals, out=np.zeros_like(margins), where=totals > 0)))


def summarise_curve(counts, errors):
    """A learning curve of several trials; ``errors`` has a row a trial and a column for each of the ``counts``.

    A dictionary: ``mean`` and ``deviation`` (standard error of the mean: standard deviation with n - 1, over sqrt of
    n), one number a count, and ``area``: the area under the mean curve over the logarithm of the count, by the
    trapezoidal rule, divided by the range of the logarithm (the mean itself for a single count)
    """
    errors = np.asarray(errors, dtype=float)
    mean = np.mean(errors, axis=0)
    deviation = np.std(errors, axis=0, ddof=1) / np.sqrt(len(errors))
    positions = np.log(np.asarray(counts, dtype=float))
    gaps = np.diff(positions)
    middles = (mean[1:] + mean[:-1]) / 2.0
    area = np.dot(gaps, middles) / np.sum(gaps) if len(gaps) > 0 else mean[0]
    return {"mean": mean.tolist(), "deviation": deviation.tolist(), "area": float(area)}


def paired_comparison(first, second):
    """Compare the errors of two methods in the same trials.

    A dictionary: ``difference``, mean of first minus second; ``t``, the difference over its standard error (standard
    deviation with n - 1); ``wins``, share of the trials that the first one wins, ties counting one half; ``p``, the
    two-sided exact sign test, ties left out: twice the probability of at most as many heads as the rarer outcome
    has in as many throws of a fair coin, at most 1
    """
    gaps = np.subtract(first, second)
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    wins, losses = int(np.sum(gaps < 0)), int(np.sum(gaps > 0))
    throws, rarer = wins + losses, min(wins, losses)
    tail = sum(comb(throws, heads) for heads in range(rarer + 1)) / 2.0**throws
    return {
        "difference": float(np.mean(gaps)),
        "t": float(np.mean(gaps) / error),
        "wins": (wins + 0.5 * (len(gaps) - throws)) / len(gaps),
        "p": min(1.0, 2.0 * tail),
    }
