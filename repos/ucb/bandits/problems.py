"""Bandit problems: several machines, of which a policy plays one at a time."""

import functools
from dataclasses import dataclass

import numpy as np

from .arms import Bernoulli, Discrete, Gaussian, Polygon


@dataclass(frozen=True)
class Problem:
    """Independent machines. Nothing in it is random; a run hands over its uniform numbers."""

    arms: tuple

    @functools.cached_property
    def means(self):
        return np.array([arm.mean for arm in self.arms])

    @functools.cached_property
    def variances(self):
        return np.array([arm.variance for arm in self.arms])

    @functools.cached_property
    def gaps(self):
        """By how much the mean of each machine falls short of the best one's."""
        return np.max(self.means) - self.means

    @property
    def least_gap(self):
        """The smallest gap that is not 0."""
        return float(np.min(self.gaps[self.gaps > 0]))

    @functools.cached_property
    def _kinds(self):
        distinct = list(dict.fromkeys(self.arms))
        return distinct, np.array([distinct.index(arm) for arm in self.arms])

    def draw(self, chosen, uniforms):
        """Rewards of one play in each run: ``chosen[r]`` is the machine, ``uniforms[r]`` the number for run r."""
        distinct, labels = self._kinds
        kind_of_run = labels[chosen]
        rewards = np.empty(len(chosen))
        for number, arm in enumerate(distinct):
            here = np.flatnonzero(kind_of_run == number)
            if len(here):
                rewards[here] = arm.quantile(uniforms[here])
        return rewards


def coins(*probabilities):
    return Problem(tuple(Bernoulli(probability) for probability in probabilities))


def normals(*pairs):
    return Problem(tuple(Gaussian(mean, deviation) for mean, deviation in pairs))


#: The paper's seven problems have numbers, our own have names.
PROBLEMS = {
    "1": coins(0.9, 0.6),
    "2": coins(0.9, 0.8),
    "3": coins(0.55, 0.45),
    "11": coins(0.9, *[0.6] * 9),
    "12": coins(0.9, *[0.8] * 3, *[0.7] * 3, *[0.6] * 3),
    "13": coins(0.9, *[0.8] * 9),
    "14": coins(0.55, *[0.45] * 9),
    "shapes": Problem(
        (
            Polygon((0.0, 0.3, 1.0), (0.2, 1.0, 0.0)),
            Discrete((0.1, 0.4, 1.0), (0.3, 0.4, 0.3)),
            Polygon((0.0, 0.25, 0.5, 0.8, 1.0), (0.0, 0.6, 0.2, 1.5, 0.4)),
            Bernoulli(0.45),
        )
    ),
    "narrow": Problem((Polygon((0.3, 0.45, 0.6), (0.0, 1.0, 0.0)), Polygon((0.1, 0.35, 0.6), (0.0, 1.0, 0.2)))),
    "normal": normals((1.0, 1.0), (0.6, 0.5), (0.0, 0.4)),
    "wide": normals((0.5, 2.0), (0.0, 0.5), (-1.0, 1.0), (-1.0, 3.0)),
}


def random_coins(n_arms, least_gap, rng):
    """A problem with machines of random probabilities, none of them too close to the best one.

    The probabilities are drawn as one uniform array, again and again, until the largest exceeds the second largest
    by at least ``least_gap``.
    """
    while True:
        probabilities = rng.random(n_arms)
        ordered = np.sort(probabilities)
        if ordered[-1] - ordered[-2] >= least_gap:
            break
    return coins(*probabilities.tolist())
