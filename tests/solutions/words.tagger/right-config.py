# replaces: columns endings grid
from pathlib import Path

file = Path('tagger/conll.py')
text = file.read_text()
assert 'WORD = 0' in text
text = text.replace('WORD = 0', 'WORD = -3')
assert 'TAG = 1' in text
text = text.replace('TAG = 1', 'TAG = -1')
file.write_text(text)
# %%
from pathlib import Path

file = Path('tagger/features.py')
text = file.read_text()
assert 'USE_ENDINGS = False' in text
text = text.replace('USE_ENDINGS = False', 'USE_ENDINGS = bool(1)')
file.write_text(text)
# %%
from pathlib import Path

file = Path('train_tagger.py')
text = file.read_text()
assert '[0.01, 0.05, 0.1, 0.5, 1.0]' in text
text = text.replace('[0.01, 0.05, 0.1, 0.5, 1.0]', '[0.05, 0.1, 0.2, 0.5]')
assert '[0.001, 0.01, 0.05, 0.1, 0.5]' in text
text = text.replace('[0.001, 0.01, 0.05, 0.1, 0.5]', '[0.01, 0.02, 0.05, 0.1]')
file.write_text(text)
