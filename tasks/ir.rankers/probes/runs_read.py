"""A run with an order of its own survives being written and read."""
import sys
import tempfile

sys.path.insert(0, ".")
from rankers.evaluation import read_run, write_run

rankings = {"Q7": [("D3", 2.5), ("D10", 1.25), ("D1", -0.5)], "Q2": [("D9", 0.125)]}
with tempfile.TemporaryDirectory() as folder:
    write_run(folder, "PL2", rankings)
    read = read_run(folder, "PL2")
assert read == {query: [doc for doc, _ in ranking] for query, ranking in rankings.items()}
print("reached")
