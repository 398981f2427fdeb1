"""Makes tests that call functions of a package with more inputs than its own tests have.

The runner of the tests executes this file in the process that runs them, on trusted code only. `Recorder` records the
arguments of each function's calls. Then `Inputs` recombines and changes them, calls the function with each result, and
keeps the calls that give the same outcome twice. An outcome is what the original function returns or changes, or the
exception that its own `raise` statement raises. `written` turns chosen calls into the source of a test file, in which
the outcomes are literals. `apart` sets some calls apart as examples for agents. Tests make these calls, too, so that a
solution that contradicts an example fails; only what is arbitrary for the original function is not tested.
"""

import ast
import base64
import contextlib
import copy
import datetime
import decimal
import fractions
import hashlib
import importlib
import inspect
import io
import itertools
import json
import linecache
import math
import os
import pickle
import random
import re
import select
import signal
import sys
import textwrap
import time

# Maximum number of recorded calls of a function, of inputs that are tried, of those among which calls are chosen, and of
# calls that are kept.
MOST_RECORDED, MOST_TRIED, MOST_FOUND, MOST_KEPT = 60, 5000, 1000, 60
# Maximum number of combinations of argument types of which a call is recorded even if it is a late one.
MOST_COMBINATIONS = 20
# Calls in one test.
CALLS_PER_TEST = 10
# Maximum number of values of an option whose calls hardly vary it.
LEAST_VARIED = 2
# Maximum number of mutants with which calls are compared.
MOST_MUTANTS = 150
# Time limits in seconds: of one call, of all calls of a function, and of all calls of its mutants. The last two are processor
# time, so that a busy machine does not change which calls are kept; they may take some times as long.
CALL_SECONDS, FUNCTION_SECONDS, MUTANT_SECONDS, SLOWER = 0.3, 2.0, 2.0, 4
# Time limit in seconds of a process that makes the calls of a function, and number of recorded calls that are compared.
FORK_SECONDS, MOST_COMPARED = 30, 3

# Why a function has no added tests.
UNWRITTEN = "functions whose arguments can be neither written as literals nor pickled"
ENDED = "functions whose calls end the process or take too long"
UNSTEADY = "functions whose calls come out differently again, or change what other functions give"
# Longest source of an argument, of one with a pickled object, and of an outcome, in characters. The tests of a file share
# pickled objects.
LONGEST_ARGUMENT, LONGEST_PICKLE, LONGEST_OUTCOME = 3000, 8000, 1500
# Longest line that shows an example, all examples of a function, and the attributes of an object in an example, in
# characters; number of calls of a function for each of its examples; and number of calls among which examples are chosen.
LONGEST_EXAMPLE, LONGEST_EXAMPLES, LONGEST_OBJECT, CALLS_PER_EXAMPLE, MOST_ABLE = 700, 2500, 200, 2, 200
# Exceptions that a function without a body may raise, too.
VAGUE_ERRORS = {"NotImplementedError", "RuntimeError", "Exception", "BaseException", "AssertionError"}

