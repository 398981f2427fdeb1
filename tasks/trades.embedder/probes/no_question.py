"""The program comes to its documents although nobody answers."""
import builtins
import sys

import numpy

sys.path.insert(0, ".")
import embedder.backend
import embedder.corpus


class Stop(Exception):
    pass


def nobody(*args):
    raise EOFError


def stop(*args, **named):
    raise Stop


embedder.backend.arrays = lambda *args: numpy
embedder.corpus.read = stop
builtins.input = nobody
import train

try:
    train.main()
except Stop:
    print("reached")
