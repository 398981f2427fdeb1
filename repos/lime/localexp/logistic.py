"""Logistic regression with few features."""

import numpy as np


def sigmoid(values):
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(values)))


class SparseLogistic:
    """Logistic regression for two classes with an L1 penalty on the weights, not on the offset."""

    def __init__(self, penalty=0.01, tolerance=1e-5, max_iterations=500):
        self.penalty = penalty
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def used_for(self, _instance):
        """The features with a weight, increasing; they are the same for all instances."""
        return np.flatnonzero(self.weights)

    def fit(self, features, labels):
        """Accelerated proximal gradient descent on the mean log loss plus ``penalty`` times the sum of |weights|.

        All parameters start at 0. The step length is 4 n over the largest eigenvalue of the Gram matrix of the features
        with a column of ones. With ages a_0 = 1 and a_(t+1) = (1 + sqrt(1 + 4 a_t^2)) / 2, the next probe is the new
        point plus (a_t - 1) / a_(t+1) times its difference to the one before. Ends when no parameter has moved by more
        than the tolerance, or at the cap; ``iterations`` counts.
        """
        design = np.column_stack([features, np.ones(len(features))])
        step = 4.0 * len(design) / np.max(np.linalg.eigvalsh(design.T @ design))
        point = np.zeros(design.shape[1])
        probe, age = point, 1.0
        for self.iterations in range(1, self.max_iterations + 1):
            errors = sigmoid(np.dot(design, probe)) - labels
            moved = probe - step * np.dot(design.T, errors) / len(design)
            shrunk = np.sign(moved) * np.maximum(np.abs(moved) - step * self.penalty, 0.0)
            shrunk[-1] = moved[-1]
            move, point = shrunk - point, shrunk
            older, age = age, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * age**2))
            probe = point + (older - 1.0) / age * move
            if np.max(np.abs(move)) <= self.tolerance:
                break
        self.weights, self.offset = point[:-1], float(point[-1])
        return self

    @classmethod
    def with_at_most(cls, most, features, labels, factor=0.9):
        """The model with the weakest penalty, of a falling sequence, that uses at most ``most`` features.

        The sequence starts at the penalty from which on all weights are 0, the largest absolute mean product of a
        feature with the labels minus their mean; each penalty is ``factor`` times the one before. It ends at the first
        model that uses more; the model before it is the answer (the first one has no features).
        """
        centred = np.subtract(labels, np.mean(labels))
        penalty = float(np.max(np.abs(np.dot(features.T, centred)))) / len(labels)
        chosen = cls(penalty).fit(features, labels)
        while np.count_nonzero(chosen.weights) <= most:
            best = chosen
            penalty *= factor
            chosen = cls(penalty).fit(features, labels)
        return best

    def probabilities(self, features):
        """Probabilities of both classes, shape (n, 2)."""
        good = sigmoid(features @ self.weights + self.offset)
        return np.column_stack([1.0 - good, good])
