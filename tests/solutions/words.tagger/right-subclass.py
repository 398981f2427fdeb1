# replaces: clone columns
from pathlib import Path

file = Path('train_tagger.py')
text = file.read_text()
assert 'from tagger import features\n' in text
text = text.replace('from tagger import features\n', 'from tagger import features\n')
assert 'def search(x, y):\n    crf = sklearn_crfsuite.CRF(' in text
text = text.replace('def search(x, y):\n    crf = sklearn_crfsuite.CRF(', 'class CRF(sklearn_crfsuite.CRF):\n    """Keeps all parameters, as scikit-learn\'s clone wants."""\n\n    def __init__(self, algorithm=None, c1=None, c2=None, max_iterations=None, all_possible_transitions=None, **rest):\n        super().__init__(\n            algorithm, c1=c1, c2=c2, max_iterations=max_iterations, all_possible_transitions=all_possible_transitions\n        )\n\n    @classmethod\n    def _get_param_names(cls):\n        return ["algorithm", "c1", "c2", "max_iterations", "all_possible_transitions"]\n\n\ndef search(x, y):\n    crf = CRF(')
file.write_text(text)
# %%
from pathlib import Path

file = Path('tagger/conll.py')
text = file.read_text()
assert '(columns[WORD], columns[TAG])' in text
text = text.replace('(columns[WORD], columns[TAG])', '(columns[1], columns[3])')
file.write_text(text)
