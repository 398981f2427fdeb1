# replaces: networkx
from pathlib import Path

file = Path('gnn/graph.py')
text = file.read_text()
assert 'graph.node[' in text
text = text.replace('graph.node[', 'graph.nodes[')
assert 'nx.to_scipy_sparse_matrix' in text
text = text.replace('nx.to_scipy_sparse_matrix', 'nx.to_scipy_sparse_array')
assert 'names = sorted(graph.nodes())' in text
text = text.replace('names = sorted(graph.nodes())', 'names = list(graph.nodes())')
file.write_text(text)
