"""Ends, and writes the result from a process in another session."""

import os

if os.fork():
    os._exit(0)
os.setsid()
for number in range(64):
    try:
        os.write(number, b"@RESULT@\n")
    except OSError:
        pass
