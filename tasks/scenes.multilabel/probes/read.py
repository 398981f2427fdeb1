"""The path of the settings leads to the collection, which is as it was given."""
import configparser
import csv

settings = configparser.ConfigParser()
settings.read("experiment.ini")
with open(settings["data"]["path"]) as f:
    rows = list(csv.DictReader(f))
assert len(rows) >= 200 and rows[0]["picture"] == "s0000" and rows[199]["picture"] == "s0199"
assert settings["search"]["neighbours"].split() == ["3", "5", "7", "9", "13"]
assert settings["search"]["folds"] == "8" and settings["search"]["repeats"] == "10"
print("reached")
