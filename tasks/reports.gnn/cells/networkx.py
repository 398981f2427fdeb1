!sed -i -e 's/graph\.node\[/graph.nodes[/' -e 's/nx\.to_scipy_sparse_matrix/nx.to_scipy_sparse_array/' gnn/graph.py
!grep -n "nodes\[\|sparse_array" gnn/graph.py
