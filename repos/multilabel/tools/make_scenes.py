"""Writes corpora/scenes.csv: made-up picture features and the labels that a picture may have together."""
import numpy as np

LABELS = ["beach", "field", "forest", "mountain", "sunset", "town"]


def main():
    rng = np.random.default_rng(21)
    rows, size = 460, 18
    centers = rng.normal(0, 1.1, (len(LABELS), size))
    labels = rng.random((rows, len(LABELS))) < np.linspace(0.42, 0.2, len(LABELS))
    labels[:, 4] |= labels[:, 0] & (rng.random(rows) < 0.4)
    features = labels @ centers + rng.normal(0, 1.0, (rows, size))
    with open("corpora/scenes.csv", "w") as f:
        f.write(",".join(["picture"] + ["f%d" % i for i in range(size)] + LABELS) + "\n")
        for i in range(rows):
            values = ["%.3f" % v for v in features[i]] + [str(int(v)) for v in labels[i]]
            f.write(",".join(["s%04d" % i] + values) + "\n")


if __name__ == "__main__":
    main()
