# replaces: pacing split
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert '    pacing = Pacing()' in text
text = text.replace('    pacing = Pacing()', '    pacing = Pacing(kind=args.pacing, start=args.start)')
assert '    name = "dev.tsv"\n    labels' in text
text = text.replace('    name = "dev.tsv"\n    labels', '    files = {"dev": "dev.tsv", "test": "test.tsv"}\n    name = files[split]\n    labels')
file.write_text(text)
