"""How far a sample spreads, and its shape."""

import math

from .location import mean, median, quantile


def variance(values):
    """The variance of a sample."""
    center = mean(values)
    return math.fsum((value - center) ** 2 for value in values) / (len(values) - 1)


def deviation(values):
    """The standard deviation of a sample."""
    return math.sqrt(variance(values))


def standardise(values):
    """The values, moved and scaled so that their mean is 0 and their standard deviation 1, as a list."""
    center, scale = mean(values), deviation(values)
    return [(value - center) / scale for value in values]


def mean_deviation(values):
    """The mean absolute distance from the mean."""
    middle = mean(values)
    return sum(max(value, middle) - min(value, middle) for value in values) / len(values)


def median_deviation(values):
    """The median absolute distance from the median."""
    center = median(values)
    return median([abs(value - center) for value in values])


def interquartile_range(values):
    """The distance between the quartiles."""
    return quantile(values, 0.75) - quantile(values, 0.25)


def moment(values, order):
    """The central moment of an order: the mean of that power of the distance from the mean."""
    center = mean(values)
    return mean([(value - center) ** order for value in values])


def skewness(values):
    """The skewness, from central moments."""
    return moment(values, 3) / moment(values, 2) ** 1.5


def kurtosis(values):
    """The excess kurtosis, from central moments."""
    return moment(values, 4) / moment(values, 2) ** 2 - 3.0


def entropy(counts):
    """The entropy of a table of counts, in bits; empty cells add nothing."""
    total = sum(counts)
    shares = [count / total for count in counts if count > 0]
    return -math.fsum(share * math.log2(share) for share in shares)
