"""Updates the mean with each value, with other rounding errors."""


def mean(values):
    found = 0.0
    for count, value in enumerate(values, 1):
        found += (value - found) / count
    return found
