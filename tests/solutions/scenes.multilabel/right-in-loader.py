# replaces: rows
from pathlib import Path

file = Path('experiment.ini')
text = file.read_text()
assert 'rows = 0' in text
text = text.replace('rows = 0', 'rows = 200')
file.write_text(text)
# %%
from pathlib import Path

file = Path('scenes.py')
text = file.read_text()
assert 'def load(path):' in text
text = text.replace('def load(path):', 'def load(path, most=None):')
assert '        rows = list(reader)\n' in text
text = text.replace('        rows = list(reader)\n', '        rows = list(reader)[:most]\n')
file.write_text(text)
# %%
from pathlib import Path

file = Path('tune.py')
text = file.read_text()
assert 'scenes.load(settings["data"]["path"])' in text
text = text.replace('scenes.load(settings["data"]["path"])', 'scenes.load(settings["data"]["path"], settings["data"].getint("rows") or None)')
file.write_text(text)
