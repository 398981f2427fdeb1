# replaces: split
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'name = "dev.tsv"' in text
text = text.replace('name = "dev.tsv"', 'name = "test.tsv"')
file.write_text(text)
