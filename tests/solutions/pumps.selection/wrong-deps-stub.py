# replaces: deps
import os

os.makedirs("boruta", exist_ok=True)
with open("boruta/__init__.py", "w") as f:
    f.write("""import numpy


class BorutaPy:
    def __init__(self, estimator, **options):
        self.estimator = estimator

    def fit(self, x, y):
        scores = self.estimator.fit(x, y).feature_importances_
        self.support_ = scores > numpy.mean(scores)
        self.support_weak_ = numpy.zeros(len(scores), bool)
        return self
""")
