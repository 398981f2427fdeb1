"""Calibration of one probability by a function that is not parametric: histograms, isotonic steps, BBQ.

A calibrator is fitted to scores in 0 to 1 and outcomes 0 or 1, and maps scores to calibrated probabilities.
"""

import numpy as np

from .probabilities import log_gamma


def equal_mass_edges(scores, n_bins):
    """The n_bins - 1 inner edges of bins of equal mass, halfway between the scores on both sides.

    The sorted scores are cut into bins whose sizes differ by at most one, larger ones first.
    """
    groups = np.array_split(np.sort(scores), n_bins)
    return np.array([0.5 * (left[-1] + right[0]) for left, right in zip(groups, groups[1:])])


class HistogramBinning:
    """Histogram binning: a bin's calibrated probability is the share of positive outcomes in it."""

    def __init__(self, n_bins=10, equal_mass=False):
        self.n_bins = n_bins
        self.equal_mass = equal_mass

    def fit(self, scores, outcomes):
        """Count outcomes in bins; an empty bin takes its middle.

        Bins have equal width on 0 to 1, or equal mass. A score on an edge belongs to the lower bin.
        """
        if self.equal_mass:
            self.edges = equal_mass_edges(scores, self.n_bins)
        else:
            self.edges = np.linspace(0.0, 1.0, self.n_bins + 1)[1:-1]
        positions = np.searchsorted(self.edges, scores, side="left")
        counts = np.bincount(positions, minlength=self.n_bins)
        positives = np.bincount(positions, weights=outcomes, minlength=self.n_bins)
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        middles = ends[:-1] + 0.5 * np.diff(ends)
        self.values = np.where(counts > 0, positives / np.maximum(counts, 1), middles)
        return self

    def predict(self, scores):
        return self.values[np.searchsorted(self.edges, scores, side="left")]


class IsotonicRegression:
    """The increasing function of the score with the smallest squared error on the outcomes."""

    def fit(self, scores, outcomes):
        """Pool adjacent violators.

        Equal scores are one block from the start. Blocks are added in increasing order of score; as long as the last
        one's mean is not above that of the block before, the two are merged (or left apart if both means are equal: the
        function is the same). The function takes a block's mean at the block's first and last score.
        """
        levels, groups = np.unique(scores, return_inverse=True)
        weights = np.bincount(groups)
        totals = np.bincount(groups, weights=outcomes)
        blocks = []
        for level, weight, total in zip(levels, weights, totals):
            blocks.append([level, level, weight, total])
            while len(blocks) > 1 and blocks[-1][3] / blocks[-1][2] <= blocks[-2][3] / blocks[-2][2]:
                _, end, extra, positive = blocks.pop()
                blocks[-1][1] = end
                blocks[-1][2] += extra
                blocks[-1][3] += positive
        first, last, mass, positives = np.transpose(blocks)
        self.knots = np.ravel(np.column_stack([first, last]))
        self.values = np.repeat(positives / mass, 2)
        return self

    def predict(self, scores):
        """Linear between the knots, constant outside them."""
        return np.interp(scores, self.knots, self.values)


class BayesianBinning:
    """Bayesian binning into quantiles: many histograms of equal mass, averaged by their marginal likelihoods."""

    def __init__(self, strength=2.0, widest=2.0):
        self.strength = strength
        self.widest = widest

    def fit(self, scores, outcomes):
        """Build one histogram for each number of bins from n^(1/3) / ``widest`` to n^(1/3) * ``widest``.

        Both bounds are rounded down, the lower one is at least 3. In a scheme of B bins, bin b has a Beta prior with
        strength s / B and mean p_b, the middle of the bin, where s is ``strength``. A bin's value is the mean of its
        posterior, a scheme's weight proportional to its marginal likelihood, and the weights add up to 1.
        """
        root = np.cbrt(len(scores))
        fewest = max(3, int(root / self.widest))
        self.schemes, evidence = [], []
        for n_bins in range(fewest, int(root * self.widest) + 1):
            edges = equal_mass_edges(scores, n_bins)
            positions = np.searchsorted(edges, scores, side="left")
            counts = np.bincount(positions, minlength=n_bins)
            positives = np.bincount(positions, weights=outcomes, minlength=n_bins)
            ends = np.concatenate([[0.0], edges, [1.0]])
            prior = self.strength / n_bins
            alpha = 0.5 * prior * (ends[:-1] + ends[1:])
            terms = log_gamma(prior) - log_gamma(prior + counts)
            terms = terms + log_gamma(alpha + positives) - log_gamma(alpha)
            terms = terms + log_gamma(prior - alpha + counts - positives) - log_gamma(prior - alpha)
            self.schemes.append((edges, (alpha + positives) / (prior + counts)))
            evidence.append(np.sum(terms))
        relative = np.exp(np.subtract(evidence, np.max(evidence)))
        self.weights = relative / np.sum(relative)
        return self

    def predict(self, scores):
        """Mean of the schemes' values at each score, by their weights."""
        values = [values[np.searchsorted(edges, scores, side="left")] for edges, values in self.schemes]
        return np.dot(self.weights, values)


#: name -> calibrator
BINARY = {"histogram": HistogramBinning, "isotonic": IsotonicRegression, "bbq": BayesianBinning}


def one_versus_rest(name, scores, labels, new_scores):
    """Extend a binary calibrator to k classes: calibrate each class against the rest, then normalise.

    ``scores`` are uncalibrated probabilities, shape (n, k), of points with ``labels``; returns the calibrated ones for
    ``new_scores``. Rows whose calibrated values are all 0 keep their uncalibrated probabilities.
    """
    calibrated = np.empty_like(new_scores)
    for label in range(scores.shape[1]):
        calibrator = BINARY[name]()
        calibrator.fit(scores[:, label], np.asarray(labels == label, dtype=float))
        calibrated[:, label] = calibrator.predict(new_scores[:, label])
    possible = np.max(calibrated, axis=1, keepdims=True) > 0.0
    chances = np.where(possible, calibrated, new_scores)
    return np.divide(chances, np.sum(chances, axis=1, keepdims=True))
