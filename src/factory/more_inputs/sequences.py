"""Records the sequences of calls that tests make, and makes new sequences from them: with changed arguments, with
additional calls, and with other objects."""

import ast
import functools
import inspect
import itertools
import os
import re
import sys

from .calls import FreeChange, RaisedError, blamed, is_limited, is_own_error, is_vague, traced_lines
from .helpers import Made, equal, function
from .limits import one_call, time_limit
from .mutants import is_none, tree_of
from .selection import MOST_SEQUENCES, MOST_SEQUENCES_WITHOUT, chosen, noticing
from .signs import mixed_signs, types_with_both_signs
from .sources import (
    ASYNCHRONOUS,
    SURROUNDINGS,
    NoSource,
    arguments_of,
    is_lasting,
    is_short,
    source_of,
    type_of,
    value_of,
    written_container,
)

# Maximum number of calls in a sequence.
MOST_STEPS = 20
# Maximum number of sequences that are recorded of one test.
MOST_OF_TEST = 10
# For each function: maximum number of sequences that are recorded, that are tried, and that are kept for the choice of
# tests. If none of the first `SEQUENCES_IN_VAIN` sequences is kept, no further ones are tried.
MOST_SEQUENCES_RECORDED, MOST_SEQUENCES_TRIED, MOST_SEQUENCES_FOUND, SEQUENCES_IN_VAIN = 40, 600, 200, 60
# For each function: maximum number of replays (repeated executions of sequences) with mutants, and time limits in
# seconds of all replays without mutants and of all replays with mutants.
MOST_REPLAYS, REPLAY_SECONDS, MUTANT_REPLAY_SECONDS = 4000, 3.0, 3.0
# Longest source of a sequence, in characters.
LONGEST_SEQUENCE = 6000
# Methods whose calls are not recorded as steps, because Python calls them implicitly.
NO_STEPS = {"__new__", "__hash__", "__del__", "__getattr__", "__getattribute__", "__init_subclass__", "__set_name__"}
MADE = re.compile(r"\bmade\[(\d+)\]")


class Recording:
    """Records the calls that one test itself makes, each as a step: the module and name of what is called, the source
    texts of its positional and of its named arguments, and the name of the result's type. `made[0]` in an argument is
    the object that the first step has made."""

    def __init__(self, folder, names):
        # `names` is a cache of the results of the method `name`, which the recordings of all tests share.
        self.folder, self.names = folder, names
        self.done = []
        self.begin()

    def begin(self):
        # `places` maps the address of each object to the index of the step that made the object. `kept` holds these
        # objects and the frames of the calls, so that Python does not delete them and give their addresses to new
        # objects.
        self.steps, self.places, self.kept = [], {}, []
        # For each wanted function, the indices of the steps in which the function is entered.
        self.entered = {}

    def found(self):
        """Ends the recording. Returns each wanted function with the sequences in which it is entered. A single call of
        the function is not a sequence."""
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
        """Records a call of the wanted function `known` or, if it is `None`, of any other function. If the call is a
        step, returns a function that traces the call's return."""
        traced = self.begun_step(frame)
        if known is not None and self.steps:
            self.entered.setdefault(known, set()).add(len(self.steps) - 1)
        return traced

    def begun_step(self, frame):
        """Records a call as a step if a test itself makes it. Then returns a function that traces the call's return;
        otherwise `None`."""
        back = frame.f_back
        if back is None or back.f_code.co_filename not in SURROUNDINGS.test_files or len(self.done) >= MOST_OF_TEST:
            return None
        code = frame.f_code
        if code.co_flags & (inspect.CO_NESTED | ASYNCHRONOUS) or code.co_name in NO_STEPS or code.co_name.startswith("<"):
            return None
        file = os.path.abspath(code.co_filename)
        if not file.startswith(self.folder) or file in SURROUNDINGS.test_files:
            return None
        # Python also reports a call each time that a generator is resumed. The generator's frame is then already in
        # `kept`; do not record a new call.
        if any(frame is one for one in self.kept):
            return None
        self.kept.append(frame)
        if len(self.steps) >= MOST_STEPS:
            self.end()
            self.kept.append(frame)
        # Code of the package may raise any exception while its objects are converted to source text.
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
            if getattr(sys.modules.get(kind.__module__), "__file__", None) in SURROUNDINGS.test_files:
                return None
        else:
            named = self.name(frame, code, first)
        if named is None:
            return None
        # In the arguments of its own `__init__`, an object is written as `self`, because no earlier step has made the
        # object.
        written = lambda value: "self" if is_new and value is first else self.source(value)
        positional, keywords = arguments_of(frame, written)
        place = len(self.steps)
        self.steps.append([*named, positional[is_new:], keywords, type_name(first) if is_new else ""])
        if is_new:
            self.places[id(first)] = place
            self.kept.append(first)
            return None
        # When a sequence is executed again, the call's result is a list instead of the generator, so later steps cannot
        # use the generator.
        if code.co_flags & inspect.CO_GENERATOR:
            return None
        frame.f_trace_lines = False
        steps, places, kept = self.steps, self.places, self.kept

        def trace(frame, event, value):
            # Ignore the result of a call that returns after the recording of its sequence has ended.
            if event == "return" and steps is self.steps and type(value) not in (type(None), bool, int, float, str, bytes):
                if id(value) not in places and not hasattr(type(value), "__next__"):
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
        source = source_of(value)
        if "made[" in source:
            raise NoSource
        return source

    def name(self, frame, code, first):
        """Returns the module and name by which a function of the package can be looked up; `None` if that is not
        possible."""
        if id(code) not in self.names:
            module = frame.f_globals.get("__name__", "")
            kinds = (first if isinstance(first, type) else type(first)).__mro__
            able = [(module, getattr(code, "co_qualname", code.co_name))]
            able += [(kind.__module__, f"{kind.__qualname__}.{code.co_name}") for kind in kinds]
            # Store the code object, too: as long as it exists, no other code object can get its address, which is the
            # key.
            self.names[id(code)] = next((one for one in able if is_code(code, *one)), None), code
        return self.names[id(code)][0]


