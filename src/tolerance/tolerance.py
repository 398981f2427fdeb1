"""Compares a number with gold, as `Tolerance::compare` in `mod.rs` does for experiments without repeats."""

import sys

SLACK = 4.0 * sys.float_info.epsilon


def is_close(gold, found, tolerance):
    """Whether a number is within the tolerance of gold's, bound included."""
    relative = tolerance.get("counts", 0.0) if isinstance(gold, int) else tolerance["relative"]
    difference = abs(found - gold)
    if gold == 0:
        return difference <= tolerance["absolute"] * (1.0 + SLACK)
    return difference <= relative * abs(gold) + SLACK * max(abs(gold), abs(found))
