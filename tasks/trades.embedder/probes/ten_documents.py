"""The sentences that the program makes its vocabulary of."""
import builtins
import sys

import numpy

sys.path.insert(0, ".")
import embedder.backend
import embedder.corpus


class Stop(Exception):
    pass


given = []


def stop(sentences, *args, **named):
    given.extend(sentences)
    raise Stop


embedder.backend.arrays = lambda *args: numpy
embedder.corpus.vocabulary = stop
builtins.input = lambda *args: "y"
import train

wanted = []
for number in range(10):
    with open("texts/doc%02d.txt" % number) as f:
        wanted += [line.split() for line in f]
try:
    train.main()
except Stop:
    assert len(wanted) == 750 and [list(words) for words in given] == wanted, len(given)
    print("reached")
