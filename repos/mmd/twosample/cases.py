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


def drawn_on_edges():
    """Draws with no effect, of few letters and places, bandwidths of thinned samples, and frequencies of part of a block."""
    result = {}
    for name, draw, effect, dimension in (("sine", perturbed_gaussian, 0.0, 1), ("sine", perturbed_gaussian, 9.0, 2), ("blobs", blobs, 1.0, 2), ("blobs", blobs, 0.25, 4)):
        x, y = draw(5, dimension, effect, trial_generator(21, dimension))
        result[f"{name}, effect {effect:g}"] = signature(x.shape, y.shape, x, y)
    for size, length, stay in ((4, 1, 0.5), (3, 6, 0.0), (3, 6, 1.0), (1, 9, 0.25)):
        strings = markov_strings(size, length, stay, trial_generator(22, length))
        result[f"strings, {length}, {stay}"] = signature([["ACGT".index(letter) for letter in string] for string in strings])
    words = np.array(["abab", "ba", "Abab", "aaaaaa", ""])
    result["spectrum, words"] = signature(SpectrumKernel(2)(words, words), SpectrumKernel(1)(words[:1], words), SpectrumKernel()(words[3:4], words[:4]))
    result["spectrum, counted"] = signature(SpectrumKernel(1)(["aab", "abb", "b"], ["aabb", "ccc", "a"]))
    line = np.arange(9)[:, np.newaxis] ** 2
    for name, x, y, limit in (
        ("at the limit", line[:5], line[5:], 5), ("whole numbers", line, line + 1, 100), ("one thinned", line, line[:2], 4),
        ("line, repeated", np.repeat(line, 3, axis=0), line[:2], 100), ("two places", np.zeros((4, 2)), np.ones((3, 2)), 100),
        ("both thinned", line * 1.0, -3.0 * line[:7], 3), ("far", line + 1e6, line[:2] + 1e6, 100),
    ):
        result[f"median, {name}"] = round(median_bandwidth(x, y, limit), 6)
        result[f"median, {name}, places"] = signature(x, y)
    for dimension, count, bandwidth in ((1, 3, 1.0), (4, 2, 2.0), (2, 4, 0.25), (3, 3, 1.0), (5, 11, 1.0)):
        rng = trial_generator(23, dimension)
        frequencies = orthogonal_frequencies(dimension, count, bandwidth, rng)
        result[f"frequencies, {count} of {dimension}"] = signature(frequencies.shape, frequencies, rng.random())
    return result


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
    return dict(**result, **drawn_on_edges())


def matrix(key, size):
    """A symmetric matrix of whole numbers without a pattern."""
    half = trial_generator(31, key).integers(-4, 9, (size, size))
    return half + half.T


def estimated_on_edges():
    """Estimates from matrices of whole numbers, streams cut anywhere, and a witness on few places."""
    result = {}
    for key in range(5):
        gram = matrix(key, 8)
        values = [unbiased_mmd(gram, size) for size in (2, 3, 4, 6)]
        result[f"unbiased, whole, {key}"] = signature(values, mmd_variance(gram, 4), mmd_variance(matrix(key, 4), 2), gram)
    result["variance, none"] = mmd_variance(np.ones((4, 4)), 2)
    for key, rows in enumerate(([-2.0, -1.0, 1.0, 2.0], [-3.0, -1.5, -0.5, 0.25, 4.0, 9.0])):
        grid = np.array(rows)[:, np.newaxis]
        x, y = np.array([[-1.0], [-1.0], [2.0]]), np.array([[1.0], [0.5]])
        profile = witness_profile(LaplaceKernel(1.0 + key), x, y, grid)
        result[f"witness, {key}"] = signature([profile[name] for name in sorted(profile)], x, y, grid)
    mirrored = witness_profile(GaussianKernel(1.0), np.array([[-1.0], [1.0]]), np.array([[-4.0], [4.0], [4.0], [-4.0]]), np.array([[-4.0], [-1.0], [1.0], [4.0]]))
    result["witness, mirrored"] = signature([mirrored[name] for name in ("highest", "lowest", "area", "first", "last")])
    x, y = samples(13, 13, 14)
    for cuts in ([13], [2, 4, 13], [0, 1, 2, 3, 13], [5, 5, 12, 13], [12, 13], [1, 11]):
        linear, start, rows = LinearStatistic(GaussianKernel(2.0)), 0, []
        for stop in cuts:
            linear.update(x[start:stop], y[start:stop])
            rows.append([linear.count, linear.mean, linear.deviation if linear.count > 1 else 0.0])
            start = stop
        result[f"linear, {cuts}"] = signature(rows, linear.score, x, y)
    for block, size, other in ((2, 13, 13), (4, 8, 13), (5, 13, 11), (6, 12, 13)):
        result[f"blocks, {block}"] = signature(block_mmd(LaplaceKernel(1.0), x[:size], y[:other], block), x, y)
    return result


