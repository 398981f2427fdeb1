"""Replaces the process by one that prints the result."""

import os

os.execv(
    "/bin/sh", ["sh", "-c", "for d in 1 3 4 5 6 7 8 9 10 11 12; do printf '%s\\n' '@RESULT@' >&$d; done 2>/dev/null"]
)
