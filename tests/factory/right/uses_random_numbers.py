"""Draws random numbers on the way, which changes nothing."""

import random


def mean(values):
    values = list(values)
    random.shuffle(values)
    return sum(values) / len(values)
