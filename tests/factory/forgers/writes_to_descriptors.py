"""Writes the result of gold to every descriptor."""

import os

for number in range(256):
    try:
        os.write(number, b"@RESULT@\n")
    except OSError:
        pass
os._exit(0)
