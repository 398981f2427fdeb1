"""Where a sample lies."""

import math


def mean(values):
    """The arithmetic mean."""
    return math.fsum(values) / len(values)


def weighted_mean(values, weights):
    """The mean of values that count as much as their weights say; these need not add up to 1."""
    return math.fsum(weight * value for weight, value in zip(weights, values)) / math.fsum(weights)


def geometric_mean(values):
    """The geometric mean of positive numbers."""
    return math.exp(mean([math.log(value) for value in values]))


def harmonic_mean(values):
    """The harmonic mean of positive numbers."""
    return 1.0 / mean([1.0 / value for value in values])


def midrange(values):
    """The point half-way between the smallest and the largest value."""
    return (min(values) + max(values)) / 2.0


def median(values):
    """The median; of an even number of values, the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0


def quantile(values, share):
    """The value below which a share of the sample lies, between two values by linear interpolation."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = math.ceil(place)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def trimmed_mean(values, share):
    """The mean without the smallest and the largest values, a share of the sample at either end."""
    cut = int(share * len(values))
    return mean(sorted(values)[cut : len(values) - cut])
