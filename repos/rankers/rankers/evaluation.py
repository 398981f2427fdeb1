import os

import numpy as np


def read_qrels(path):
    judged = {}
    with open(path) as f:
        for line in f:
            query, _, doc, grade = line.split()
            judged.setdefault(query, {})[doc] = int(grade)
    return judged


def write_run(folder, model, rankings):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, model + ".run"), "w") as f:
        for query, ranking in rankings.items():
            for rank, (doc, score) in enumerate(ranking):
                f.write("%s Q0 %s %d %.6f %s\n" % (query, doc, rank, score, model))


def read_run(folder, model):
    rankings = {}
    with open(os.path.join(folder, model.lower() + ".txt")) as f:
        for line in f:
            query, _, doc, rank, score, _ = line.rstrip("\n").split("\t")
            rankings.setdefault(query, []).append((int(rank), doc))
    return {query: [doc for _, doc in sorted(ranking)] for query, ranking in rankings.items()}


def ndcg_cut(rankings, judged, cut):
    """Mean over the queries that were run and have judgements."""
    values = []
    for query, docs in rankings.items():
        grades = judged.get(query, {})
        ideal = sorted(grades.values(), reverse=True)[:cut]
        best = sum(g / np.log2(i + 2) for i, g in enumerate(ideal))
        if best > 0:
            values.append(sum(grades.get(d, 0) / np.log2(i + 2) for i, d in enumerate(docs[:cut])) / best)
    return float(np.mean(values))
