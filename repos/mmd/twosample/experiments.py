"""The experiments. Each is a function of the parsed arguments that returns a (nested) dictionary of numbers."""

import numpy as np

from .cases import GROUPS, rounded
from .datasets import two_databases
from .estimators import LinearStatistic, block_mmd, mmd_variance, pooled_gram, unbiased_mmd, witness_profile
from .evaluation import kernel_test, run_test, summarise
from .kernels import GaussianKernel, SpectrumKernel, feature_map, median_bandwidth, orthogonal_frequencies
from .matching import attribute_costs, auction
from .nulls import NULLS
from .randomness import trial_generator
from .selection import candidate_bandwidths, choose_bandwidth
from .synthetic import PROBLEMS, markov_strings

EXPERIMENTS = {}


def experiment(function):
    """Decorator: make an experiment available to the command line by its name."""
    EXPERIMENTS[function.__name__] = function
    return function


def pairs_of_samples(args, dimension, effect):
    """Both samples of each trial, and a generator for tests. They don't depend on the method."""
    for trial in range(args.trials):
        x, y = PROBLEMS[args.problem](args.size, dimension, effect, trial_generator(args.seed, 0, trial))
        yield x, y[: round(args.share * args.size)], trial_generator(args.seed, 1, trial)


def columns_of(args, row):
    return {name: row[name] for name in args.columns}


@experiment
def power(args):
    """How often each test rejects, by dimension and by the size of the difference."""
    result = {}
    for dimension in args.dimensions:
        for effect in args.effects:
            for method in args.methods:
                outcomes = [
                    run_test(method, x, y, args.level, rng, args.kernel, args.bandwidth)
                    for x, y, rng in pairs_of_samples(args, dimension, effect)
                ]
                name = f"{method}, d={dimension}, effect={effect:g}"
                result[name] = columns_of(args, summarise(outcomes))
    return result


@experiment
def strings(args):
    """The spectrum kernel on strings from two Markov chains; the second sample is one and a half times as large."""
    result = {}
    for stay in args.effects:
        outcomes, distances, likeness = [], [], []
        for trial in range(args.trials):
            rng = trial_generator(args.seed, 2, trial)
            x = markov_strings(args.size, args.length, 0.25, rng)
            y = markov_strings(3 * args.size // 2, args.length, stay, rng)
            outcomes.append(kernel_test(NULLS["permutation"](), SpectrumKernel(args.letters), x, y, args.level, rng))
            shorter = SpectrumKernel(args.letters - 1)
            distances.append(unbiased_mmd(pooled_gram(shorter, x, y), len(x)))
            likeness.append(np.mean(shorter(x, y)))
        row = {"shorter": float(np.mean(distances)), "likeness": float(np.mean(likeness))}
        result[f"stay={stay:g}"] = {**columns_of(args, summarise(outcomes)), **row}
    return result


@experiment
def witness(args):
    """The witness function of one-dimensional samples, on a grid of 401 points from -4 to 4."""
    grid = np.linspace(-4.0, 4.0, 401)[:, np.newaxis]
    profiles = []
    for x, y, _ in pairs_of_samples(args, 1, args.effects[0]):
        kernel = GaussianKernel(args.bandwidth or median_bandwidth(x, y, args.limit))
        profiles.append(witness_profile(kernel, x, y, grid))
    return {name: float(np.mean([profile[name] for profile in profiles])) for name in profiles[0]}


@experiment
def streams(args):
    """Linear-time and block estimates, on streams that come in unequal pieces."""
    if args.size < 2 * args.block:
        raise SystemExit(f"{args.size} points are fewer than two blocks of {args.block}")
    result = {}
    for effect in args.effects:
        rows = []
        for x, y, rng in pairs_of_samples(args, args.dimensions[0], effect):
            kernel = GaussianKernel(args.bandwidth or median_bandwidth(x, y, args.limit))
            linear = LinearStatistic(kernel)
            cuts = np.sort(rng.integers(len(x), size=args.pieces))
            for x_piece, y_piece in zip(np.split(x, cuts), np.split(y, cuts)):
                linear.update(x_piece, y_piece)
            rows.append([linear.mean, linear.deviation, linear.score, *block_mmd(kernel, x, y, args.block)])
        names = ["linear", "deviation", "linear_score", "block", "block_score"]
        result[f"effect={effect:g}"] = dict(zip(names, np.mean(rows, axis=0).tolist()))
    return result


@experiment
def selection(args):
    """Bandwidth chosen on one half of the points, and the permutation test with it on the other half."""
    result = {}
    for criterion in ("median", "mmd", "ratio"):
        outcomes, bandwidths, scores = [], [], []
        for x, y, rng in pairs_of_samples(args, args.dimensions[0], args.effects[0]):
            half = len(x) // 2
            if criterion == "median":
                bandwidth, score = median_bandwidth(x[:half], y[:half], args.limit), 1.0
            else:
                candidates = candidate_bandwidths(x[:half], y[:half])
                bandwidth, score = choose_bandwidth(x[:half], y[:half], candidates, criterion)
            outcomes.append(run_test("permutation", x[half:], y[half:], args.level, rng, "gaussian", bandwidth))
            bandwidths.append(bandwidth)
            scores.append(score)
        row = {**summarise(outcomes), "bandwidth": float(np.mean(bandwidths)), "score": float(np.mean(scores))}
        result[criterion] = columns_of(args, row)
        if criterion != "median":
            result[criterion]["score"] = row["score"]
    return result


@experiment
def matching(args):
    """Attributes of one half of a data set matched with those of the other half, by an auction.

    Only the first ``size`` rows of each half are looked at.
    """
    result = {}
    for name in args.data:
        costs, prices, bids, right = [], [], [], []
        for trial in range(args.trials):
            first, second, order = two_databases(name, args.attributes, trial_generator(args.seed, 3, trial))
            table = attribute_costs(first[: args.size], second[: args.size])
            columns, price, count = auction(table)
            costs.append(np.sum(table[np.arange(len(table)), columns]))
            prices.append(np.ptp(price))
            bids.append(count)
            right.append(np.mean(order[columns] == np.arange(len(table))))
        numbers = {"cost": costs, "prices": prices, "bids": bids, "right": right}
        result[name] = {key: float(np.mean(values)) for key, values in numbers.items()}
    return result


@experiment
def features(args):
    """Squared MMD by orthogonal random features against its exact value, and the variance of the exact one."""
    result = {}
    for count in args.features:
        exact, estimates, variances = [], [], []
        for x, y, rng in pairs_of_samples(args, args.dimensions[0], args.effects[0]):
            bandwidth = median_bandwidth(x, y, args.limit)
            frequencies = orthogonal_frequencies(args.dimensions[0], count, bandwidth, rng)
            pooled = feature_map(np.concatenate([x, y]), frequencies)
            gram = pooled_gram(GaussianKernel(bandwidth), x, y)
            exact.append(unbiased_mmd(gram, len(x)))
            estimates.append(unbiased_mmd(pooled @ pooled.T, len(x)))
            variances.append(mmd_variance(gram, len(x)))
        errors = np.subtract(estimates, exact)
        result[f"{count} features"] = {
            "error": float(np.sqrt(np.mean(errors**2))),
            "estimate": float(np.mean(estimates)),
        }
    return {"exact": float(np.mean(exact)), "variance": float(np.mean(variances)), **result}


@experiment
def cases(args):
    """Small cases by hand, a group of them."""
    return rounded(GROUPS[args.group]())
