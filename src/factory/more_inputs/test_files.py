"""Writes chosen calls as test files."""

import ast
import re

from . import helpers
from .sources import LONGEST_LITERAL

# A test contains either independent calls or sequences of calls. These are the maximum numbers of both in one test.
CALLS_PER_TEST, SEQUENCES_PER_TEST = 20, 8
PICKLE = re.compile(r"loaded\(('[A-Za-z0-9+/=]*')\)")


def test_name(number, name):
    """Returns the common beginning of the names of a function's tests. `number` is the function's number in the test
    file."""
    return f"test_{number}_{name.rpartition('.')[2].strip('_')}"


def written(functions):
    """Returns the source of a test file. `functions` contains for each function: its module, its name, its chosen
    calls, and its chosen sequences of calls."""
    parts, objects = [], {}

    def given(positional, named):
        source = f"[{', '.join(positional)}]"
        if named:
            source += ", {" + ", ".join(f"{key!r}: {one}" for key, one in named) + "}"
        return PICKLE.sub(lambda found: f"loaded({objects.setdefault(found[1], f'OBJECT_{len(objects)}')})", source)

    for number, (module, name, calls, sequences) in enumerate(functions):
        bodies = []
        for part in divided(calls, CALLS_PER_TEST):
            lines = [f"called = function({module!r}, {name!r})"]
            for call in part:
                more = ", ignores_objects=True" if call["ignores_objects"] else ""
                more += f", new_attributes={call['new_attributes']!r}" if call["new_attributes"] else ""
                made = f"returned(called, {given(*call['call'])}{more})"
                lines += asserted(made, call["expected"], call["raises"])
            bodies.append(lines)
        for part in divided(sequences, SEQUENCES_PER_TEST):
            lines = []
            for one in part:
                lines.append("made = Made()")
                for step, expected, is_compared, raises in zip(one["steps"], one["expected"], one["compared"], one["raises"]):
                    where, what, positional, named, _ = step
                    made = f"made.call({where!r}, {what!r}, {given(positional, named)})"
                    lines += asserted(made, expected, raises) if is_compared else [made]
            bodies.append(lines)
        for place, lines in enumerate(bodies):
            parts.append("\n".join([f"\n\ndef {test_name(number, name)}_{place}():", *(f"    {line}" for line in lines)]) + "\n")
    texts = "".join(f"{name} = {text}\n" for text, name in objects.items())
    return "".join([helpers.__loader__.get_source(helpers.__name__), "\n\n# Pickled objects.\n" if objects else "", texts, *parts])


def divided(calls, size):
    return [calls[place : place + size] for place in range(0, len(calls), size)]


def asserted(made, expected, raises):
    """Returns the lines of a test that check a call: they compare its outcome with the expected one or, if that is
    long, with its digest; or they expect an exception."""
    if len(expected) > LONGEST_LITERAL:
        return [f"assert digest_of({made}) == {helpers.digest_of(ast.literal_eval(expected))!r}"]
    return [f"with pytest.raises({expected}):", f"    {made}"] if raises else [f"assert equal({made}, {expected})"]
