# replaces: runs
from pathlib import Path
p = Path("rankers/evaluation.py")
t = p.read_text()
a, b = t.index("def read_run"), t.index("def ndcg_cut")
t = t[:a] + '''def read_run(folder, model):
    return KEPT[model]


''' + t[b:]
t = t.replace("    os.makedirs(folder, exist_ok=True)\n", "    global KEPT\n    KEPT = {model: {query: [doc for doc, _ in ranking] for query, ranking in rankings.items()}}\n    return\n", 1)
p.write_text(t)
