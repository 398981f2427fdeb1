"""Uses the standard library."""

import statistics


def mean(values):
    return statistics.fmean(values)
