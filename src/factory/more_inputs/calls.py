"""Calls of one function with recombined and changed arguments of recorded calls."""

import inspect
import itertools
import linecache
import math
import random
import re
import sys

from .changes import bounds_in, changed
from .examples import example, words_in
from .helpers import equal, function, is_container, observed, outcome, plain, returned
from .limits import one_call, time_limit
from .mutants import mutants_of
from .selection import MOST_KEPT, apart, chosen, noticing
from .sources import TAKES_POSITIONAL, NoSource, by_place, is_short, source_of, type_of, value_of

# Maximum number of inputs that are tried, and of calls among which are chosen.
MOST_TRIED, MOST_FOUND = 5000, 1000
# Maximum number of values of an option whose calls hardly vary it.
LEAST_VARIED = 2
# Time limits in seconds of all calls of a function, and of all calls of its mutants, and maximum number of the latter. The
# numbers are reached first, unless calls take long.
CALLS_SECONDS, MUTANT_SECONDS, MOST_MUTANT_CALLS = 3.0, 3.0, 20000
# Number of recorded calls that are compared before and after other calls.
MOST_COMPARED = 3
# Longest outcome, and longest line that shows an example, in characters; and number of calls among which examples are chosen.
LONGEST_OUTCOME, LONGEST_EXAMPLE, MOST_ABLE = 1500, 700, 200
# Exceptions that a function without a body may raise, too.
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
    """Whether tests cannot expect this class of exceptions."""
    return kind.__name__ in VAGUE_ERRORS or "<" in kind.__qualname__


def is_raise(code, number):
    """Whether a line of a function's file begins a `raise` statement."""
    return linecache.getline(code.co_filename, number).strip().startswith("raise ")


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
        self.mutants = mutants_of(self.called, self.chance)
        # Index of the first of any number of positional arguments; all of them share the sources of one pool.
        self.rest = self.called.__code__.co_argcount if self.called.__code__.co_flags & TAKES_POSITIONAL else None
        for positional, named in calls:
            for place, source in by_place(positional, named).items():
                self.pools.setdefault(self.pool(place), {})[source] = None
        # Names of the parameters with a default, and values of such parameters in calls of other functions.
        self.options, self.other_values = {}, {}
        self.defaults = {}
        self.add_defaults()
        self.values = {place: [value_of(source) for source in pool] for place, pool in self.pools.items()}
        self.known_types = {self.types(by_place(*call)) for call in calls}

    def pool(self, place):
        return self.rest if self.rest is not None and isinstance(place, int) and place >= self.rest else place

    def add_defaults(self):
        """Adds the values that parameters have if nothing is passed."""
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
        """The types of a call's arguments, without those of default values. Different numbers count as one type, and so do
        the places of any number of arguments."""
        return frozenset(
            (self.pool(place), type_of(source)) for place, source in arguments.items() if source != self.defaults.get(place)
        )

    def are_usual(self, types):
        """Whether a recorded call has arguments of these types, perhaps with further options."""
        left_out = lambda more: all(place in self.options or place == self.rest for place, _ in more)
        return any(types <= known and left_out(known - types) for known in self.known_types)

    def arguments(self, call):
        """The arguments of a call: positional ones, and named ones by their name."""
        positional, named = call
        return [value_of(source) for source in positional], {name: value_of(source) for name, source in named}

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
        recorded, is_over = ((call, ()) for call in self.calls), time_limit(CALLS_SECONDS)
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
        sure = [place for place, is_one in enumerate(arbitrary) if not is_one]

        def notices(mutant, place):
            _, call, expected, _, changes_objects = found[place]
            return not self.gives(mutant, call, expected, changes_objects)

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
                "changes_objects": changes_objects,
                "notices": counts.get(place, [0, 0]),
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
            if is_clear and len(line) <= LONGEST_EXAMPLE and not re.search(r" at 0x|[\n`]|<lambda>", line):
                call["example"], call["words"] = line, sorted(words_in(found) & source)

    def example(self, call):
        try:
            return example(self.called, *self.arguments(call))
        # An object of the package may fail in any way.
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
                if not self.gives(mutant, call["call"], expected, call["changes_objects"]):
                    call["mutants"].append(number)

    def gives(self, called, call, expected, changes_objects):
        """Whether a call of another function has the expected outcome."""
        try:
            positional, named = self.arguments(call)
            with one_call():
                got = returned(called, positional, named, changes_objects)
        except BaseException as error:
            return type(expected) is RaisedError and isinstance(error, expected.kind)
        return type(expected) is not RaisedError and equal(got, expected)

    def changed_calls(self):
        """Recorded calls with some arguments of other calls, and some changed arguments; and which of them were changed
        freely, with `UNUSUAL_TYPES` if no recorded call has arguments of these types."""
        chance = self.chance
        while self.calls:
            positional, named = chance.choice(self.calls)
            if self.rest is not None and chance.random() < 0.3:
                positional = self.with_other_rest(positional)
            arguments = by_place(positional, named)
            if not arguments and self.rest is None:
                return
            free, others = [], set()
            for place in arguments:
                if chance.random() < 0.3:
                    arguments[place] = chance.choice(list(self.pools[self.pool(place)]))
                if place in self.other_values and chance.random() < 0.2:
                    arguments[place] = chance.choice(self.other_values[place])
                    others.add(place)
            for place in chance.sample(list(arguments), min(len(arguments), chance.choice((0, 1, 1, 2)))):
                value, is_free = value_of(arguments[place]), chance.random() < 0.3
                # Methods of the package's objects may fail, and not each text can be written as bytes.
                try:
                    for _ in range(chance.choice((1, 1, 2))):
                        value = changed(value, self.values[self.pool(place)], self.bounds, chance, is_free)
                    source = source_of(value)
                except Exception:
                    continue
                if is_short(source):
                    arguments[place] = source
                    free += [place] if is_free else []
            # The types of values that come from other functions' calls are usual, too.
            usual = {place: source for place, source in arguments.items() if place not in others}
            if not self.are_usual(self.types(usual)):
                free.append(UNUSUAL_TYPES)
            call = tuple(arguments[place] for place in range(len(positional)))
            yield (call, tuple((name, arguments[name]) for name, _ in named)), free

    def with_other_rest(self, positional):
        """Positional arguments with one more or one less of those of which there may be any number; fewer than any recorded
        call has are not made."""
        least = min(len(call) for call, _ in self.calls)
        most = max(len(call) for call, _ in self.calls)
        place = self.chance.randint(self.rest, max(self.rest, len(positional) - 1))
        if len(positional) > max(least, self.rest) and self.chance.random() < 0.5:
            return positional[:place] + positional[place + 1 :]
        if self.rest in self.pools and len(positional) <= most:
            return positional[:place] + (self.chance.choice(list(self.pools[self.rest])),) + positional[place:]
        return positional

    def run(self, call):
        """The outcome of a call and the lines that it runs; `None` if a right function may do something else."""
        lines, code = set(), self.called.__code__
        self.raised = raised = []
        self.failed = False
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

        try:
            with one_call():
                sys.settrace(lambda frame, event, argument: line if frame.f_code is code else None)
                result, before, after = observed(self.called, positional, named)
        except Exception as error:
            kind, self.failed = type(error), True
            if is_vague(kind) or not self.is_own_error(raised, code):
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
        return trace.tb_next is None and is_raise(code, number)
