"""What is reported about the runs of a policy, and how policies are compared."""

import math

import numpy as np

from .tails import binomial_tail, chi_square_tail, student_tail


def summarise(trace):
    """A row of the tables, at the last time.

    Returns
    -------
    dict with the mean ``regret``, its standard ``error``, the regret ``high`` that at most a tenth of the runs exceed,
    its ``skew`` (third central moment over the cubed standard deviation, both with the number of runs as divisor),
    the mean ``shortfall``, and the share of plays of a ``best`` machine in percent
    """
    regret = trace.regret[-1]
    runs = len(regret)
    ordered = np.sort(regret)
    central = np.subtract(regret, np.mean(regret))
    return {
        "regret": float(np.mean(regret)),
        "error": float(np.std(regret, ddof=1) / np.sqrt(runs)),
        "high": float(ordered[math.ceil(0.9 * runs - 1e-9) - 1]),
        "skew": float(np.mean(central**3) / np.mean(np.square(central)) ** 1.5),
        "shortfall": float(np.mean(trace.shortfall[-1])),
        "best": 100.0 * float(np.mean(trace.best_share[-1])),
    }


def growth(trace):
    """How the mean regret grows with the logarithm of time: a line fitted to the later half of the looks.

    Least squares on the points (ln n, mean regret) of the times n that are at least the root of the first times
    the last one, all with the same weight.

    Returns
    -------
    slope of the line, and its value at the last time
    """
    late = np.greater_equal(np.square(trace.times), trace.times[0] * trace.times[-1])
    logs = np.log(trace.times[late])
    heights = np.mean(trace.regret[late], axis=1)
    centred = np.subtract(logs, np.mean(logs))
    slope = np.sum(centred * heights) / np.sum(np.square(centred))
    return float(slope), float(np.mean(heights) + slope * centred[-1])


def crossing(trace, level):
    """Time at which the mean share of plays of a best machine first reaches a level.

    Between the look before and the first look at or above the level, the share is taken as linear in ln n. It is the
    first time if the level is reached there already, and the last one if it is never reached.
    """
    shares = np.mean(trace.best_share, axis=1)
    above = np.flatnonzero(np.greater_equal(shares, level))
    if len(above) == 0:
        return float(trace.times[-1])
    after = int(above[0])
    if after == 0:
        return float(trace.times[0])
    logs = np.log(trace.times[after - 1 : after + 1])
    weight = (level - shares[after - 1]) / (shares[after] - shares[after - 1])
    return float(np.exp(logs[0] + weight * np.subtract(logs[1], logs[0])))


def paired(first, second):
    """Compare two policies run by run: run r of both met the same random numbers.

    The difference is the second one's shortfall minus the first one's at the last time, so positive numbers speak for
    the first.

    Returns
    -------
    dict with the mean ``difference``, ``t`` (mean over standard error), its two-sided ``p`` by Student's distribution,
    the share of ``wins`` among the runs that differ, and their two-sided ``sign`` test: twice the smaller
    binomial tail, at most 1
    """
    differences = np.subtract(second.shortfall[-1], first.shortfall[-1])
    runs = len(differences)
    t = float(np.mean(differences) * np.sqrt(runs) / np.std(differences, ddof=1))
    wins, losses = np.count_nonzero(differences > 0), np.count_nonzero(differences < 0)
    sign = 2.0 * binomial_tail(wins + losses, 0.5, max(wins, losses))
    return {
        "difference": float(np.mean(differences)),
        "t": t,
        "p": 2.0 * student_tail(abs(t), runs - 1),
        "wins": wins / (wins + losses),
        "sign": min(sign, 1.0),
    }


def friedman(table):
    """Friedman's test that no column of a table is better than another.

    In each row the columns get ranks, 1 for the smallest number; equal numbers share the mean of their ranks. With
    b rows and k columns the statistic is 12 b / (k (k + 1)) times the sum of the squared differences of the columns'
    mean ranks to (k + 1) / 2. It is held against a chi-square distribution with k - 1 degrees of freedom.

    Returns
    -------
    mean ranks (k,), statistic, p value
    """
    table = np.asarray(table, dtype=float)
    rows, columns = table.shape
    others = np.expand_dims(table, axis=1)
    below = np.count_nonzero(others < table[:, :, np.newaxis], axis=2)
    same = np.count_nonzero(np.equal(others, table[:, :, np.newaxis]), axis=2)
    ranks = np.mean(below + (same + 1) / 2.0, axis=0)
    squares = np.sum(np.square(np.subtract(ranks, (columns + 1) / 2.0)))
    statistic = float(12.0 * rows / (columns * (columns + 1)) * squares)
    return ranks, statistic, chi_square_tail(statistic, columns - 1)


def sensitivity(parameters, regrets, factor=1.5):
    """How much the choice of a parameter matters, from the regrets of increasing, positive parameters.

    The best parameter is refined by the vertex of the parabola through the lowest point and its two neighbours, in
    the logarithm of the parameter; at an end of the range it is the parameter of the lowest point. The plateau is the
    length, in powers of ten, of the stretch around the lowest point on which the regret, linear in that logarithm
    between points, stays at or below ``factor`` times the smallest.

    Returns
    -------
    dict: ``best``, ``plateau``, and the ``penalty`` (largest over smallest regret)
    """
    logs, regrets = np.log10(parameters), np.asarray(regrets, dtype=float)
    lowest = int(np.argmin(regrets))
    limit = factor * regrets[lowest]
    vertex = logs[lowest]
    if 0 < lowest < len(logs) - 1:
        near = slice(lowest - 1, lowest + 2)
        curve, slope, _ = np.polyfit(logs[near] - vertex, regrets[near], 2)
        vertex = vertex - slope / (2.0 * curve)

    def edge(places):
        """Where the regret first exceeds the limit on the way through ``places``, or the last of them."""
        for here, there in zip(places[:-1], places[1:]):
            if regrets[there] > limit:
                return np.interp(limit, regrets[[here, there]], logs[[here, there]])
        return logs[places[-1]]

    plateau = edge(range(lowest, len(logs))) - edge(range(lowest, -1, -1))
    return {
        "best": float(np.power(10.0, vertex)),
        "plateau": float(plateau),
        "penalty": float(np.max(regrets) / regrets[lowest]),
    }
