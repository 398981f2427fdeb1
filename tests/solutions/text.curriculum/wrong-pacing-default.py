# replaces: pacing
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'Pacing()' in text
text = text.replace('Pacing()', 'Pacing("root", 0.5)')
file.write_text(text)
