"""Classifiers. All take points with their graph and partial labels, and label the points that have none."""

import abc

import numpy as np

from .graph import normalise
from .labels import class_mass_normalise, decide, label_matrix
from .solvers import SOLVERS, Operator, lanczos

MODELS = {}


def register(name, **defaults):
    """Class decorator: make a classifier, with some options set, available by name."""

    def add(cls):
        MODELS[name] = (cls, defaults)
        return cls

    return add


def make_model(name, **options):
    cls, defaults = MODELS[name]
    return cls(**{**defaults, **options})


class Classifier(abc.ABC):
    """After :meth:`fit`: ``scores_`` (n, c), and ``labels_`` (n,), the class of the largest score of each point."""

    @abc.abstractmethod
    def score(self, points, partial):
        """Scores of all points for all classes, shape (n, c)."""

    def fit(self, points, partial):
        self.scores_ = self.score(points, partial)
        self.labels_ = decide(self.scores_, partial)
        return self


@register("consistency")
@register("row", kind="row")
@register("column", kind="column")
class Consistency(Classifier):
    """Local and global consistency: every point spreads its scores along edges, and keeps some of its own label.

    ``operator_`` and ``solution_`` tell how the scores were found.
    """

    def __init__(self, alpha=0.99, kind="symmetric", solver="direct", **solver_options):
        self.alpha = alpha
        self.kind = kind
        self.solver = solver
        self.solver_options = solver_options

    def score(self, points, partial):
        self.operator_ = Operator(normalise(points.weights, self.kind))
        self.solution_ = SOLVERS[self.solver](self.operator_, label_matrix(partial), self.alpha, **self.solver_options)
        return self.solution_.scores

    def extend(self, points, fresh):
        """Scores of new points, given those of the fitted ones, without fitting again.

        A new point x looks at the nearest fitted points, as many as the graph's points look at (all, where the
        graph joins all pairs). Its score minimises the energy with everything else fixed: F(x) = alpha times the
        sum over these neighbours j of w(x, j) F_j / sqrt(d(x) d_j), where d(x) is the sum of the weights w(x, j)
        and d_j the degree of j in the graph as it was.
        """
        builder = points.builder
        gaps = builder.distances(fresh, points.features)
        if builder.neighbours is not None:
            ranks = np.argsort(np.argsort(gaps, axis=1, kind="stable"), axis=1, kind="stable")
            gaps = np.where(np.less(ranks, builder.neighbours), gaps, np.inf)
        ties = builder.weigh(gaps)
        own = np.sum(ties, axis=1, keepdims=True)
        degrees = np.sum(points.weights, axis=1)
        shares = np.divide(ties, np.sqrt(own * degrees))
        return self.alpha * np.dot(shares, self.scores_)


@register("harmonic")
@register("harmonic-mass", mass=True)
class HarmonicFields(Classifier):
    """Gaussian fields: labelled points are fixed, every other one is the weighted mean of its neighbours."""

    def __init__(self, mass=False):
        self.mass = mass

    def score(self, points, partial):
        """Solve (D_uu - W_uu) F_u = W_ul Y_l for the points u without label; labelled ones keep their rows of Y.

        Degrees count all neighbours. With ``mass`` the scores are adjusted by class mass normalisation.
        """
        known, unknown = np.flatnonzero(partial >= 0), np.flatnonzero(partial < 0)
        scores = label_matrix(partial)
        degrees = np.sum(points.weights, axis=1)
        laplacian = np.diag(degrees) - points.weights
        pull = np.dot(points.weights[np.ix_(unknown, known)], scores[known])
        scores[unknown] = np.linalg.solve(laplacian[np.ix_(unknown, unknown)], pull)
        return class_mass_normalise(scores, partial) if self.mass else scores


@register("clamped")
class ClampedPropagation(Classifier):
    """Label propagation: the weighted mean of the neighbours, again and again, with labelled points put back."""

    def __init__(self, tolerance=1e-2, max_iterations=500):
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def score(self, points, partial):
        """Iterate F <- P F and reset the labelled rows to Y, until an iteration hardly changes anything.

        The other rows start at the classes' shares of the labelled points. An iteration's change is the mean, over
        the points without label, of the sum of absolute differences in their rows; the iteration ends when it is
        below ``tolerance``, or at the cap. ``iterations_`` counts them.
        """
        walk = normalise(points.weights, "row")
        free = np.flatnonzero(partial < 0)
        targets = label_matrix(partial)
        scores = np.copy(targets)
        scores[free] = np.sum(targets, axis=0) / np.sum(targets)
        self.iterations_, change = 0, np.inf
        while change >= self.tolerance and self.iterations_ < self.max_iterations:
            spread = np.dot(walk, scores)
            change = np.mean(np.sum(np.abs(spread[free] - scores[free]), axis=1))
            scores[free] = spread[free]
            self.iterations_ += 1
        return scores


