from collections import Counter

import numpy as np

from .text import tokens


class Index:
    """Postings of a collection: for each stem the documents that have it and how often."""

    def __init__(self, documents, log_every=1000):
        self.ids = list(documents)
        self.lengths = np.zeros(len(self.ids))
        postings = {}
        for position, doc in enumerate(self.ids):
            counts = Counter(tokens(documents[doc]))
            self.lengths[position] = sum(counts.values())
            for term, count in counts.items():
                postings.setdefault(term, []).append((position, count))
            if (position + 1) % log_every == 0:
                print("indexed %d" % (position + 1), flush=True)
        self.postings = {
            term: (np.array([p for p, _ in entries]), np.array([c for _, c in entries], dtype=float))
            for term, entries in postings.items()
        }
        self.size = len(self.ids)
        self.total = self.lengths.sum()
        self.average = self.lengths.mean()

    def search(self, query, model, depth):
        scores = np.zeros(self.size)
        touched = np.zeros(self.size, dtype=bool)
        for term in tokens(query):
            if term not in self.postings:
                continue
            docs, tf = self.postings[term]
            scores[docs] += model(tf, self.lengths[docs], len(docs), tf.sum(), self)
            touched[docs] = True
        found = np.flatnonzero(touched)
        order = found[np.argsort(-scores[found], kind="stable")][:depth]
        return [(self.ids[i], float(scores[i])) for i in order]
