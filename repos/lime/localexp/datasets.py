"""Data sets by name, in a training, a validation and a test part."""

import gzip
import importlib.util
import os

import numpy as np

from .corpus import ReviewCorpus
from .sampling import Dataset, generator, stratified_split

#: name -> (file, lines to skip)
REAL_FILES = {
    "wine": ("wine_data.csv", 1),
    "cancer": ("breast_cancer.csv", 1),
    "digits": ("digits.csv.gz", 0),
}

#: The digits that stand for the two animals, in the order of their classes.
DIGITS = (3, 5)

#: name -> number of the synthetic corpus, part of the key of its generator
CORPORA = {"books": 1, "films": 2}

#: Tenths of the data for training, validation and test.
SHARES = (5, 2, 3)


def data_folder():
    """The folder of scikit-learn's data files. Found without importing scikit-learn, which takes a second."""
    package = importlib.util.find_spec("sklearn")
    if package is None:
        raise RuntimeError("scikit-learn is not installed")
    return os.path.join(os.path.dirname(package.origin), "datasets", "data")


def load_real(name):
    """Read a real data set; the last column holds the class. Of the digits, only two are kept, from 0 to 1."""
    file, skip = REAL_FILES[name]
    path = os.path.join(data_folder(), file)
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as stream:
        table = np.loadtxt(stream, delimiter=",", skiprows=skip)
    features, labels = table[:, :-1], table[:, -1].astype(int)
    if name == "digits":
        kept = np.isin(labels, DIGITS)
        return Dataset(features[kept] / 16.0, np.searchsorted(DIGITS, labels[kept]))
    return Dataset(features, labels)


def load_parts(name, n, seed):
    """Training, validation and test part of ``n`` cases of a data set (all, if it has fewer), drawn at random."""
    rng = generator(seed, CORPORA.get(name, 0))
    if name in CORPORA:
        data = ReviewCorpus().sample(n, rng)
    else:
        data = load_real(name)
        rows = rng.permutation(len(data.labels))[:n]
        data = Dataset(data.features[rows], data.labels[rows])
    return stratified_split(data, SHARES, rng)