def is_code(code, module, name):
    """Whether looking up this name in this module gives a function with this code."""
    try:
        return function(module, name).__code__ is code
    except Exception:
        return False


def type_name(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


class Steps:
    """The steps of all recorded sequences."""

    def __init__(self, sequences):
        # `further` has all steps that can be added to a sequence, each with the types of the objects that the step
        # needs. `pools` has all source texts that were recorded for an argument of a function. `values` has the values
        # of these source texts.
        self.further, self.pools, self.values = {}, {}, {}
        for steps in dict.fromkeys(sequences):
            for module, name, positional, named, made in steps:
                types = tuple(steps[int(place)][4] for place in MADE.findall(repr((positional, named))))
                if all(types):
                    self.further.setdefault((module, name, positional, named, made), types)
                for place, source in [*enumerate(positional), *named]:
                    if "made[" not in source:
                        self.pools.setdefault((module, name, place), {})[source] = None

    def values_of(self, key):
        if key not in self.values:
            self.values[key] = [value_of(source) for source in self.pools[key]]
        return self.values[key]


class Sequences:
    """Makes sequences of calls that enter one function, from recorded sequences.

    `inputs` makes single calls of the function, `recorded` contains the recorded sequences that enter the function, and
    `steps` the steps of all recorded sequences."""

    def __init__(self, inputs, recorded, steps):
        # `failed` says whether a call raised an exception in the sequence that was executed last. `mixed` has the types
        # of that sequence's objects whose attributes had both positive and negative numbers. It also has the module and
        # name of each step whose arguments had both.
        self.failed, self.mixed = False, set()
        self.inputs, self.called, self.chance = inputs, inputs.called, inputs.chance
        self.recorded, self.steps = self.of_all_kinds(recorded), steps

    def of_all_kinds(self, recorded):
        """Returns at most `MOST_SEQUENCES_RECORDED` of the recorded sequences. They are taken in turn from groups of
        sequences that call the same functions in the same order, so that all groups are represented."""
        kinds = {}
        for steps in self.chance.sample(recorded, len(recorded)):
            kinds.setdefault(tuple(step[:2] for step in steps), []).append(steps)
        turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds.values()))
        return list(itertools.islice((steps for steps in turns if steps), MOST_SEQUENCES_RECORDED))

    def come_out(self, sequences):
        """Whether all these sequences have their expected outcomes if they are executed one after the other in this
        process."""
        for one in sequences:
            outcomes = self.replayed(one["steps"])
            if outcomes is None or list(map(repr, outcomes)) != one["expected"]:
                return False
        return True

    def selected(self):
        """Returns the sequences that are selected for tests.

        Among arguments, only texts are changed freely. A sequence with such a text becomes a test only if the change is
        not limited (see `is_limited`)."""
        found, seen, limited, usual, is_over = [], set(), set(), set(), time_limit(REPLAY_SECONDS)
        recorded = ((steps, ()) for steps in self.recorded)
        for number, (steps, free) in enumerate(itertools.chain(recorded, self.changed_sequences())):
            is_vain = number >= SEQUENCES_IN_VAIN and not found
            if number >= MOST_SEQUENCES_TRIED or len(found) >= MOST_SEQUENCES_FOUND or is_vain or is_over():
                break
            if steps in seen or len(steps) > MOST_STEPS or len(repr(steps)) > LONGEST_SEQUENCE:
                continue
            seen.add(steps)
            lines = set()
            first = self.replayed(steps, lines)
            if self.failed:
                limited.update(blamed(free))
            if number < len(self.recorded):
                usual |= self.mixed
            if not self.mixed <= usual:
                continue
            # Keep the sequence only if its outcomes are the same with other random numbers.
            compared = [is_comparable(outcome, step) for step, outcome in zip(steps, first or ())]
            if any(compared) and lines and self.replayed(steps, seed=1) == first:
                found.append((steps, first, compared, frozenset(lines), free))
        sure = [place for place, one in enumerate(found) if not any(is_limited(change, limited) for change in one[-1])]
        notices = lambda mutant, place: self.notices(mutant, *found[place][:3])
        usable = [mutant for mutant in self.inputs.mutants if fits(mutant, self.called)]
        counts = noticing(sure, usable, notices, self.chance, MOST_REPLAYS, MUTANT_REPLAY_SECONDS)
        kept = [
            {
                "steps": steps,
                "expected": [repr(outcome) for outcome in outcomes],
                "compared": compared,
                "raises": [type(outcome) is RaisedError for outcome in outcomes],
                "lines": sorted(lines),
                "is_arbitrary": False,
                "notices": counts.get(place, [0, 0]),
            }
            for place in sure
            for steps, outcomes, compared, lines, _ in [found[place]]
        ]
        return chosen(kept, MOST_SEQUENCES, MOST_SEQUENCES_WITHOUT)

    def replayed(self, steps, lines=None, seed=0):
        """Executes a sequence. Returns the outcomes of its calls; `None` if a right function may have other outcomes.
        Adds the executed lines of the function to `lines`."""
        made, outcomes, code = Made(), [], self.called.__code__
        self.failed, self.mixed = False, set()
        try:
            with one_call(seed):
                if lines is not None:
                    sys.settrace(traced_lines(code, lines))
                for step in steps:
                    # If an earlier step was changed, it may make an object of another type than in the recording. Do
                    # not use such a sequence.
                    if any(type_name(made[place]) != steps[place][4] for place in needed(step)):
                        return None
                    try:
                        positional, named = arguments_in(made, step)
                        given = [*positional, *named.values()]
                        self.mixed |= mixed_signs(step[:2], given)
                        outcome = made.call(*step[:2], positional, named)
                        self.mixed |= types_with_both_signs([*given, made[-1]])
                        # `repr` fails for very large integers.
                        shown = repr(outcome)
                    except Exception as error:
                        self.failed = True
                        if is_vague(type(error)) or not is_own_error(error, [code, self.code_of(step)]):
                            return None
                        outcome, shown = RaisedError(type(error)), ""
                    if not is_lasting(shown, [*step[2], *(source for _, source in step[3])]):
                        return None
                    outcomes.append(outcome)
        except BaseException:
            return None
        finally:
            sys.settrace(None)
        return outcomes

    def code_of(self, step):
        """Returns the code object of the function that a step calls."""
        called = function(*step[:2])
        return getattr(called.__init__ if isinstance(called, type) else called, "__code__", None)

    def notices(self, mutant, steps, expected, compared):
        """Whether a sequence has another outcome if the function is replaced by this mutant."""
        own, made = self.called.__code__, Made()
        self.called.__code__ = mutant.__code__
        try:
            with one_call():
                for step, right, is_compared in zip(steps, expected, compared):
                    try:
                        got = made.call(*step[:2], *arguments_in(made, step))
                    except Exception as error:
                        if type(right) is not RaisedError or not isinstance(error, right.kind):
                            return True
                    else:
                        if type(right) is RaisedError or is_compared and not equal(got, right):
                            return True
        except BaseException:
            return True
        finally:
            self.called.__code__ = own
        return False

    def changed_sequences(self):
        """Yields changed versions of recorded sequences: with changed arguments or objects, or with added, repeated or
        dropped calls. Each comes with its free changes."""
        changes = [self.with_other_object] * 2 + [self.with_further_call] * 3
        changes += [self.with_empty_argument, self.with_repeated_call, self.with_dropped_call]
        while True:
            steps, free = self.chance.choice(self.recorded), []
            for _ in range(self.chance.choice((1, 1, 2, 3))):
                if self.chance.random() < 0.45:
                    steps = self.with_changed_argument(steps, free)
                else:
                    steps = self.chance.choice(changes)(steps)
            yield steps, free

    def with_argument(self, steps, change):
        """Replaces a random argument of a random step by the source text that `change` returns. `change` gets the
        number of the step, the key of the argument's recorded values, and the argument's source text."""
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

    def with_changed_argument(self, steps, free):
        """Returns the steps with a changed argument. A text is changed freely in half of the cases; these changes are
        added to `free`."""

        def change(number, key, source):
            if "made[" in source:
                return source
            other = self.chance.choice(list(self.steps.pools.get(key, [source])))
            source = other if self.chance.random() < 0.4 and type_of(other) == type_of(source) else source
            try:
                value = value_of(source)
                values = self.steps.values_of(key) if key in self.steps.pools else [value]
                is_free = type(value) is str and self.chance.random() < 0.5
                value, is_foreign = self.inputs.changes.changed(value, values, is_free)
                new = source_of(value)
            # Code of the package may raise any exception while its objects are changed or converted to source text.
            except Exception:
                return source
            free.extend([FreeChange(key, is_foreign)] if is_free and is_short(new) else [])
            return new

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
        """Returns the steps with one object in an argument replaced by another object of the same type that an earlier
        step has made."""

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
        """Returns the steps with a call that is taken from any recorded sequence. The call's objects are replaced by
        objects that earlier steps have made."""
        at = self.chance.randint(1, len(steps))
        types = {step[4] for step in steps[:at]}
        able = [step for step, kinds in self.steps.further.items() if kinds and types.issuperset(kinds)]
        if not able:
            return steps
        module, name, positional, named, made = step = self.chance.choice(able)
        kinds = iter(self.steps.further[step])
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
        """Returns the steps without a random one of them, and without the steps that need its result, directly or
        through others."""
        dropped = {self.chance.randrange(len(steps))}
        for number, step in enumerate(steps):
            if dropped.intersection(needed(step)):
                dropped.add(number)
        return only(steps, set(range(len(steps))) - dropped) or steps


