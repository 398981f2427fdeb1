from importlib.metadata import version

import boruta

assert version("boruta") == "0.3"
assert callable(boruta.BorutaPy.fit)
print("reached")
