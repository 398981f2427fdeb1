"""Calls with more inputs than the package's own tests have, and what the original code gives."""

# Some of these modules are needed only by the expressions in the tests that create the arguments of calls.
import base64
import collections.abc
import contextlib
import datetime
import decimal
import enum
import fractions
import hashlib
import importlib
import itertools
import math
import os
import pickle
import re
import sys
import types

import pytest

# Maximum number of members of a collection, and of an iterator, that are compared.
MOST_MEMBERS, MOST_ITERATED = 1000, 100
# Names of the types of descriptors that compute an attribute when it is first used.
CACHED_PROPERTY = re.compile(r"cached_?property|lazy|reify|memoize", re.IGNORECASE)


def function(module, name):
    """Returns a function or class of a module by its qualified name. Of a property, returns its getter; of a static or
    class method, the function inside."""
    found = importlib.import_module(module)
    for part in name.split("."):
        # Python stores an attribute `__x` of a class `A` as `_A__x`.
        is_private = isinstance(found, type) and part.startswith("__") and not part.endswith("__")
        found = vars(found)[f"_{found.__name__.lstrip('_')}{part}" if is_private else part]
    found = found.fget if isinstance(found, property) else found
    return getattr(found, "__func__", found)


def loaded(text):
    return pickle.loads(base64.b64decode(text))


def attributes(value):
    """Returns the attributes that an object stores, also those in slots, but without the results of cached properties.
    Returns none for a class."""
    found = {}
    if isinstance(value, type):
        return found
    for kind in type(value).__mro__:
        for member in vars(kind).values() if "__slots__" in vars(kind) else ():
            if type(member) is types.MemberDescriptorType:
                # A slot without a value raises this exception.
                with contextlib.suppress(AttributeError):
                    found[member.__name__] = member.__get__(value)
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        found.update((name, part) for name, part in own.items() if not is_computed(name, type(value)))
    return found


def is_computed(name, kind):
    """Whether an attribute is the result of a `cached_property`, which a right function need not have used."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    is_cached = any(CACHED_PROPERTY.search(base.__name__) for base in type(found).__mro__)
    return is_cached and not hasattr(type(found), "__set__")


def properties(value):
    """Returns the values of an object's public properties that classes of the package define. Leaves out those that
    raise an exception."""
    found = {}
    for kind in type(value).__mro__:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is None or file.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)):
            continue
        for name, member in vars(kind).items():
            if type(member) is property and not name.startswith("_") and name not in found:
                with contextlib.suppress(Exception):
                    found[name] = getattr(value, name)
    return found


def plain(value, depth=0):
    """Converts a value to plain data that a literal can express: collections with their members, and other objects as a
    dict of their public attributes and properties, without the class."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return value
    if kind is float:
        return value if math.isfinite(value) else None if math.isnan(value) else math.copysign(sys.float_info.max, value)
    if kind is complex:
        return [plain(value.real), plain(value.imag)]
    if depth > 8:
        return None
    if issubclass(kind, enum.Enum):
        return f"{kind.__name__}.{value.name}"
    if issubclass(kind, os.PathLike):
        return plain(os.fspath(value))
    if kind in (list, tuple):
        return kind(plain(part, depth + 1) for part in value)
    if issubclass(kind, (set, frozenset)):
        return sorted((plain(part, depth + 1) for part in set(value)), key=repr)
    if issubclass(kind, dict):
        # Names such as `__doc__` and `__firstlineno__` in the namespace of a class describe its source, so leave them out.
        members = ((plain(key, depth + 1), part) for key, part in dict.items(value))
        found = {}
        for key, part in members:
            if not str(key).startswith("__"):
                found.setdefault(repr(key), []).append(plain(part, depth + 1))
        # Different keys may be given the same literal. The values of such keys are listed in one entry.
        return {key: parts[0] if len(parts) == 1 else sorted(parts, key=repr) for key, parts in found.items()}
    if issubclass(kind, list):
        return [plain(part, depth + 1) for part in list.__iter__(value)]
    if kind.__module__ == "datetime":
        return str(value)
    if kind is slice:
        return [plain(part, depth + 1) for part in (value.start, value.stop, value.step)]
    if kind.__module__ in ("decimal", "fractions"):
        # Decimals and fractions are compared without their type, like other numbers.
        return plain(float(value), depth)
    if kind.__module__ == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    for base, converted in ((int, int.__int__), (float, float.__float__), (str, str.__str__)):
        if issubclass(kind, base):
            return plain(converted(value))
    if issubclass(kind, collections.abc.Mapping):
        return plain(dict(itertools.islice(value.items(), MOST_MEMBERS)), depth)
    if issubclass(kind, collections.abc.Set):
        return plain(set(itertools.islice(value, MOST_MEMBERS)), depth)
    if issubclass(kind, collections.abc.Collection):
        return [plain(part, depth + 1) for part in itertools.islice(value, MOST_MEMBERS)]
    found = attributes(value)
    public = {name: plain(found[name], depth + 2) for name in sorted(found) if not name.startswith("_")}
    if depth <= 2:
        public |= {name: plain(part, depth + 4) for name, part in sorted(properties(value).items())}
    return public or None


