"""Kills its parents, then ends."""

import os
import signal

try:
    os.kill(os.getppid(), signal.SIGKILL)
except OSError:
    pass
os._exit(0)
