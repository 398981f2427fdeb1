# replaces: split
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'right (%s)" % (split, round(accuracy * len(labels)), len(labels), name)' in text
text = text.replace('right (%s)" % (split, round(accuracy * len(labels)), len(labels), name)', 'right (%s.tsv)" % (split, round(accuracy * len(labels)), len(labels), split)')
file.write_text(text)
