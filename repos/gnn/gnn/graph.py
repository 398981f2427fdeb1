import json

import networkx as nx
import numpy as np
import scipy.sparse as sp


def read(edges, reports):
    """Names in order, normalised adjacency with self-loops, words as rows that sum to 1, county numbers."""
    graph = nx.read_edgelist(edges)
    with open(reports) as f:
        contents = json.load(f)
    for name in graph.nodes():
        graph.node[name]["county"] = contents[name]["county"]
    names = sorted(graph.nodes())
    adjacency = nx.to_scipy_sparse_matrix(graph, nodelist=names, format="csr", dtype=float)
    adjacency = adjacency + sp.identity(len(names), format="csr")
    degree = np.asarray(adjacency.sum(axis=1)).ravel() ** -0.5
    normal = sp.csr_matrix(sp.diags(degree) @ adjacency @ sp.diags(degree))

    size = 1 + max(max(entry["words"]) for entry in contents.values())
    words = np.zeros((len(names), size))
    for row, name in enumerate(names):
        words[row, contents[name]["words"]] = 1.0
    words /= words.sum(axis=1, keepdims=True)
    counties = sorted({entry["county"] for entry in contents.values()})
    labels = np.array([counties.index(graph.node[name]["county"]) for name in names])
    return names, normal, words, labels


def masks(names, path):
    with open(path) as f:
        split = json.load(f)
    index = {name: row for row, name in enumerate(names)}
    return {part: np.array([index[name] for name in members]) for part, members in split.items()}
