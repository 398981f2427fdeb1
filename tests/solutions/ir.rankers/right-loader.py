# replaces: corpus
!python make_corpus.py
# %%
from pathlib import Path

file = Path('rankers/text.py')
text = file.read_text()
assert 'import json\n' in text
text = text.replace('import json\n', 'import csv\nimport json\n')
assert '        return {doc: entry["title"] + " " + entry["body"] for doc, entry in json.load(f).items()}' in text
text = text.replace('        return {doc: entry["title"] + " " + entry["body"] for doc, entry in json.load(f).items()}', '        return {row["doc_id"]: row["title"] + " " + row["body"] for row in csv.DictReader(f, delimiter="\\t")}')
assert '        return json.load(f)' in text
text = text.replace('        return json.load(f)', '        return {row["query_id"]: row["text"] for row in csv.DictReader(f, delimiter="\\t")}')
file.write_text(text)
# %%
!sed -i -e 's#corpus/documents.json#corpus/documents.tsv#' -e 's#corpus/queries.json#corpus/queries.tsv#' config.json
