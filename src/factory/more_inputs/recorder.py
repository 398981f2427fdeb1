"""Records which calls tests make, and makes further calls like them."""

import contextlib
import os
import sys
import time

import pytest

from .calls import Inputs, share_options
from .helpers import function
from .limits import in_fork
from .sequences import Recording, Sequences
from .sources import WithoutTests, arguments_of, digest, kind_of, source_of

# Maximum number of recorded calls of a function, and of combinations of argument types of which a call is recorded even if
# it is a late one.
MOST_RECORDED, MOST_COMBINATIONS = 60, 20
# Time limit in seconds of recording the calls of one test.
RECORDING_SECONDS = 3
# Flags of the code of coroutines and asynchronous generators.
ASYNCHRONOUS = 0x80 | 0x200

# Why a function has no added tests.
UNWRITTEN = "functions whose arguments can be neither written as literals nor pickled"
ENDED = "functions whose calls end the process or take too long"
UNSTEADY = "functions whose calls come out differently again, or change what other functions give"
LATE = "functions for which no time was left"


class Recorder:
    """Records the calls of the wanted functions, as sources, while tests run, and the sequences of calls that tests make.

    `until` is the time, as `time.monotonic` gives it, after which no more calls are made for further functions."""

    def __init__(self, wanted, folder, test_files, until):
        WithoutTests.test_files = self.test_files = frozenset(os.path.join(folder, file) for file in test_files)
        self.by_file, self.folder, self.temporary, self.until = {}, folder + os.sep, os.path.dirname(folder), until
        for file, name in wanted:
            self.by_file.setdefault(os.path.join(folder, file), []).append((file, name))
        self.codes, self.modules, self.calls, self.counts, self.types, self.busy = {}, {}, {}, {}, {}, False
        # Sequences of calls by the function that they enter.
        self.sequences, self.recording, self.recording_until = {}, None, 0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.recording = Recording(self.folder, self.test_files, self.temporary)
        self.recording_until = time.monotonic() + RECORDING_SECONDS
        sys.settrace(self.trace)
        yield
        sys.settrace(None)
        for wanted, sequences in self.recording.found():
            self.sequences.setdefault(wanted, {}).update(dict.fromkeys(sequences))
        self.recording = None

    def trace(self, frame, event, argument):
        if self.busy:
            return None
        if time.monotonic() > self.recording_until:
            sys.settrace(None)
            return None
        code = frame.f_code
        known = self.codes.get(code, self)
        if known is self:
            known = self.find(frame, code)
        self.busy = True
        try:
            if known is not None:
                self.take(known, frame, code)
            return self.recording.trace(frame, known)
        finally:
            self.busy = False

    def take(self, known, frame, code):
        """Records some of the calls of a function: the first ones, later ones ever more rarely, and those with other types of
        arguments."""
        count = self.counts[known] = self.counts.get(known, 0) + 1
        is_new = self.has_new_types(known, frame, code)
        if is_new or count <= MOST_RECORDED // 2 or count & (count - 1) == 0 or count % 97 == 0:
            calls = self.calls.setdefault(known, {})
            if len(calls) < MOST_RECORDED or is_new:
                # Objects of the package may fail in any way while they are written.
                with contextlib.suppress(Exception):
                    calls.setdefault(arguments_of(frame, source_of, self.temporary))

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
                if getattr(found, "__code__", None) is code and not code.co_flags & ASYNCHRONOUS:
                    self.codes[code], self.modules[wanted] = wanted, module
                    return wanted
        self.codes[code] = None
        return None

    def made(self):
        """Yields what is made for each wanted function: the function, its module, its calls and sequences of calls, and
        digests of its recorded calls.

        Calls may change what all functions share, such as a cache. So each function's calls are made in a process of its
        own, and are dropped if they come out differently in another process, or change the outcomes of recorded calls. Outcomes
        that change anyway, such as times, are not compared. Instead of a function's calls, a text says why there are none."""
        functions = {}
        for wanted in sorted({*self.calls, *self.sequences}):
            module, calls, sequences = self.modules[wanted], list(self.calls.get(wanted, ())), list(self.sequences.get(wanted, ()))
            if not calls and not sequences:
                yield wanted, module, UNWRITTEN, [], []
                continue
            with contextlib.suppress(Exception):
                functions[wanted] = Inputs(wanted, module, calls), sequences
        share_options([inputs for inputs, _ in functions.values()])
        recorded = lambda: [outcome for inputs, _ in functions.values() for outcome in inputs.recorded()]
        usual = in_fork(recorded)
        if usual is None:
            # Leave out the functions that are to blame: without outcomes to compare with, nothing is known of what calls change.
            for wanted in [wanted for wanted, (inputs, _) in functions.items() if in_fork(inputs.recorded) is None]:
                del functions[wanted]
                yield wanted, self.modules[wanted], ENDED, [], []
            usual = in_fork(recorded)
        if usual is None:
            for wanted in functions:
                yield wanted, self.modules[wanted], ENDED, [], []
            return
        steady = range(len(usual))
        for wanted, (inputs, sequences) in functions.items():
            module = self.modules[wanted]
            if time.monotonic() > self.until:
                yield wanted, module, LATE, [], []
                continue
            kept = in_fork(inputs.selected)
            many = Sequences(inputs, sequences, self.sequences)
            longer = in_fork(many.selected) if sequences else []
            if not kept and not longer:
                if kept is None or longer is None:
                    yield wanted, module, ENDED, [], []
                elif not inputs.calls:
                    yield wanted, module, UNWRITTEN, [], []
                continue
            kept, longer = kept or [], longer or []
            after = in_fork(lambda: inputs.give(kept) and many.give(longer) and recorded())
            if after and any(after[place] != usual[place] for place in steady):
                again = in_fork(recorded) or []
                steady = [place for place in steady if usual[place : place + 1] == again[place : place + 1]]
            if not after or any(after[place] != usual[place] for place in steady):
                yield wanted, module, UNSTEADY, [], []
            else:
                yield wanted, module, kept, longer, [digest(*call) for call in inputs.calls]
