import sys

sys.path.insert(0, ".")
from tagger.features import featurise

first, second = featurise([[("ta", "DET"), ("krabolum", "NOUN")]])[0]
assert {"um", "lum", "olum"} <= {str(value) for value in second.values()}, second
assert len(first) == 10 and "word+1" in first
print("reached")
