"""Policies. One object plays all runs of an experiment at once: every array has a row for each run.

A policy sees its own plays only. Before a play :meth:`Policy.choose` says which machine each run plays; after it
:meth:`Policy.observe` is told the rewards. ``time`` is the number of plays made so far in each run.
"""

import abc
import math

import numpy as np

from .divergence import bernoulli_divergence

POLICIES = {}


def policy(name):
    """Class decorator: make a policy available by name."""

    def add(cls):
        POLICIES[name] = cls
        return cls

    return add


class Policy(abc.ABC):
    """Counts of plays, sums of rewards and sums of squared rewards, all of shape (runs, machines)."""

    def start(self, n_arms, runs, rng):
        """Forget everything, and get ready for ``runs`` runs with ``n_arms`` machines."""
        self.time = 0
        self.rng = rng
        self.counts, self.sums, self.squares = np.zeros((3, runs, n_arms))
        self.rows = np.arange(runs)

    @property
    def n_arms(self):
        return self.counts.shape[1]

    @property
    def runs(self):
        return self.counts.shape[0]

    @abc.abstractmethod
    def choose(self):
        """The machine that each run plays next."""

    def observe(self, chosen, rewards):
        """Take in one reward for each run."""
        cells = (self.rows, chosen)
        self.counts[cells] += 1.0
        self.sums[cells] += rewards
        self.squares[cells] += rewards * rewards
        self.time += 1


class IndexPolicy(Policy):
    """Plays each machine ``initial`` times, in turns, then the machine of the largest index; the first one on ties."""

    initial = 1

    @abc.abstractmethod
    def index(self):
        """An index for each machine of each run; all have been played."""

    def choose(self):
        if self.time < self.initial * self.n_arms:
            return np.full(self.runs, self.time % self.n_arms)
        return np.argmax(self.index(), axis=1)


@policy("ucb1")
class UCB1(IndexPolicy):
    """An upper confidence bound by Hoeffding's inequality; the paper's policy for ``width=2``."""

    def __init__(self, width=2.0):
        self.width = width

    def index(self):
        """Mean reward plus sqrt(width ln n / n_j), for each machine j with n_j of the n plays so far."""
        means = np.divide(self.sums, self.counts)
        return means + np.sqrt(self.width * np.log(self.time) / self.counts)


@policy("tuned")
class UCB1Tuned(IndexPolicy):
    """The paper's tuned variant: the width of the interval follows from the rewards' variance."""

    def index(self):
        """Mean reward plus sqrt(ln n / n_j min(1/4, V_j)).

        V_j = (mean squared reward) - (mean reward)^2 + sqrt(2 ln n / n_j) is an upper bound for the variance of
        machine j, and 1/4 is the largest variance that a reward in [0, 1] can have.
        """
        means = np.divide(self.sums, self.counts)
        logs = np.divide(np.log(self.time), self.counts)
        spread = np.divide(self.squares, self.counts) - np.square(means)
        bound = spread + np.sqrt(2.0 * logs)
        return means + np.sqrt(logs * np.minimum(bound, 0.25))


@policy("klucb")
class KLUCB(IndexPolicy):
    """The largest mean that is not too unlikely, given the rewards, by the divergence of Bernoulli variables."""

    halvings = 24

    def index(self):
        """The largest q with n_j kl(mean, q) <= ln n, where n_j of the n plays so far were of this machine.

        Found by halving the interval from the mean to 1, ``halvings`` times; the index is the lower end of the last
        interval.
        """
        means = np.divide(self.sums, self.counts)
        budget = np.divide(np.log(self.time), self.counts)
        low, high = np.copy(means), np.ones_like(means)
        for _ in range(self.halvings):
            middle = (low + high) / 2.0
            inside = np.less_equal(bernoulli_divergence(means, middle), budget)
            low = np.where(inside, middle, low)
            high = np.where(inside, high, middle)
        return low


@policy("ucb2")
class UCB2(Policy):
    """The paper's policy with epochs: a machine that is chosen is played for a while, longer each time."""

    def __init__(self, alpha=0.1, longest=10_000_000):
        self.alpha = alpha
        self.ladder = epoch_ladder(alpha, longest)

    def start(self, n_arms, runs, rng):
        super().start(n_arms, runs, rng)
        self.levels = np.zeros((runs, n_arms), dtype=int)
        self.current = np.zeros(runs, dtype=int)
        self.remaining = np.zeros(runs, dtype=int)

    def choose(self):
        """Go on with an epoch, or start one with the machine of the largest index.

        The index of a machine at rung l of the ladder, whose length is s, is its mean reward plus
        sqrt((1 + alpha) ln(e n / s) / (2 s)). Its epoch takes as many plays as the next rung is longer.
        """
        if self.time < self.n_arms:
            return np.full(self.runs, self.time)
        idle = np.flatnonzero(self.remaining == 0)
        if len(idle):
            lengths = np.take(self.ladder, self.levels[idle])
            bonus = np.sqrt((1.0 + self.alpha) * np.log(math.e * self.time / lengths) / (2.0 * lengths))
            means = np.divide(self.sums[idle], self.counts[idle])
            winners = np.argmax(means + bonus, axis=1)
            rungs = self.levels[idle, winners]
            self.remaining[idle] = np.take(self.ladder, rungs + 1) - np.take(self.ladder, rungs)
            self.levels[idle, winners] += 1
            self.current[idle] = winners
        self.remaining -= 1
        return np.copy(self.current)


