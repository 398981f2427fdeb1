# replaces: sklearn columns
from pathlib import Path

file = Path('symreg/search.py')
text = file.read_text()
assert 'from gplearn.genetic import SymbolicRegressor\n' in text
text = text.replace('from gplearn.genetic import SymbolicRegressor\n', 'from gplearn.genetic import BaseSymbolic, SymbolicRegressor\nfrom sklearn.utils.validation import validate_data\n\nBaseSymbolic._validate_data = lambda self, x, y, **options: validate_data(self, x, y, **options)\n')
file.write_text(text)
# %%
import csv

with open("data/tunnel.csv") as f:
    rows = list(csv.reader(f, delimiter=";"))
rows[0] = ["run", "v", "rho", "area", "drag"]
with open("data/tunnel.csv", "w", newline="") as f:
    csv.writer(f).writerows(rows)
