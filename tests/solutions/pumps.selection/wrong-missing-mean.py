# replaces: missing
from pathlib import Path

file = Path('pumps.py')
text = file.read_text()
assert 'float(row[name])' in text
text = text.replace('float(row[name])', 'float(row[name]) if row[name] != "?" else np.nan')
assert '    worn =' in text
text = text.replace('    worn =', '    readings = np.where(np.isnan(readings), np.nanmean(readings, axis=0), readings)\n    worn =')
file.write_text(text)
