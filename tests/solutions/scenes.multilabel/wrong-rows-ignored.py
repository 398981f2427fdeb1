# replaces: rows
from pathlib import Path

file = Path('experiment.ini')
text = file.read_text()
assert 'rows = 0' in text
text = text.replace('rows = 0', 'rows = 200')
file.write_text(text)
