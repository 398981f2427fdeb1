"""What all explanations have in common."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Explanation:
    """Features (or regions) that a prediction rests on, most important first, with their contributions.

    ``local`` is what the explanation's own model predicts for the instance, ``predicted`` what the explained classifier
    does, ``score`` how much of its variance around the instance the own model explains, and ``base`` its intercept.
    """

    features: np.ndarray
    weights: np.ndarray
    local: float
    predicted: float
    score: float = 0.0
    base: float = 0.0

    def among(self, wanted):
        """Mask of the explanation's features that are in a set of them."""
        return np.isin(self.features, wanted)

    def row(self, n_features):
        """The absolute contributions as a row of all features, zeros elsewhere."""
        row = np.zeros(n_features)
        row[self.features] = np.abs(self.weights)
        return row
