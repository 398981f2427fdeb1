"""Changes the values of arguments, to make new inputs from recorded ones.

A changed value looks like the values of the recorded calls. A number is between the recorded numbers, or near them. A
text differs from a recorded text only in digits. Members of collections are recorded members. If all recorded lists
have the same length, are sorted, or have no repetitions, so has the changed list. Numbers at or beside the constants in
the function's source are tried more often than others. Only free changes make other numbers and other texts: they
recombine lines and words of the recorded texts, insert pieces of text from the function's source, and make texts whose
length is a number in this source. A changed value is empty or negative only if a recorded value is.
"""

import ast
import contextlib
import copy
import datetime
import decimal
import fractions
import math
import re

from .mutants import tree_of

# Constants of a function are those in its source and those of its module that it uses. From the module, at most this
# many of each type are taken.
MOST_CONSTANTS = 40
# Longest text in a function's source that is put into arguments, and longest argument that is made by repetition, in
# characters.
LONGEST_PIECE, LONGEST_TEXT = 8, 400
# The words of a text, and what is between them.
WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# Letters that recorded texts often do not contain. A text that gets such a letter counts as unlike all recorded texts
# (foreign, see `changed`).
OTHER_LETTERS = "bgkqxzBGKQXZ"
# Numbers at which rules about digits, times, years and bytes often change.
SPECIAL_NUMBERS = (0, 1, 2, 7, 10, 11, 12, 19, 20, 21, 23, 24, 31, 59, 60, 99, 100, 101, 110, 200, 255, 256, 365, 366, 999)
SPECIAL_NUMBERS += (1000, 1001, 1024, 1100, 1900, 2000, 2001, 2024, 2100, 2400, 9999, 10000, 65536, 100000, 999999, 1000000)
# Whole numbers up to this one may be quantities with a fixed maximum, such as months, percentages, bytes or degrees. So
# if the smallest or largest recorded number is at most this one, only free changes (see `FreeChange`) go beyond it.
# Other changes go beyond larger recorded numbers by at most a tenth.
LARGEST_BOUND = 366
SPECIAL_YEARS = (1900, 1996, 2000, 2023, 2024, 2100)


def constants_of(called):
    """Returns two sets: the whole numbers and the texts in the source of a function and in those constants of its
    module that the function uses."""
    constants = [node.value for node in ast.walk(tree_of(called)) if isinstance(node, ast.Constant)]
    of_module = []
    for name in called.__code__.co_names:
        value = called.__globals__.get(name)
        of_module += value if type(value) in (list, tuple, set, frozenset, dict) else [value]
    of_kind = lambda values, kind: [value for value in values if type(value) is kind]
    return tuple({*of_kind(constants, kind), *of_kind(of_module, kind)[:MOST_CONSTANTS]} for kind in (int, str))


def kind_of_sign(sign):
    return "0" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else sign


def in_same_order(value, alike):
    """Returns a list as it is or, if all lists in `alike` are sorted, sorted in the same order. Also removes repeated
    members if no list in `alike` has any."""
    with contextlib.suppress(Exception):
        others = [one for one in alike if len(one) > 1]
        if others and not any(part in one[:place] for one in others for place, part in enumerate(one)):
            value = [part for place, part in enumerate(value) if part not in value[:place]]
        for is_reversed in (False, True):
            if others and all(sorted(one, reverse=is_reversed) == one for one in others):
                value = sorted(value, reverse=is_reversed)
    return value


