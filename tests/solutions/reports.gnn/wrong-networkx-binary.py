# replaces: networkx
from pathlib import Path

file = Path('gnn/graph.py')
text = file.read_text()
assert 'graph.node[' in text
text = text.replace('graph.node[', 'graph.nodes[')
assert 'nx.to_scipy_sparse_matrix' in text
text = text.replace('nx.to_scipy_sparse_matrix', 'nx.to_scipy_sparse_array')
assert '    words /= words.sum(axis=1, keepdims=True)\n' in text
text = text.replace('    words /= words.sum(axis=1, keepdims=True)\n', '')
file.write_text(text)
