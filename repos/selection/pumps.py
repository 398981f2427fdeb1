import csv

import numpy as np


def load(path):
    """Readings (rows are pumps), the names of the sensors, and whether each pump is worn."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    names = [name for name in rows[0] if name not in ("pump", "state")]
    readings = np.array([[float(row[name]) for name in names] for row in rows])
    worn = np.array([int(row["state"] == "worn") for row in rows])
    return readings, names, worn
