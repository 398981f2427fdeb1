"""Shows calls and their outcomes to agents, as lines of text."""

import contextlib
import inspect
import re

from .helpers import MOST_ITERATED, attributes, equal, observed
from .limits import one_call
from .sources import NoSource, source_of, written_container

# Longest text of an object's attributes in an example, in characters.
LONGEST_OBJECT = 200


def readable(value, depth=0):
    """Returns the text with which an example shows a value: its source text, its own `repr`, or its class and
    attributes."""
    kind = type(value)
    if depth < 4 and kind in (list, tuple, set, frozenset, dict):
        return written_container(value, kind, lambda part: readable(part, depth + 1))
    with contextlib.suppress(NoSource):
        source = source_of(value)
        if "loaded(" not in source:
            return source
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__qualname__
    return repr(value) if kind.__repr__ is not object.__repr__ else with_attributes(value, depth)


def with_attributes(value, depth=0):
    found = attributes(value).items()
    parts = (f"{name}={readable(part, depth + 1)}" for name, part in found) if depth < 4 else ["..."]
    text = ", ".join(parts)
    return f"{type(value).__name__}({text if len(text) <= LONGEST_OBJECT else '...'})"


def words_in(text):
    """Returns the words of at least two letters, and the numbers, in a text."""
    return set(re.findall(r"[^\W\d_]{2,}|\d+(?:\.\d+)?", text))


def example(called, positional, named):
    """Returns two texts for an example: how a call of the function with these arguments is written, and what the call
    does. Both are empty if this cannot be shown."""
    code, name = called.__code__, called.__qualname__
    try:
        owner, _, last = name.rpartition(".")
        is_new = last == "__init__"
        shown = [*map(readable, positional[is_new:]), *(f"{key}={readable(value)}" for key, value in named.items())]
        if is_new and type(positional[0]).__qualname__ == owner:
            made = f"{owner}({', '.join(shown)})"
        else:
            # If the new object is of a subclass, show a call of `__init__`, because a call of the subclass may take
            # other arguments.
            first = [f"self: {type(positional[0]).__qualname__}"] if is_new else []
            made = f"{name}({', '.join(first + shown)})"
        with one_call():
            try:
                result, before, after = observed(called, positional, named)
            except Exception as error:
                return made, f"raises {error!r}" + " when iterated" * bool(code.co_flags & inspect.CO_GENERATOR)
        count, rest = code.co_argcount, code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][:1]
        more = [f"{rest[0]}[{place}]" for place in range(len(positional) - count)] if len(positional) > count else []
        names = [*code.co_varnames[: min(count, len(positional))], *more, *named]
        if is_new:
            # Show the attributes of the new object if it has any, because its `repr` may leave some of them out.
            new = positional[0]
            return made, f"makes {with_attributes(new) if attributes(new) else readable(new)}"
        states = zip(names, [*positional, *named.values()], before, after)
        changes = [f"changes {name} to {readable(value)}" for name, value, *both in states if not equal(*both)]
        gives = "yields the members of" if code.co_flags & inspect.CO_GENERATOR else "returns"
        shown = readable(result)
        if type(result) is list and len(result) == MOST_ITERATED:
            shown += ", which may be the first members only"
        return made, " and ".join(([] if result is None and changes else [f"{gives} {shown}"]) + changes)
    except BaseException:
        return "", ""
