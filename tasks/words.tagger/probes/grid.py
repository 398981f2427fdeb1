"""The grid in the source: the program can't be imported before its packages are installed."""
import ast

with open("train_tagger.py") as f:
    tree = ast.parse(f.read())
values = {
    target.id: ast.literal_eval(node.value)
    for node in tree.body
    if isinstance(node, ast.Assign)
    for target in node.targets
    if isinstance(target, ast.Name) and target.id in ("GRID", "ITERATIONS", "FOLDS")
}
assert values["GRID"] == {"c1": [0.05, 0.1, 0.2, 0.5], "c2": [0.01, 0.02, 0.05, 0.1]}
assert (values["ITERATIONS"], values["FOLDS"]) == (100, 5)
print("reached")