@register("eigenspace")
class Eigenspace(Classifier):
    """Least squares on the smoothest functions of the graph, fitted to the labelled points."""

    def __init__(self, share=0.4, n_steps=40):
        self.share = share
        self.n_steps = n_steps

    def score(self, points, partial):
        """Regress the labelled rows of Y on eigenvectors of S with the largest eigenvalues, and predict all points.

        The number of eigenvectors is the share ``share`` of the number of labelled points, rounded down, at least
        the number of classes and at most ``n_steps``. They come from :func:`lanczos`, started from a vector of
        ones. Regression is least squares (of smallest norm, should it not be unique), without intercept.
        """
        known = np.flatnonzero(partial >= 0)
        targets = label_matrix(partial)
        wanted = max(targets.shape[1], int(np.floor(self.share * len(known))))
        n_pairs = min(wanted, self.n_steps)
        operator = Operator(normalise(points.weights, "symmetric"))
        _, vectors = lanczos(operator, n_pairs, self.n_steps, np.ones(len(partial)))
        coefficients, *_ = np.linalg.lstsq(np.take(vectors, known, axis=0), np.take(targets, known, axis=0), rcond=None)
        return np.dot(vectors, coefficients)


@register("knn")
@register("knn5", k=5)
class NearestNeighbours(Classifier):
    """Nearest labelled points vote, nearer ones louder. Sees no graph."""

    def __init__(self, k=1):
        self.k = k

    def score(self, points, partial):
        """Votes of the k nearest labelled points (all, if there are fewer; lower index first among equally near).

        With d_1 <= ... <= d_k their distances, neighbour i votes for its class with weight (d_k - d_i) / (d_k - d_1),
        or 1 where d_k = d_1.
        """
        known = np.flatnonzero(partial >= 0)
        gaps = np.take(points.distances, known, axis=1)
        nearest = np.argsort(gaps, axis=1, kind="stable")[:, : self.k]
        distances = np.take_along_axis(gaps, nearest, axis=1)
        spans = distances[:, -1:] - distances[:, :1]
        loudness = np.divide(distances[:, -1:] - distances, spans, out=np.ones_like(distances), where=spans > 0)
        classes = np.take(label_matrix(partial)[known], nearest, axis=0)
        return np.einsum("nk,nkc->nc", loudness, classes)


@register("svm")
class KernelMachine(Classifier):
    """Support vector machines, one class against the others, with a Gaussian kernel. Sees no graph."""

    def __init__(self, width=1.0, cost=10.0, tolerance=1e-3, max_sweeps=200):
        self.width = width
        self.cost = cost
        self.tolerance = tolerance
        self.max_sweeps = max_sweeps

    def score(self, points, partial):
        """Train one machine a class on the labelled points, and evaluate all of them on all points.

        The kernel is exp(-d^2 / (2 width^2)) + 1, the 1 standing for the intercept. The signs y are 1 for the class
        and -1 for the others. ``iterations_`` is the number of sweeps of all machines together.
        """
        known = np.flatnonzero(partial >= 0)
        kernel = np.exp(-np.square(points.distances[:, known]) / (2.0 * self.width**2)) + 1.0
        signs = 2.0 * label_matrix(partial)[known] - 1.0
        self.iterations_, machines = 0, []
        for column in signs.T:
            multipliers, sweeps = self.train(kernel[known], column)
            machines.append(multipliers * column)
            self.iterations_ += sweeps
        return np.dot(kernel, np.column_stack(machines))

    def train(self, kernel, signs):
        """Multipliers a of the dual problem: maximise sum a_i - 1/2 sum a_i a_j y_i y_j K_ij for 0 <= a_i <= cost.

        Coordinate ascent from zeros: sweeps over all i in order, each set to its best value with the others fixed.
        They end after a sweep in which no multiplier moved by ``tolerance`` or more, or at the cap on sweeps. Returns
        the multipliers, one for each labelled point, and the number of sweeps.
        """
        multipliers = np.zeros(len(signs))
        values = np.zeros(len(signs))
        sweeps, furthest = 0, np.inf
        while furthest >= self.tolerance and sweeps < self.max_sweeps:
            sweeps, furthest = sweeps + 1, 0.0
            for index, sign in enumerate(signs):
                slack = 1.0 - sign * values[index]
                best = np.clip(multipliers[index] + slack / kernel[index, index], 0.0, self.cost)
                move = float(best - multipliers[index])
                values += np.multiply(move * sign, kernel[index])
                multipliers[index] = best
                furthest = max(furthest, abs(move))
        return multipliers, sweeps
