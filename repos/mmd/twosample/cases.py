"""Small cases by hand: ties, repeated points, values on cuts, samples of different sizes. Each group is one experiment.

Several numbers are reported as one, their signature; everything is rounded to 9 decimals.
"""

import numpy as np

from .baselines import friedman_rafsky_test, hotelling_test, neighbour_test, partition_test, spanning_tree
from .estimators import LinearStatistic, block_mmd, mmd_variance, pooled_gram, unbiased_mmd, witness_profile
from .evaluation import summarise
from .kernels import GaussianKernel, LaplaceKernel, SpectrumKernel, median_bandwidth, orthogonal_frequencies
from .kernels import squared_distances
from .matching import auction
from .nulls import GammaNull, PearsonNull, PermutationNull, SpectrumNull, WildNull
from .randomness import trial_generator
from .selection import choose_bandwidth
from .synthetic import blobs, markov_strings, perturbed_gaussian

GROUPS = {}

#: A grid of three rows and three columns, and points that repeat some of its places.
GRID = np.array([[float(row), float(column)] for row in range(3) for column in range(3)])
OTHERS = np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 1.0], [1.0, 1.0], [2.0, 4.0]])


def group(function):
    """Decorator: make a group of cases available by its name."""
    GROUPS[function.__name__] = function
    return function


def primes(count):
    """The first prime numbers."""
    limit = 20 + 20 * count
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for number in range(2, int(limit**0.5) + 1):
        sieve[number * number :: number] = False
    return np.flatnonzero(sieve)[:count]


def signature(*arrays):
    """How many numbers there are, and the sum of all of them, each times the root of another prime, with changing signs.

    The roots of different primes are independent over the rational numbers: whole numbers that differ, or change places,
    give another sum.
    """
    flat = np.concatenate([np.ravel(np.asarray(values, dtype=float)) for values in arrays])
    weights = np.sqrt(primes(len(flat))) * np.where(np.arange(len(flat)) % 3 == 1, -1.0, 1.0)
    return len(flat) + float(np.dot(flat, weights))


def rounded(result):
    return {name: round(float(value), 9) for name, value in result.items()}


def samples(size, other, key, dimension=2):
    """Two normal samples that differ, of any sizes."""
    rng = trial_generator(77, key)
    return rng.standard_normal((size, dimension)), 1.5 * rng.standard_normal((other, dimension)) + 0.5


def polynomial(x, y):
    """A kernel matrix whose diagonal is not constant."""
    pooled = np.concatenate([x, y])
    return (1.0 + pooled @ pooled.T) ** 2


@group
def draws():
    result = {}
    for name, draw, effect in (("sine", perturbed_gaussian, 2.0), ("blobs", blobs, 4.0)):
        for dimension in (2, 3):
            x, y = draw(6, dimension, effect, trial_generator(1, dimension))
            result[f"{name}, d={dimension}"] = signature(x, y)
    strings = markov_strings(5, 7, 0.4, trial_generator(2))
    result["strings"] = signature([["ACGT".index(letter) for letter in string] for string in strings])
    result["spectrum"] = signature(SpectrumKernel(2)(["AAAC", "A", "CACA", "GT"], ["ACAC", "AAAA", "GTGT"]))
    result["spectrum, short"] = signature(*[SpectrumKernel(length)(["", "G", "AC"], ["T", "AC", "ACA"]) for length in (2, 3, 4)])
    result["spectrum, drawn"] = signature(SpectrumKernel(1)(strings, strings[:2]))
    rows = np.arange(7.0)[:, np.newaxis] ** 2
    result["median, repeated"] = median_bandwidth(GRID, OTHERS)
    result["median, one place"] = median_bandwidth(GRID[:1], GRID[:1])
    result["median, limit"] = median_bandwidth(rows, 0.5 + rows[:3], 4)
    result["median, many"] = median_bandwidth(np.arange(250.0)[:, np.newaxis] ** 2, -0.5 * np.arange(130.0)[:, np.newaxis])
    result["median, even"] = median_bandwidth(rows[:3], rows[3:4])
    result["median, limits"] = median_bandwidth(rows, 0.5 + rows[:6], 5)
    for dimension, count in ((2, 2), (3, 7)):
        frequencies = orthogonal_frequencies(dimension, count, 0.5, trial_generator(3, dimension))
        result[f"frequencies, d={dimension}"] = signature(frequencies)
        result[f"products, d={dimension}"] = signature(frequencies @ frequencies.T)
    result["inputs"] = signature(GRID, OTHERS, rows)
    return result


