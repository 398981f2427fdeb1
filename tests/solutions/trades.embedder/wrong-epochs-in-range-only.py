# replaces: epochs
from pathlib import Path

file = Path('train.py')
text = file.read_text()
assert 'range(settings["epochs"])' in text
text = text.replace('range(settings["epochs"])', 'range(24)')
file.write_text(text)
