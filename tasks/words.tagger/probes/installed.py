from importlib.metadata import version

import pycrfsuite
import sklearn_crfsuite

assert version("sklearn-crfsuite") == "0.3.6"
assert callable(pycrfsuite.Tagger)
print("reached")
