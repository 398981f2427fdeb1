"""The collection as the program's own loader, or as the files that it names, have it."""
import json

with open("config.json") as f:
    config = json.load(f)
try:
    import sys

    sys.path.insert(0, ".")
    from rankers.text import load_documents, load_queries

    documents, queries = load_documents(config["documents"]), load_queries(config["queries"])
except ModuleNotFoundError:
    with open(config["documents"]) as f:
        documents = {name: entry["title"] + " " + entry["body"] for name, entry in json.load(f).items()}
    with open(config["queries"]) as f:
        queries = json.load(f)
assert len(documents) == 7500 and len(queries) == 120
assert len(documents["D00000"].split()) > 12 and len(documents["D07499"].split()) > 12
assert list(queries)[0] == "Q000" and all(len(text.split()) == 6 for text in queries.values())
print("reached")