def epoch_ladder(alpha, longest):
    """Lengths ceil((1 + alpha)^r) for r = 0, 1, ... up to the first that exceeds ``longest``, each one once.

    Returns
    -------
    increasing integer array; it starts with 1 and ends with the first length above ``longest``
    """
    rungs = [1]
    exponent = 0
    while rungs[-1] <= longest:
        exponent += 1
        length = math.ceil((1.0 + alpha) ** exponent)
        if length > rungs[-1]:
            rungs.append(length)
    return np.array(rungs)


@policy("greedy")
class DecreasingGreedy(Policy):
    """The paper's randomised policy: play the best machine so far, or with falling probability any machine.

    Parameters
    ----------
    gap : float
        d of the paper, not larger than the gap between the best and the second best machine.
    c : float
    """

    def __init__(self, gap, c=0.15):
        self.gap = gap
        self.c = c

    def exploration(self, play):
        """Probability that play number ``play`` (the first one is 1) is a random one."""
        return min(1.0, self.c * self.n_arms / (self.gap**2 * play))

    def choose(self):
        """Draws, in order, one uniform number and one machine for each run, whether it needs them or not.

        A run explores if its number is below the probability. Otherwise it plays the machine of the largest mean
        reward, where machines never played have mean 0; the first one on ties.
        """
        tosses = self.rng.random(self.runs)
        strays = self.rng.integers(self.n_arms, size=self.runs)
        exploring = np.less(tosses, self.exploration(self.time + 1))
        means = np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)
        return np.where(exploring, strays, np.argmax(means, axis=1))


@policy("normal")
class UCB1Normal(Policy):
    """The paper's policy for normal rewards with unknown means and variances."""

    def choose(self):
        """Play what was played too little, otherwise the machine of the largest index.

        Before play number n every machine needs max(2, ceil(8 ln n)) plays; a run in which one has fewer plays the
        machine of the fewest plays. Otherwise the index is the mean reward plus sqrt(16 s_j^2 ln(n - 1) / n_j), where
        s_j^2 is the unbiased estimate of the machine's variance, at least 0. The first machine wins ties.
        """
        needed = max(2.0, np.ceil(8.0 * np.log(self.time + 1)))
        lagging = np.less(np.min(self.counts, axis=1), needed)
        chosen = np.argmin(self.counts, axis=1)
        ready = np.flatnonzero(np.logical_not(lagging))
        if len(ready):
            counts = self.counts[ready]
            means = np.divide(self.sums[ready], counts)
            variances = (self.squares[ready] - counts * np.square(means)) / (counts - 1.0)
            bonus = np.sqrt(16.0 * np.maximum(variances, 0.0) * np.log(self.time) / counts)
            chosen[ready] = np.argmax(means + bonus, axis=1)
        return chosen


@policy("student")
class StudentThompson(IndexPolicy):
    """Thompson sampling for normal rewards with unknown means and variances."""

    initial = 3

    def index(self):
        """A draw from the posterior of each mean: Student's t distribution, moved and scaled.

        With k = n_j - 1 degrees of freedom and the sum Q_j of squared deviations from the mean (at least 0), the draw is
        the mean plus sqrt(Q_j / (n_j k)) times a t variable. Draws one array (runs, machines) of t variables.
        """
        freedom = np.subtract(self.counts, 1.0)
        noise = self.rng.standard_t(freedom)
        means = np.divide(self.sums, self.counts)
        deviations = np.maximum(self.squares - self.sums * means, 0.0)
        scale = np.sqrt(np.divide(deviations, self.counts * freedom))
        return means + scale * noise


@policy("elimination")
class Elimination(Policy):
    """Successive elimination: play in rounds, and drop machines that are worse than the best one with confidence."""

    def __init__(self, risk=0.1, shrink=1.0):
        self.risk = risk
        self.shrink = shrink

    def start(self, n_arms, runs, rng):
        super().start(n_arms, runs, rng)
        self.active = np.ones((runs, n_arms), dtype=bool)
        self.settled = np.full(runs, np.inf)

    def choose(self):
        """End the rounds that are complete, then play the active machine of the fewest plays, the first on ties.

        A round is complete when all active machines have the same number s > 0 of plays. It ends with dropping every
        machine whose mean reward is smaller than the largest of the active ones by 2w or more, with
        w = shrink sqrt(ln(4 K s^2 / risk) / (2 s)). ``settled`` keeps the number of plays made when only one
        machine is left for the first time.
        """
        fewest = np.min(np.where(self.active, self.counts, np.inf), axis=1)
        most = np.max(np.where(self.active, self.counts, -np.inf), axis=1)
        for run in np.flatnonzero((fewest == most) & (fewest > 0) & np.isinf(self.settled)):
            rounds = fewest[run]
            radius = self.shrink * math.sqrt(math.log(4.0 * self.n_arms * rounds**2 / self.risk) / (2.0 * rounds))
            means = np.where(self.active[run], self.sums[run], -np.inf) / rounds
            self.active[run] &= means > np.max(means) - 2.0 * radius
            if np.count_nonzero(self.active[run]) == 1:
                self.settled[run] = self.time
        return np.argmin(np.where(self.active, self.counts, np.inf), axis=1)