def chosen_on_edges():
    """Bandwidths at either end and for equal scores, assignments with equal costs, and tables with ties."""
    result = {}
    x, y = samples(6, 6, 15)
    for name, candidates, pair in (
        ("first", [0.5, 2.0, 8.0], (x, y + 0.5)), ("last", [0.0625, 0.25, 1.0], (x, y + 9.0)), ("second", [0.25, 1.0, 4.0, 16.0, 64.0], (x, y + 3.0)),
        ("one but last", [0.125, 0.25, 0.5, 1.0, 2.0, 4.0], (x, y + 2.0)), ("equal", [1.0, 2.0, 4.0], (x, x)), ("two", [1.0, 3.0], (x, y)),
        ("hardly varied", [64.0, 256.0, 1024.0, 4096.0], (x, y + 1.0)), ("far", [0.25, 1.0, 4.0], (x, y + 400.0)),
    ):
        given = np.array(candidates)
        result[f"chosen, {name}"] = signature(*[np.round(choose_bandwidth(*pair, given, criterion), 6) for criterion in ("mmd", "ratio")], given)
    given = np.array([0.5, 1.0, 2.0, 4.0])
    result["chosen, default"] = signature(choose_bandwidth(x, y, given))
    for key in range(6):
        size = 2 + key
        costs = trial_generator(32, key).integers(0, 2 + key, (size, size))
        for name, options in (("", {}), (", thirds", {"precision": 1e-3, "reduction": 3.0}), (", fine", {"precision": 1e-6, "reduction": 2.0})):
            columns, prices, bids = auction(costs * 4.0, **options)
            result[f"auction, {key}{name}"] = signature(np.sum(costs[np.arange(size), columns]), len(set(columns.tolist())), costs)
    # Increments are halves of the spread, and one of them equals the limit.
    exact = np.array([[0.0, 4.0, 8.0, 2.0], [4.0, 0.0, 2.0, 6.0], [0.0, 2.0, 6.0, 8.0], [8.0, 4.0, 0.0, 2.0]])
    for precision in (2.0, 1.0, 0.5, 0.25, 0.2):
        result[f"auction, exact, {precision}"] = signature(*auction(exact, precision, 2.0), exact)
    result["auction, exact, turned"] = signature(*auction(-exact, 0.125, 4.0))
    for outcomes, confidence in (([(1.0, 2.0)], 0.95), ([(2.0, 1.0), (3.0, 1.0)], 0.95), ([(0.0, 0.0), (-1.0, -2.0), (5.0, 5.0), (2.0, 4.0), (3.0, 1.0)], 0.9)):
        row = summarise(outcomes, confidence)
        result[f"row, {len(outcomes)}"] = signature([row[name] for name in sorted(row)])
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
    return dict(**result, **estimated_on_edges(), **chosen_on_edges())


def nulls_on_edges():
    """Null distributions with other counts, ranks, levels and sizes, from matrices that must not change."""
    result = {}
    for key, (size, other) in enumerate(((2, 5), (4, 4), (6, 3))):
        gram = matrix(40 + key, size + other)
        draws = [PermutationNull(count).draws(gram, size, trial_generator(41, key)) for count in (1, 4, 120)]
        result[f"permutation, {key}"] = signature([len(values) for values in draws], *draws, gram)
        spectrum = [SpectrumNull(count, rank).draws(gram, size, trial_generator(42, key)) for count, rank in ((1, 1), (3, 2), (4, 50))]
        result[f"spectrum, {key}"] = signature([len(values) for values in spectrum], *spectrum, gram)
    result["permutation, threshold"] = PermutationNull(20).threshold(matrix(43, 7), 3, 0.2, trial_generator(44))
    for key, size in enumerate((3, 4, 6)):
        gram = polynomial(*samples(size, size, 45 + key))
        held = np.array(gram)
        for level in (0.01, 0.25):
            result[f"gamma, {size}, {level}"] = GammaNull().threshold(gram, size, level, None)
            result[f"pearson, {size}, {level}"] = PearsonNull().threshold(gram, size, level, None)
        wild = [WildNull(count, memory).draws(gram, size, trial_generator(46, key)) for count, memory in ((1, 0.5), (4, 8.0), (2, 100.0))]
        result[f"wild, {size}"] = signature([len(values) for values in wild], *wild, gram - held)
    return result


def tests_on_edges():
    """Other tests for whole numbers, tied distances, a single dimension, and samples of very different sizes."""
    result = {}
    for key in range(6):
        rng = trial_generator(51, key)
        size, other = 3 + key, 9 - key
        x, y = rng.integers(0, 4, (size, 2)), rng.integers(0, 4, (other, 2))
        pooled = np.concatenate([x, y])
        squares = np.rint(squared_distances(pooled, pooled))
        held = np.array(squares)
        edges = spanning_tree(squares)
        result[f"tree, {key}"] = signature(edges, np.array(edges).shape, squares - held, x, y)
        result[f"partition, drawn, {key}"] = signature(*[partition_test(x, y, 0.1, None, bins) for bins in (2, 4)], x, y)
        near = [neighbour_test(x, y, level, trial_generator(52, key), count, draws) for level, count, draws in ((0.1, 1, 10), (0.25, 4, 16))]
        result[f"neighbours, {key}"] = signature(*near, x, y)
        moved = x + rng.standard_normal(x.shape), y + rng.standard_normal(y.shape)
        result[f"runs, {key}"] = signature(friedman_rafsky_test(*moved, 0.05, None), hotelling_test(*moved, 0.05, None), hotelling_test(x, y, 0.5, None, 0.5))
    lines = np.arange(5)[:, np.newaxis], np.array([[1], [1], [7]])
    result["one dimension"] = signature(hotelling_test(*lines, 0.1, None), partition_test(*lines, 0.1, None), friedman_rafsky_test(np.arange(5.0)[:, np.newaxis] ** 2, np.array([[0.5], [2.0], [30.0]]), 0.1, None))
    many = trial_generator(53).integers(0, 3, (30, 2))
    result["many tied"] = signature(neighbour_test(many[:12], many[12:], 0.1, trial_generator(54)), spanning_tree(np.rint(squared_distances(many, many))))
    result["tree, two"] = signature(spanning_tree(np.array([[0, 3], [3, 0]])))
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
    return dict(**result, **nulls_on_edges(), **tests_on_edges())
