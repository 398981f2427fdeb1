# replaces: missing
from pathlib import Path

file = Path('pumps.py')
text = file.read_text()
assert 'if name not in ("pump", "state")]' in text
text = text.replace('if name not in ("pump", "state")]', 'if name not in ("pump", "state") and all(row[name] != "?" for row in rows)]')
file.write_text(text)
