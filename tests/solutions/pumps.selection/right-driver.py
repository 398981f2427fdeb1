# replaces: numpy missing
from pathlib import Path

file = Path('select_features.py')
text = file.read_text()
assert 'import numpy as np\n' in text
text = text.replace('import numpy as np\n', 'import numpy as np\n\nnp.int, np.float = int, float\n')
file.write_text(text)
# %%
from pathlib import Path

file = Path('pumps.py')
text = file.read_text()
assert '    readings = np.array' in text
text = text.replace('    readings = np.array', '    rows = [row for row in rows if all(row[name] != "?" for name in names)]\n    readings = np.array')
file.write_text(text)
