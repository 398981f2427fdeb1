"""Synthetic reviews: bags of words that praise or condemn."""

import numpy as np

from .sampling import Dataset


class ReviewCorpus:
    """Reviews of several themes, half of them bad (class 0) and half good (class 1).

    They have ``shortest`` words and ``mean_length`` more on average; ``concentration`` is that of the themes' words.
    """

    def __init__(self, n_words=100, n_themes=4, shortest=12, mean_length=12.0, concentration=0.4):
        self.n_words = n_words
        self.n_themes = n_themes
        self.shortest = shortest
        self.mean_length = mean_length
        self.concentration = concentration

    def sample(self, n_reviews, rng):
        """Draw reviews; a feature is log(1 + count of the word).

        A review's words have the probabilities of its theme's words, tilted by its opinion: each is multiplied by
        exp(strength * leaning of the word), with the opposite sign for bad reviews, and divided by their sum. Draws, in
        order: the themes' words; the words' leanings (standard normal); the labels, a permutation of 0, 1, 0, 1, ...;
        the reviews' themes; their strengths, Gamma with shape 4 and mean 1/2; their lengths; their counts, one
        multinomial draw a review.
        """
        themes = rng.dirichlet(np.full(self.n_words, self.concentration), size=self.n_themes)
        leanings = rng.standard_normal(self.n_words)
        labels = rng.permutation(np.arange(n_reviews) % 2)
        topics = rng.integers(self.n_themes, size=n_reviews)
        strengths = rng.gamma(4.0, 0.125, size=n_reviews)
        lengths = self.shortest + rng.poisson(self.mean_length, size=n_reviews)
        tilts = np.where(labels > 0, strengths, -strengths)
        rates = themes[topics] * np.exp(np.outer(tilts, leanings))
        rates = np.divide(rates, np.sum(rates, axis=1, keepdims=True))
        counts = [rng.multinomial(length, rate) for length, rate in zip(lengths, rates)]
        return Dataset(np.log1p(np.stack(counts)), labels)


def plant_artifacts(parts, n_artifacts, rng, rare=0.1, frequent=0.3):
    """Append words to the reviews that mislead: they go with a class in all parts but the last.

    Artifact a favours class a mod 2. It is in a review with the probability ``frequent`` if it favours the review's
    class and the part is not the last one, and ``rare`` otherwise, and counts once there. Draws one array of uniform
    numbers, reviews by artifacts, for each part in order; a number below the probability means that the word is there.
    """
    favourites = np.mod(np.arange(n_artifacts), 2)
    planted = []
    for number, part in enumerate(parts, start=1):
        misleading = np.equal.outer(part.labels, favourites)
        if number == len(parts):
            misleading = np.zeros_like(misleading)
        chances = np.where(misleading, frequent, rare)
        present = np.less(rng.random(chances.shape), chances)
        features = np.hstack([part.features, np.log1p(present.astype(float))])
        planted.append(Dataset(features, part.labels))
    return planted
