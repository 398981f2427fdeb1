# replaces: question documents
from pathlib import Path

file = Path('train.py')
text = file.read_text()
assert '    reply = input("Write the vectors to %s when done? [y/n] " % path)\n    if reply.strip().lower() != "y":\n        raise SystemExit("stopped")\n' in text
text = text.replace('    reply = input("Write the vectors to %s when done? [y/n] " % path)\n    if reply.strip().lower() != "y":\n        raise SystemExit("stopped")\n', '    return\n')
file.write_text(text)
# %%
!sed -i 's/"documents": 0/"documents": 10/' settings.json
# %%
from pathlib import Path

file = Path('embedder/corpus.py')
text = file.read_text()
assert '    for name in names:\n' in text
text = text.replace('    for name in names:\n', '    for name in names[: documents or None]:\n')
file.write_text(text)
