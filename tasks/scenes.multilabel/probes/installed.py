from importlib.metadata import version

import skmultilearn

assert version("scikit-multilearn") == "0.2.0"
print("reached")