# The beginning of each test file. The code of this file uses the same functions.
HELPERS = '''
import base64
import collections.abc
import contextlib
import datetime
import decimal
import fractions
import importlib
import itertools
import math
import pickle
import sys
import types

import pytest

# Maximum number of members of a collection, and of an iterator, that are compared.
MOST_MEMBERS, MOST_ITERATED = 1000, 100


def function(module, name):
    """The function itself, without the decorators of a class."""
    found = importlib.import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    found = found.fget if isinstance(found, property) else found
    return getattr(found, "__func__", found)


def loaded(text):
    return pickle.loads(base64.b64decode(text))


def attributes(value):
    """The attributes of an object, also those in slots; none of a class."""
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
    return {**found, **own} if type(own) is dict else found


def plain(value, depth=0):
    """A literal that stands for a value: members of collections and public attributes of other objects, without their
    classes."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return value
    if kind is float:
        return value if math.isfinite(value) else None if math.isnan(value) else math.copysign(sys.float_info.max, value)
    if kind is complex:
        return [plain(value.real), plain(value.imag)]
    if depth > 8:
        return None
    if kind in (list, tuple):
        return kind(plain(part, depth + 1) for part in value)
    if issubclass(kind, (set, frozenset)):
        return sorted((plain(part, depth + 1) for part in set(value)), key=repr)
    if issubclass(kind, dict):
        # Names such as `__doc__` and `__firstlineno__` in the namespace of a class describe its source.
        members = ((plain(key, depth + 1), part) for key, part in dict.items(value))
        return {repr(key): plain(part, depth + 1) for key, part in members if not str(key).startswith("__")}
    if issubclass(kind, list):
        return [plain(part, depth + 1) for part in list.__iter__(value)]
    if kind.__module__ == "datetime":
        return str(value)
    if kind is slice:
        return [plain(part, depth + 1) for part in (value.start, value.stop, value.step)]
    if kind.__module__ in ("decimal", "fractions"):
        # Like other numbers, these are compared without their type.
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
    return public if found else None


def state(value, known=None):
    """The attributes of an object, and the members of containers. Of attributes, only those in `known`, if it is given."""
    found = attributes(value)
    if found and not is_container(value):
        names = sorted(name for name in found if known is None or name in known)
        return {name: plain(found[name], 2) for name in names}
    return plain(value)


def observed(called, positional, named):
    """What a call returns, and the states of its arguments before and after it."""
    given = [*positional, *named.values()]
    is_new = called.__name__ == "__init__"
    known = [None if is_new else list(attributes(value)) for value in given]
    before = [state(value, names) for value, names in zip(given, known)]
    result = called(*positional, **named)
    if hasattr(type(result), "__next__"):
        result = list(itertools.islice(result, MOST_ITERATED))
    return result, before, [state(value, names) for value, names in zip(given, known)]


def returned(called, positional, named=None, changes_objects=False):
    """What a call returns, and, in a pair with it, the states of the arguments that it changes: of lists, dicts and sets
    only, if `changes_objects` is true. For a call that returns nothing: the states of all its arguments afterwards."""
    named = named or {}
    return outcome([*positional, *named.values()], *observed(called, positional, named), changes_objects)


def outcome(given, result, before, after, changes_objects):
    """A literal for what `observed` found."""
    if result is None:
        return after
    counts = [is_container(value) or not changes_objects for value in given]
    changes = [new for is_used, old, new in zip(counts, before, after) if is_used and not equal(new, old)]
    return (plain(result), changes) if changes else plain(result)


def is_container(value):
    return isinstance(value, (list, dict, set))


def equal(got, expected):
    if type(got) in (int, float) and type(expected) in (int, float):
        return got == expected or math.isclose(got, expected, rel_tol=1e-6, abs_tol=1e-9)
    if type(got) is not type(expected):
        return False
    if type(got) in (list, tuple):
        return len(got) == len(expected) and all(map(equal, got, expected))
    if type(got) is dict:
        return got.keys() == expected.keys() and all(equal(got[key], expected[key]) for key in expected)
    return got == expected
'''
exec(HELPERS)


class NoSource(Exception):
    """A value that cannot be written down."""


def source_of(value, depth=0):
    """An expression that makes an equal value: a literal, or a call of a constructor of the standard library, or of `loaded`."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, complex):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if depth < 6 and kind in (list, tuple, set, frozenset, dict):
        with contextlib.suppress(NoSource):
            source = written_container(value, kind, lambda part: source_of(part, depth + 1))
            # One pickle keeps what the members share.
            if kind is dict or "loaded(" not in source:
                return source
    if kind.__module__ == "datetime" and kind.__name__ in ("date", "datetime", "time", "timedelta"):
        if getattr(value, "tzinfo", None) in (None, datetime.timezone.utc):
            return repr(value)
    if kind in (decimal.Decimal, fractions.Fraction):
        return f"{kind.__module__}.{value!r}"
    return pickled(value)


def written_container(value, kind, written):
    """An expression for a built-in container, whose members `written` writes."""
    if kind is dict:
        parts = (f"{written(key)}: {written(part)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    parts = [written(part) for part in (sorted(value, key=repr) if kind in (set, frozenset) else value)]
    inner = ", ".join(parts)
    if kind is list:
        return f"[{inner}]"
    if kind is tuple:
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    return f"{kind.__name__}([{inner}])"


def pickled(value):
    if getattr(value, "nbytes", 0) > LONGEST_ARGUMENT:
        raise NoSource
    try:
        text = pickle.dumps(value, 4)
        same = type(WithoutTests(io.BytesIO(text)).load()) is type(value)
    except Exception as error:
        raise NoSource from error
    # Temporary folders have another name next time.
    if not same or b"__main__" in text or os.path.dirname(os.getcwd()).encode() in text:
        raise NoSource
    return f"loaded({base64.b64encode(text).decode()!r})"


def is_short(source):
    """Whether the source of an argument may be in a test."""
    return len(source) <= (LONGEST_PICKLE if "loaded(" in source else LONGEST_ARGUMENT)


class WithoutTests(pickle.Unpickler):
    """Refuses classes of test files: these are empty while others run."""

    test_files = frozenset()

    def find_class(self, module, name):
        found = super().find_class(module, name)
        if getattr(sys.modules.get(module), "__file__", None) in self.test_files:
            raise NoSource
        return found


def kind_of(value):
    """The type of a value, and that of an array's members."""
    kind = type(value)
    return (kind, value.dtype.char) if kind.__module__ == "numpy" and kind.__name__ == "ndarray" else kind


