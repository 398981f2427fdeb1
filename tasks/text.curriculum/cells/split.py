from pathlib import Path

script = Path("curriculum/train.py")
text = script.read_text()
assert 'name = "dev.tsv"' in text
script.write_text(text.replace('name = "dev.tsv"', 'name = split + ".tsv"'))
