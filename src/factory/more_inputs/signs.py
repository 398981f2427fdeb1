"""Detects positive and negative numbers in one call or object. If no recorded call has both, nothing may state what the
function does with them, so such calls do not become tests."""

import contextlib
import datetime
import decimal
import fractions

from .helpers import attributes

NUMBERS = (int, float, decimal.Decimal, fractions.Fraction, datetime.timedelta)


def has_both_signs(values):
    """Whether one of these values is a number or duration below zero, and another one is above zero."""
    signs = set()
    for value in values:
        if type(value) in NUMBERS:
            zero = type(value)(0)
            # A `Decimal` that is NaN cannot be compared.
            with contextlib.suppress(decimal.InvalidOperation):
                signs.add((value > zero) - (value < zero))
    return {-1, 1} <= signs


def mixed_signs(called, given):
    """Returns the types of the arguments in `given` that have both positive and negative numbers as attributes. If
    there are both among the arguments themselves, also returns `called`."""
    return types_with_both_signs(given) | ({called} if has_both_signs(given) else set())


def types_with_both_signs(values):
    """Returns the types of the values that have both positive and negative numbers as attributes."""
    return {type(value) for value in values if has_both_signs(attributes(value).values())}
