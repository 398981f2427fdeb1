import json

with open("settings.json") as f:
    settings = json.load(f)
assert settings["epochs"] == 24
kept = {"size": 40, "window": 3, "negatives": 5, "rate": 0.05, "min_count": 3, "seed": 17}
assert {name: settings[name] for name in kept} == kept
print("reached")
