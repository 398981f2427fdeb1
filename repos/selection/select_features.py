import argparse
import json

import numpy as np
from boruta import BorutaPy
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import pumps
import settings


def forest(seed):
    return RandomForestClassifier(n_estimators=settings.TREES, max_depth=settings.DEPTH, n_jobs=1, random_state=seed)


def boruta(readings, worn):
    selector = BorutaPy(
        forest(settings.SEED),
        n_estimators=settings.TREES,
        max_iter=settings.ROUNDS,
        random_state=settings.SEED,
        verbose=0,
    )
    return selector.fit(readings, worn)


def accuracy(readings, worn):
    folds = StratifiedKFold(settings.FOLDS, shuffle=True, random_state=settings.SEED)
    return float(np.mean(cross_val_score(forest(settings.SEED), readings, worn, cv=folds)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/pumps.csv")
    parser.add_argument("--weak", action="store_true", help="keep tentative sensors too")
    args = parser.parse_args()

    readings, names, worn = pumps.load(args.data)
    print("%d pumps, %d sensors, %d worn" % (len(worn), len(names), worn.sum()), flush=True)
    print("seed %d, %d rounds of %d trees" % (settings.SEED, settings.ROUNDS, settings.TREES), flush=True)

    selector = boruta(readings, worn)
    kept = selector.support_ | (selector.support_weak_ if args.weak else False)
    chosen = [name for name, keep in zip(names, kept) if keep]
    print("confirmed: %s" % ", ".join(chosen), flush=True)
    print("tentative: %s" % ", ".join(n for n, weak in zip(names, selector.support_weak_) if weak), flush=True)

    print("all sensors: accuracy %.4f" % accuracy(readings, worn), flush=True)
    print(json.dumps({"features": sorted(chosen), "accuracy": accuracy(readings[:, kept], worn)}))


if __name__ == "__main__":
    main()
