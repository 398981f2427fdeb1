"""Graphs over points: distances, weights of edges, sparse neighbourhoods, normalisations."""

from functools import cached_property

import numpy as np


def euclidean_distances(rows, columns):
    """Distances of all pairs, shape (number of rows, number of columns)."""
    products = rows @ columns.T
    squares = np.sum(rows**2, axis=1)[:, np.newaxis] + np.sum(columns**2, axis=1) - 2.0 * products
    return np.sqrt(np.maximum(squares, 0.0))


def cosine_distances(rows, columns):
    """One minus the cosine of the angle, for all pairs; a row of zeros is at distance 1 from everything."""
    lengths = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(columns, axis=1))
    return 1.0 - np.divide(rows @ columns.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def fixed_width(sigma):
    """Weights exp(-d^2 / (2 sigma^2)) of distances d."""

    def weigh(distances):
        return np.exp(-(distances**2) / (2.0 * sigma**2))

    return weigh


def local_width(rank):
    """Weights of distances within one set of points, with a width of its own for every point."""

    def weigh(distances):
        """Weights exp(-d_ij^2 / (s_i s_j)), where s_i is the distance from i to its ``rank``-th nearest other point.

        ``distances`` (n, n) has zeros on the diagonal; points do not count as their own neighbours.
        """
        others = np.array(distances, dtype=float)
        np.fill_diagonal(others, np.inf)
        ordered = np.sort(others, axis=1)
        scales = ordered[:, int(rank) - 1]
        widths = np.maximum(np.outer(scales, scales), np.finfo(float).tiny)
        return np.exp(-np.square(distances) / widths)

    return weigh


METRICS = {"euclidean": euclidean_distances, "cosine": cosine_distances}
WIDTHS = {"fixed": fixed_width, "local": local_width}


def neighbour_mask(distances, count, mode="union"):
    """Which pairs of points are joined by an edge, when each point looks at its ``count`` nearest others.

    With ``union`` an edge needs one of its ends to look at the other, with ``mutual`` both. Among equally distant
    points those of lower index are nearer. No point is joined to itself. The mask is symmetric.
    """
    others = np.array(distances, dtype=float)
    np.fill_diagonal(others, np.inf)
    nearest = np.argsort(others, axis=1, kind="stable")[:, :count]
    looks = np.zeros(others.shape, dtype=bool)
    np.put_along_axis(looks, nearest, True, axis=1)
    combine = np.logical_or if mode == "union" else np.logical_and
    return combine(looks, looks.T)


def connected_components(mask):
    """Number the component of every point, breadth first, in the order of the components' lowest members."""
    component = np.full(len(mask), -1)
    for start in range(len(mask)):
        if component[start] >= 0:
            continue
        number = np.max(component) + 1
        frontier = np.array([start])
        while len(frontier) > 0:
            component[frontier] = number
            touched = np.any(mask[frontier], axis=0)
            frontier = np.flatnonzero(np.logical_and(touched, np.less(component, 0)))
    return component


def bridge_components(mask, distances):
    """Join the components of a graph by the shortest edges that do it.

    While there is more than one component, the shortest of all pairs with ends in two different components
    becomes an edge (the first such pair in row order on ties). Returns a new mask, and the number of edges added.
    """
    mask = np.array(mask)
    component = connected_components(mask)
    bridges = 0
    while np.any(component != component[0]):
        apart = np.not_equal.outer(component, component)
        lengths = np.where(apart, distances, np.inf)
        row, column = np.unravel_index(np.argmin(lengths), lengths.shape)
        mask[row, column] = mask[column, row] = True
        component = np.where(np.equal(component, component[column]), component[row], component)
        bridges += 1
    return mask, bridges


def normalise(weights, kind="symmetric"):
    """Scale weights by degrees: ``symmetric`` D^-1/2 W D^-1/2, ``row`` D^-1 W, ``column`` W D^-1.

    The degree of a point is the sum of its row; rows and columns of points of degree 0 become zeros.
    """
    exponents = {"symmetric": (0.5, 0.5), "row": (1.0, 0.0), "column": (0.0, 1.0)}
    if kind not in exponents:
        raise ValueError(f"unknown normalisation {kind!r}")
    left, right = exponents[kind]
    degrees = np.sum(weights, axis=1)
    alive = np.greater(degrees, 0.0)
    safe = np.where(alive, degrees, 1.0)
    scaled = weights * np.power(safe, -left)[:, np.newaxis] * np.power(safe, -right)
    return np.where(np.logical_and.outer(alive, alive), scaled, 0.0)


class GraphBuilder:
    """How points become a graph.

    ``sigma`` is the width of the Gaussian, or the rank of the neighbour that sets the local widths. ``neighbours`` is
    the number that a point looks at (``None`` joins all pairs); ``bridged`` joins the components of such a graph.
    """

    def __init__(self, metric="euclidean", sigma=1.0, width="fixed", neighbours=None, mode="union", bridged=False):
        self.distances = METRICS[metric]
        self.weigh = WIDTHS[width](sigma)
        self.neighbours = neighbours
        self.mode = mode
        self.bridged = bridged

    def edges(self, distances):
        """The pairs that are joined, as a mask, and the number of bridges among them."""
        if self.neighbours is None:
            return ~np.eye(len(distances), dtype=bool), 0
        mask = neighbour_mask(distances, self.neighbours, self.mode)
        return bridge_components(mask, distances) if self.bridged else (mask, 0)


class Points:
    """Points with their graph; distances and weights are computed once, when first asked for."""

    def __init__(self, features, builder):
        self.features = features
        self.builder = builder

    @cached_property
    def distances(self):
        """All pairs, shape (n, n), zeros on the diagonal."""
        distances = self.builder.distances(self.features, self.features)
        np.fill_diagonal(distances, 0.0)
        return distances

    @cached_property
    def edges(self):
        return self.builder.edges(self.distances)

    @cached_property
    def weights(self):
        """Weights of the edges, shape (n, n), zeros elsewhere."""
        mask, _ = self.edges
        return np.where(mask, self.builder.weigh(self.distances), 0.0)
