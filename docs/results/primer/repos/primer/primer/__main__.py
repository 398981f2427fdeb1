"""``python -m primer EXPERIMENT --size N``: prints its numbers as JSON."""

import argparse
import json

from . import location, relation, spread


def sample(size, start):
    """Positive numbers with some ties, from a linear congruential generator."""
    values, state = [], start
    for _ in range(size):
        state = (1103515245 * state + 12345) % 2**31
        values.append(1.0 + (state >> 16) % 97 / 8.0)
    return values


def means(size):
    values = sample(size, 1)
    weights = sample(size, 2)
    return {
        "mean": location.mean(values),
        "weighted": location.weighted_mean(values, weights),
        "geometric": location.geometric_mean(values),
        "harmonic": location.harmonic_mean(values),
    }


def order(size):
    values = sample(size, 3)
    return {
        "midrange": location.midrange(values),
        "odd": location.median(values[1:]),
        "even": location.median(values),
        "tenth": location.quantile(values, 0.1),
        "most": location.quantile(values, 0.77),
        "trimmed": location.trimmed_mean(values, 0.1),
    }


def widths(size):
    values = sample(size, 4)
    return {
        "variance": spread.variance(values),
        "deviation": spread.deviation(values),
        "last": spread.standardise(values)[-1],
        "mean": spread.mean_deviation(values),
        "median": spread.median_deviation(values),
        "quartiles": spread.interquartile_range(values),
    }


def shape(size):
    values = sample(size, 5)
    counts = [sum(low <= value < low + 2 for value in values) for low in range(0, 16, 2)]
    return {
        "fifth": spread.moment(values, 5),
        "skewness": spread.skewness(values),
        "kurtosis": spread.kurtosis(values),
        "entropy": spread.entropy(counts),
    }


def pairs(size):
    first, noise = sample(size, 6), sample(size, 7)
    second = [2.0 * x - y for x, y in zip(first, noise)]
    slope, intercept = relation.line(first, second)
    return {
        "covariance": relation.covariance(first, second),
        "correlation": relation.correlation(first, second),
        "rank": relation.ranks(first)[0],
        "ranks": relation.rank_correlation(first, second),
        "slope": slope,
        "intercept": intercept,
        "error": relation.root_mean_square_error(second, [slope * x + intercept for x in first]),
    }


def series(size):
    values = sample(size, 8)
    averages, levels = relation.moving_average(values, 5), relation.smooth(values, 0.3)
    return {
        "averages": len(averages),
        "first": averages[0],
        "last": averages[-1],
        "level": levels[-1],
        "second": levels[1],
        "autocorrelation": relation.autocorrelation(values, 2),
    }


def main():
    experiments = {function.__name__: function for function in (means, order, widths, shape, pairs, series)}
    parser = argparse.ArgumentParser(prog="primer")
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    print(json.dumps(experiments[options.experiment](options.size)))


if __name__ == "__main__":
    main()