class Changes:
    """Changes values of the arguments of one function."""

    def __init__(self, called, chance):
        # `is_foreign` says whether the latest call of `changed` has made a text that is unlike all recorded texts.
        self.chance, self.is_foreign = chance, False
        numbers, texts = constants_of(called)
        # The function's behaviour may change at the numbers that it uses, or directly below or above them.
        self.numbers = sorted({number + beside for number in numbers for beside in (-1, 0, 1)})
        self.texts = sorted(text for text in texts if 0 < len(text) <= LONGEST_PIECE)
        self.lengths = [number for number in self.numbers if 0 < number <= LONGEST_TEXT]

    def changed(self, value, pool, is_free, times=1):
        """Changes a value `times` times. Returns the result and whether it is foreign: a text with something that no
        recorded text has, such as other letters, letters of another case, pieces of the function's source, or another
        length. `pool` contains the values that recorded calls have in this place."""
        self.is_foreign = False
        for _ in range(times):
            value = self.changed_once(value, pool, is_free)
        return value, self.is_foreign

    def changed_once(self, value, pool, is_free):
        """Returns a changed value. Dates and times are changed freely even if `is_free` is false."""
        kind = type(value)
        alike = [one for one in pool if type(one) is kind] or [value]
        if kind is bool:
            return not value
        if kind is int:
            return self.changed_int(value, alike, is_free)
        if kind is float:
            return self.changed_float(value, alike, is_free)
        if kind is str:
            return self.changed_text(value, alike, is_free)
        if kind is bytes:
            texts = [one.decode("latin-1") for one in alike]
            return self.changed_text(value.decode("latin-1"), texts, is_free).encode("latin-1")
        if kind in (slice, range):
            parts = (value.start, value.stop, value.step)
            return kind(*self.changed_at_one_place(parts, [(one.start, one.stop, one.step) for one in alike]))
        if issubclass(kind, tuple) and hasattr(kind, "_make") and value:
            return kind._make(self.changed_at_one_place(value, alike))
        if kind in (list, tuple):
            return kind(self.changed_list(list(value), [list(one) for one in alike], is_free))
        if kind in (set, frozenset):
            members = [sorted(one, key=repr) for one in alike]
            return kind(self.changed_list(sorted(value, key=repr), members, is_free))
        if kind is dict:
            return self.changed_dict(value, alike, is_free)
        if kind in (decimal.Decimal, fractions.Fraction):
            return self.changed_exact(value, alike, is_free)
        if kind.__module__ == "datetime":
            return self.changed_time(value, alike)
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and value.size:
            return self.changed_array(value, is_free)
        if is_free and isinstance(value, (dict, list)):
            return self.changed_subclass(value, alike)
        return value

    def changed_int(self, value, alike, is_free):
        low, high = min(alike), max(alike)
        near = [number for number in self.numbers if low <= number <= high]
        if near and self.chance.random() < 0.3:
            return self.chance.choice(near)
        if not is_free:
            low = low - low // 10 if low > LARGEST_BOUND else low
            high = high + high // 10 if high > LARGEST_BOUND else high
            special = [number for number in SPECIAL_NUMBERS if low < number < high]
            if special and self.chance.random() < 0.4:
                return self.chance.choice(sorted(special, key=lambda number: abs(number - value))[:8])
            return min(max(self.chance.choice([value + 1, value - 1, self.chance.randint(low, high)]), low), high)
        digits = len(str(max(abs(low), abs(high))))
        found = self.chance.choice(
            [
                value + 1,
                value - 1,
                value * 2,
                value // 2,
                self.chance.randint(low, max(high * 2, high + 10)),
                10 ** self.chance.randint(0, digits) - self.chance.choice((0, 1)),
                -value,
            ]
        )
        least = -max(2 * abs(low), 10) if low < 0 else 0
        most = max(high * 10, high + 10)
        special = [number for number in SPECIAL_NUMBERS if least <= number <= most]
        if self.chance.random() < 0.4:
            return self.chance.choice(sorted(special, key=lambda number: abs(number - value))[:8])
        return min(max(found, least), most)

    def changed_float(self, value, alike, is_free):
        low, high = min(alike), max(alike)
        if not (math.isfinite(low) and math.isfinite(high)):
            return value
        near = [float(number) for number in self.numbers if low <= number <= high]
        if near and self.chance.random() < 0.2:
            return self.chance.choice(near)
        if not is_free:
            return self.chance.choice([self.chance.uniform(low, high), round(self.chance.uniform(low, high), 2), value])
        found = self.chance.choice([value * self.chance.uniform(0.5, 2), float(round(value)), -value, value + 0.5, value / 10, 0.0])
        return value if low >= 0 and found < 0 else found

    def changed_exact(self, value, alike, is_free):
        """Returns a changed decimal number or fraction. Unless `is_free`, the result is between the smallest and the
        largest recorded one."""
        low, high, other = min(alike), max(alike), self.chance.choice(alike)
        near = [type(value)(number) for number in self.numbers if low <= number <= high]
        if near and self.chance.random() < 0.3:
            return self.chance.choice(near)
        if is_free:
            return self.chance.choice([value + other, value * 2, value + 1, value / 2])
        return min(max(self.chance.choice([value + 1, value - 1, (value + other) / 2]), low), high)

    def changed_text(self, value, alike, is_free):
        other = self.chance.choice(alike)
        if not value:
            return other
        if not is_free:
            # Change only digits: other letters could make another word or name, or break the structure of a text.
            places = [place for place, sign in enumerate(value) if sign in "0123456789"]
            if not places:
                return value
            place = self.chance.choice(places)
            return value[:place] + self.chance.choice("0123456789") + value[place + 1 :]
        signs = sorted({sign for one in alike for sign in one})
        place = self.chance.randrange(len(value))
        same = [sign for sign in signs if kind_of_sign(sign) == kind_of_sign(value[place])]
        separators = [sign for sign in signs if not sign.isalnum()]
        end = min(len(value), place + self.chance.randint(1, 4))
        changes = [
            value[:place] + self.chance.choice(same or [value[place]]) + value[place + 1 :],
            value[:place] + self.chance.choice(same or [value[place]]) + value[place + 1 :],
            value[:place] + value[end:],
            value[:place] + value[place:end] * 2 + value[end:],
            value[:place] + other[min(place, len(other)) :],
            other[:place] + value[place:],
            value[:place] + self.chance.choice(signs) + value[place:],
            value[place:] + value[:place],
            value + (self.chance.choice(separators) if separators else "") + other,
        ]
        changes += self.recombined(value, other)
        if any(sign.isupper() for sign in signs):
            changes += [value.lower(), value.upper(), value.swapcase(), value.title()]
        if " " in separators:
            changes += [" " + value, value + " ", value.replace(" ", "  ")]
        if "\n" in separators:
            changes += [value + "\n", value.rstrip("\n"), value.replace(" ", "\n", 1)]
        foreign = self.foreign_texts(value, place, signs)
        if foreign and self.chance.random() < len(foreign) / (len(changes) + len(foreign)):
            self.is_foreign = True
            return self.chance.choice(foreign)
        found = self.chance.choice(changes)
        return found if found or "" in alike else value

    def recombined(self, value, other):
        """Returns texts that combine the lines or words of two texts in other ways. Returns none if the text `value`
        has only one line or word."""
        is_by_line = "\n" in value and self.chance.random() < 0.5
        parts_of = (lambda text: text.splitlines(keepends=True)) if is_by_line else WORDS.findall
        parts, others = parts_of(value), parts_of(other)
        if len(parts) < 2 or not others:
            return []
        some = lambda many: slice(place := self.chance.randrange(len(many)), place + self.chance.randint(1, 3))
        place, part = some(parts), some(others)
        before, after = parts[: place.start], parts[place.stop :]
        swapped, first, second = list(parts), *self.chance.sample(range(len(parts)), 2)
        swapped[first], swapped[second] = parts[second], parts[first]
        found = [
            before + others[part] + parts[place.start :],
            before + others[part] + after,
            before + others[part.start :],
            before + after,
            before + parts[place] * 2 + after,
            swapped,
        ]
        return ["".join(one) for one in found]

    def foreign_texts(self, value, place, signs):
        """Returns changed versions of a text that have something which no recorded text has. `signs` contains all
        characters of the recorded texts."""
        changes = []
        if not any(sign.isupper() for sign in signs) and any(sign.isalpha() for sign in signs):
            changes += [value.upper(), value.swapcase(), value.title()]
        if others := [sign for sign in OTHER_LETTERS if kind_of_sign(sign) == kind_of_sign(value[place])]:
            changes += [value[:place] + self.chance.choice(others) + value[place + 1 :]]
        if self.texts:
            piece = self.chance.choice(self.texts)
            changes += [value[:place] + piece + value[place:], value[:place] + piece + value[place + 1 :], value + piece]
        if longer := [length for length in self.lengths if length > len(value)]:
            length = self.chance.choice(longer)
            changes += [(value * length)[:length]]
        return changes

    def changed_list(self, value, alike, is_free):
        other = self.chance.choice(alike)
        members = [part for one in alike for part in one]
        if not members or not value:
            return other
        place = self.chance.randrange(len(value))
        inner = self.changed_once(value[place], members, is_free)
        changes = [value[:place] + [inner] + value[place + 1 :]] * 3
        # If all recorded lists have the same length, each position may have a meaning of its own, as in `[x, y]`. So
        # only changes that disregard the recorded values (`is_free`) move, add or remove members of such lists.
        if is_free or len(set(map(len, alike))) > 1:
            changes += [
                value + other,
                value[:place] + other[min(place, len(other)) :],
                value[:place] + [self.chance.choice(members)] + value[place:],
                value[:place] + value[place + 1 :],
                self.chance.sample(value, len(value)),
                value[::-1],
            ]
        found = self.chance.choice(changes)
        if not is_free:
            found = in_same_order(found, alike)
        return found if found or [] in alike else value

    def changed_at_one_place(self, value, alike):
        """Returns the members of a value of fixed length, such as a tuple. One member is changed to look like the
        recorded members at the same place."""
        place = self.chance.randrange(len(value))
        part = self.changed_once(value[place], [one[place] for one in alike], False)
        return [*value[:place], part, *value[place + 1 :]]

    def changed_dict(self, value, alike, is_free):
        other = self.chance.choice(alike)
        if not value:
            return dict(other)
        key = self.chance.choice(list(value))
        values = [one[key] for one in alike if key in one]
        changes = [{**value, key: self.changed_once(value[key], values, is_free)}] * 2 + [{**value, **other}]
        if is_free:
            changes += [{one: part for one, part in value.items() if one != key}, dict(reversed(value.items()))]
        found = self.chance.choice(changes)
        return found if found or {} in alike else value

    def changed_subclass(self, value, alike):
        """Returns a copy of an object whose class is derived from dict or list, with one changed member."""
        value = copy.deepcopy(value)
        if isinstance(value, dict):
            keys = list(dict.keys(value))
            if keys:
                key = self.chance.choice(keys)
                values = [dict.get(one, key) for one in alike if dict.__contains__(one, key)]
                dict.__setitem__(value, key, self.changed_once(dict.get(value, key), values, True))
        elif list.__len__(value):
            place = self.chance.randrange(list.__len__(value))
            members = [part for one in alike for part in list.__iter__(one)]
            list.__setitem__(value, place, self.changed_once(list.__getitem__(value, place), members, True))
        return value

    def changed_time(self, value, alike):
        kind, delta = type(value), datetime.timedelta
        days = self.chance.choice([1, -1, 7, 28, 29, 30, 31, 59, 365, 366, -365, self.chance.randint(-2000, 2000)])
        seconds = self.chance.choice([1, 59, 60, 3599, 3600, 86399, self.chance.randint(0, 86400)])
        try:
            if kind.__name__ == "timedelta":
                changes = [value * 2, value + delta(seconds=seconds), value + delta(days=abs(days)), value / 2]
                if min(alike) <= delta(0) <= max(alike):
                    changes += [delta(0), -value]
                return self.chance.choice(changes)
            if kind.__name__ in ("date", "datetime"):
                leap = value.replace(year=self.chance.choice(SPECIAL_YEARS), month=2, day=self.chance.choice([1, 28]))
                changes = [value + delta(days=days), leap, leap + delta(days=1), value.replace(day=1) - delta(days=1)]
                if kind.__name__ == "datetime":
                    changes += [value + delta(seconds=seconds), value.replace(hour=0, minute=0, second=0)]
                return self.chance.choice(changes)
            if kind.__name__ == "time":
                minute = self.chance.choice([0, self.chance.randrange(60)])
                return value.replace(hour=self.chance.randrange(24), minute=minute)
        except (ValueError, OverflowError):
            pass
        return value

    def changed_array(self, value, is_free):
        if not value.ndim:
            return value
        order = list(range(len(value)))
        if is_free:
            return self.chance.choice([value[: max(1, len(order) // 2)], value[[*order, order[0]]]]).copy()
        self.chance.shuffle(order)
        return value[order].copy()