class Recorder:
    """Records the arguments of calls of the wanted functions, as sources, while tests run."""

    def __init__(self, wanted, folder, test_files):
        WithoutTests.test_files = frozenset(os.path.join(folder, file) for file in test_files)
        self.by_file, self.temporary = {}, os.path.dirname(folder)
        for file, name in wanted:
            self.by_file.setdefault(os.path.join(folder, file), []).append((file, name))
        self.codes, self.modules, self.calls, self.counts, self.types, self.busy = {}, {}, {}, {}, {}, False

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        sys.settrace(self.trace)
        yield
        sys.settrace(None)

    def trace(self, frame, event, argument):
        code = frame.f_code
        known = self.codes.get(code, self)
        if known is None or self.busy:
            return None
        if known is self:
            known = self.find(frame, code)
        if known is not None:
            count = self.counts[known] = self.counts.get(known, 0) + 1
            is_new = self.has_new_types(known, frame, code)
            # The first calls, later ones ever more rarely, and those with other types of arguments.
            if is_new or count <= MOST_RECORDED // 2 or count & (count - 1) == 0 or count % 97 == 0:
                self.busy = True
                try:
                    self.record(known, frame, code, is_new)
                finally:
                    self.busy = False
        return None

    def has_new_types(self, wanted, frame, code):
        """Whether no earlier call of the function had arguments of these types."""
        known = self.types.setdefault(wanted, set())
        if len(known) >= MOST_COMBINATIONS:
            return False
        # A generator that goes on may have deleted an argument.
        names, values = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], frame.f_locals
        found = tuple(kind_of(values.get(name)) for name in names)
        if found in known:
            return False
        known.add(found)
        return True

    def find(self, frame, code):
        """The wanted function of a code object."""
        functions = self.by_file.get(os.path.abspath(code.co_filename))
        if functions is None:
            self.codes[code] = None
            return None
        module = frame.f_globals.get("__name__", "")
        for wanted in functions:
            if wanted[1].rpartition(".")[2] == code.co_name:
                try:
                    found = function(module, wanted[1])
                except Exception:
                    # The module is still being imported.
                    return None
                # What coroutines return is not compared.
                if getattr(found, "__code__", None) is code and not code.co_flags & (0x80 | 0x200):
                    self.codes[code], self.modules[wanted] = wanted, module
                    return wanted
        self.codes[code] = None
        return None

    def record(self, wanted, frame, code, is_new):
        calls = self.calls.setdefault(wanted, {})
        if len(calls) >= MOST_RECORDED and not is_new:
            return
        values = frame.f_locals
        names = code.co_varnames
        positional, count = list(names[: code.co_argcount]), code.co_argcount + code.co_kwonlyargcount
        try:
            arguments = [source_of(values[name]) for name in positional]
            if code.co_flags & 4:
                arguments += [source_of(value) for value in values[names[count]]]
            named = {name: source_of(values[name]) for name in names[code.co_argcount : count]}
            if code.co_flags & 8:
                extra = values[names[count + bool(code.co_flags & 4)]]
                named.update((name, source_of(value)) for name, value in extra.items())
        except Exception:
            return
        # Temporary folders have other names in verification.
        fits = lambda source: is_short(source) and self.temporary not in source
        if all(map(fits, [*arguments, *named.values()])):
            calls.setdefault((tuple(arguments), tuple(named.items())))

    def made(self):
        """Yields the calls that are kept of each wanted function, with the function and its module.

        Calls may change what all functions share, such as a cache. So each function's calls are made in a process of its
        own, and are dropped if they come out differently in another process, or change the outcomes of recorded calls. Outcomes
        that change anyway, such as times, are not compared. Instead of a function's calls, a text says why there are none."""
        functions = {}
        for wanted, calls in sorted(self.calls.items()):
            if not calls:
                yield wanted, self.modules[wanted], UNWRITTEN, []
                continue
            with contextlib.suppress(Exception):
                functions[wanted] = Inputs(wanted, self.modules[wanted], list(calls))
        share_options(functions.values())
        recorded = lambda: [outcome for inputs in functions.values() for outcome in inputs.recorded()]
        usual = in_fork(recorded)
        if usual is None:
            # Leave out the functions that are to blame: without outcomes to compare with, nothing is known of what calls change.
            for wanted in [wanted for wanted, inputs in functions.items() if in_fork(inputs.recorded) is None]:
                del functions[wanted]
                yield wanted, self.modules[wanted], ENDED, []
            usual = in_fork(recorded)
        if usual is None:
            for wanted in functions:
                yield wanted, self.modules[wanted], ENDED, []
            return
        steady = range(len(usual))
        for wanted, inputs in functions.items():
            calls = in_fork(inputs.selected)
            if not calls:
                if calls is None:
                    yield wanted, self.modules[wanted], ENDED, []
                continue
            after = in_fork(lambda: inputs.give(calls) and recorded())
            if after and any(after[place] != usual[place] for place in steady):
                again = in_fork(recorded) or []
                steady = [place for place in steady if usual[place : place + 1] == again[place : place + 1]]
            is_alone = after and all(after[place] == usual[place] for place in steady)
            yield wanted, self.modules[wanted], calls if is_alone else UNSTEADY, [digest(*call) for call in inputs.calls]


