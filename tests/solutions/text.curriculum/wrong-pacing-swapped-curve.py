# replaces: pacing
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'Pacing()' in text
text = text.replace('Pacing()', 'Pacing(args.pacing, args.start)')
file.write_text(text)
# %%
from pathlib import Path

file = Path('curriculum/pacing.py')
text = file.read_text()
assert '/ 0.7))\n        if self.kind == "step"' in text
text = text.replace('/ 0.7))\n        if self.kind == "step"', '/ 0.5))\n        if self.kind == "step"')
file.write_text(text)
