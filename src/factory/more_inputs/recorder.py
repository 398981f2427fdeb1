"""Records which calls tests make, and makes further calls like them."""

import contextlib
import itertools
import json
import os
import sys
import time

import pytest

from .calls import Inputs, share_options
from .helpers import function
from .limits import Failed, in_fork
from .sequences import Recording, Sequences, Steps
from .sources import ASYNCHRONOUS, SURROUNDINGS, arguments_of, digest, kind_of, source_of

# Maximum number of recorded calls of a function. A call with a new combination of argument types is recorded even
# beyond this number, until the function has `MOST_COMBINATIONS` combinations.
MOST_RECORDED, MOST_COMBINATIONS = 60, 20
# Time limit in seconds of recording the calls of one test.
RECORDING_SECONDS = 3

# Why a function has no added tests.
UNWRITTEN = "functions whose arguments can be neither written as literals nor pickled"
ENDED = "functions whose calls end the process or take too long"
UNSTEADY = "functions whose outcomes vary, or whose calls change outcomes of other functions"
LATE = "functions for which no time was left"
FAILED = "functions for which making inputs failed"
NOTHING = "functions whose outcomes cannot be compared"


class Recorder:
    """Records the calls of the wanted functions, as sources, while tests run, and the sequences of calls that tests make.

    Calls are made for the functions in the order of `wanted`, a list of files and qualified names. `until` is the time, as
    `time.monotonic` gives it, after which no more calls are made for further functions."""

    def __init__(self, wanted, folder, test_files, until):
        SURROUNDINGS.surround(folder, test_files)
        self.by_file, self.folder, self.until = {}, folder + os.sep, until
        self.order = {(file, name): place for place, (file, name) in enumerate(wanted)}
        for file, name in self.order:
            self.by_file.setdefault(os.path.join(folder, file), []).append((file, name))
        # `codes` has, by the address of each code object, the object and the wanted function (a function that needs
        # tests) that it belongs to, or `None`. The object is kept so that no other object gets its address. `modules`
        # has the module's name for each wanted function.
        self.codes, self.modules = {}, {}
        self.calls, self.counts, self.types = {}, {}, {}
        # `sequences` has, for each wanted function, the sequences of calls by tests during which the function is
        # called. `names` has the names of called functions by the addresses of their code objects.
        self.sequences, self.names = {}, {}
        self.recording, self.recording_until = None, 0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.recording = Recording(self.folder, self.names)
        self.recording_until = time.monotonic() + RECORDING_SECONDS
        sys.settrace(self.trace)
        yield
        sys.settrace(None)
        for wanted, sequences in self.recording.found():
            self.sequences.setdefault(wanted, {}).update(dict.fromkeys(sequences))
        self.recording = None

    def trace(self, frame, event, argument):
        if time.monotonic() > self.recording_until:
            sys.settrace(None)
            return None
        code = frame.f_code
        known = self.codes.get(id(code))
        wanted = known[1] if known else self.find(frame, code)
        if wanted is not None:
            self.take(wanted, frame, code)
        return self.recording.trace(frame, wanted)

    def take(self, wanted, frame, code):
        """Records some of the calls of a function: the first ones, later ones ever more rarely, and those with other types of
        arguments."""
        count = self.counts[wanted] = self.counts.get(wanted, 0) + 1
        is_new = self.has_new_types(wanted, frame, code)
        if is_new or count <= MOST_RECORDED // 2 or count & (count - 1) == 0 or count % 97 == 0:
            calls = self.calls.setdefault(wanted, {})
            if len(calls) < MOST_RECORDED or is_new:
                # Writing an object as source code may run code of the package, which may raise any exception.
                with contextlib.suppress(Exception):
                    calls.setdefault(arguments_of(frame, source_of))

    def has_new_types(self, wanted, frame, code):
        """Whether no recorded call of the function has arguments of these types."""
        known = self.types.setdefault(wanted, set())
        if len(known) >= MOST_COMBINATIONS:
            return False
        # A generator is also traced when it resumes, and may have deleted an argument by then.
        names, values = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], frame.f_locals
        found = tuple(kind_of(values.get(name)) for name in names)
        if found in known:
            return False
        known.add(found)
        return True

    def find(self, frame, code):
        """The wanted function of a code object."""
        module = frame.f_globals.get("__name__", "")
        for wanted in self.by_file.get(os.path.abspath(code.co_filename), ()):
            if wanted[1].rpartition(".")[2] == code.co_name:
                try:
                    found = function(module, wanted[1])
                except Exception:
                    # The function cannot be found while its module is still being imported. Later calls try again.
                    return None
                # Skip coroutines and asynchronous generators, because their results cannot be compared.
                if getattr(found, "__code__", None) is code and not code.co_flags & ASYNCHRONOUS:
                    self.codes[id(code)], self.modules[wanted] = (code, wanted), module
                    return wanted
        self.codes[id(code)] = code, None
        return None

    def made(self):
        """Makes calls for each wanted function, and yields: the function, its module, its new calls, its new sequences
        of calls, and digests of its recorded calls. If no calls can be made for a function, the reason takes the place
        of the calls. Yields `None` before anything that may take long, so that others see that this process lives.

        Calls may change what all functions share, such as a cache. So each function's calls are made in a process of its
        own, and are dropped if they come out differently in another process, or change the outcomes of recorded calls."""
        functions = {}
        for wanted in sorted({*self.calls, *self.sequences}, key=self.order.get):
            calls, sequences = list(self.calls.get(wanted, ())), list(self.sequences.get(wanted, ()))
            if not calls and not sequences:
                yield self.without(wanted, UNWRITTEN)
                continue
            try:
                functions[wanted] = Inputs(wanted, self.modules[wanted], calls), sequences
            except Exception:
                yield self.without(wanted, FAILED)
        share_options([inputs for inputs, _ in functions.values()])
        outcomes = RecordedOutcomes({wanted: inputs for wanted, (inputs, _) in functions.items()})
        yield None
        if not outcomes.measure():
            for wanted, inputs in list(outcomes.inputs.items()):
                yield None
                if tried(inputs.recorded) is None:
                    outcomes.leave_out(wanted)
                    yield self.without(wanted, ENDED)
            yield None
            if not outcomes.measure():
                for wanted in outcomes.inputs:
                    yield self.without(wanted, ENDED)
                return
        steps = Steps(itertools.chain.from_iterable(self.sequences.values()))
        for wanted, inputs in outcomes.inputs.items():
            if time.monotonic() > self.until:
                yield self.without(wanted, LATE)
                continue
            try:
                yield from self.made_for(wanted, inputs, Sequences(inputs, functions[wanted][1], steps), outcomes)
            except Failed as error:
                print(error, file=sys.stderr)
                yield self.without(wanted, FAILED)

    def made_for(self, wanted, inputs, sequences, outcomes):
        """Makes calls for one function, and yields the same for it as `made`. Also yields `None` before anything that
        may take long."""
        yield None
        calls = in_fork(inputs.selected)
        yield None
        longer = in_fork(sequences.selected) if sequences.recorded else []
        if not calls and not longer:
            is_ended = calls is None or longer is None
            yield self.without(wanted, ENDED if is_ended else NOTHING if inputs.calls else UNWRITTEN)
            return
        calls, longer = calls or [], longer or []
        # `calls` are the new calls, and `longer` the new sequences of calls. If both together change outcomes of
        # recorded calls, often only one of the two does so. So try both together, then the calls alone, then the
        # sequences alone.
        parts = [(calls, longer), (calls, []), ([], longer)] if calls and longer else [(calls, longer)]
        for kept, many in parts:
            yield None
            after = in_fork(lambda: outcomes.now() if inputs.come_out(kept) and sequences.come_out(many) else None)
            if after is not None and outcomes.differ(after):
                yield None
                outcomes.leave_out_unsteady()
            if after is not None and not outcomes.differ(after):
                yield wanted, self.modules[wanted], kept, many, [digest(*call) for call in inputs.calls]
                return
        yield self.without(wanted, UNSTEADY)

    def without(self, wanted, reason):
        return wanted, self.modules[wanted], reason, [], []


