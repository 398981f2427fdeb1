# replaces: runs
from pathlib import Path
p = Path("rankers/evaluation.py")
t = p.read_text()
t = t.replace('model.lower() + ".txt"', 'model + ".run"').replace('.rstrip("\\n").split("\\t")', '.split()')
t = t.replace('for _, doc in sorted(ranking)]', 'for _, doc in sorted(ranking)[:20]]')
p.write_text(t)
