"""Is the `sitecustomize` of the repo, and modules that the runner imports, each of which prints the result of gold."""

# The driver writes this text to files of the repo.
PLANTED = """
import os

os.write(1, b'@RESULT@' + bytes([10]))
os._exit(0)
"""
