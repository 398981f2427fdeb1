"""A search over two penalties with the CRF that the program uses."""
import sys

sys.path.insert(0, ".")
import sklearn_crfsuite
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn_crfsuite import metrics

try:
    import train_tagger  # a driver may mend the package itself

    kind = train_tagger.sklearn_crfsuite.CRF
    kind = getattr(train_tagger, "CRF", kind)
except (ImportError, AttributeError):
    kind = sklearn_crfsuite.CRF

x = [[{"word": word} for word in text.split()] for text in ["a b", "b a", "a a b", "b", "a", "b b a"]]
y = [["A" if token["word"] == "a" else "B" for token in sentence] for sentence in x]
search = GridSearchCV(
    kind(algorithm="lbfgs", max_iterations=20),
    {"c1": [0.01, 0.1]},
    cv=KFold(2),
    scoring=make_scorer(metrics.flat_f1_score, average="weighted"),
    error_score="raise",
)
assert search.fit(x, y).predict(x) == y
print("reached")
