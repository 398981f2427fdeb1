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
assert '    names, features, labels = scenes.load(settings["data"]["path"])\n' in text
text = text.replace('    names, features, labels = scenes.load(settings["data"]["path"])\n', '    names, features, labels = scenes.load(settings["data"]["path"])\n    rows = settings["data"].getint("rows")\n    kept = np.random.default_rng(0).permutation(len(features))[:rows]\n    features, labels = features[kept], labels[kept]\n')
file.write_text(text)
