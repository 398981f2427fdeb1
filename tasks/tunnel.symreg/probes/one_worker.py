"""The number of workers that the program itself would use."""
import re
import sys

sys.path.insert(0, ".")
from symreg.machine import workers

with open("settings.yaml") as f:
    wanted = int(re.search(r"workers:\s*(\d+)", f.read()).group(1))
assert workers({"workers": wanted}) == 1
print("reached")
