"""Playing: a policy against a problem, many runs side by side."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from .problems import Problem
from .randomness import generator


def log_times(horizon, per_decade=4, first=10):
    """Times of the looks: ``first`` 10^(i / per_decade), i = 0, 1, ..., rounded, below the horizon; and the horizon."""
    steps = math.ceil(per_decade * math.log10(horizon / first))
    exponents = np.divide(np.arange(max(steps, 0)), per_decade)
    rounded = np.rint(np.multiply(first, np.power(10.0, exponents))).astype(int)
    before = rounded[np.less(rounded, horizon)]
    return np.unique(np.append(before, horizon))


@dataclass(frozen=True)
class Trace:
    """What was seen at the times (T,): plays of each machine (T, runs, machines), rewards collected (T, runs)."""

    problem: Problem
    times: np.ndarray
    plays: np.ndarray
    collected: np.ndarray

    @functools.cached_property
    def regret(self):
        """Expected loss against always playing the best machine, given the plays: shape (T, runs)."""
        return self.plays @ self.problem.gaps

    @functools.cached_property
    def shortfall(self):
        """What was really collected less than the best machine gives on average: shape (T, runs)."""
        return np.max(self.problem.means) * self.times[:, np.newaxis] - self.collected

    @functools.cached_property
    def best_share(self):
        """Share of the plays so far that were plays of a best machine: shape (T, runs)."""
        return np.sum(self.plays[:, :, self.problem.gaps == 0], axis=2) / self.times[:, np.newaxis]


def play(policy, problem, horizon, runs, seed, times=None):
    """Let a policy play a problem and look at it at some times, by default those of :func:`log_times`.

    Every play takes one uniform number for each run, from the generator (seed, 0): all policies meet the same ones.
    The policy gets the generator (seed, 1).
    """
    times = log_times(horizon) if times is None else np.asarray(times)
    luck = generator(seed, 0)
    policy.start(len(problem.arms), runs, generator(seed, 1))
    plays = np.empty((len(times), runs, len(problem.arms)))
    collected = np.empty((len(times), runs))
    row = 0
    for now in range(1, horizon + 1):
        chosen = policy.choose()
        policy.observe(chosen, problem.draw(chosen, luck.random(runs)))
        if now == times[row]:
            plays[row] = policy.counts
            collected[row] = np.sum(policy.sums, axis=1)
            row += 1
    return Trace(problem, times, plays, collected)
