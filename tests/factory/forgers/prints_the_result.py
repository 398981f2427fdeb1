"""Prints the result of gold, and ends."""

import os

print("@RESULT@", flush=True)
os.write(1, b"@RESULT@\n")
os._exit(0)
