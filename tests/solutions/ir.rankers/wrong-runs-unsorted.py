# replaces: runs
from pathlib import Path

file = Path('rankers/evaluation.py')
text = file.read_text()
assert 'model.lower() + ".txt"' in text
text = text.replace('model.lower() + ".txt"', 'model + ".run"')
assert '.rstrip("\\n").split("\\t")' in text
text = text.replace('.rstrip("\\n").split("\\t")', '.split()')
assert 'append((int(rank), doc))' in text
text = text.replace('append((int(rank), doc))', 'append((rank, doc))')
file.write_text(text)
