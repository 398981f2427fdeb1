"""Interpretable representations: how an instance is taken apart, and what it looks like without some of its parts.

``perturb`` returns the features (or regions) that the parts stand for, switches, shape (samples, parts), 1 where a part
is as in the instance, and the instances that the classifier sees, shape (samples, d). The first sample is the instance
itself, with all switches on; random numbers are drawn for the others only.
"""

import numpy as np

from .images import superpixels


class Words:
    """Texts: the parts are the words that occur, and a word is switched off by removing it everywhere."""

    #: name of the distance between switches that suits the kind of data
    distance = "cosine"

    def perturb(self, instance, n_samples, rng):
        """Remove a random number of words, each number from 1 to all being equally likely, and random words.

        Draws the numbers, one array (samples - 1, 1), then uniform numbers, one array (samples - 1, words): the words
        with the smallest of a row are removed.
        """
        present = np.flatnonzero(instance)
        removed = rng.integers(1, len(present) + 1, size=(n_samples - 1, 1))
        lots = rng.random((n_samples - 1, len(present)))
        ranks = np.argsort(np.argsort(lots, axis=1), axis=1)
        kept = np.greater_equal(ranks, removed).astype(float)
        switches = np.vstack([np.ones(len(present)), kept])
        samples = np.zeros((n_samples, len(instance)))
        samples[:, present] = np.multiply(switches, instance[present])
        return present, switches, samples


class Quartiles:
    """Tables: a part is "the feature is in this quarter of its values"; it is off when the feature is in another."""

    distance = "euclidean"

    def codes(self, features):
        """The quarter, 0 to 3, of every value; a value on an edge belongs to the lower quarter."""
        pairs = zip(self.edges.T, np.transpose(features))
        return np.column_stack([np.searchsorted(edges, values, side="left") for edges, values in pairs])

    def fit(self, features):
        """Edges at the quartiles of every feature (linear interpolation), and what values are like between them.

        For each quarter of each feature: the share of the cases, their mean value, its standard deviation (divisor n),
        and the smallest and the largest value; arrays of shape (4, d). A quarter without cases has zeros only.
        """
        self.edges = np.quantile(features, [0.25, 0.5, 0.75], axis=0)
        codes = self.codes(features)
        shape = (4, features.shape[1])
        self.shares, self.means, self.deviations = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.lows, self.highs = np.zeros(shape), np.zeros(shape)
        for code, column in np.ndindex(shape):
            members = np.compress(codes[:, column] == code, features[:, column])
            if len(members) > 0:
                self.shares[code, column] = len(members) / len(features)
                self.means[code, column] = np.mean(members)
                self.deviations[code, column] = np.std(members)
                self.lows[code, column], self.highs[code, column] = np.min(members), np.max(members)
        return self

    def perturb(self, instance, n_samples, rng):
        """Draw each feature's quarter by the quarters' shares, and then a value within it.

        Draws uniform numbers, one array (samples - 1, d): the quarter is the first one whose cumulative share exceeds
        the number. Then standard normal numbers, one array of the same shape: the value is the quarter's mean plus its
        deviation times the number, cut to the quarter's range.
        """
        shape = (n_samples - 1, len(instance))
        lots, noise = rng.random(shape), rng.standard_normal(shape)
        codes = np.sum(np.greater_equal(lots, np.cumsum(self.shares, axis=0)[:3, np.newaxis]), axis=0)
        columns = np.broadcast_to(np.arange(len(instance)), shape)
        drawn = self.means[codes, columns] + self.deviations[codes, columns] * noise
        drawn = np.clip(drawn, self.lows[codes, columns], self.highs[codes, columns])
        same = np.equal(codes, self.codes(instance[np.newaxis])).astype(float)
        switches = np.vstack([np.ones(len(instance)), same])
        return np.arange(len(instance)), switches, np.vstack([instance, drawn])


class Regions:
    """Images: the parts are superpixels; one that is off looks as it does in the mean training image."""

    distance = "euclidean"

    def fit(self, features):
        self.background = np.mean(features, axis=0)
        return self

    def perturb(self, instance, n_samples, rng):
        """Switch every region on or off alike: draws one array of integers below 2, shape (samples - 1, regions)."""
        owners = superpixels(instance)
        n_regions = int(np.max(owners)) + 1
        tossed = rng.integers(2, size=(n_samples - 1, n_regions)).astype(float)
        switches = np.vstack([np.ones(n_regions), tossed])
        visible = np.take(switches, owners, axis=1) > 0.0
        return np.arange(n_regions), switches, np.where(visible, instance, self.background)
