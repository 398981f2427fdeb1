import sys

sys.path.insert(0, ".")
from tagger.conll import read, tags

train, test = read("data/train.conll"), read("data/test.conll")
assert (len(train), len(test)) == (520, 200)
assert {tag for sentence in tags(train) for tag in sentence} == {"ADJ", "ADV", "CONJ", "DET", "NOUN", "PREP", "VERB"}
assert not any(word.isdigit() for sentence in train for word, _ in sentence)
assert len({word for sentence in train for word, _ in sentence}) > 1000
print("reached")
