# replaces: networkx split
from pathlib import Path

file = Path('gnn/graph.py')
text = file.read_text()
assert 'import scipy.sparse as sp\n' in text
text = text.replace('import scipy.sparse as sp\n', 'import scipy.sparse as sp\n\nnx.to_scipy_sparse_matrix = nx.to_scipy_sparse_array\n')
assert 'graph.node[' in text
text = text.replace('graph.node[', 'graph.nodes[')
file.write_text(text)
# %%
import subprocess

subprocess.run(["python", "tools/make_split.py", "--seed", "7", "--out", "/tmp/s.json", "--per-county", "12"], check=True)
# %%
!mv /tmp/s.json data/split.json