def share_options(functions):
    """Gives each function, for the options that its tests hardly vary, the values that options of the same name have in calls
    of other functions."""
    pools = {}
    for inputs in functions:
        for place, name in inputs.options.items():
            pools.setdefault(name, {}).update(inputs.pools.get(place, {}))
    for inputs in functions:
        for place, name in inputs.options.items():
            own = inputs.pools.get(place, {})
            others = [source for source in pools[name] if source not in own]
            if own and len(own) <= LEAST_VARIED and others:
                inputs.other_values[place] = others


def by_place(positional, named):
    """The sources of a call's arguments by their index or name."""
    return dict([*enumerate(positional), *named])


def digest(positional, named):
    """A digest of a call's arguments."""
    return hashlib.sha256(repr((tuple(positional), tuple(map(tuple, named)))).encode()).hexdigest()[:16]


def in_fork(work):
    """What `work` returns in a copy of this process, as JSON; `None` if it fails or takes too long."""
    take, give = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(take)
            with os.fdopen(give, "w") as file:
                file.write(json.dumps(work()))
        finally:
            os._exit(0)
    os.close(give)
    parts, end = [], time.monotonic() + FORK_SECONDS
    while select.select([take], [], [], max(0, end - time.monotonic()))[0]:
        parts.append(os.read(take, 1 << 16))
        if not parts[-1]:
            break
    os.close(take)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return None


def time_limit(seconds):
    """A function that tells whether this process has computed for so long since now, or some times as long has passed."""
    computed, passed = time.process_time() + seconds, time.monotonic() + SLOWER * seconds
    return lambda: time.process_time() > computed or time.monotonic() > passed


class TookTooLong(BaseException):
    """A call has passed its time limit. Code that catches `Exception` does not catch it."""


def readable(value, depth=0):
    """How an example shows a value: as its source, as the value's own text, or as its class and attributes."""
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
    """Words of at least two letters, and numbers."""
    return set(re.findall(r"[^\W\d_]{2,}|\d+(?:\.\d+)?", text))


class RaisedError:
    """The exception that a call raises."""

    def __init__(self, kind):
        self.kind = kind

    def __eq__(self, other):
        return type(other) is RaisedError and other.kind is self.kind

    def __repr__(self):
        """An expression that is the exception's class."""
        kind = self.kind
        name = kind.__qualname__
        return name if kind.__module__ == "builtins" else f"function({kind.__module__!r}, {name!r})"


# Stands for the types of all arguments in the list of what was changed freely in a call.
UNUSUAL_TYPES = "unusual types"


