class SkipGram:
    """Negative sampling, one center word after the other, plain SGD."""

    def __init__(self, xp, counts, size, negatives, rng):
        self.xp = xp
        self.rng = rng
        self.negatives = negatives
        share = xp.asarray(counts, dtype=float) ** 0.75
        self.bounds = xp.cumsum(share / share.sum())
        self.words = (rng.random((len(counts), size)) - 0.5) / size
        self.contexts = xp.zeros((len(counts), size))

    def epoch(self, pairs, rate):
        """Mean loss over the pairs, which are taken in random order."""
        xp = self.xp
        order = self.rng.permutation(len(pairs))
        draws = xp.searchsorted(self.bounds, self.rng.random((len(pairs), self.negatives)))
        draws = xp.minimum(draws, len(self.bounds) - 1)
        labels = xp.zeros(self.negatives + 1)
        labels[0] = 1.0
        total = 0.0
        for place in order:
            center, context = pairs[place]
            targets = xp.concatenate(([context], draws[place]))
            vector = self.words[center].copy()
            rows = self.contexts[targets]
            scores = 1.0 / (1.0 + xp.exp(-(rows * vector).sum(axis=1)))
            total -= xp.log(xp.abs(scores + labels - 1.0) + 1e-12).sum()
            step = rate * (labels - scores)[:, None]
            self.words[center] = vector + (step * rows).sum(axis=0)
            xp.add.at(self.contexts, targets, step * vector)
        return float(total / len(pairs))
