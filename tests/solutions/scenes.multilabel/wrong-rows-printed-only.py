# replaces: rows
from pathlib import Path

file = Path('experiment.ini')
text = file.read_text()
assert 'rows = 0' in text
text = text.replace('rows = 0', 'rows = 200')
file.write_text(text)
# %%
from pathlib import Path

file = Path('tune.py')
text = file.read_text()
assert '% (len(features), features.shape[1]' in text
text = text.replace('% (len(features), features.shape[1]', '% (200, features.shape[1]')
file.write_text(text)
