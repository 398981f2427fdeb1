"""Ways to solve (I - alpha M) F = (1 - alpha) Y, where M is a normalised matrix of weights."""

from collections import namedtuple

import numpy as np

#: scores (n, c); iterations, an int; changes, one number per iteration: what the stopping rule looked at
Solution = namedtuple("Solution", "scores iterations changes")

SOLVERS = {}


def solver(name):
    """Decorator: make a solver available by name."""

    def add(function):
        SOLVERS[name] = function
        return function

    return add


class Operator:
    """A matrix that counts its products with columns."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.products = 0

    def __call__(self, columns):
        self.products += 1 if columns.ndim == 1 else columns.shape[1]
        return self.matrix @ columns


@solver("direct")
def direct(operator, targets, alpha):
    """The limit in closed form, F = (1 - alpha) (I - alpha M)^-1 Y, by elimination. It takes no iterations."""
    system = np.eye(len(targets)) - alpha * operator.matrix
    return Solution((1.0 - alpha) * np.linalg.solve(system, targets), 0, [])


@solver("iteration")
def fixed_point(operator, targets, alpha, tolerance=1e-6, max_iterations=1000):
    """Spread and clamp softly: F <- alpha M F + (1 - alpha) Y, from F = Y.

    The change of an iteration is the largest absolute difference of an entry to its value before, over the largest
    absolute entry after. The iteration ends when the change is at most ``tolerance``, or at the cap.
    """
    scores = np.array(targets, dtype=float)
    anchor = np.multiply(1.0 - alpha, targets)
    changes = []
    while len(changes) < max_iterations:
        spread = alpha * operator(scores) + anchor
        largest = np.max(np.abs(spread))
        changes.append(float(np.max(np.abs(spread - scores)) / largest))
        scores = spread
        if changes[-1] <= tolerance:
            break
    return Solution(scores, len(changes), changes)


@solver("chebyshev")
def chebyshev(operator, targets, alpha, tolerance=1e-6, max_iterations=1000):
    """Chebyshev's semi-iteration, for a symmetric matrix with eigenvalues from -1 to 1.

    One step combines the plain step with the iterate before the last: F_(t+1) = w_(t+1) (alpha M F_t + (1 - alpha) Y
    - F_(t-1)) + F_(t-1), with w_1 = 1, w_2 = 2 / (2 - alpha^2) and w_(t+1) = 4 / (4 - alpha^2 w_t). It starts from
    F_0 = Y, and stops as the plain iteration does.
    """
    anchor = np.multiply(1.0 - alpha, targets)
    before, scores = np.zeros(targets.shape), np.array(targets, dtype=float)
    weight, changes = 1.0, []
    while len(changes) < max_iterations:
        plain = alpha * operator(scores) + anchor
        after = weight * np.subtract(plain, before) + before
        changes.append(float(np.max(np.abs(after - scores)) / np.max(np.abs(after))))
        before, scores = scores, after
        if changes[-1] <= tolerance:
            break
        weight = 2.0 / (2.0 - alpha**2) if len(changes) == 1 else 4.0 / (4.0 - alpha**2 * weight)
    return Solution(scores, len(changes), changes)


@solver("gradients")
def conjugate_gradients(operator, targets, alpha, tolerance=1e-6, max_iterations=1000):
    """Conjugate gradients, for a symmetric matrix, from F = 0, on all columns at once.

    Every column has its own step lengths. The change of an iteration is the largest, over the columns, of the norm
    of the residual after it over the norm of the right-hand side. The iteration ends when this is at most
    ``tolerance``, or at the cap.
    """
    right = np.multiply(1.0 - alpha, targets)
    scores, residual, direction = np.zeros_like(right), np.copy(right), np.copy(right)
    power = np.sum(np.square(residual), axis=0)
    reference = np.array(power)
    changes = []
    while len(changes) < max_iterations:
        image = direction - alpha * operator(direction)
        step = np.divide(power, np.sum(direction * image, axis=0))
        scores = scores + step * direction
        residual = residual - step * image
        latest = np.sum(np.square(residual), axis=0)
        changes.append(float(np.sqrt(np.max(latest / reference))))
        if changes[-1] <= tolerance:
            break
        direction = residual + (latest / power) * direction
        power = latest
    return Solution(scores, len(changes), changes)


def lanczos(operator, n_pairs, n_steps, start):
    """Largest eigenvalues of a symmetric matrix and their eigenvectors, by Lanczos' method.

    ``n_steps`` products build an orthonormal basis from ``start``; every new vector is made orthogonal to all
    before it, twice. It ends early when what is left of a new vector is shorter than 1e-10. The eigenpairs of the
    small matrix give those of the large one: values, decreasing, and vectors (n, n_pairs), columns of length 1.
    """
    basis = [start / np.linalg.norm(start)]
    images = []
    while len(images) < n_steps:
        images.append(operator(basis[-1]))
        rest = np.array(images[-1])
        known = np.column_stack(basis)
        for _ in range(2):
            rest = rest - known @ (known.T @ rest)
        length = np.linalg.norm(rest)
        if length < 1e-10:
            break
        basis.append(rest / length)
    span = np.column_stack(basis[: len(images)])
    small = span.T @ np.column_stack(images)
    values, combinations = np.linalg.eigh((small + small.T) / 2.0)
    largest = np.argsort(-values, kind="stable")[:n_pairs]
    return values[largest], span @ combinations[:, largest]


@solver("spectral")
def truncated_spectrum(operator, targets, alpha, rank=10, n_steps=40):
    """Keep the ``rank`` largest eigenvalues of a symmetric matrix, and take all others as zero.

    With eigenvalues v and orthonormal eigenvectors U, F = (1 - alpha) (Y + U (1 / (1 - alpha v) - 1) U' Y). They
    come from :func:`lanczos`, started from a vector of ones plus the sum of the targets' columns. The changes are
    the factors 1 / (1 - alpha v).
    """
    start = np.ones(len(targets)) + np.sum(targets, axis=1)
    values, vectors = lanczos(operator, rank, n_steps, start)
    gains = np.divide(1.0, 1.0 - alpha * values)
    coordinates = np.dot(vectors.T, targets)
    boosted = np.multiply(gains - 1.0, coordinates.T).T
    scores = np.multiply(1.0 - alpha, targets + np.dot(vectors, boosted))
    return Solution(scores, n_steps, [float(gain) for gain in gains])
