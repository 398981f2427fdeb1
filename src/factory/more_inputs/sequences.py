"""Sequences of calls: what tests call in turn, with changed arguments, other calls and other objects in between."""

import itertools
import os
import re
import sys

from .calls import RaisedError, is_raise, is_vague
from .changes import changed
from .helpers import Made, equal, function
from .limits import one_call, time_limit
from .selection import MOST_SEQUENCES, MOST_SEQUENCES_WITHOUT, chosen, noticing
from .sources import arguments_of, is_short, source_of, type_of, value_of, written_container

# Maximum number of calls in a sequence, of sequences that are recorded of one test, and of a function: recorded, tried, of
# those among which are chosen.
MOST_STEPS, MOST_OF_TEST, MOST_RECORDED, MOST_TRIED, MOST_FOUND = 20, 10, 40, 600, 200
# Maximum number of replays with mutants, and time limits in seconds of all replays of a function, and with its mutants.
MOST_COMPARED, REPLAY_SECONDS, MUTANT_SECONDS = 4000, 4.0, 4.0
# Longest source of a sequence, and longest outcome of a call in it, in characters.
LONGEST_SEQUENCE, LONGEST_OUTCOME = 6000, 1500
# Flag of the code of functions in functions.
NESTED = 0x10
# Methods that are no steps: Python calls them at times of its own, or again.
NO_STEPS = {"__new__", "__hash__", "__del__", "__getattr__", "__getattribute__", "__init_subclass__", "__set_name__"}
MADE = re.compile(r"\bmade\[(\d+)\]")


class Recording:
    """The calls that one test makes itself, as steps: each the module and name of what is called, its arguments' sources, and
    the name of the type that it makes. An argument that an earlier step has made is written `made[0]`."""

    def __init__(self, folder, test_files, temporary):
        self.folder, self.test_files, self.temporary = folder, test_files, temporary
        self.done, self.names = [], {}
        self.begin()

    def begin(self):
        # Places of the steps that made objects, by the objects' addresses. Objects are kept so that no other one gets its
        # address, and frames for the same reason.
        self.steps, self.places, self.kept = [], {}, []
        # The steps that enter each wanted function.
        self.entered = {}

    def found(self):
        """Pairs of each entered function and the sequences that enter it. Single calls of the function itself are none."""
        self.end()
        found = {}
        for entered, steps in self.done:
            for part in connected(steps):
                sequence = only(steps, part)
                for wanted, numbers in entered.items():
                    if numbers.intersection(part) and (len(part) > 1 or sequence[0][1] != wanted[1]):
                        found.setdefault(wanted, []).append(sequence)
        return list(found.items())

    def end(self):
        if self.steps and self.entered:
            self.done.append((self.entered, tuple(map(tuple, self.steps))))
        self.begin()

    def trace(self, frame, known):
        """Notes a call of the wanted function `known`, or of another one if it is `None`. Returns a function that traces its
        return, if it is a step."""
        made = self.begun_step(frame)
        if known is not None and self.steps:
            self.entered.setdefault(known, set()).add(len(self.steps) - 1)
        return made

    def begun_step(self, frame):
        """Notes a call, if a test makes it itself. Returns a function that traces its return."""
        back = frame.f_back
        if back is None or back.f_code.co_filename not in self.test_files or len(self.done) >= MOST_OF_TEST:
            return None
        code = frame.f_code
        if code.co_flags & NESTED or code.co_name in NO_STEPS or code.co_name.startswith("<"):
            return None
        file = os.path.abspath(code.co_filename)
        if not file.startswith(self.folder) or file in self.test_files:
            return None
        # A generator that goes on is no new call.
        if any(frame is one for one in self.kept):
            return None
        self.kept.append(frame)
        if len(self.steps) >= MOST_STEPS:
            self.end()
            self.kept.append(frame)
        # Objects of the package may fail in any way while they are written.
        try:
            return self.step(frame, code)
        except Exception:
            return None

    def step(self, frame, code):
        first = frame.f_locals[code.co_varnames[0]] if code.co_argcount else None
        is_new = code.co_name == "__init__"
        if is_new:
            kind = type(first)
            if id(first) in self.places or function(kind.__module__, kind.__qualname__) is not kind:
                return None
            named = kind.__module__, kind.__qualname__
            if getattr(sys.modules.get(kind.__module__), "__file__", None) in self.test_files:
                return None
        else:
            named = self.name(frame, code, first)
        if named is None:
            return None
        # The object itself cannot be written before it is made.
        written = lambda value: "self" if is_new and value is first else self.source(value)
        positional, keywords = arguments_of(frame, written, self.temporary)
        place = len(self.steps)
        self.steps.append([*named, positional[is_new:], keywords, type_name(first) if is_new else ""])
        if is_new:
            self.places[id(first)] = place
            self.kept.append(first)
            return None
        frame.f_trace_lines = False
        steps, places, kept = self.steps, self.places, self.kept

        def trace(frame, event, value):
            # A step of a sequence that has ended meanwhile makes nothing.
            if event == "return" and type(value) not in (type(None), bool, int, float, str, bytes) and steps is self.steps:
                if id(value) not in places:
                    steps[place][4] = type_name(value)
                    places[id(value)] = place
                    kept.append(value)
            return trace

        return trace

    def source(self, value):
        place = self.places.get(id(value))
        if place is not None:
            return f"made[{place}]"
        kind = type(value)
        members = itertools.chain(value, value.values()) if kind is dict else value if kind in (list, tuple) else ()
        if any(id(part) in self.places for part in members):
            return written_container(value, kind, self.source)
        return source_of(value)

    def name(self, frame, code, first):
        """The module and name by which a function of the package is found; `None` if it is not found."""
        if code not in self.names:
            module = frame.f_globals.get("__name__", "")
            kinds = (first if isinstance(first, type) else type(first)).__mro__
            able = [(module, getattr(code, "co_qualname", code.co_name))]
            able += [(kind.__module__, f"{kind.__qualname__}.{code.co_name}") for kind in kinds]
            self.names[code] = next((one for one in able if self.is_code(code, *one)), None)
        return self.names[code]

    def is_code(self, code, module, name):
        try:
            return function(module, name).__code__ is code
        except Exception:
            return False