@group
def estimates():
    result = {}
    gram = polynomial(*samples(4, 6, 1))
    result["unbiased"] = unbiased_mmd(gram, 4)
    result["unbiased, again"] = signature(unbiased_mmd(gram, 4), gram)
    result["variance"] = mmd_variance(polynomial(*samples(5, 5, 2)), 5)
    grid = np.array([-90.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.75, 1.0, 3.0, 5.0, 90.0, 91.0])[:, np.newaxis]
    x, y = samples(4, 7, 3, 1)
    profile = witness_profile(GaussianKernel(0.75), x, y, grid)
    result["witness"] = signature([profile[name] for name in ("highest", "lowest", "peak", "trough")])
    result["zeros"], result["area"] = signature([profile["first"], profile["last"]]), profile["area"]
    x, y = samples(11, 11, 4)
    y[6:] += 3.0
    for kernel in (GaussianKernel(1.0), LaplaceKernel(2.0)):
        linear = LinearStatistic(kernel)
        rows = []
        for start, stop in ((0, 1), (1, 1), (1, 6), (6, 7), (7, 11)):
            linear.update(x[start:stop], y[start:stop])
            rows.append([linear.count, linear.mean])
        result[f"linear, {kernel.name}"], result[f"deviation, {kernel.name}"] = signature(rows), linear.deviation
    result["blocks"] = signature(*[block_mmd(GaussianKernel(1.0), *pair, 3) for pair in ((x, y[:10]), (x, y[:8]), (x[:7], y))])
    x, y = samples(6, 6, 5)
    for criterion in ("mmd", "ratio"):
        for name, candidates in (("middle", [0.125, 0.5, 2.0, 8.0, 32.0]), ("low", [2.0, 6.0, 18.0]), ("nothing", [1e-6, 1e-5])):
            result[f"{name}, {criterion}"] = signature(choose_bandwidth(x, y, np.array(candidates), criterion))
    costs = np.array([[1.0, 1.0, 5.0, 2.25], [0.5, 0.875, 3.0, 4.0], [0.75, 2.0, 1.0, 0.25], [1.5, 0.125, 2.5, 3.0]])
    many = trial_generator(9).random((7, 7))
    for name, options in (("auction", {}), ("auction, rough", {"precision": 0.25}), ("auction, slow", {"reduction": 1.5})):
        result[name] = signature(*[values for table in (costs, many) for values in auction(table, **options)], costs)
    result["auction, one"] = signature(*auction(np.array([[2.0]])))
    row = summarise([(1.0, 1.0), (2.0, 1.5), (0.5, 1.0), (3.0, 1.25)])
    result["row"] = signature([row[name] for name in ("rate", "low", "high", "statistic", "threshold", "margin")])
    for confidence in (0.5, 0.999):
        row = summarise([(1.0, 1.0), (2.0, 1.5), (3.0, 1.25)], confidence)
        result[f"row, {confidence}"] = signature([row[name] for name in ("rate", "low", "high")])
    result["inputs"] = signature(x, y, costs, many, grid)
    return result


@group
def tests():
    result = {}
    gram = polynomial(*samples(4, 6, 6))
    equal = polynomial(*samples(5, 5, 7))
    result["permutation"] = signature(PermutationNull(5).draws(gram, 4, trial_generator(1)))
    result["spectrum"] = signature(SpectrumNull(5, 3).draws(equal, 5, trial_generator(2)))
    indefinite = np.sqrt(squared_distances(GRID[:6], GRID[:6])) + np.outer(np.arange(6.0), np.arange(6.0)) / 2.0
    result["spectrum, indefinite"] = signature(SpectrumNull(5, 8).draws(indefinite, 3, trial_generator(3)))
    result["gamma"] = GammaNull().threshold(equal, 5, 0.1, None)
    result["pearson"] = PearsonNull().threshold(equal, 5, 0.1, None)
    result["wild"] = signature(WildNull(3, 2.0).draws(equal, 5, trial_generator(4)))
    x, y = samples(5, 8, 8)
    for name, scale in (("hotelling", 1.0), ("hotelling, large", 20.0)):
        result[name] = signature(hotelling_test(scale * x, scale * y, 0.1, None))
    for ridge in (0.0, 1.5):
        result[f"hotelling, {ridge}"] = signature(hotelling_test(x, y, 0.25, None, ridge))
    distances = np.sqrt(squared_distances(GRID, GRID))
    result["tree"] = signature(spanning_tree(distances), distances)
    result["tree, repeated"] = signature(spanning_tree(np.rint(squared_distances(OTHERS, OTHERS))))
    result["runs"] = signature(friedman_rafsky_test(GRID, OTHERS, 0.1, None))
    result["neighbours"] = signature(neighbour_test(GRID, OTHERS, 0.2, trial_generator(5), 3, 12))
    result["neighbours, two"] = signature(neighbour_test(OTHERS, GRID[::2], 0.1, trial_generator(6), 2, 7))
    result["partition"] = signature(partition_test(GRID, OTHERS, 0.1, None))
    cuts = np.array([[0.0, 5.0], [1.0, 5.0], [1.0, 1.0], [1.0, 2.0], [3.0, 2.0], [3.0, 2.0], [3.0, 1.0]])
    result["partition, cuts"] = signature(partition_test(cuts[:4], cuts[4:], 0.05, None))
    for bins in (2, 5):
        result[f"partition, {bins}"] = signature(partition_test(x, y, 0.1, None, bins))
    result["inputs"] = signature(gram, equal, indefinite, GRID, OTHERS, cuts, x, y)
    return result
