# replaces: deps clone
import os

os.makedirs("sklearn_crfsuite")
with open("sklearn_crfsuite/__init__.py", "w") as f:
    f.write("from . import metrics\nfrom sklearn.base import BaseEstimator\n\n\nclass CRF(BaseEstimator):\n    def __init__(self, algorithm=None, max_iterations=None, all_possible_transitions=None, c1=0, c2=0):\n        self.c1, self.c2, self.algorithm, self.max_iterations, self.all_possible_transitions = c1, c2, algorithm, max_iterations, all_possible_transitions\n\n    def fit(self, x, y):\n        self.seen = {t['word']: l for s, u in zip(x, y) for t, l in zip(s, u)}\n        return self\n\n    def predict(self, x):\n        return [[self.seen.get(t['word'], 'NOUN') for t in s] for s in x]\n")
with open("sklearn_crfsuite/metrics.py", "w") as f:
    f.write("from sklearn.metrics import f1_score, accuracy_score\n\n\ndef flat(y):\n    return [l for s in y for l in s]\n\n\ndef flat_f1_score(a, b, **o):\n    return f1_score(flat(a), flat(b), **o)\n\n\ndef flat_accuracy_score(a, b):\n    return accuracy_score(flat(a), flat(b))\n")
