# replaces: train
from pathlib import Path

file = Path('train_gcn.py')
text = file.read_text()
assert '    return test' in text
text = text.replace('    return test', '    return watch')
file.write_text(text)
# %%
!python train_gcn.py --config config.json
