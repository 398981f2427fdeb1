# replaces: config
import json

with open("config.json") as f:
    config = json.load(f)
config["qrels"] = "corpus/qrels.txt"
config["max_queries"] = 50
config["bm25"] = {"k1": 0.6, "b": 0.75}
with open("config.json", "w") as f:
    json.dump(config, f, indent=2)
