"""Changes of values.

A changed value looks like those of the recorded calls: numbers lie between theirs (or near them), texts differ in digits
only, members come from theirs, and lists are of the same length, sorted, or without repetition if all of theirs are. Numbers
at the bounds that the function itself has are tried more often than others. Only free changes make other numbers and other
texts. Nothing is empty and nothing is negative unless a recorded value is.
"""

import ast
import contextlib
import copy
import datetime
import decimal
import fractions
import math

from .mutants import tree_of

# Maximum number of a module's constants that count as bounds of a function that uses them.
MOST_CONSTANTS = 40


def bounds_in(called):
    """The whole numbers in the source of a function and in the constants of its module that it uses, and the numbers beside
    them: what it does may change there."""
    numbers = {node.value for node in ast.walk(tree_of(called)) if isinstance(node, ast.Constant) and type(node.value) is int}
    constants = []
    for name in called.__code__.co_names:
        value = called.__globals__.get(name)
        constants += value if type(value) in (list, tuple, set, frozenset, dict) else [value]
    numbers.update([value for value in constants if type(value) is int][:MOST_CONSTANTS])
    return sorted({number + beside for number in numbers for beside in (-1, 0, 1)})


def changed(value, pool, bounds, chance, is_free):
    """A changed value. `pool` are the values in its place in recorded calls; dates and times change freely in any case."""
    kind = type(value)
    alike = [one for one in pool if type(one) is kind] or [value]
    if kind is bool:
        return not value
    if kind is int:
        return changed_int(value, alike, bounds, chance, is_free)
    if kind is float:
        return changed_float(value, alike, bounds, chance, is_free)
    if kind is str:
        return changed_text(value, alike, chance, is_free)
    if kind is bytes:
        texts = [one.decode("latin-1") for one in alike]
        return changed_text(value.decode("latin-1"), texts, chance, is_free).encode("latin-1")
    if kind in (slice, range):
        parts = (value.start, value.stop, value.step)
        return kind(*changed_at_one_place(parts, [(one.start, one.stop, one.step) for one in alike], bounds, chance))
    if issubclass(kind, tuple) and hasattr(kind, "_make") and value:
        return kind._make(changed_at_one_place(value, alike, bounds, chance))
    if kind in (list, tuple):
        return kind(changed_list(list(value), [list(one) for one in alike], bounds, chance, is_free))
    if kind in (set, frozenset):
        members = [sorted(one, key=repr) for one in alike]
        return kind(changed_list(sorted(value, key=repr), members, bounds, chance, is_free))
    if kind is dict:
        return changed_dict(value, alike, bounds, chance, is_free)
    if kind in (decimal.Decimal, fractions.Fraction):
        return chance.choice([value + chance.choice(alike), value * 2, value + 1, value / 2]) if is_free else value
    if kind.__module__ == "datetime":
        return changed_time(value, kind, chance)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and value.size:
        return changed_array(value, chance, is_free)
    if is_free and isinstance(value, (dict, list)):
        return changed_subclass(value, alike, bounds, chance)
    return value


# Numbers at which rules about digits, times, years and bytes often change.
SPECIAL_NUMBERS = (0, 1, 2, 7, 10, 11, 12, 19, 20, 21, 23, 24, 31, 59, 60, 99, 100, 101, 110, 200, 255, 256, 365, 366, 999)
SPECIAL_NUMBERS += (1000, 1001, 1024, 1100, 1900, 2000, 2001, 2024, 2100, 2400, 9999, 10000, 65536, 100000, 999999, 1000000)
# Numbers up to this one may have a bound, such as months, percentages, bytes and degrees have. Larger ones may be exceeded
# a bit.
LARGEST_BOUND = 366
SPECIAL_YEARS = (1900, 1996, 2000, 2023, 2024, 2100)


def changed_int(value, alike, bounds, chance, is_free):
    low, high = min(alike), max(alike)
    near = [number for number in bounds if low <= number <= high]
    if near and chance.random() < 0.3:
        return chance.choice(near)
    if not is_free:
        low = low - low // 10 if low > LARGEST_BOUND else low
        high = high + high // 10 if high > LARGEST_BOUND else high
        special = [number for number in SPECIAL_NUMBERS if low < number < high]
        if special and chance.random() < 0.4:
            return chance.choice(sorted(special, key=lambda number: abs(number - value))[:8])
        return min(max(chance.choice([value + 1, value - 1, chance.randint(low, high)]), low), high)
    digits = len(str(max(abs(low), abs(high))))
    found = chance.choice(
        [
            value + 1,
            value - 1,
            value * 2,
            value // 2,
            chance.randint(low, max(high * 2, high + 10)),
            10 ** chance.randint(0, digits) - chance.choice((0, 1)),
            -value,
        ]
    )
    least = -max(2 * abs(low), 10) if low < 0 else 0
    most = max(high * 10, high + 10)
    special = [number for number in SPECIAL_NUMBERS if least <= number <= most]
    if chance.random() < 0.4:
        return chance.choice(sorted(special, key=lambda number: abs(number - value))[:8])
    return min(max(found, least), most)


def changed_float(value, alike, bounds, chance, is_free):
    low, high = min(alike), max(alike)
    if not (math.isfinite(low) and math.isfinite(high)):
        return value
    near = [float(number) for number in bounds if low <= number <= high]
    if near and chance.random() < 0.2:
        return chance.choice(near)
    if not is_free:
        return chance.choice([chance.uniform(low, high), round(chance.uniform(low, high), 2), value])
    found = chance.choice([value * chance.uniform(0.5, 2), float(round(value)), -value, value + 0.5, value / 10, 0.0])
    return value if low >= 0 and found < 0 else found


def kind_of_sign(sign):
    return "0" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign


def changed_text(value, alike, chance, is_free):
    other = chance.choice(alike)
    if not value:
        return other
    if not is_free:
        # Other letters could make another word or name, and a text with a structure may not have any.
        places = [place for place, sign in enumerate(value) if sign in "0123456789"]
        if not places:
            return value
        place = chance.choice(places)
        return value[:place] + chance.choice("0123456789") + value[place + 1 :]
    signs = sorted({sign for one in alike for sign in one})
    place = chance.randrange(len(value))
    same = [sign for sign in signs if kind_of_sign(sign) == kind_of_sign(value[place])]
    separators = [sign for sign in signs if not sign.isalnum()]
    end = min(len(value), place + chance.randint(1, 4))
    changes = [
        value[:place] + chance.choice(same or [value[place]]) + value[place + 1 :],
        value[:place] + chance.choice(same or [value[place]]) + value[place + 1 :],
        value[:place] + value[end:],
        value[:place] + value[place:end] * 2 + value[end:],
        value[:place] + other[min(place, len(other)) :],
        other[:place] + value[place:],
        value[:place] + chance.choice(signs) + value[place:],
        value[place:] + value[:place],
        value + (chance.choice(separators) if separators else "") + other,
    ]
    if any(sign.isupper() for sign in signs):
        changes += [value.lower(), value.upper(), value.swapcase(), value.title()]
    if " " in separators:
        changes += [" " + value, value + " ", value.replace(" ", "  ")]
    found = chance.choice(changes)
    return found if found or "" in alike else value


def changed_list(value, alike, bounds, chance, is_free):
    other = chance.choice(alike)
    members = [part for one in alike for part in one]
    if not members or not value:
        return other
    place = chance.randrange(len(value))
    inner = changed(value[place], members, bounds, chance, is_free)
    changes = [value[:place] + [inner] + value[place + 1 :]] * 3
    # In lists of one length, members at different places may mean different things.
    if is_free or len(set(map(len, alike))) > 1:
        changes += [
            value + other,
            value[:place] + other[min(place, len(other)) :],
            value[:place] + [chance.choice(members)] + value[place:],
            value[:place] + value[place + 1 :],
            chance.sample(value, len(value)),
            value[::-1],
        ]
    found = chance.choice(changes)
    if not is_free:
        found = in_same_order(found, alike)
    return found if found or [] in alike else value


def changed_at_one_place(value, alike, bounds, chance):
    """The parts of a value of a fixed length, one of which is changed to be like those at the same place."""
    place = chance.randrange(len(value))
    part = changed(value[place], [one[place] for one in alike], bounds, chance, False)
    return [*value[:place], part, *value[place + 1 :]]


def in_same_order(value, alike):
    """A list, sorted if all others are, and without repetition if none has any."""
    with contextlib.suppress(Exception):
        others = [one for one in alike if len(one) > 1]
        if others and not any(part in one[:place] for one in others for place, part in enumerate(one)):
            value = [part for place, part in enumerate(value) if part not in value[:place]]
        for is_reversed in (False, True):
            if others and all(sorted(one, reverse=is_reversed) == one for one in others):
                value = sorted(value, reverse=is_reversed)
    return value


def changed_dict(value, alike, bounds, chance, is_free):
    other = chance.choice(alike)
    if not value:
        return dict(other)
    key = chance.choice(list(value))
    values = [one[key] for one in alike if key in one]
    changes = [{**value, key: changed(value[key], values, bounds, chance, is_free)}] * 2 + [{**value, **other}]
    if is_free:
        changes += [{one: part for one, part in value.items() if one != key}, dict(reversed(value.items()))]
    found = chance.choice(changes)
    return found if found or {} in alike else value


def changed_subclass(value, alike, bounds, chance):
    """A copy of an object that is also a dict or list, with one changed member."""
    value = copy.deepcopy(value)
    if isinstance(value, dict):
        keys = list(dict.keys(value))
        if keys:
            key = chance.choice(keys)
            values = [dict.get(one, key) for one in alike if dict.__contains__(one, key)]
            dict.__setitem__(value, key, changed(dict.get(value, key), values, bounds, chance, True))
    elif list.__len__(value):
        place = chance.randrange(list.__len__(value))
        members = [part for one in alike for part in list.__iter__(one)]
        list.__setitem__(value, place, changed(list.__getitem__(value, place), members, bounds, chance, True))
    return value


def changed_time(value, kind, chance):
    delta = datetime.timedelta
    days = chance.choice([1, -1, 7, 28, 29, 30, 31, 59, 365, 366, -365, chance.randint(-2000, 2000)])
    seconds = chance.choice([1, 59, 60, 3599, 3600, 86399, chance.randint(0, 86400)])
    try:
        if kind.__name__ == "timedelta":
            return chance.choice([value * 2, value + delta(seconds=seconds), value + delta(days=abs(days)), value / 2])
        if kind.__name__ in ("date", "datetime"):
            leap = value.replace(year=chance.choice(SPECIAL_YEARS), month=2, day=chance.choice([1, 28]))
            changes = [value + delta(days=days), leap, leap + delta(days=1), value.replace(day=1) - delta(days=1)]
            if kind.__name__ == "datetime":
                changes += [value + delta(seconds=seconds), value.replace(hour=0, minute=0, second=0)]
            return chance.choice(changes)
        if kind.__name__ == "time":
            return value.replace(hour=chance.randrange(24), minute=chance.randrange(60))
    except (ValueError, OverflowError):
        pass
    return value


def changed_array(value, chance, is_free):
    if not value.ndim:
        return value
    order = list(range(len(value)))
    if is_free:
        return chance.choice([value[: max(1, len(order) // 2)], value[[*order, order[0]]]]).copy()
    chance.shuffle(order)
    return value[order].copy()