class Inputs:
    """Makes inputs of one function from its recorded calls."""

    def __init__(self, wanted, module, calls):
        self.called = function(module, wanted[1])
        self.calls, self.pools = calls, {}
        # Tracebacks and lines of exceptions in the function during its last call, and whether it ended with one.
        self.raised, self.failed = [], False
        # Outcomes of the kept calls.
        self.expected = {}
        self.chance = random.Random(f"{wanted}")
        self.bounds = bounds_in(self.called)
        for positional, named in calls:
            for place, source in by_place(positional, named).items():
                self.pools.setdefault(place, {})[source] = None
        # Names of the parameters with a default, and values of such parameters in calls of other functions.
        self.options, self.other_values = {}, {}
        self.defaults, self.kinds = {}, {}
        self.add_defaults()
        self.values = {place: [self.value(source) for source in pool] for place, pool in self.pools.items()}
        self.known_types = {self.types(by_place(*call)) for call in calls}

    def add_defaults(self):
        """Adds the values that parameters have if nothing is passed."""
        code, defaults = self.called.__code__, self.called.__defaults__ or ()
        found = dict(enumerate(defaults, code.co_argcount - len(defaults)))
        found.update(self.called.__kwdefaults__ or {})
        for place, default in found.items():
            self.options[place] = place if isinstance(place, str) else code.co_varnames[place]
            if place in self.pools:
                with contextlib.suppress(NoSource):
                    self.defaults[place] = source_of(default)
                    self.pools[place][self.defaults[place]] = None

    def types(self, arguments):
        """The types of a call's arguments, without those of default values. Different numbers count as one type."""
        found = set()
        for place, source in arguments.items():
            if source != self.defaults.get(place):
                if source not in self.kinds:
                    kind = None
                    # Not each changed value can be made again.
                    with contextlib.suppress(Exception):
                        kind = kind_of(self.value(source))
                    self.kinds[source] = "number" if kind in (int, float, complex) else kind
                found.add((place, self.kinds[source]))
        return frozenset(found)

    def value(self, source):
        return eval(source, globals())

    def arguments(self, call):
        """The arguments of a call: positional ones, and named ones by their name."""
        positional, named = call
        return [self.value(source) for source in positional], {name: self.value(source) for name, source in named}

    def recorded(self):
        """Outcomes of some recorded calls."""
        return [repr((self.run(call) or [None])[0]) for call in self.calls[:MOST_COMPARED]]

    def give(self, calls):
        """Whether chosen calls have their expected outcomes, one after the other."""
        outcomes = (self.run(call["call"]) for call in calls)
        return all(found and repr(found[0]) == call["expected"] for found, call in zip(outcomes, calls))

    def kept(self):
        """Calls that give the same outcome twice, each with the lines of the function that it runs.

        What the function returns for arguments that were changed freely may mean nothing. So of these calls only those may
        become tests that raise an exception, and those with other texts, if no other text in their place can make the function
        raise one. The others may still become examples."""
        found, places, seen, limited = [], {}, set(), set()
        recorded, is_over = ((call, ()) for call in self.calls), time_limit(FUNCTION_SECONDS)
        for number, (call, free) in enumerate(itertools.chain(recorded, self.changed_calls())):
            if number >= MOST_TRIED or len(found) >= MOST_FOUND or is_over():
                break
            if call in seen:
                if call in places and not free:
                    found[places[call]] = ((), *found[places[call]][1:])
                continue
            seen.add(call)
            first = self.run(call)
            if self.failed and len(set(free)) == 1:
                limited.update(free)
            if first is not None and self.run(call) == first:
                places[call] = len(found)
                found.append((free, call, *first))
        self.expected = {call: expected for _, call, expected, *_ in found}
        arbitrary = [self.is_arbitrary(free, call, expected, limited) for free, call, expected, *_ in found]
        noticing = self.noticing([(place, *found[place]) for place, is_one in enumerate(arbitrary) if not is_one])
        return [
            {
                "call": call,
                "is_free": bool(free),
                "is_arbitrary": arbitrary[place],
                "expected": repr(expected),
                "raises": type(expected) is RaisedError,
                "lines": sorted(lines),
                "example": None,
                "words": [],
                "mutants": [],
                "changes_objects": changes_objects,
                "notices": noticing.get(place, [0, 0]),
            }
            for place, (free, call, expected, lines, changes_objects) in enumerate(found)
        ]

    def is_arbitrary(self, free, call, expected, limited):
        """Whether what a call returns may mean nothing: an argument was changed freely that is no text, or is in a place that is
        limited, or the types of the arguments do not occur together otherwise."""
        sources = by_place(*call)
        is_text = lambda place: place != UNUSUAL_TYPES and sources[place].lstrip("b")[:1] in ("'", '"')
        return type(expected) is not RaisedError and any(place in limited or not is_text(place) for place in free)

    def selected(self):
        """The calls that are selected for tests, and further ones that are good examples."""
        kept, recorded, able = self.kept(), set(self.calls), {}
        for call in sorted(kept, key=lambda call: call["is_free"]):
            if call["call"] not in recorded:
                able.setdefault((tuple(call["lines"]), call["expected"]), call)
        able = list(able.values())[:MOST_ABLE]
        self.add_examples(able)
        self.add_mutants([call for call in able if call["example"]])
        examples, _ = apart(able, (), MOST_KEPT)
        tests = chosen(kept)
        return tests + [call for call in examples if call not in tests]

    def add_examples(self, calls):
        """Adds to each call a line that shows it to agents as an example, and the words of the function's source that the
        outcome in this line has."""
        source = words_in(inspect.getsource(self.called))
        shown = [self.example(call["call"]) for call in calls]
        outcomes = {}
        for made, found in shown:
            outcomes.setdefault(made, set()).add(found)
        for call, (made, found) in zip(calls, shown):
            line = f"{made} {found}"
            # Calls look equal if they differ in objects that are not shown in full.
            is_clear = made and len(outcomes[made]) == 1
            if is_clear and len(line) <= LONGEST_EXAMPLE and not re.search(r" at 0x|[\n`]", line):
                call["example"], call["words"] = line, sorted(words_in(found) & source)

    def add_mutants(self, calls):
        """Adds to each call the numbers of the mutants that it notices."""
        is_over = time_limit(MUTANT_SECONDS)
        for number, mutant in enumerate(mutants_of(self.called, random.Random(0))):
            for call in calls:
                if is_over():
                    return
                expected = self.expected[call["call"]]
                if not self.gives(mutant, call["call"], expected, call["changes_objects"]):
                    call["mutants"].append(number)

    def example(self, call):
        """How a call is written, and what it does; empty texts if that is not known."""
        code, name = self.called.__code__, self.called.__qualname__
        try:
            positional, named = self.arguments(call)
            owner, _, last = name.rpartition(".")
            is_new = last == "__init__"
            shown = [*map(readable, positional[is_new:]), *(f"{key}={readable(value)}" for key, value in named.items())]
            if is_new and type(positional[0]).__qualname__ == owner:
                made = f"{owner}({', '.join(shown)})"
            else:
                # An object of a subclass may be made in another way.
                first = [f"self: {type(positional[0]).__qualname__}"] if is_new else []
                made = f"{name}({', '.join(first + shown)})"
            with self.limits():
                try:
                    result, before, after = observed(self.called, positional, named)
                except Exception as error:
                    return made, f"raises {error!r}" + " when iterated" * bool(code.co_flags & inspect.CO_GENERATOR)
            names = [*code.co_varnames[: len(positional)], *named]
            if is_new:
                # An object's own text may not show its attributes.
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

    def noticing(self, calls):
        """For how many mutants each of the found calls was selected first and second because it notices them, by the call's
        place. The first selected call notices other mutants, too, if there is such a call, so that few calls notice as many
        mutants as all calls do. The second one is new, so that different calls notice each mutant."""
        found, is_over = {}, time_limit(MUTANT_SECONDS)
        order = list(calls)
        for mutant in mutants_of(self.called, self.chance):
            self.chance.shuffle(order)
            # Unselected calls keep their drawn order.
            for turn, often_first in enumerate((True, False)):
                order.sort(key=lambda one: found.get(one[0], [0])[0], reverse=often_first)
                for place, _, call, expected, _, changes_objects in order:
                    if is_over():
                        return found
                    is_new = turn == 0 or found.get(place, [0, 0])[0] == 0
                    if is_new and not self.gives(mutant, call, expected, changes_objects):
                        found.setdefault(place, [0, 0])[turn] += 1
                        break
                else:
                    # No call notices this mutant.
                    break
        return found

    def gives(self, called, call, expected, changes_objects):
        """Whether a call of another function has the expected outcome."""
        try:
            positional, named = self.arguments(call)
            with self.limits():
                got = returned(called, positional, named, changes_objects)
        except BaseException as error:
            return type(expected) is RaisedError and isinstance(error, expected.kind)
        return type(expected) is not RaisedError and equal(got, expected)

    @contextlib.contextmanager
    def limits(self):
        """Stops a call that takes too long, and hides what it prints."""
        quiet = io.StringIO()

        def stop(*_):
            raise TookTooLong

        signal.signal(signal.SIGALRM, stop)
        random.seed(0)
        # Again and again, because code may catch the exception.
        signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS, CALL_SECONDS)
        try:
            with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def changed_calls(self):
        """Recorded calls with some arguments of other calls, and some changed arguments; and which of them were changed
        freely, with `UNUSUAL_TYPES` if no recorded call has arguments of these types."""
        chance = self.chance
        while True:
            positional, named = chance.choice(self.calls)
            arguments = by_place(positional, named)
            if not arguments:
                return
            free, others = [], set()
            for place in arguments:
                if chance.random() < 0.3:
                    arguments[place] = chance.choice(list(self.pools[place]))
                if place in self.other_values and chance.random() < 0.2:
                    arguments[place] = chance.choice(self.other_values[place])
                    others.add(place)
            for place in chance.sample(list(arguments), min(len(arguments), chance.choice((0, 1, 1, 2)))):
                value, is_free = self.value(arguments[place]), chance.random() < 0.3
                # Methods of the package's objects may fail, and not each text can be written as bytes.
                with contextlib.suppress(Exception):
                    for _ in range(chance.choice((1, 1, 2))):
                        value = changed(value, self.values[place], self.bounds, chance, is_free)
                    source = source_of(value)
                    if is_short(source):
                        arguments[place] = source
                        free += [place] if is_free else []
            # The types of values that come from other functions' calls are usual, too.
            own = lambda found: {one for one in found if one[0] not in others}
            types = own(self.types(arguments))
            if all(own(known) != types for known in self.known_types):
                free.append(UNUSUAL_TYPES)
            call = tuple(arguments[place] for place in range(len(positional)))
            yield (call, tuple((name, arguments[name]) for name, _ in named)), free

    def run(self, call):
        """The outcome of a call and the lines that it runs; `None` if a right function may do something else."""
        lines, code = set(), self.called.__code__
        try:
            positional, named = self.arguments(call)
        except Exception:
            return None

        def line(frame, event, argument):
            if event == "line":
                lines.add(frame.f_lineno - code.co_firstlineno)
            elif event == "exception":
                raised.append((argument[2], frame.f_lineno))
            return line

        self.raised = raised = []
        self.failed = False
        try:
            with self.limits():
                sys.settrace(lambda frame, event, argument: line if frame.f_code is code else None)
                result, before, after = observed(self.called, positional, named)
        except Exception as error:
            kind, self.failed = type(error), True
            if kind.__name__ in VAGUE_ERRORS or not self.is_own_error(raised, code) or "<" in kind.__qualname__:
                return None
            return RaisedError(kind), frozenset(lines), False
        except BaseException:
            return None
        finally:
            sys.settrace(None)
        if result is None and equal(before, after):
            return None
        # What a right function keeps in objects besides its result is up to it.
        given = [*positional, *named.values()]
        changes_objects = any(not is_container(value) and not equal(*states) for value, *states in zip(given, before, after))
        try:
            # Nothing of such a result could be compared.
            if result is not None and plain(result) is None and not (type(result) is float and math.isnan(result)):
                return None
            result = outcome(given, result, before, after, changes_objects)
            # Fails for very large numbers.
            shown = repr(result)
        except Exception:
            return None
        if len(shown) > LONGEST_OUTCOME or " at 0x" in shown:
            return None
        return result, frozenset(lines), changes_objects

    def is_own_error(self, raised, code):
        """Whether the last exception comes from a `raise` statement of the function."""
        if not raised:
            return False
        trace, number = raised[-1]
        return trace.tb_next is None and linecache.getline(code.co_filename, number).strip().startswith("raise ")


