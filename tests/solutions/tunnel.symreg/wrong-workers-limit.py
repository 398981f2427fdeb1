# replaces: workers
from pathlib import Path

file = Path('symreg/machine.py')
text = file.read_text()
assert '        raise SystemExit("needs a node with %d cores, this one has %d" % (wanted, present))' in text
text = text.replace('        raise SystemExit("needs a node with %d cores, this one has %d" % (wanted, present))', '        return present')
file.write_text(text)
