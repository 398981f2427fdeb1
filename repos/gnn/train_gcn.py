import argparse
import json

import numpy as np

from gnn.gcn import GCN
from gnn.graph import masks, read


def run(config, seed, adjacency, words, labels, parts):
    """Accuracy on the test reports of one training."""
    rng = np.random.default_rng(seed)
    model = GCN(words.shape[1], config["hidden"], labels.max() + 1, rng)
    losses = []
    for _ in range(config["epochs"]):
        loss = model.step(
            adjacency, words, labels, parts["train"], config["rate"], config["decay"], rng, config["dropout"]
        )
        losses.append(loss)
    right = model.predict(adjacency, words) == labels
    watch, test = right[parts["watch"]].mean(), right[parts["test"]].mean()
    print("seed %d loss %.4f watch %.4f test %.4f" % (seed, np.mean(losses[-20:]), watch, test), flush=True)
    return test


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--split", default="data/split.json")
    args = parser.parse_args()
    with open(args.config) as f:
        config = json.load(f)

    names, adjacency, words, labels = read("data/reports.edgelist", "data/reports.json")
    print("%d reports, %d words, %d links" % (len(names), words.shape[1], (adjacency.nnz - len(names)) // 2), flush=True)
    parts = masks(names, args.split)
    print("split: %s" % ", ".join("%d %s" % (len(parts[p]), p) for p in ("train", "watch", "test")), flush=True)
    settings = (config["dropout"], config["hidden"], config["runs"], config["epochs"])
    print("dropout %.2f, hidden %d, %d runs of %d epochs" % settings, flush=True)

    scores = [run(config, config["seed"] + i, adjacency, words, labels, parts) for i in range(config["runs"])]
    print(json.dumps({"acc": float(np.mean(scores))}))


if __name__ == "__main__":
    main()
