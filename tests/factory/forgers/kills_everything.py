"""Kills every process that it may signal."""

import os
import signal

try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass
