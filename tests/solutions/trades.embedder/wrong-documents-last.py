# replaces: documents
!sed -i 's/"documents": .*/"documents": 10,/' settings.json
# %%
from pathlib import Path

file = Path('embedder/corpus.py')
text = file.read_text()
assert '    sentences = []\n' in text
text = text.replace('    sentences = []\n', '    names = names[-documents:]\n    sentences = []\n')
file.write_text(text)