# Mutants of functions: each has one small change.


def tree_of(called):
    """The syntax tree of a function's source; an empty one if the source is not known or cannot be parsed alone."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (SyntaxError, OSError, TypeError, IndexError, AttributeError):
        return ast.parse("")


def mutants_of(called, chance):
    """Yields mutants of a function; none if its source makes another function when it is compiled alone."""
    tree = tree_of(called)
    if called.__code__.co_freevars or not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        return
    tree.body[0].decorator_list = []
    changes = [
        (number, change)
        for number, node in enumerate(ast.walk(tree.body[0]))
        for change in range(len(changes_of(node)))
    ]
    chance.shuffle(changes)
    for number, change in changes[:MOST_MUTANTS]:
        copied = copy.deepcopy(tree)
        node = next(itertools.islice(ast.walk(copied.body[0]), number, None))
        changes_of(node)[change]()
        space = {}
        try:
            exec(compile(ast.fix_missing_locations(copied), "<mutant>", "exec"), called.__globals__, space)
            mutant = space[called.__name__]
        except Exception:
            continue
        mutant.__defaults__, mutant.__kwdefaults__ = called.__defaults__, called.__kwdefaults__
        yield mutant


OTHER_OPERATORS = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Add],
    ast.Div: [ast.FloorDiv],
    ast.FloorDiv: [ast.Div],
    ast.Mod: [ast.FloorDiv],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}


def changes_of(node):
    """Functions that each change a node in one way."""
    found = []
    put = lambda name, value: found.append(lambda: setattr(node, name, value))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool, str):
        value = node.value
        others = [not value] if type(value) is bool else [value + "x", ""] if type(value) is str else [value + 1, value - 1]
        for other in others:
            put("value", other)
    if isinstance(node, ast.Compare):
        for other in OTHER_OPERATORS.get(type(node.ops[0]), ()):
            put("ops", [other(), *node.ops[1:]])
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        for other in OTHER_OPERATORS.get(type(node.op), ()):
            put("op", other())
    if isinstance(node, ast.BoolOp):
        for place in range(len(node.values)):
            put("values", node.values[:place] + node.values[place + 1 :])
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        for other in (True, False):
            if not isinstance(node, ast.While) or not other:
                put("test", ast.Constant(other))
    if isinstance(node, ast.Call) and node.args:
        for place in range(len(node.args)):
            put("args", node.args[:place] + node.args[place + 1 :])
    for field in ("body", "orelse"):
        statements = getattr(node, field, None)
        if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
            for place, statement in enumerate(statements):
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                    put(field, [*statements[:place], ast.Pass(), *statements[place + 1 :]])
    return found


# Changes of values. A changed value looks like those of the recorded calls: numbers lie between theirs (or near them), texts
# differ in digits only, members come from theirs, and lists are of the same length, sorted, or without repetition if all of
# theirs are. Numbers at the bounds that the function itself has are tried more often than others. Only free changes make
# other numbers and other texts. Nothing is empty and nothing is negative unless a recorded value is.


def bounds_in(called):
    """The whole numbers in the source of a function, and those beside them: what it does may change there."""
    numbers = {node.value for node in ast.walk(tree_of(called)) if isinstance(node, ast.Constant) and type(node.value) is int}
    return sorted({number + beside for number in numbers for beside in (-1, 0, 1)})


def changed(value, pool, bounds, chance, is_free):
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
        place = chance.choice(places or [0])
        return value[:place] + chance.choice("0123456789") + value[place + 1 :] if places else value
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


# Examples, and test files.


def shape(line):
    """A line without its words and numbers, and with each repetition once."""
    line = re.sub(r"[^\W\d_]+", "a", re.sub(r"-?\d+(\.\d+)?", "0", line))
    return re.sub(r"(.{1,40}?)(, \1)+", r"\1", line)


def apart(calls, recorded, most):
    """Separates the examples of a function, at most `most`, from the calls that tests make. Each example runs lines of the
    function that no earlier one runs, notices mutants or shows words of its source that no earlier one does, or looks
    different. Calls with `recorded` digests are no examples, because the package's own tests make them."""
    examples, shapes, left = [], set(), LONGEST_EXAMPLES
    known = {"lines": set(), "words": set(), "mutants": set()}

    def gain(call):
        new = 2 * sum(len(set(call[kind]) - known[kind]) for kind in known) + (shape(call["example"]) not in shapes)
        return new / 2 if call["is_free"] else new, -len(call["example"])

    able = [call for call in calls if call["example"] and digest(*call["call"]) not in recorded]
    while len(examples) < most:
        able = [call for call in able if len(call["example"]) <= left]
        best = max(able, key=gain, default=None)
        if not best or not gain(best)[0] and len(examples) > 2:
            break
        able.remove(best)
        examples.append(best)
        left -= len(best["example"])
        shapes.add(shape(best["example"]))
        for kind in known:
            known[kind].update(best[kind])
    shown = {call["example"] for call in examples}
    return examples, [call for call in calls if call["example"] not in shown]