def state(value, known):
    """Returns the state of a value as plain data: the members of a container, or the attributes of an object. If
    `known` is given, only these attributes are included."""
    found = attributes(value)
    if found and not is_container(value):
        names = sorted(name for name in found if known is None or name in known)
        return {name: plain(found[name], 2) for name in names}
    return plain(value)


def observed(called, positional, named, new_attributes=None):
    """Makes a call. Returns its result, and the states of its arguments before and after it. For a call of `__init__`,
    the state of the new object consists of the attributes in `new_attributes`, or of all attributes if this is
    `None`."""
    given = [*positional, *named.values()]
    known = [list(attributes(value)) for value in given]
    if called.__name__ == "__init__":
        known[0] = new_attributes
    before = [state(value, names) for value, names in zip(given, known)]
    result = listed(called(*positional, **named), called)
    return result, before, [state(value, names) for value, names in zip(given, known)]


def listed(result, called):
    """Returns the result of a call in a form that can be compared. An iterator becomes a list of its first members.
    `NotImplemented` from `__eq__` or `__ne__` becomes the bool that says that the values are different. Other results
    stay as they are."""
    if result is NotImplemented and called.__name__ in ("__eq__", "__ne__"):
        return called.__name__ == "__ne__"
    return list(itertools.islice(result, MOST_ITERATED)) if hasattr(type(result), "__next__") else result


def returned(called, positional, named=None, ignores_objects=False, new_attributes=None):
    """Makes a call, and returns its outcome: its result or, if it changes arguments, the result and the new states of
    these arguments. With `ignores_objects`, only changes of lists, dicts and sets count. If the call returns nothing,
    the outcome is the states of all arguments after the call."""
    named = named or {}
    found = observed(called, positional, named, new_attributes)
    return outcome([*positional, *named.values()], *found, ignores_objects)


def outcome(given, result, before, after, ignores_objects):
    """Returns the outcome of a call, as described at `returned`, from the results of `observed`."""
    if result is None:
        return after
    counts = [is_container(value) or not ignores_objects for value in given]
    changes = [new for is_used, old, new in zip(counts, before, after) if is_used and not equal(new, old)]
    return (plain(result), changes) if changes else plain(result)


class Made:
    """Makes a sequence of calls. The arguments of a call may contain results of earlier calls: `made[0]` is the result
    of the first call."""

    def __init__(self):
        self.made = []

    def __getitem__(self, place):
        return self.made[place]

    def call(self, module, name, positional, named=None):
        """Makes a call, and returns its outcome: its result, with the containers that it changes; if it returns
        nothing, the states of all its arguments after the call. A call of a class makes an object."""
        self.made.append(None)
        named = named or {}
        given = [*positional, *named.values()]
        before = [plain(value) for value in given]
        called = function(module, name)
        result = self.made[-1] = listed(called(*positional, **named), called)
        return outcome(given, result, before, [plain(value) for value in given], True)


def ordered(value):
    """Returns plain data in which the items of dicts are sorted, because their order does not count."""
    if type(value) in (list, tuple):
        return type(value)(map(ordered, value))
    return ("dict", sorted((key, ordered(part)) for key, part in value.items())) if type(value) is dict else value


def digest_of(literal):
    """Returns a digest of plain data without floats. Data that are `equal` have the same digest."""
    return hashlib.sha256(repr(ordered(literal)).encode()).hexdigest()[:32]


def is_container(value):
    return isinstance(value, (list, dict, set))


def equal(got, expected):
    if type(got) in (int, float) and type(expected) in (int, float) and float in (type(got), type(expected)):
        # Whole numbers may be too large for a float.
        with contextlib.suppress(OverflowError):
            return got == expected or math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9)
        return False
    if type(got) is not type(expected):
        return False
    if type(got) in (list, tuple):
        return len(got) == len(expected) and all(map(equal, got, expected))
    if type(got) is dict:
        return got.keys() == expected.keys() and all(equal(got[key], expected[key]) for key in expected)
    return got == expected
