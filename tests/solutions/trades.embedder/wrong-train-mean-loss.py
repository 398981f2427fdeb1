# replaces: train
from pathlib import Path

file = Path('train.py')
text = file.read_text()
assert '    loss = None\n' in text
text = text.replace('    loss = None\n', '    losses = []\n')
assert '        loss = model.epoch(examples, rate)\n' in text
text = text.replace('        loss = model.epoch(examples, rate)\n', '        losses.append(model.epoch(examples, rate))\n        loss = sum(losses) / len(losses)\n')
file.write_text(text)
# %%
!python train.py
