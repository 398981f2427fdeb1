"""Parzen windows: a kernel density classifier whose gradient explains other classifiers."""

import numpy as np

from .explanation import Explanation


def squared_distances(rows, columns):
    """Squared Euclidean distances of all pairs, shape (number of rows, number of columns)."""
    norms = np.sum(rows**2, axis=1)[:, np.newaxis] + np.sum(columns**2, axis=1)
    return np.maximum(norms - 2.0 * rows @ columns.T, 0.0)


class ParzenWindows:
    """A smooth stand-in for a classifier: the Gaussian-weighted mean of its decisions on known cases."""

    def fit(self, features, decisions, factors=(0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0)):
        """Keep the cases, and choose the width by leaving each of them out.

        Widths to try are the ``factors`` times the root of the median squared distance over all pairs of different
        cases. The estimate for a case is the mean of the other cases' decisions (0 or 1) with weights
        exp(-distance^2 / (2 width^2)), cut to 0.001 to 0.999. The width with the smallest mean log loss is taken (the
        first on ties); ``loss`` is its loss.
        """
        self.features, self.decisions = features, np.asarray(decisions, dtype=float)
        squares = squared_distances(features, features)
        middle = np.median(squares[np.triu_indices(len(squares), 1)])
        np.fill_diagonal(squares, np.inf)
        closest = np.min(squares, axis=1, keepdims=True)
        losses = []
        for factor in factors:
            windows = np.exp((closest - squares) / (2.0 * factor**2 * middle))
            estimates = np.clip(windows @ self.decisions / np.sum(windows, axis=1), 1e-3, 1.0 - 1e-3)
            likelihoods = np.where(self.decisions > 0.0, estimates, 1.0 - estimates)
            losses.append(-np.mean(np.log(likelihoods)))
        best = int(np.argmin(losses))
        self.width, self.loss = float(factors[best] * np.sqrt(middle)), float(losses[best])
        return self

    def explain(self, instance, n_features):
        """The present features along which the estimate changes most, with their contributions to it.

        The estimate is p = sum of w_j y_j, with weights w_j of the kept cases that add up to 1; its gradient is
        sum of w_j (y_j - p) (x_j - x) / width^2. Of the features that are not 0 in the instance, those with the largest
        absolute entries of the gradient are taken (lowest index on ties), in falling order. A contribution is the entry
        times the feature's value.
        """
        squares = squared_distances(instance[np.newaxis], self.features)[0]
        windows = np.exp((np.min(squares) - squares) / (2.0 * self.width**2))
        windows = np.divide(windows, np.sum(windows))
        estimate = float(np.dot(windows, self.decisions))
        pulls = np.multiply(windows, self.decisions - estimate)
        gradient = np.dot(pulls, self.features - instance) / self.width**2
        present = np.flatnonzero(instance)
        order = np.argsort(-np.abs(gradient[present]), kind="stable")[:n_features]
        chosen = np.take(present, order)
        contributions = np.multiply(gradient[chosen], instance[chosen])
        return Explanation(chosen, contributions, estimate, estimate)