def needed(step):
    """Returns the indices of the steps whose results are in the arguments of this step."""
    return [int(place) for place in MADE.findall(repr(step[2:4]))]


def connected(steps):
    """Returns sets of indices of steps. Two steps are in the same set if one uses the other's result, directly or
    through others."""
    parts = []
    for number, step in enumerate(steps):
        part = {number, *needed(step)}
        joined = [one for one in parts if one & part]
        parts = [one for one in parts if not one & part] + [part.union(*joined)]
    return parts


def only(steps, numbers):
    """Returns the steps with the indices in `numbers`. References such as `made[2]` are changed to the new indices."""
    places, left = {}, []
    for number in sorted(numbers):
        places[number] = len(left)
        left.append(renumbered(steps[number], places))
    return tuple(left)


def renumbered(step, places):
    """Returns a step in which the index of each reference such as `made[2]` is replaced by the one that `places` has
    for it."""
    module, name, positional, named, made = step
    new = lambda source: MADE.sub(lambda found: f"made[{places[int(found[1])]}]", source)
    return module, name, tuple(map(new, positional)), tuple((key, new(source)) for key, source in named), made


def arguments_in(made, step):
    """Returns the values of a step's positional arguments, and those of its named arguments by name."""
    value = lambda source: value_of(source, {"made": made})
    return [value(source) for source in step[2]], {key: value(source) for key, source in step[3]}


def is_comparable(outcome, step):
    """Whether tests can compare the outcome of a step."""
    # A call that returned nothing is compared if the function has a `return` with a value, because a wrong function
    # could have returned this value.
    return says_anything(outcome) or type(outcome) is list and returns_values(*step[:2])


def says_anything(outcome):
    if type(outcome) in (list, tuple):
        return any(map(says_anything, outcome)) or not outcome
    return outcome is not None


@functools.cache
def returns_values(module, name):
    """Whether a function has a `return` statement with a value."""
    nodes = ast.walk(tree_of(function(module, name)))
    return any(isinstance(node, ast.Return) and node.value and not is_none(node.value) for node in nodes)


def fits(mutant, called):
    """Whether a mutant's code can replace the code of this function: both must have the same free variables."""
    return mutant.__code__.co_freevars == called.__code__.co_freevars