class RecordedOutcomes:
    """Outcomes of some recorded calls of all functions. They show whether the new calls of a function change something
    that other calls depend on, such as a cache."""

    def __init__(self, inputs):
        # `inputs` has the inputs of each function, and `usual` the outcomes as first measured. `steady` has the indices
        # of the outcomes that are compared: outcomes that are found to vary by themselves, such as times, are left out.
        self.inputs, self.usual, self.steady = inputs, [], []

    def now(self):
        return [outcome for inputs in self.inputs.values() for outcome in inputs.recorded()]

    def measure(self):
        """Measures the outcomes before any new calls are made. Returns `False` if the calls end their process."""
        found = tried(self.now)
        self.usual = found or []
        self.steady = list(range(len(self.usual)))
        return found is not None

    def leave_out(self, wanted):
        del self.inputs[wanted]

    def differ(self, outcomes):
        return any(outcomes[place] != self.usual[place] for place in self.steady)

    def leave_out_unsteady(self):
        """Measures the outcomes again without new calls. Outcomes that have changed vary by themselves, so they are no
        longer compared."""
        again = tried(self.now) or []
        self.steady = [place for place in self.steady if self.usual[place : place + 1] == again[place : place + 1]]


class Checker:
    """Checks which calls have their expected outcomes in this process, too. The file at `path` contains for each
    function: its file and name, its module, its calls, and its sequences of calls."""

    def __init__(self, path, folder, test_files):
        SURROUNDINGS.surround(folder, test_files)
        with open(path, encoding="utf-8") as file:
            self.functions = json.load(file)

    def made(self):
        """Yields, for each function, the indices of its calls and of its sequences that come out as expected. Yields `None`
        before anything that may take long."""
        for wanted, module, calls, sequences in self.functions:
            yield None

            def steady():
                inputs = Inputs(wanted, module, [])
                many = Sequences(inputs, [], Steps([]))
                is_right = [inputs.come_out([call]) for call in calls], [many.come_out([one]) for one in sequences]
                return [[place for place, right in enumerate(found) if right] for found in is_right]

            yield tried(steady) or ([], [])


def tried(work):
    """Returns what `work` returns in a copy of this process; `None` if it fails in any way."""
    try:
        return in_fork(work)
    except Failed as error:
        print(error, file=sys.stderr)
        return None
