import numpy as np


class Pacing:
    """Share of the training data, easiest first, that may be drawn at a point of training (0 to 1)."""

    def __init__(self, kind="linear", start=0.5):
        self.kind = kind
        self.start = start

    def share(self, progress):
        if self.kind == "none":
            return 1.0
        if self.kind == "linear":
            return min(1.0, self.start + (1 - self.start) * progress / 0.7)
        if self.kind == "root":
            return min(1.0, np.sqrt(self.start**2 + (1 - self.start**2) * progress / 0.7))
        if self.kind == "step":
            return self.start if progress < 0.5 else 1.0
        raise ValueError("unknown pacing: %s" % self.kind)

    def __str__(self):
        return "%s from %.2f" % (self.kind, self.start)
