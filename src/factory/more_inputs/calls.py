"""Calls of one function with recombined and changed arguments of recorded calls."""

import collections
import functools
import inspect
import itertools
import linecache
import math
import random
import re
import sys

from .changes import Changes
from .examples import example, words_in
from .helpers import equal, function, is_container, observed, outcome, plain, returned
from .limits import one_call, time_limit
from .mutants import mutants_of
from .selection import MOST_KEPT, apart, chosen, noticing
from .signs import mixed_signs, types_with_both_signs
from .sources import NoSource, by_place, is_lasting, is_short, source_of, type_of, value_of

# For one function: the maximum number of calls that are tried, and the maximum number of them that are kept to choose
# from. If none of the first `TRIED_IN_VAIN` calls is kept, no further calls are tried.
MOST_TRIED, MOST_FOUND, TRIED_IN_VAIN = 5000, 1000, 200
# If recorded calls of a function pass at most this many different values for a parameter with a default, values that
# are passed to other functions for parameters of the same name are tried, too.
FEW_VALUES = 2
# Time limit in seconds of all calls of a function, time limit in seconds of all calls of its mutants, and maximum
# number of calls of its mutants. Unless calls take long, `MOST_TRIED` and `MOST_MUTANT_CALLS` are reached before the
# time limits.
CALLS_SECONDS, MUTANT_SECONDS, MOST_MUTANT_CALLS = 3.0, 3.0, 20000
# After new calls of any function, some recorded calls of each function are repeated, to check that the new calls have
# not changed their outcomes. This is the maximum number of repeated calls of one function.
MOST_COMPARED = 3
# Maximum length in characters of a line that shows an example, and maximum number of a function's calls from which its
# examples are chosen.
LONGEST_EXAMPLE, MOST_ABLE = 700, 200
# Tests do not expect these exceptions, because functions that are not implemented may raise them, too.
VAGUE_ERRORS = {"NotImplementedError", "RuntimeError", "Exception", "BaseException", "AssertionError"}


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


def is_vague(kind):
    """Whether a test should not expect this class of exceptions: it is in `VAGUE_ERRORS`, or is defined inside a
    function, so that tests cannot name it."""
    return kind.__name__ in VAGUE_ERRORS or "<" in kind.__qualname__


def is_own_error(error, codes):
    """Whether an exception comes from a `raise` statement in one of these functions' code."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code in codes and linecache.getline(code.co_filename, trace.tb_lineno).strip().startswith("raise ")


def traced_lines(code, lines):
    """Returns a function for `sys.settrace` that adds the executed lines of a function's code to `lines`."""

    def line(frame, event, argument):
        if event == "line":
            lines.add(frame.f_lineno - code.co_firstlineno)
        return line

    return lambda frame, event, argument: line if frame.f_code is code else None


def share_options(functions):
    """Finds further values to try for parameters with a default (options). If recorded calls of a function pass few
    different values for such a parameter, adds the values that calls of other functions pass for parameters of the same
    name."""
    pools = {}
    for inputs in functions:
        for place, name in inputs.options.items():
            pools.setdefault(name, {}).update(inputs.pools.get(place, {}))
    for inputs in functions:
        for place, name in inputs.options.items():
            own = inputs.pools.get(place, {})
            others = [source for source in pools[name] if source not in own]
            if own and len(own) <= FEW_VALUES and others:
                inputs.other_values[place] = others


# Value of `FreeChange.place` for a call whose arguments have types that no recorded call has.
UNUSUAL_TYPES = "unusual types"
# A free change, which may give an argument a value unlike those in recorded calls. `place` is the argument's position
# or name. `is_foreign` is whether the argument is now a text unlike all recorded texts, see `Changes.changed`.
FreeChange = collections.namedtuple("FreeChange", "place is_foreign")


def blamed(free):
    """Returns the free changes of a call that raised an exception, if all of them are in one place; otherwise nothing,
    because it is unclear which of them is the cause. The result is added to `limited`, see `is_limited`."""
    return free if len({change.place for change in free}) == 1 else ()


def is_limited(change, limited):
    """Whether the function does not accept any value in the place of this change. `limited` contains the free changes
    that made calls fail (see `blamed`): this change or, in the same place, one that was not foreign is among them."""
    return change in limited or FreeChange(change.place, False) in limited


