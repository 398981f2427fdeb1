import json

with open("config.json") as f:
    config = json.load(f)
assert config["max_queries"] == 50
assert config["bm25"] == {"k1": 0.6, "b": 0.3}
assert config["pl2"] == {"c": 1.0} and config["dirichlet"] == {"mu": 2500}
assert not config["qrels"].startswith("/home/")
print("reached")