def type_name(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


class Sequences:
    """Makes sequences of calls that enter one function, from recorded ones.

    `inputs` makes single calls of the function, `recorded` are the sequences that enter it, and `all_recorded` those that
    enter any function, by function."""

    def __init__(self, inputs, recorded, all_recorded):
        self.inputs, self.called, self.chance = inputs, inputs.called, inputs.chance
        self.recorded = recorded[:MOST_RECORDED]
        others = itertools.chain.from_iterable(all_recorded.values())
        # Steps of all sequences with the types of the objects that they refer to, and the sources of each argument.
        self.further, self.pools = {}, {}
        for steps in dict.fromkeys([*recorded, *others]):
            for module, name, positional, named, made in steps:
                types = tuple(steps[int(place)][4] for place in MADE.findall(repr((positional, named))))
                if all(types):
                    self.further.setdefault((module, name, positional, named, made), types)
                for place, source in [*enumerate(positional), *named]:
                    if "made[" not in source:
                        self.pools.setdefault((module, name, place), {})[source] = None

    def give(self, chosen):
        """Whether chosen sequences have their expected outcomes, one after the other."""
        for one in chosen:
            outcomes = self.replayed(one["steps"])
            if outcomes is None or list(map(repr, outcomes)) != one["expected"]:
                return False
        return True

    def selected(self):
        """The sequences that are selected for tests."""
        found, seen, is_over = [], set(), time_limit(REPLAY_SECONDS)
        for number, steps in enumerate(itertools.chain(self.recorded, self.changed_sequences())):
            if number >= MOST_TRIED or len(found) >= MOST_FOUND or is_over():
                break
            if steps in seen or len(steps) > MOST_STEPS or len(repr(steps)) > LONGEST_SEQUENCE:
                continue
            seen.add(steps)
            lines = set()
            first = self.replayed(steps, lines)
            if first and lines and any(is_told(outcome) for outcome in first) and self.replayed(steps) == first:
                found.append((steps, first, frozenset(lines)))
        notices = lambda mutant, place: self.notices(mutant, *found[place][:2])
        usable = [mutant for mutant in self.inputs.mutants if fits(mutant, self.called)]
        counts = noticing(range(len(found)), usable, notices, self.chance, MOST_COMPARED, MUTANT_SECONDS)
        kept = [
            {
                "steps": steps,
                "expected": [repr(outcome) for outcome in outcomes],
                "told": [is_told(outcome) for outcome in outcomes],
                "raises": [type(outcome) is RaisedError for outcome in outcomes],
                "lines": sorted(lines),
                "is_arbitrary": False,
                "notices": counts.get(place, [0, 0]),
            }
            for place, (steps, outcomes, lines) in enumerate(found)
        ]
        return chosen(kept, MOST_SEQUENCES, MOST_SEQUENCES_WITHOUT)

    def replayed(self, steps, lines=None):
        """The outcomes of a sequence's calls; `None` if a right function may do something else. Adds the executed lines of
        the function to `lines`."""
        made, outcomes, code = Made(), [], self.called.__code__

        def line(frame, event, argument):
            if event == "line":
                lines.add(frame.f_lineno - code.co_firstlineno)
            return line

        try:
            with one_call():
                if lines is not None:
                    sys.settrace(lambda frame, event, argument: line if frame.f_code is code else None)
                for step in steps:
                    try:
                        outcome = called_in(made, step)
                        # Fails for very large numbers.
                        shown = repr(outcome)
                    except Exception as error:
                        if is_vague(type(error)) or not self.is_own_error(error, step):
                            return None
                        outcome, shown = RaisedError(type(error)), ""
                    if len(shown) > LONGEST_OUTCOME or " at 0x" in shown:
                        return None
                    outcomes.append(outcome)
        except BaseException:
            return None
        finally:
            sys.settrace(None)
        return outcomes

    def is_own_error(self, error, step):
        """Whether an exception comes from a `raise` statement of the function that a step calls, or of the wanted one."""
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        direct = function(*step[:2])
        direct = getattr(direct, "__init__", None) if isinstance(direct, type) else direct
        code = trace.tb_frame.f_code
        return code in (self.called.__code__, getattr(direct, "__code__", None)) and is_raise(code, trace.tb_lineno)

    def notices(self, mutant, steps, expected):
        """Whether a sequence has another outcome if the function is a mutant."""
        own, made = self.called.__code__, Made()
        self.called.__code__ = mutant.__code__
        try:
            with one_call():
                for step, right in zip(steps, expected):
                    try:
                        got = called_in(made, step)
                    except Exception as error:
                        if type(right) is not RaisedError or not isinstance(error, right.kind):
                            return True
                    else:
                        if type(right) is RaisedError or is_told(right) and not equal(got, right):
                            return True
        except BaseException:
            return True
        finally:
            self.called.__code__ = own
        return False

    def changed_sequences(self):
        """Recorded sequences with changed arguments and objects, and with further, repeated and dropped calls."""
        changes = [self.with_changed_argument] * 5 + [self.with_other_object] * 2 + [self.with_further_call] * 3
        changes += [self.with_empty_argument, self.with_repeated_call, self.with_dropped_call]
        while True:
            steps = self.chance.choice(self.recorded)
            for _ in range(self.chance.choice((1, 1, 2, 3))):
                steps = self.chance.choice(changes)(steps)
            yield steps

    def with_argument(self, steps, change):
        """The steps with one argument that `change` makes of the place of its step, the key of its pool, and its source."""
        places = [
            (number, place)
            for number, step in enumerate(steps)
            for place in [*range(len(step[2])), *(name for name, _ in step[3])]
        ]
        if not places:
            return steps
        number, place = self.chance.choice(places)
        module, name, positional, named, made = steps[number]
        source = positional[place] if isinstance(place, int) else dict(named)[place]
        new = change(number, (module, name, place), source)
        if not is_short(new):
            return steps
        if isinstance(place, int):
            positional = (*positional[:place], new, *positional[place + 1 :])
        else:
            named = tuple((key, new if key == place else one) for key, one in named)
        return (*steps[:number], (module, name, positional, named, made), *steps[number + 1 :])

    def with_changed_argument(self, steps):
        def change(number, key, source):
            if "made[" in source:
                return source
            pool = list(self.pools[key]) if key in self.pools else [source]
            other = self.chance.choice(pool)
            source = other if self.chance.random() < 0.4 and type_of(other) == type_of(source) else source
            try:
                values = [value_of(one) for one in pool]
                return source_of(changed(value_of(source), values, self.inputs.bounds, self.chance, False))
            # Objects of the package may fail in any way.
            except Exception:
                return source

        return self.with_argument(steps, change)

    def with_empty_argument(self, steps):
        def change(number, key, source):
            try:
                value = None if "made[" in source else value_of(source)
            except Exception:
                return source
            return source_of(type(value)()) if type(value) in (str, bytes, list, tuple, dict, set, frozenset) else source

        return self.with_argument(steps, change)

    def with_other_object(self, steps):
        """The steps with another made object of the same type in the place of one."""

        def change(number, key, source):
            found = list(MADE.finditer(source))
            if not found:
                return source
            one = self.chance.choice(found)
            kind = steps[int(one[1])][4]
            others = [place for place in range(number) if steps[place][4] == kind]
            other = self.chance.choice(others or [int(one[1])])
            return f"{source[: one.start()]}made[{other}]{source[one.end() :]}"

        return self.with_argument(steps, change)

    def with_further_call(self, steps):
        """The steps with a call from any sequence, of objects that these steps have made."""
        at = self.chance.randint(1, len(steps))
        types = {step[4] for step in steps[:at]}
        able = [step for step, kinds in self.further.items() if kinds and types.issuperset(kinds)]
        if not able:
            return steps
        module, name, positional, named, made = step = self.chance.choice(able)
        kinds = iter(self.further[step])
        by_type = {kind: [place for place in range(at) if steps[place][4] == kind] for kind in types}
        rebound = lambda source: MADE.sub(lambda _: f"made[{self.chance.choice(by_type[next(kinds)])}]", source)
        step = module, name, tuple(map(rebound, positional)), tuple((key, rebound(one)) for key, one in named), made
        return self.with_inserted(steps, at, step)

    def with_repeated_call(self, steps):
        number = self.chance.randrange(len(steps))
        return self.with_inserted(steps, self.chance.randint(number + 1, len(steps)), steps[number])

    def with_inserted(self, steps, at, step):
        places = [place + (place >= at) for place in range(len(steps))]
        return (*steps[:at], step, *(renumbered(one, places) for one in steps[at:]))

    def with_dropped_call(self, steps):
        """The steps without one of them, and without those that need it."""
        dropped = {self.chance.randrange(len(steps))}
        for number, step in enumerate(steps):
            if dropped.intersection(needed(step)):
                dropped.add(number)
        return only(steps, set(range(len(steps))) - dropped) or steps


def needed(step):
    """The places of the steps that make arguments of a step."""
    return map(int, MADE.findall(repr(step[2:4])))


def connected(steps):
    """The sets of steps that depend on each other by what they make."""
    parts = []
    for number, step in enumerate(steps):
        part = {number, *needed(step)}
        joined = [one for one in parts if one & part]
        parts = [one for one in parts if not one & part] + [part.union(*joined)]
    return parts


def only(steps, numbers):
    """These of the steps, with new numbers."""
    places, left = {}, []
    for number in sorted(numbers):
        places[number] = len(left)
        left.append(renumbered(steps[number], places))
    return tuple(left)


def renumbered(step, places):
    """A step with other places of made objects."""
    module, name, positional, named, made = step
    new = lambda source: MADE.sub(lambda found: f"made[{places[int(found[1])]}]", source)
    return module, name, tuple(map(new, positional)), tuple((key, new(source)) for key, source in named), made


def called_in(made, step):
    module, name, positional, named, _ = step
    value = lambda source: value_of(source, {"made": made})
    return made.call(module, name, [value(source) for source in positional], {key: value(source) for key, source in named})


def is_told(outcome):
    """Whether an outcome says anything that tests can compare."""
    if type(outcome) in (list, tuple):
        return any(map(is_told, outcome)) or not outcome
    return outcome is not None


def fits(mutant, called):
    """Whether a function can have a mutant's code."""
    return mutant.__code__.co_freevars == called.__code__.co_freevars
