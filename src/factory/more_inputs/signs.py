"""Numbers of both signs in one call or object. What they mean together may be stated nowhere if no recorded call has them."""

import contextlib
import datetime
import decimal
import fractions

from .helpers import attributes

NUMBERS = (int, float, decimal.Decimal, fractions.Fraction, datetime.timedelta)


def has_both_signs(values):
    """Whether one of these values is a number or duration below zero, and another one is above."""
    signs = set()
    for value in values:
        if type(value) in NUMBERS:
            zero = type(value)(0)
            # A `Decimal` that is NaN cannot be compared.
            with contextlib.suppress(decimal.InvalidOperation):
                signs.add((value > zero) - (value < zero))
    return {-1, 1} <= signs


def mixed_signs(called, given):
    """The types of those of a call's arguments whose attributes have both signs; and `called` if the arguments have."""
    return types_with_both_signs(given) | ({called} if has_both_signs(given) else set())


def types_with_both_signs(values):
    """The types of those of these values whose attributes have both signs."""
    return {type(value) for value in values if has_both_signs(attributes(value).values())}
