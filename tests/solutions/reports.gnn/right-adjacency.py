# replaces: networkx dropout
from pathlib import Path

file = Path('gnn/graph.py')
text = file.read_text()
assert '        graph.node[name]["county"] = contents[name]["county"]' in text
text = text.replace('        graph.node[name]["county"] = contents[name]["county"]', '        graph.nodes[name].update(county=contents[name]["county"])')
assert 'graph.node[name]["county"])' in text
text = text.replace('graph.node[name]["county"])', 'contents[name]["county"])')
assert 'nx.to_scipy_sparse_matrix(graph, nodelist=names, format="csr", dtype=float)' in text
text = text.replace('nx.to_scipy_sparse_matrix(graph, nodelist=names, format="csr", dtype=float)', 'sp.csr_matrix(nx.adjacency_matrix(graph, nodelist=names, dtype=float))')
file.write_text(text)
# %%
import json

config = json.load(open("config.json"))
config["dropout"] = 0.5
json.dump(config, open("config.json", "w"))
