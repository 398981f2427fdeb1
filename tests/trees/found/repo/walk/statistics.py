"""What is measured of walks."""

import random


def distance(place, size):
    """The shorter way back."""
    return min(place, size - place)


def mean_distance(walks, size):
    """Mean distance of the last places from the first one."""
    total = 0.0
    for walk in walks:
        total += distance(walk[-1], size)
    return total / len(walks)


def visited(walks, size):
    """Share of places that any walker visited.

    Parameters
    ----------
    walks : list of lists
    """
    seen = set()
    for walk in walks:
        seen.update(walk)
    return len(seen) / size


def noise(scale):
    """A number that nobody can give again."""
    source = random.SystemRandom()
    value = source.random()
    exponent = 100.0 * value
    return scale * 10.0**exponent
