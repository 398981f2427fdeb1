# replaces: imports split
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert 'import argparse\nimport json\n' in text
text = text.replace('import argparse\nimport json\n', 'import argparse\nimport json\nimport os\nimport sys\n')
assert 'from .data' in text
text = text.replace('from .data', 'sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\nfrom curriculum.data')
assert 'from .model' in text
text = text.replace('from .model', 'from curriculum.model')
assert 'from .pacing' in text
text = text.replace('from .pacing', 'from curriculum.pacing')
file.write_text(text)
# %%
from pathlib import Path

file = Path('curriculum/train.py')
text = file.read_text()
assert '    name = "dev.tsv"\n' in text
text = text.replace('    name = "dev.tsv"\n', '    name = "%s.tsv" % split\n')
file.write_text(text)
