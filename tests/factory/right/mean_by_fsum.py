"""Adds exactly."""

import math


def mean(values):
    values = tuple(values)
    return math.fsum(values) / len(values)
