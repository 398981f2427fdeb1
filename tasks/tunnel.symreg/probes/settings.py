"""Reads settings.yaml without a package, which may not be installed yet."""
import re

with open("settings.yaml") as f:
    text = f.read()


def value(key):
    (found,) = re.findall(r"^\s*%s:\s*([^#\n]*?)\s*(?:#.*)?$" % key, text, re.M)
    return found


assert (int(value("population")), int(value("generations"))) == (2400, 14)
assert (int(value("tournament")), float(value("parsimony")), int(value("seed"))) == (20, 0.001, 1)
assert float(value("train_share")) == 0.75
print("reached")
