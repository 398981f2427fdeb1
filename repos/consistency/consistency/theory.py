"""The regularisation framework, and choosing parameters by leaving labels out."""

import numpy as np

from .graph import Points, normalise
from .labels import label_matrix


def energy_terms(scores, weights, partial, alpha):
    """The two terms of the cost that the method minimises, smoothness and fit.

    Smoothness is 1/2 sum over all ordered pairs (i, j) of w_ij ||F_i / sqrt(d_i) - F_j / sqrt(d_j)||^2, fit is
    mu / 2 times the sum of ||F_i - Y_i||^2, with mu = 1 / alpha - 1. All degrees are positive.
    """
    degrees = np.sum(weights, axis=1)
    scaled = np.divide(scores, np.sqrt(degrees)[:, np.newaxis])
    norms = np.sum(np.square(scaled), axis=1)
    squares = np.add.outer(norms, norms) - 2.0 * np.dot(scaled, scaled.T)
    smoothness = 0.5 * float(np.sum(np.multiply(weights, squares)))
    mu = 1.0 / alpha - 1.0
    fit = 0.5 * mu * float(np.sum(np.square(scores - label_matrix(partial))))
    return smoothness, fit


def leave_one_out(weights, partial, alpha):
    """How well each labelled point is predicted when its own label is taken away.

    Exact and without solving again: with K = (1 - alpha) (I - alpha S)^-1, taking away the label of i lowers its
    own score for its class by K_ii. The loss is the mean, over the labelled points, of -log of the share that the
    point's class has in the sum of its scores, where shares below 1e-6 count as 1e-6. Returned before it is the error,
    the share of the labelled points for which another class has a larger score.
    """
    known = np.flatnonzero(partial >= 0)
    targets = label_matrix(partial)
    system = np.eye(len(weights)) - alpha * normalise(weights, "symmetric")
    influence = (1.0 - alpha) * np.linalg.inv(system)[np.ix_(known, known)]
    np.fill_diagonal(influence, 0.0)
    scores = np.dot(influence, targets[known])
    own = np.sum(np.multiply(scores, targets[known]), axis=1)
    error = np.mean(np.less(own, np.max(scores, axis=1)))
    shares = np.maximum(own / np.sum(scores, axis=1), 1e-6)
    return float(error), float(-np.mean(np.log(shares)))


def choose_parameters(features, partial, make_builder, sigmas, alphas):
    """The width and alpha of the smallest leave-one-out loss, among all pairs.

    Pairs are tried with sigma in the outer loop; the first one of the smallest loss wins. A dictionary: ``sigma`` and
    ``alpha`` chosen, their ``loss`` and ``error``, ``spread`` (the largest loss of all pairs minus the smallest), and
    ``points``, the points with the chosen graph.
    """
    best, losses = None, []
    for sigma in sigmas:
        points = Points(features, make_builder(sigma))
        for alpha in alphas:
            error, loss = leave_one_out(points.weights, partial, alpha)
            losses.append(loss)
            if best is None or loss < best["loss"]:
                best = {"sigma": sigma, "alpha": alpha, "loss": loss, "error": error, "points": points}
    best["spread"] = float(np.max(losses) - np.min(losses))
    return best
