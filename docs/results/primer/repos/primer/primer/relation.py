"""How two samples, or a series and its past, go together."""

import math

from .location import mean
from .spread import deviation


def covariance(first, second):
    """The covariance of two samples of equal length."""
    center, other = mean(first), mean(second)
    return math.fsum((x - center) * (y - other) for x, y in zip(first, second)) / (len(first) - 1)


def correlation(first, second):
    """Pearson's correlation coefficient."""
    return covariance(first, second) / (deviation(first) * deviation(second))


def ranks(values):
    """The rank of each value, as a list: 1 for the smallest; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2.0 for value in values]


def rank_correlation(first, second):
    """Spearman's rank correlation coefficient."""
    return correlation(ranks(first), ranks(second))


def line(first, second):
    """Slope and intercept, as a pair, of the line that gives the second sample from the first by least squares."""
    slope = covariance(first, second) / covariance(first, first)
    return slope, mean(second) - slope * mean(first)


def root_mean_square_error(truth, predicted):
    """The root of the mean squared difference."""
    return math.sqrt(mean([(a - b) ** 2 for a, b in zip(truth, predicted)]))


def moving_average(values, width):
    """The means of all runs of ``width`` neighbours, as a list, in order."""
    return [mean(values[start : start + width]) for start in range(len(values) - width + 1)]


def smooth(values, rate):
    """Exponential smoothing: each level goes from the one before towards the new value by ``rate``; all levels, as a list."""
    levels = [values[0]]
    for value in values[1:]:
        levels.append(levels[-1] + rate * (value - levels[-1]))
    return levels


def autocorrelation(values, lag):
    """The autocorrelation of a series at a lag."""
    center = mean(values)
    distances = [value - center for value in values]
    together = math.fsum(a * b for a, b in zip(distances, distances[lag:]))
    return together / math.fsum(distance**2 for distance in distances)
