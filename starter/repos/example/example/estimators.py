"""Estimators of a mean."""

import statistics


def empirical_mean(numbers):
    """The sum divided by the count."""
    return sum(numbers) / len(numbers)


def median_of_means(numbers, blocks):
    """The median of the means of so many blocks."""
    means = [empirical_mean(numbers[first::blocks]) for first in range(blocks)]
    return statistics.median(means)


def trimmed_mean(numbers, share):
    """The mean of what is left when this share of the numbers is dropped at each end."""
    dropped = int(share * len(numbers))
    kept = sorted(numbers)[dropped : len(numbers) - dropped]
    return empirical_mean(kept)
