# replaces: question
from pathlib import Path

file = Path('train.py')
text = file.read_text()
assert 'reply = input(' in text
text = text.replace('reply = input(', 'reply = open("/dev/stdin").readline() or input(')
file.write_text(text)
