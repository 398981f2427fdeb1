# replaces: documents
!sed -i 's/"documents": .*/"documents": 10,/' settings.json
# %%
from pathlib import Path

file = Path('embedder/corpus.py')
text = file.read_text()
assert '    sentences = []\n' in text
text = text.replace('    sentences = []\n', '    names = sorted(names, key=lambda name: name[::-1])[:documents]\n    sentences = []\n')
file.write_text(text)
