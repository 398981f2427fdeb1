import argparse
import configparser
import json

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import KFold
from skmultilearn.adapt import MLkNN

import scenes


def cross_validate(features, labels, k, search, seed):
    """Hamming loss and micro F1 of the predictions of all folds together."""
    folds = KFold(search.getint("folds"), shuffle=True, random_state=seed)
    predicted = np.zeros_like(labels)
    for train, test in folds.split(features):
        x_train, x_test = scenes.standardise(features[train], features[test])
        model = MLkNN(k=k, s=search.getfloat("smoothing"))
        model.fit(csr_matrix(x_train), csr_matrix(labels[train]))
        predicted[test] = model.predict(csr_matrix(x_test)).toarray()
    return hamming_loss(labels, predicted), f1_score(labels, predicted, average="micro")


def score(features, labels, k, search):
    first = search.getint("seed")
    seeds = range(first, first + search.getint("repeats"))
    return np.mean([cross_validate(features, labels, k, search, seed) for seed in seeds], axis=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", default="experiment.ini")
    args = parser.parse_args()
    settings = configparser.ConfigParser()
    settings.read(args.settings)
    search = settings["search"]

    names, features, labels = scenes.load(settings["data"]["path"])
    print("read %s" % settings["data"]["path"], flush=True)
    print("%d pictures, %d features, labels %s" % (len(features), features.shape[1], " ".join(names)), flush=True)
    print("%.2f labels a picture" % labels.sum(axis=1).mean(), flush=True)

    best = None
    for k in [int(k) for k in search["neighbours"].split()]:
        loss, f1 = score(features, labels, k, search)
        print("k=%d hamming %.4f f1 %.4f" % (k, loss, f1), flush=True)
        if best is None or loss < best[0]:
            best = (loss, f1, k)
    print("best k: %d" % best[2])
    print(json.dumps({"hamming": float(best[0]), "f1_micro": float(best[1])}))


if __name__ == "__main__":
    main()
