"""A run with an order of its own survives being written by one program and read by another."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, ".")
from rankers.evaluation import write_run

rankings = {
    "Q7": [("D3", 2.5), ("D10", 1.25), ("D1", -0.5)],
    "Q2": [("D9", 0.125)],
    "Q5": [("D%d" % (place * 7 % 61), 30 - place / 2) for place in range(60)],
}
read = """
import json, sys
sys.path.insert(0, ".")
from rankers.evaluation import read_run
print(json.dumps(read_run(sys.argv[1], "PL2")))
"""
with tempfile.TemporaryDirectory() as folder:
    write_run(folder, "PL2", rankings)
    assert any(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)), "no run is written"
    said = subprocess.run([sys.executable, "-c", read, folder], stdout=subprocess.PIPE, text=True, check=True).stdout
assert json.loads(said.splitlines()[-1]) == {
    query: [doc for doc, _ in ranking] for query, ranking in rankings.items()
}
print("reached")
