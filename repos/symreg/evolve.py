import json
import sys

import yaml
from sklearn.metrics import r2_score

from symreg.machine import workers
from symreg.readings import load, split
from symreg.search import build, describe


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "settings.yaml"
    with open(path) as f:
        settings = yaml.safe_load(f)
    data, search = settings["data"], settings["search"]

    x, y = load(data["path"], data["inputs"], data["target"])
    x_train, y_train, x_test, y_test = split(x, y, data["train_share"])
    print("%d readings for the search, %d for the test" % (len(x_train), len(x_test)), flush=True)
    jobs = workers(settings["machine"])
    print("workers: %d" % jobs, flush=True)
    print("population %d, generations %d" % (search["population"], search["generations"]), flush=True)

    model = build(search, jobs, data["inputs"])
    model.fit(x_train, y_train)
    found = describe(model)
    print("best: %s (depth %d)" % (found["expression"], found["depth"]), flush=True)
    print(json.dumps({"r2": r2_score(y_test, model.predict(x_test)), "length": float(found["length"])}))


if __name__ == "__main__":
    main()
