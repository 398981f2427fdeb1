"""Tail probabilities, and the two conjectures that the analysis of normal rewards rests on."""

import math

import numpy as np


def binomial_tail(trials, probability, least):
    """Probability of at least ``least`` successes, from 0 to ``trials``; ``probability`` is neither 0 nor 1.

    The sum of the terms' exponentials, each from logarithms of factorials, with the largest one taken out.
    """
    hit, miss = math.log(probability), math.log1p(-probability)
    logs = []
    for count in range(least, trials + 1):
        choices = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
        logs.append(choices + count * hit + (trials - count) * miss)
    largest = max(logs)
    return math.exp(largest) * math.fsum(math.exp(value - largest) for value in logs)


def student_tail(value, freedom):
    """Probability that a t variable with ``freedom`` degrees of freedom (an integer) exceeds ``value`` >= 0.

    With angle w = arctan(value / sqrt(freedom)) the probability of -value to value is a finite sum. For even
    degrees it is sin w (1 + 1/2 cos^2 w + (1 3)/(2 4) cos^4 w + ...), with freedom / 2 terms; for odd ones
    2/pi (w + sin w cos w (1 + 2/3 cos^2 w + (2 4)/(3 5) cos^4 w + ...)), with (freedom - 1) / 2 terms.
    """
    angle = math.atan2(value, math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    terms, term = [], 1.0
    for number in range((freedom - odd) // 2):
        terms.append(term)
        term *= square * (2 * number + 1 + odd) / (2 * number + 2 + odd)
    if odd:
        inside = 2.0 / math.pi * (angle + sine * math.cos(angle) * math.fsum(terms))
    else:
        inside = sine * math.fsum(terms)
    return (1.0 - inside) / 2.0


def chi_square_tail(value, freedom):
    """Probability that a chi-square variable with ``freedom`` degrees of freedom (an integer) exceeds ``value`` > 0.

    It starts from one degree, erfc(sqrt(value / 2)), or from two, exp(-value / 2). From k to k + 2 degrees it
    grows by (value / 2)^(k / 2) exp(-value / 2) / Gamma(k / 2 + 1).
    """
    half = value / 2.0
    if freedom % 2:
        degrees, tail = 1, math.erfc(math.sqrt(half))
    else:
        degrees, tail = 2, math.exp(-half)
    while degrees < freedom:
        shape = degrees / 2.0
        tail += math.exp(shape * math.log(half) - half - math.lgamma(shape + 1.0))
        degrees += 2
    return tail


def conjecture_ratios(freedom, grid=20):
    """The paper's two conjectures at one number s of degrees of freedom: tails over what they shall stay below.

    The first: the tail of a t variable over exp(-a^2 / 4), the mean over ``grid`` even steps of a from
    sqrt(2 (s + 1)) / grid to sqrt(2 (s + 1)), and the ratio at the last one. The second: the tail of a chi-square
    variable at 4 s over exp(-(s + 1) / 2).

    Returns
    -------
    mean and last ratio of the first conjecture, ratio of the second one
    """
    end = math.sqrt(2.0 * (freedom + 1))
    places = np.linspace(end / grid, end, grid)
    tails = [student_tail(float(place), freedom) for place in places]
    ratios = np.divide(tails, np.exp(-np.square(places) / 4.0))
    second = chi_square_tail(4.0 * freedom, freedom) / math.exp(-(freedom + 1) / 2.0)
    return float(np.mean(ratios)), float(ratios[-1]), float(second)
