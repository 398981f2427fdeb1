import json

with open("config.json") as f:
    config = json.load(f)
assert config["dropout"] == 0.5
kept = {"hidden": 32, "decay": 0.0005, "rate": 0.01, "epochs": 600, "runs": 8, "seed": 3}
assert {name: config[name] for name in kept} == kept
print("reached")
