from importlib.metadata import version

import gplearn.genetic
import yaml

assert version("gplearn") == "0.4.2"
assert yaml.safe_load("a: [1, b]") == {"a": [1, "b"]}
print("reached")
