"""Digits with snow: images whose background gives the class away, and their superpixels."""

import math

import numpy as np

from .sampling import Dataset


def snow_pixels(side, depth=2):
    """Which pixels of an image lie on the ground, its lowest ``depth`` rows, as a flat mask."""
    return np.repeat(np.arange(side) >= side - depth, side)


def add_snow(data, rates, rng, brightness=0.5, noise=0.3):
    """Make images hazy, and let snow lie on the ground of some, more often in those of one class.

    An image of class c has snow with probability ``rates[c]``: the pixels on the ground get brighter by
    ``brightness``. All pixels get normal noise of deviation ``noise`` and are cut to 0 to 1. Draws one uniform number
    an image (a number below the rate means snow), then the noise, one array in the shape of the features.
    """
    ground = snow_pixels(math.isqrt(data.features.shape[1]))
    snowy = np.less(rng.random(len(data.labels)), np.take(rates, data.labels))
    haze = noise * rng.standard_normal(data.features.shape)
    covered = data.features + brightness * np.outer(snowy, ground)
    return Dataset(np.clip(covered + haze, 0.0, 1.0), data.labels)


def superpixels(image, per_side=3, compactness=0.6, rounds=4):
    """Cut a square image into connected-looking regions of similar brightness, by clustering pixels.

    A pixel is a point of three coordinates: row and column, both times ``compactness`` over the spacing of the grid,
    and brightness. The centres start in the middles of a regular grid, ``per_side`` in each direction, in row order,
    with the mean brightness of the image. In each round, every pixel goes to its nearest centre (lowest index among
    those whose squared distances differ by less than 1e-9), then every centre that has pixels moves to their mean. The
    result is the region of each pixel, numbered 0, 1, ... without gaps, in the order of the centres.
    """
    side = math.isqrt(len(image))
    spacing = side / per_side
    middles = spacing * (np.arange(per_side) + 0.5) - 0.5
    scale = compactness / spacing
    rows, columns = np.divmod(np.arange(len(image)), side)
    points = np.column_stack([scale * rows, scale * columns, image])
    down, across = np.meshgrid(scale * middles, scale * middles, indexing="ij")
    centres = np.column_stack([np.ravel(down), np.ravel(across), np.full(per_side**2, np.mean(image))])
    for _ in range(rounds):
        squares = np.sum(np.square(points[:, np.newaxis] - centres), axis=2)
        owners = np.argmax(squares < np.min(squares, axis=1, keepdims=True) + 1e-9, axis=1)
        for centre in np.unique(owners):
            centres[centre] = np.mean(points[owners == centre], axis=0)
    return np.unique(owners, return_inverse=True)[1]
