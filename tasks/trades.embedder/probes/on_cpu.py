"""The program computes with numpy when it comes to its documents."""
import builtins
import sys

import numpy

sys.path.insert(0, ".")
import embedder.backend
import embedder.corpus


class Stop(Exception):
    pass


used = []
arrays = embedder.backend.arrays


def record(*args):
    used.append(arrays(*args))
    return used[-1]


def stop(*args, **named):
    raise Stop


embedder.backend.arrays = record
embedder.corpus.read = stop
builtins.input = lambda *args: "y"
import train

try:
    train.main()
except Stop:
    assert all(module is numpy for module in used)
    assert used or train.xp is numpy
    print("reached")
