"""Synthetic data sets: two moons, and documents drawn from topics."""

from collections import namedtuple

import numpy as np

#: features (n, d); labels (n,), classes 0, 1, ...
Dataset = namedtuple("Dataset", "features labels")


def two_moons(n_points, rng, noise=0.12):
    """Two interlocking half circles of radius 1, blurred by Gaussian noise.

    The upper moon (class 0) gets the extra point of an odd number. It is the upper half of the circle around the
    origin; the lower moon is the lower half of the circle around (1, 0.5). Draws, in order: an angle for each
    point, uniform in [0, pi), upper moon first; an (n, 2) array of noise; a permutation that mixes the points.
    """
    upper = (n_points + 1) // 2
    labels = np.repeat([0, 1], [upper, n_points - upper])
    angles = rng.uniform(0.0, np.pi, size=n_points)
    across = np.where(labels == 0, np.cos(angles), 1.0 - np.cos(angles))
    along = np.where(labels == 0, np.sin(angles), 0.5 - np.sin(angles))
    clean = np.column_stack([across, along])
    features = clean + noise * rng.standard_normal(clean.shape)
    order = rng.permutation(n_points)
    return Dataset(features[order], labels[order])


class TopicCorpus:
    """Documents of a few topics over one vocabulary, as counts of words.

    Documents have ``shortest`` words and ``mean_length`` more on average. ``concentration`` is the parameter of the
    symmetric Dirichlet distribution of each topic's words; small ones give few, typical words.
    """

    def __init__(self, n_topics=4, n_words=500, mean_length=40.0, shortest=10, concentration=0.1):
        self.n_topics = n_topics
        self.n_words = n_words
        self.mean_length = mean_length
        self.shortest = shortest
        self.concentration = concentration

    def sample(self, n_documents, rng):
        """Draw documents; topics have equal sizes, up to one document, and are mixed in random order.

        A document takes a share b of its words from its own topic and the others from a language common to all.
        Draws, in order: word probabilities of the topics and, last, of the common language; the topics of the
        documents; their lengths; their shares b from a Beta(2, 4) distribution; their counts, one multinomial draw
        a document.
        """
        vocabulary = np.full(self.n_words, self.concentration)
        languages = rng.dirichlet(vocabulary, size=self.n_topics + 1)
        labels = rng.permutation(np.arange(n_documents) % self.n_topics)
        lengths = self.shortest + rng.poisson(self.mean_length, size=n_documents)
        shares = rng.beta(2.0, 4.0, size=n_documents)
        counts = np.zeros((n_documents, self.n_words))
        for row, (topic, length, share) in enumerate(zip(labels, lengths, shares)):
            mixture = share * languages[topic] + (1.0 - share) * languages[-1]
            counts[row] = rng.multinomial(length, mixture / np.sum(mixture))
        return Dataset(counts, labels)


def tfidf(counts, fewest=2, most=0.5):
    """Weigh words by how often they occur in a document and how few documents they occur in.

    Words in fewer than ``fewest`` documents, or in more than the share ``most`` of them, are left out. A count m
    of a word that c of the n documents contain becomes log(1 + m) log(n / c). Rows are scaled to Euclidean length
    1; a document without any word left stays a row of zeros. Words keep their order.
    """
    n_documents = len(counts)
    containing = np.count_nonzero(counts, axis=0)
    frequent = np.greater_equal(containing, fewest)
    telling = np.less_equal(containing, most * n_documents)
    kept = np.flatnonzero(np.logical_and(frequent, telling))
    rarity = np.log(n_documents / containing[kept])
    weighted = np.log1p(counts[:, kept]) * rarity
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    return np.divide(weighted, lengths, out=np.zeros_like(weighted), where=lengths > 0)
