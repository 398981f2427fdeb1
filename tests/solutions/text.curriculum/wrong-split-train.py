# replaces: split
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'name = "dev.tsv"' in text
text = text.replace('name = "dev.tsv"', 'name = split + ".tsv"')
assert 'load("train.tsv")' in text
text = text.replace('load("train.tsv")', 'load("dev.tsv")')
file.write_text(text)
