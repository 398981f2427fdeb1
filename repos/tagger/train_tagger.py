import argparse
import json

import sklearn_crfsuite
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn_crfsuite import metrics

from tagger import features
from tagger.conll import read, tags

# the grid of the paper
GRID = {"c1": [0.01, 0.05, 0.1, 0.5, 1.0], "c2": [0.001, 0.01, 0.05, 0.1, 0.5]}
ITERATIONS = 100
FOLDS = 5
MOST_TAGS = 60


def search(x, y):
    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=ITERATIONS, all_possible_transitions=True)
    found = GridSearchCV(
        crf,
        GRID,
        cv=KFold(FOLDS, shuffle=True, random_state=0),
        scoring=make_scorer(metrics.flat_f1_score, average="weighted"),
        error_score="raise",
        verbose=1,
    )
    return found.fit(x, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", default="data/train.conll")
    parser.add_argument("--test", default="data/test.conll")
    args = parser.parse_args()

    train, test = read(args.train), read(args.test)
    labels = sorted({tag for sentence in tags(train) for tag in sentence})
    print("%d sentences to train on, %d to test on, %d tags" % (len(train), len(test), len(labels)), flush=True)
    if len(labels) > MOST_TAGS:
        raise SystemExit("that is more than %d tags: are the columns right?" % MOST_TAGS)
    x_train, x_test = features.featurise(train), features.featurise(test)
    print("%d features at the first token" % len(x_train[0][0]), flush=True)
    print("grid: c1 %s, c2 %s" % (GRID["c1"], GRID["c2"]), flush=True)

    found = search(x_train, tags(train))
    print("best c1 %g, c2 %g, f1 in the search %.4f" % (found.best_params_["c1"], found.best_params_["c2"], found.best_score_))
    predicted = found.predict(x_test)
    gold = tags(test)
    f1 = metrics.flat_f1_score(gold, predicted, average="weighted")
    print(json.dumps({"f1": float(f1), "accuracy": float(metrics.flat_accuracy_score(gold, predicted))}))


if __name__ == "__main__":
    main()
