"""The experiments of the paper."""

import argparse
import json

from example.errors import errors, quantile
from example.estimators import empirical_mean, median_of_means, trimmed_mean
from example.samples import pareto, true_mean

SHAPE = 2.5
COUNT = 120


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", choices=["mean-errors", "worst-errors"])
    parser.add_argument("--samples", type=int, default=2000)
    asked = parser.parse_args()
    samples = [pareto(SHAPE, COUNT, seed) for seed in range(asked.samples)]
    truth = true_mean(SHAPE)

    def of(estimator):
        return errors([estimator(sample) for sample in samples], truth)

    mean, blocks = of(empirical_mean), of(lambda sample: median_of_means(sample, 8))
    if asked.experiment == "mean-errors":
        trimmed = of(lambda sample: trimmed_mean(sample, 0.05))
        result = {
            "mean": empirical_mean(mean),
            "median_of_means": empirical_mean(blocks),
            "trimmed": empirical_mean(trimmed),
        }
    else:
        result = {"mean": quantile(mean, 0.95), "median_of_means": quantile(blocks, 0.95)}
    print(json.dumps(result))


main()
