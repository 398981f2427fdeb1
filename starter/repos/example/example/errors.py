"""How far estimates are from the truth."""

import math


def errors(estimates, truth):
    """The absolute distance of each estimate from the truth."""
    return [abs(estimate - truth) for estimate in estimates]


def quantile(numbers, share):
    """The number that this share of them do not exceed."""
    place = math.ceil(share * len(numbers))
    return sorted(numbers)[max(place, 1) - 1]
