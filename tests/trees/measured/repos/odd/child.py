"""A program of its own."""
import os
import sys

sys.path.insert(0, os.getcwd())
from odd import pieces

print(getattr(pieces, sys.argv[1])(10))
