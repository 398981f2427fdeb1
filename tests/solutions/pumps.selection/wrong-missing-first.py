# replaces: missing
from pathlib import Path

file = Path('pumps.py')
text = file.read_text()
assert 'rows = list(csv.DictReader(f))' in text
text = text.replace('rows = list(csv.DictReader(f))', 'rows = [row for row in csv.DictReader(f) if "?" not in row.values()][:500]')
file.write_text(text)
