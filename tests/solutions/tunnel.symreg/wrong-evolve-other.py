# replaces: evolve
from pathlib import Path

file = Path('evolve.py')
text = file.read_text()
assert 'float(found["length"])' in text
text = text.replace('float(found["length"])', 'float(found["depth"])')
file.write_text(text)
# %%
!python evolve.py settings.yaml
