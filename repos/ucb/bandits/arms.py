"""Reward distributions of single machines.

Rewards come by inversion: a machine turns a number that is uniform on [0, 1) into a reward, so that every reward takes
exactly one random number, whatever the machine.
"""

import abc
import functools
from dataclasses import dataclass

import numpy as np


class Arm(abc.ABC):
    """One machine. Subclasses are frozen dataclasses, so equal machines compare as equal."""

    @property
    @abc.abstractmethod
    def moments(self):
        """Mean and variance of a reward."""

    @abc.abstractmethod
    def quantile(self, uniforms):
        """Rewards for an array of uniform numbers."""

    def atoms(self, count=200):
        """Values and weights of a finite distribution like this one: the quantiles of ``count`` even levels."""
        return self.quantile((np.arange(count) + 0.5) / count), np.full(count, 1.0 / count)

    @property
    def mean(self):
        return self.moments[0]

    @property
    def variance(self):
        return self.moments[1]


@dataclass(frozen=True)
class Bernoulli(Arm):
    """Reward 1 with a given probability, 0 otherwise."""

    probability: float

    @property
    def moments(self):
        return self.probability, self.probability * (1.0 - self.probability)

    def quantile(self, uniforms):
        return np.where(uniforms >= 1.0 - self.probability, 1.0, 0.0)

    def atoms(self, count=2):
        return np.array([0.0, 1.0]), np.array([1.0 - self.probability, self.probability])


@dataclass(frozen=True)
class Discrete(Arm):
    """Finitely many rewards, in increasing order, each with its probability."""

    values: tuple
    weights: tuple

    @property
    def moments(self):
        mean = np.dot(self.weights, self.values)
        return mean, np.dot(self.weights, np.square(np.subtract(self.values, mean)))

    def quantile(self, uniforms):
        return np.asarray(self.values)[np.searchsorted(np.cumsum(self.weights)[:-1], uniforms, side="right")]

    def atoms(self, count=None):
        return np.array(self.values), np.array(self.weights)


@dataclass(frozen=True)
class Polygon(Arm):
    """A density that is linear between knots: triangular, uniform, two-humped and so on.

    Parameters
    ----------
    knots : increasing numbers
    heights : the density at the knots, up to a common factor; not negative
    """

    knots: tuple
    heights: tuple

    @functools.cached_property
    def density(self):
        """The density at the knots, scaled so that its integral is 1."""
        heights = np.array(self.heights, dtype=float)
        return heights / np.sum(np.diff(self.knots) * (heights[:-1] + heights[1:]) / 2.0)

    @functools.cached_property
    def moments(self):
        """Mean and variance, by exact integrals over the pieces.

        Over a piece from a to b with density f at a and g at b, the integral of x times the density is
        (b - a) (a (2f + g) + b (f + 2g)) / 6, and that of x^2 times the density is
        (b - a) (a^2 (3f + g) + 2ab (f + g) + b^2 (f + 3g)) / 12.
        """
        left, right = np.array(self.knots[:-1]), np.array(self.knots[1:])
        low, high = self.density[:-1], self.density[1:]
        width = np.subtract(right, left)
        first = left * (2.0 * low + high) + right * (low + 2.0 * high)
        second = np.square(left) * (3.0 * low + high) + np.square(right) * (low + 3.0 * high)
        second = second + 2.0 * left * right * (low + high)
        mean = np.dot(width, first) / 6.0
        variance = np.dot(width, second) / 12.0 - np.square(mean)
        return float(mean), float(variance)

    def quantile(self, uniforms):
        """Invert the cumulative distribution, which is quadratic between knots.

        In the piece that a uniform number u falls into, with density f at its left end, slope h of the density and
        rest v = u minus the cumulative distribution at the left end, the reward lies 2v / (f + sqrt(f^2 + 2hv))
        right of the left end. A number equal to the cumulative distribution at a knot belongs to the piece right
        of it.
        """
        widths = np.diff(self.knots)
        masses = widths * (self.density[:-1] + self.density[1:]) / 2.0
        cumulative = np.concatenate([[0.0], np.cumsum(masses)])
        piece = np.searchsorted(cumulative[1:-1], uniforms, side="right")
        rest = np.subtract(uniforms, cumulative[piece])
        start = np.take(self.density, piece)
        slope = np.take(np.diff(self.density) / widths, piece)
        root = np.sqrt(np.square(start) + 2.0 * slope * rest)
        return np.take(self.knots, piece) + 2.0 * rest / (start + root)


@dataclass(frozen=True)
class Gaussian(Arm):
    """Normal rewards."""

    centre: float
    deviation: float

    @property
    def moments(self):
        return self.centre, self.deviation**2

    def quantile(self, uniforms):
        from scipy import special  # here, for most problems do without

        return self.centre + self.deviation * special.ndtri(uniforms)
