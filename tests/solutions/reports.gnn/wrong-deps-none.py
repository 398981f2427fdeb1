# replaces: deps
print("networkx is not needed")
