"""Random draws. All randomness comes from ``numpy.random.Generator`` objects that the caller hands over."""

import numpy as np


def trial_generator(seed, *key):
    """An independent generator for one purpose, named by integers."""
    return np.random.default_rng([seed, *key])


def stratified_subset(labels, size, rng):
    """Indices of a random subset in which the classes keep their shares.

    A class with m of the n points is due size * m / n places. It gets the whole part of that; the places left over
    go, one each, to the classes with the largest fractional parts (lowest class on ties). For each class in
    increasing order a permutation of its members is drawn, and the first of them are taken. Indices increase.
    """
    kinds, sizes = np.unique(labels, return_counts=True)
    places, remainders = np.divmod(size * sizes, len(labels))
    left_over = size - int(np.sum(places))
    favoured = np.argsort(-remainders, kind="stable")[:left_over]
    places[favoured] += 1
    chosen = []
    for kind, count in zip(kinds, places):
        members = np.flatnonzero(np.equal(labels, kind))
        chosen.append(rng.permutation(members)[:count])
    return np.sort(np.concatenate(chosen))


def draw_labelled(labels, count, rng):
    """Choose the points whose labels are given: ``count`` points, at least one of each class.

    One permutation of all points is drawn. The first member of each class in it is chosen; the other places go to
    the points that remain, in the permutation's order. All points that are not chosen get the label -1.
    """
    order = rng.permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    if count < len(first):
        raise ValueError(f"{count} labels cannot cover {len(first)} classes")
    others = np.setdiff1d(np.arange(len(order)), first)
    ranks = np.concatenate([first, others[: count - len(first)]])
    chosen = order[ranks]
    partial = np.full(len(labels), -1)
    partial[chosen] = labels[chosen]
    return partial
