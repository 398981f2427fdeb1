"""Bounds for the expected regret: the paper's four theorems, and what no policy can beat."""

import math

import numpy as np

from .divergence import arm_divergence


def positive_gaps(problem):
    return problem.gaps[problem.gaps > 0]


def ucb1_bound(problem, times):
    """Theorem 1: regret of UCB1 after each of the ``times``, for rewards in [0, 1]."""
    gaps = positive_gaps(problem)
    return 8.0 * np.log(times) * np.sum(1.0 / gaps) + (1.0 + math.pi**2 / 3.0) * np.sum(gaps)


def ucb2_bound(problem, times, alpha):
    """Theorem 2: regret of UCB2, for rewards in [0, 1].

    A machine with gap D adds (1 + alpha)(1 + 4 alpha) ln(2 e D^2 n) / (2 D) + c / D, where c = 1 + (1 + alpha) e /
    alpha^2 + ((1 + alpha) / alpha)^(1 + alpha) (1 + 11 (1 + alpha) / (5 alpha^2 ln(1 + alpha))). The theorem holds for
    n >= 1 / (2 D^2) for all gaps D; for smaller n the bound is n times the largest gap.
    """
    gaps = positive_gaps(problem)
    times = np.asarray(times, dtype=float)
    growing = np.log(2.0 * math.e * np.multiply.outer(times, np.square(gaps))) / (2.0 * gaps)
    leading = (1.0 + alpha) * (1.0 + 4.0 * alpha) * np.sum(growing, axis=1)
    tail = 1.0 + 11.0 * (1.0 + alpha) / (5.0 * alpha**2 * math.log1p(alpha))
    constant = 1.0 + (1.0 + alpha) * math.e / alpha**2
    constant += math.pow((1.0 + alpha) / alpha, 1.0 + alpha) * tail
    valid = np.greater_equal(times, 0.5 / np.square(np.min(gaps)))
    return np.where(valid, leading + constant * np.sum(1.0 / gaps), times * np.max(gaps))


def greedy_bound(problem, times, gap, c):
    """Theorem 3, added up: regret of the randomised policy, for rewards in [0, 1].

    Up to play number c K / gap^2 every machine is played with probability 1 / K. For a later play n the theorem
    bounds the probability of a worse machine by c / (d^2 n) + 2 b x^(c / (5 d^2)) + (4 e / d^2) x^(c / 2), with
    d the gap, x = c K / ((n - 1) d^2 sqrt(e)) and b = (c / d^2) ln(1 / x); what exceeds 1 counts as 1. The bound
    after n plays is the sum of these probabilities over the plays up to n, times the sum of all gaps.
    """
    n_arms, square = len(problem.arms), gap**2
    chances = np.full(int(np.max(times)), 1.0 / n_arms)
    plays = np.arange(1, len(chances) + 1)
    late = plays[np.greater(plays, c * n_arms / square)]
    ratio = np.divide(c * n_arms / (square * math.sqrt(math.e)), late - 1)
    early = 2.0 * c / square * np.log(1.0 / ratio) * np.power(ratio, c / (5.0 * square))
    confused = 4.0 * math.e / square * np.power(ratio, c / 2.0)
    chances[late - 1] = np.minimum(c / (square * late) + early + confused, 1.0)
    return np.cumsum(chances)[np.subtract(times, 1)] * np.sum(problem.gaps)


def normal_bound(problem, times):
    """Theorem 4: regret of UCB1-NORMAL, for normal rewards.

    It is 256 ln n times the sum over worse machines of variance / gap, plus (1 + pi^2 / 2 + 8 ln n) times the sum
    of the gaps.
    """
    worse = np.flatnonzero(problem.gaps > 0)
    ratios = np.divide(problem.variances[worse], problem.gaps[worse])
    logs = np.log(times)
    return 256.0 * logs * np.sum(ratios) + (1.0 + math.pi**2 / 2.0 + 8.0 * logs) * np.sum(problem.gaps)


def lower_rate(problem):
    """Regret for each unit of ln n that every uniformly good policy has in the long run.

    The sum over worse machines of the gap over the least divergence to a machine with the mean of the best one.
    """
    target = float(np.max(problem.means))
    worse = np.flatnonzero(problem.gaps > 0)
    costs = [arm_divergence(problem.arms[number], target) for number in worse]
    return float(np.sum(np.divide(problem.gaps[worse], costs)))