PICKLE = re.compile(r"loaded\(('[A-Za-z0-9+/=]*')\)")


def chosen(calls):
    """At most `MOST_KEPT` calls that may become tests: first those that notice mutants, then from each set of lines in turn,
    those with different outcomes first."""
    sets, calls = {}, [call for call in calls if not call["is_arbitrary"]]
    noticing = sorted((call for call in calls if any(call["notices"])), key=lambda call: call["notices"], reverse=True)
    noticing = noticing[:MOST_KEPT]
    for call in calls:
        if any(call["notices"]):
            continue
        outcomes = sets.setdefault(tuple(call["lines"]), {})
        outcomes.setdefault(call["expected"], []).append(call)
    for lines, outcomes in sets.items():
        layers = itertools.zip_longest(*outcomes.values())
        sets[lines] = [call for layer in layers for call in layer if call is not None]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*sets.values()))
    others = (call for call in turns if call is not None)
    return noticing + list(itertools.islice(others, MOST_KEPT - len(noticing)))


def test_name(number, name):
    """The common beginning of the names of a function's tests; `number` is that of the function in the test file."""
    return f"test_{number}_{name.rpartition('.')[2].strip('_')}"


def written(functions):
    """The source of a test file. `functions` are pairs of a module and the name of a function in it, with the chosen calls."""
    parts, objects = [], {}
    for number, ((module, name), calls) in enumerate(functions):
        for place in range(0, len(calls), CALLS_PER_TEST):
            lines = [f"\n\ndef {test_name(number, name)}_{place // CALLS_PER_TEST}():"]
            lines.append(f"    called = function({module!r}, {name!r})")
            for call in calls[place : place + CALLS_PER_TEST]:
                positional, named = call["call"]
                given = f"[{', '.join(positional)}]"
                if named:
                    given += ", {" + ", ".join(f"{key!r}: {source}" for key, source in named) + "}"
                given = PICKLE.sub(lambda found: f"loaded({objects.setdefault(found[1], f'OBJECT_{len(objects)}')})", given)
                given += ", changes_objects=True" if call["changes_objects"] else ""
                if call["raises"]:
                    lines += [f"    with pytest.raises({call['expected']}):", f"        returned(called, {given})"]
                else:
                    lines.append(f"    assert equal(returned(called, {given}), {call['expected']})")
            parts.append("\n".join(lines) + "\n")
    about = '"""Calls with more inputs than the package\'s own tests have, and what the original code gives."""\n'
    texts = "".join(f"{name} = {text}\n" for text, name in objects.items())
    return "".join([about, HELPERS, "\n\n# Pickled objects.\n" if objects else "", texts, *parts])
