import networkx

assert networkx.__version__ == "3.4.2"
assert networkx.path_graph(4).number_of_edges() == 3
print("reached")
