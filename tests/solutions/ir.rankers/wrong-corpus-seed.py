# replaces: corpus
!python make_corpus.py --seed 14
# %%
import csv
import json

with open("corpus/documents.tsv") as f:
    documents = {row["doc_id"]: {"title": row["title"], "body": row["body"]} for row in csv.DictReader(f, delimiter="\t")}
with open("corpus/queries.tsv") as f:
    queries = {row["query_id"]: row["text"] for row in csv.DictReader(f, delimiter="\t")}
with open("corpus/documents.json", "w") as f:
    json.dump(documents, f)
with open("corpus/queries.json", "w") as f:
    json.dump(queries, f)
