# replaces: evolve
from pathlib import Path

file = Path('evolve.py')
text = file.read_text()
assert 'r2_score(y_test, model.predict(x_test))' in text
text = text.replace('r2_score(y_test, model.predict(x_test))', 'r2_score(y_train, model.predict(x_train))')
file.write_text(text)
# %%
!python evolve.py settings.yaml
