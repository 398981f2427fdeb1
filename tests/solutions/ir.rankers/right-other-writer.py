# replaces: corpus config runs
!python make_corpus.py --out corpus
# %%
import json

documents, queries = {}, {}
for line in open("corpus/documents.tsv").read().splitlines()[1:]:
    name, title, body = line.split("\t")
    documents[name] = {"body": body, "title": title}
for line in open("corpus/queries.tsv").read().splitlines()[1:]:
    name, text = line.split("\t")
    queries[name] = text
json.dump(documents, open("corpus/docs.json", "w"), indent=1)
json.dump(queries, open("corpus/queries.json", "w"))
# %%
%%bash
sed -i -e 's#"/home/mira/clarify/data/qrels.txt"#"./corpus/qrels.txt"#' -e 's/"max_queries": null/"max_queries": 50/' config.json
sed -i -e 's/"k1": 1.2, "b": 0.75/"k1": 0.6, "b": 0.3/' -e 's#corpus/documents.json#corpus/docs.json#' config.json
# %%
from pathlib import Path

file = Path('rankers/evaluation.py')
text = file.read_text()
assert 'model + ".run"' in text
text = text.replace('model + ".run"', 'model.lower() + ".txt"')
assert '"%s Q0 %s %d %.6f %s\\n"' in text
text = text.replace('"%s Q0 %s %d %.6f %s\\n"', '"%s\\tQ0\\t%s\\t%d\\t%.6f\\t%s\\n"')
file.write_text(text)
