# replaces: runs
from pathlib import Path

file = Path('rankers/evaluation.py')
text = file.read_text()
assert 'model.lower() + ".txt"' in text
text = text.replace('model.lower() + ".txt"', 'model + ".run"')
assert '.rstrip("\\n").split("\\t")' in text
text = text.replace('.rstrip("\\n").split("\\t")', '.split()')
assert 'grades.get(d, 0)' in text
text = text.replace('grades.get(d, 0)', '(2 ** grades.get(d, 0) - 1)')
file.write_text(text)
