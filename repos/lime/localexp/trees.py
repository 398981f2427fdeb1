"""Decision trees and random forests."""

import dataclasses
import heapq
from collections import namedtuple

import numpy as np


#: a test "feature <= threshold" and by how much it lowers the squared error of the leaf
Split = namedtuple("Split", "gain feature threshold")


@dataclasses.dataclass
class Node:
    """A node with the mean target of its cases and, unless it is a leaf, its split and its children's numbers."""

    value: np.ndarray
    split: Split | None = None
    children: tuple = ()


def best_split(features, targets, candidates, smallest):
    """The best split of some cases on one of the ``candidates``, with at least ``smallest`` cases on either side.

    The gain is the decrease of the sum of squared deviations of the targets (n, k) from their means. Thresholds lie
    halfway between consecutive different values. Gains that are less than 1e-9 below the best one are ties: the first
    candidate wins, then the lowest threshold. The result is None if no split gains at least 1e-9.
    """
    columns = np.take(features, candidates, axis=1)
    order = np.argsort(columns, axis=0, kind="stable")
    values = np.take_along_axis(columns, order, axis=0)
    sums = np.cumsum(targets[order], axis=0)
    total = sums[-1]
    sizes = np.reshape(np.arange(1, len(order)), (-1, 1))
    below = np.sum(np.square(sums[:-1]), axis=2) / sizes
    above = np.sum(np.square(total - sums[:-1]), axis=2) / np.flip(sizes)
    gains = below + above - np.sum(np.square(total), axis=1) / len(order)
    enough = np.minimum(sizes, np.flip(sizes)) >= smallest
    gains = np.where(np.logical_and(enough, np.diff(values, axis=0) > 0.0), gains, 0.0)
    best = np.max(gains, initial=0.0)
    if best < 1e-9:
        return None
    column, place = np.argwhere(gains.T > best - 1e-9)[0]
    threshold = np.mean(values[place : place + 2, column])
    return Split(float(best), int(candidates[column]), float(threshold))


class DecisionTree:
    """A classification tree that grows best first."""

    def __init__(self, max_leaves=8, smallest=3, n_candidates=None):
        self.max_leaves = max_leaves
        self.smallest = smallest
        self.n_candidates = n_candidates

    def fit(self, features, targets, rng=None):
        """Grow from the root: split the leaf whose best split gains most, until there are ``max_leaves`` leaves.

        ``targets`` are class indicators, shape (n, k). Each new leaf looks for its best split at once, the left child
        (below the threshold) before the right one, among all features, or among ``n_candidates`` that it draws without
        replacement and sorts. Equal gains (rounded to 9 decimals) go to the older leaf.
        """
        self.nodes, queue = [], []

        def open_leaf(rows):
            number = len(self.nodes)
            self.nodes.append(Node(np.mean(targets[rows], axis=0)))
            candidates = np.arange(features.shape[1])
            if self.n_candidates is not None:
                candidates = np.sort(rng.choice(len(candidates), size=self.n_candidates, replace=False))
            split = best_split(features[rows], targets[rows], candidates, self.smallest)
            if split is not None:
                heapq.heappush(queue, (-round(split.gain, 9), number, split, rows))
            return number

        open_leaf(np.arange(len(features)))
        while queue and len(self.nodes) < 2 * self.max_leaves - 1:
            _, number, split, rows = heapq.heappop(queue)
            goes_left = features[rows, split.feature] <= split.threshold
            self.nodes[number].split = split
            self.nodes[number].children = open_leaf(rows[goes_left]), open_leaf(rows[~goes_left])
        return self

    def used_for(self, instance):
        """The features that send the instance to the right, on the way to its leaf, increasing."""
        number, passed = 0, set()
        while self.nodes[number].split is not None:
            split = self.nodes[number].split
            exceeds = instance[split.feature] > split.threshold
            passed.update([split.feature] if exceeds else [])
            number = self.nodes[number].children[int(exceeds)]
        return np.array(sorted(passed), dtype=int)

    def probabilities(self, features):
        """Shares of the classes in the leaf that each case falls into, shape (n, k)."""
        values = np.empty((len(features), len(self.nodes[0].value)))
        pending = [(0, np.arange(len(features)))]
        while pending:
            number, rows = pending.pop()
            node = self.nodes[number]
            if node.split is None:
                values[rows] = node.value
                continue
            goes_left = features[rows, node.split.feature] <= node.split.threshold
            pending.append((node.children[0], rows[goes_left]))
            pending.append((node.children[1], rows[~goes_left]))
        return values


class RandomForest:
    """Trees on bootstrap samples with random features at every leaf; their probabilities are averaged."""

    def __init__(self, n_trees=10, max_leaves=8, smallest=2):
        self.n_trees = n_trees
        self.max_leaves = max_leaves
        self.smallest = smallest

    def fit(self, features, labels, rng):
        """Grow the trees one after the other, and estimate the error from the cases that trees have not seen.

        Each tree first draws its sample, n integers below n at once, and then grows with floor(sqrt(d)) candidates a
        leaf. Every tree adds its probabilities for the cases outside its sample to their votes. ``unseen_error`` is
        the share of wrong decisions (lowest class on ties) among the cases with votes.
        """
        targets = np.eye(int(np.max(labels)) + 1)[labels]
        n_candidates = int(np.sqrt(features.shape[1]))
        votes = np.zeros(targets.shape)
        self.trees = []
        for _ in range(self.n_trees):
            rows = rng.integers(len(labels), size=len(labels))
            tree = DecisionTree(self.max_leaves, self.smallest, n_candidates)
            self.trees.append(tree.fit(features[rows], targets[rows], rng))
            unseen = np.setdiff1d(np.arange(len(labels)), rows)
            votes[unseen] += tree.probabilities(features[unseen])
        judged = np.flatnonzero(np.any(votes > 0.0, axis=1))
        decided = np.argmax(votes[judged], axis=1)
        self.unseen_error = float(np.mean(np.not_equal(decided, labels[judged])))
        return self

    def probabilities(self, features):
        """Mean over the trees, shape (n, k)."""
        return np.mean([tree.probabilities(features) for tree in self.trees], axis=0)
