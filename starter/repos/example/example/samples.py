"""Numbers with heavy tails."""

import random


def pareto(shape, count, seed):
    """A sample of `count` numbers, the same for the same seed."""
    source = random.Random(seed)
    return [(1.0 - source.random()) ** (-1.0 / shape) for _ in range(count)]


def true_mean(shape):
    """The mean of the distribution that the numbers are drawn from."""
    return shape / (shape - 1.0)
