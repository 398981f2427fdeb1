"""Weighting models. Each gets term frequencies, document lengths, document frequency, collection frequency, the index."""
import numpy as np


def tf_idf(tf, length, df, cf, index, k1=1.2, b=0.75):
    saturated = k1 * tf / (tf + k1 * (1 - b + b * length / index.average))
    return saturated * np.log2(index.size / df + 1)


def bm25(k1, b):
    def score(tf, length, df, cf, index):
        idf = np.log(1 + (index.size - df + 0.5) / (df + 0.5))
        return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / index.average))

    return score


def dph(tf, length, df, cf, index):
    f = np.minimum(tf / length, 0.999)
    norm = (1 - f) ** 2 / (tf + 1)
    return norm * (tf * np.log2(tf * index.average / length * index.size / cf) + 0.5 * np.log2(2 * np.pi * tf * (1 - f)))


def pl2(c):
    def score(tf, length, df, cf, index):
        tfn = tf * np.log2(1 + c * index.average / length)
        rate = cf / index.size
        gain = tfn * np.log2(1 / rate) + rate / np.log(2) + 0.5 * np.log2(2 * np.pi * tfn) + tfn * (np.log2(tfn) - 1 / np.log(2))
        return gain / (tfn + 1)

    return score


def dirichlet_lm(mu):
    def score(tf, length, df, cf, index):
        return np.log(1 + tf / (mu * cf / index.total)) + np.log(mu / (length + mu))

    return score


def build(config):
    return {
        "TF-IDF": tf_idf,
        "BM25": bm25(config["bm25"]["k1"], config["bm25"]["b"]),
        "DPH": dph,
        "PL2": pl2(config["pl2"]["c"]),
        "DirichletLM": dirichlet_lm(config["dirichlet"]["mu"]),
    }
