import argparse
import json

import numpy as np

from .data import BUCKETS, difficulty, features, load
from .model import BagClassifier
from .pacing import Pacing


def evaluate(model, classes, split="dev"):
    name = "dev.tsv"
    labels, texts = load(name)
    predicted = model.predict([features(words) for words in texts])
    accuracy = float(np.mean([classes[i] == label for i, label in zip(predicted, labels)]))
    print("%s: %d of %d right (%s)" % (split, round(accuracy * len(labels)), len(labels), name), flush=True)
    return accuracy


def train(args):
    rng = np.random.default_rng(args.seed)
    labels, texts = load("train.tsv")
    classes = sorted(set(labels))
    targets = np.array([classes.index(label) for label in labels])
    order = np.argsort(difficulty(texts), kind="stable")

    pacing = Pacing()
    print("pacing: %s, %d texts, %d classes" % (pacing, len(texts), len(classes)), flush=True)
    model = BagClassifier(BUCKETS, len(classes), rng)
    steps = args.epochs * (len(texts) // args.batch)
    losses = []
    for step in range(steps):
        pool = order[: max(args.batch, int(pacing.share(step / steps) * len(order)))]
        batch = rng.choice(pool, args.batch, replace=False)
        bags = [features(texts[i], rng, drop=0.2) for i in batch]
        losses.append(model.step(bags, targets[batch], args.rate))
        if (step + 1) % (steps // 10) == 0:
            print("step %d, pool %d, loss %.4f" % (step + 1, len(pool), np.mean(losses[-50:])), flush=True)
    return model, classes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pacing", default="linear", choices=["none", "linear", "root", "step"])
    parser.add_argument("--start", type=float, default=0.5, help="share of the data at the start")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=5)
    args = parser.parse_args()

    model, classes = train(args)
    print(json.dumps({"dev_acc": evaluate(model, classes, "dev"), "test_acc": evaluate(model, classes, "test")}))


if __name__ == "__main__":
    main()