class Inputs:
    """Makes inputs of one function from its recorded calls."""

    def __init__(self, wanted, module, calls):
        self.called = function(module, wanted[1])
        self.calls, self.pools = calls, {}
        # `failed` is whether the last call raised an exception. `mixed` contains the types of those arguments and
        # results of the last call that have both positive and negative numbers as attributes. If there are positive and
        # negative numbers among the arguments themselves, `mixed` also contains the function.
        self.failed, self.mixed = False, set()
        # The outcome of each call that the method `kept` returns.
        self.expected = {}
        self.chance = random.Random(f"{wanted}")
        self.changes = Changes(self.called, self.chance)
        # Index of the first argument that belongs to `*args`; `None` without `*args`.
        self.rest = self.called.__code__.co_argcount if self.called.__code__.co_flags & inspect.CO_VARARGS else None
        for positional, named in calls:
            for place, source in by_place(positional, named).items():
                self.pools.setdefault(self.pool_key(place), {})[source] = None
        # `options` contains the names of the parameters with a default. `other_values` contains values that calls of
        # other functions pass for parameters of these names.
        self.options, self.other_values = {}, {}
        self.defaults = {}
        self.add_defaults()
        self.values = {place: [value_of(source) for source in pool] for place, pool in self.pools.items()}
        self.known_types = {self.types(by_place(*call)) for call in calls}

    @functools.cached_property
    def mutants(self):
        return mutants_of(self.called, random.Random(0))

    def pool_key(self, place):
        """Returns the key of the recorded values of a place in `pools`. All arguments that belong to `*args` have the
        same key."""
        return self.rest if self.rest is not None and isinstance(place, int) and place >= self.rest else place

    def add_defaults(self):
        """Adds the default values of parameters to `pools` and `defaults`."""
        code, defaults = self.called.__code__, self.called.__defaults__ or ()
        found = dict(enumerate(defaults, code.co_argcount - len(defaults)))
        found.update(self.called.__kwdefaults__ or {})
        for place, default in found.items():
            self.options[place] = place if isinstance(place, str) else code.co_varnames[place]
            if place in self.pools:
                try:
                    self.defaults[place] = source_of(default)
                    self.pools[place][self.defaults[place]] = None
                except NoSource:
                    pass

    def types(self, arguments):
        """Returns the places and types of a call's arguments, except for arguments that equal their defaults. All types
        of numbers count as one type, and all places in `*args` as one place."""
        return frozenset(
            (self.pool_key(place), type_of(source)) for place, source in arguments.items() if source != self.defaults.get(place)
        )

    def are_usual(self, types):
        """Whether recorded calls have arguments of these types. A single recorded call must have the types of all
        arguments without a default; it may have further arguments with a default, or in `*args`. The types of the other
        arguments may be from several recorded calls."""
        is_optional = lambda place: place in self.options or place == self.rest
        needed = {one for one in types if one[0] not in self.options}
        has_needed = lambda known: needed <= known and all(is_optional(place) for place, _ in known - types)
        return types <= set().union(*self.known_types) and any(map(has_needed, self.known_types))

    def arguments(self, call):
        """Returns the values of a call's positional arguments, and those of its named arguments by name."""
        positional, named = call
        return [value_of(source) for source in positional], {name: value_of(source) for name, source in named}

    def recorded(self):
        """Repeats some recorded calls, and returns their outcomes as text."""
        return [repr((self.run(call) or [None])[0]) for call in self.calls[:MOST_COMPARED]]

    def come_out(self, calls):
        """Whether all these calls have their expected outcomes if they are made one after the other in this process."""
        outcomes = (self.run(call["call"]) for call in calls)
        return all(found and repr(found[0]) == call["expected"] for found, call in zip(outcomes, calls))

    def kept(self):
        """Returns calls that give the same outcome twice, each with the lines of the function that it runs.

        If arguments were changed freely, they may be values that the function is not made for, so that its return value
        means nothing (see `is_arbitrary`). Calls with such an outcome never become tests, but may become examples."""
        found, places, seen, limited, usual = [], {}, set(), set(), set()
        recorded, is_over = ((call, ()) for call in self.calls), time_limit(CALLS_SECONDS)
        for number, (call, free) in enumerate(itertools.chain(recorded, self.changed_calls())):
            if number >= MOST_TRIED or len(found) >= MOST_FOUND or number >= TRIED_IN_VAIN and not found or is_over():
                break
            if call in seen:
                if call in places and not free:
                    found[places[call]] = ((), *found[places[call]][1:])
                continue
            seen.add(call)
            first = self.run(call)
            if self.failed:
                limited.update(blamed(free))
            if number < len(self.calls):
                usual |= self.mixed
            # The call must have the same outcome when other random numbers are drawn.
            if first is not None and self.mixed <= usual and self.run(call, seed=1) == first:
                places[call] = len(found)
                found.append((free, call, *first))
        self.expected = {call: expected for _, call, expected, *_ in found}
        arbitrary = [self.is_arbitrary(free, call, expected, limited) for free, call, expected, *_ in found]
        sure = [place for place, is_one in enumerate(arbitrary) if not is_one]

        def notices(mutant, place):
            _, call, expected, _, ignores_objects = found[place]
            return not self.gives(mutant, call, expected, ignores_objects)

        counts = noticing(sure, self.mutants, notices, self.chance, MOST_MUTANT_CALLS, MUTANT_SECONDS)
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
                "ignores_objects": ignores_objects,
                "new_attributes": self.new_attributes(expected),
                "notices": counts.get(place, [0, 0]),
            }
            for place, (free, call, expected, lines, ignores_objects) in enumerate(found)
        ]

    def new_attributes(self, expected):
        """Returns the names of the attributes that a call of `__init__` sets, because other methods need them; `None`
        for other functions."""
        is_new = self.called.__name__ == "__init__" and type(expected) is list and expected and type(expected[0]) is dict
        return sorted(expected[0]) if is_new else None

    def is_arbitrary(self, free, call, expected, limited):
        """Whether the outcome of a call with freely changed arguments may be meaningless, so that a right function may
        have another one. An exception is meaningless if several arguments were changed freely: which exception is
        raised may then depend on the order in which the function checks them. Any other outcome is meaningless if a
        freely changed argument is not a text, if such a change is limited in its place (see `is_limited`), or if no
        recorded call has these types."""
        if type(expected) is RaisedError:
            return len({one.place for one in free}) > 1
        sources = by_place(*call)
        is_text = lambda place: place != UNUSUAL_TYPES and sources[place].lstrip("b")[:1] in ("'", '"')
        return any(is_limited(one, limited) or not is_text(one.place) for one in free)

    def selected(self):
        """Returns the calls that are selected for tests, and further calls that are good examples."""
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
        """Adds to each call an example: a line that shows the call and its outcome to agents. Also adds the words that
        this outcome has in common with the function's source."""
        source = words_in(inspect.getsource(self.called))
        shown = [self.example(call["call"]) for call in calls]
        outcomes = {}
        for made, found in shown:
            outcomes.setdefault(made, set()).add(found)
        for call, (made, found) in zip(calls, shown):
            line = f"{made} {found}"
            # Examples show objects only in part, so two different calls may look the same as examples but have
            # different outcomes. Such calls do not become examples.
            is_clear = made and len(outcomes[made]) == 1 and is_lasting(line, [made])
            if is_clear and len(line) <= LONGEST_EXAMPLE and not re.search(r"[\n`]|<lambda>", line):
                call["example"], call["words"] = line, sorted(words_in(found) & source)

    def example(self, call):
        try:
            return example(self.called, *self.arguments(call))
        # Methods of the package's objects, such as `__repr__`, may raise any exception.
        except Exception:
            return "", ""

    def add_mutants(self, calls):
        """Adds to each call the numbers of the mutants that it notices."""
        is_over = time_limit(MUTANT_SECONDS)
        for number, mutant in enumerate(self.mutants):
            for call in calls:
                if is_over():
                    return
                expected = self.expected[call["call"]]
                if not self.gives(mutant, call["call"], expected, call["ignores_objects"]):
                    call["mutants"].append(number)

    def gives(self, called, call, expected, ignores_objects):
        """Whether a call of the function `called`, such as a mutant, has the expected outcome."""
        try:
            positional, named = self.arguments(call)
            with one_call():
                got = returned(called, positional, named, ignores_objects, self.new_attributes(expected))
        except BaseException as error:
            return type(expected) is RaisedError and isinstance(error, expected.kind)
        return type(expected) is not RaisedError and equal(got, expected)

    def changed_calls(self):
        """Yields calls that are made from recorded calls: some arguments are taken from other calls, and some are
        changed. Each call comes with its free changes. They include one in the place `UNUSUAL_TYPES` if no recorded
        call has arguments of these types."""
        chance = self.chance
        while self.calls:
            positional, named = chance.choice(self.calls)
            if self.rest is not None and chance.random() < 0.3:
                positional = self.with_other_rest(positional)
            arguments = by_place(positional, named)
            if not arguments and self.rest is None and not any(map(any, self.calls)):
                return
            free, others = [], set()
            for place in arguments:
                if chance.random() < 0.3:
                    arguments[place] = chance.choice(list(self.pools[self.pool_key(place)]))
                if place in self.other_values and chance.random() < 0.2:
                    arguments[place] = chance.choice(self.other_values[place])
                    others.add(place)
            for place in chance.sample(list(arguments), min(len(arguments), chance.choice((0, 1, 1, 2)))):
                value, is_free = value_of(arguments[place]), chance.random() < 0.3
                times = chance.choice((1, 1, 2))
                # Changing a value may raise any exception: methods of the package's objects may fail, and some changed
                # texts cannot be encoded as bytes.
                try:
                    value, is_foreign = self.changes.changed(value, self.values[self.pool_key(place)], is_free, times)
                    source = source_of(value)
                except Exception:
                    continue
                if is_short(source):
                    arguments[place] = source
                    free += [FreeChange(place, is_foreign)] if is_free else []
            # Arguments taken from calls of other functions may have types that no recorded call of this function has.
            # That is intended, so leave these arguments out of the check for unusual types.
            usual = {place: source for place, source in arguments.items() if place not in others}
            if not self.are_usual(self.types(usual)):
                free.append(FreeChange(UNUSUAL_TYPES, False))
            call = tuple(arguments[place] for place in range(len(positional)))
            yield (call, tuple((name, arguments[name]) for name, _ in named)), free

    def with_other_rest(self, positional):
        """Adds an argument to `*args`, or removes one. Keeps at least as many positional arguments as the shortest
        recorded call has."""
        least = min(len(call) for call, _ in self.calls)
        most = max(len(call) for call, _ in self.calls)
        place = self.chance.randint(self.rest, max(self.rest, len(positional) - 1))
        if len(positional) > max(least, self.rest) and self.chance.random() < 0.5:
            return positional[:place] + positional[place + 1 :]
        if self.rest in self.pools and len(positional) <= most:
            return positional[:place] + (self.chance.choice(list(self.pools[self.rest])),) + positional[place:]
        return positional

    def run(self, call, seed=0):
        """Makes a call. Returns its outcome, the lines that it runs, and whether it changes objects; `None` if a right
        function may have another outcome."""
        lines, code = set(), self.called.__code__
        self.failed, self.mixed = False, set()
        try:
            positional, named = self.arguments(call)
        except Exception:
            return None
        given = [*positional, *named.values()]
        self.mixed = mixed_signs(self.called, given)
        try:
            with one_call(seed):
                sys.settrace(traced_lines(code, lines))
                result, before, after = observed(self.called, positional, named)
        except Exception as error:
            self.failed = True
            if is_vague(type(error)) or not is_own_error(error, [code]):
                return None
            return RaisedError(type(error)), frozenset(lines), False
        except BaseException:
            return None
        finally:
            sys.settrace(None)
        self.mixed |= types_with_both_signs([*given, result])
        if result is None and equal(before, after):
            return None
        # If the function returns a result and also changes objects, the changes are not compared, because a right
        # solution may store other values in the objects.
        changes_objects = any(not is_container(value) and not equal(*states) for value, *states in zip(given, before, after))
        try:
            # Leave out a result without anything to compare, such as an object without public attributes.
            if result is not None and plain(result) is None and not (type(result) is float and math.isnan(result)):
                return None
            result = outcome(given, result, before, after, changes_objects)
            # Python raises an exception here for integers with thousands of digits.
            shown = repr(result)
        except Exception:
            return None
        if not is_lasting(shown, by_place(*call).values()):
            return None
        return result, frozenset(lines), changes_objects
