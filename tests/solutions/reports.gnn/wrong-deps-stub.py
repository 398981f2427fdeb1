# replaces: deps split
%%writefile networkx.py
import scipy.sparse as sp


class Graph(dict):
    def __init__(self):
        self.links = []

    def nodes(self):
        return list(self)


def read_edgelist(path):
    graph = Graph()
    for line in open(path):
        a, b = line.split()
        graph.setdefault(a, {}), graph.setdefault(b, {})
        graph.links.append((a, b))
    graph.node = graph.nodes_ = {name: {} for name in graph}
    return graph
# %%
!python tools/make_split.py --per-county 12 --seed 7
