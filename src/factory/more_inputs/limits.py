"""Limits the time of calls, and runs calls in copies of this process, because they may end or change the process in
which they run."""

import contextlib
import io
import json
import os
import random
import select
import signal
import time
import traceback

# Time limit of one call in seconds. It limits processor time, so that the same calls exceed it on a busy machine. The
# limit of wall time is `SLOWER` times as long.
CALL_SECONDS, SLOWER = 0.3, 4
# Time limit in seconds of a process that makes the calls of a function. It must be less than `COLLECTION_SECONDS`, the
# time for which the runner waits for a message.
FORK_SECONDS = 45


class Failed(Exception):
    """Raised if code that runs in a copy of this process raises an exception."""


def in_fork(work):
    """Runs `work` in a copy of this process, and returns its result, which must be expressible as JSON. Returns `None`
    if `work` ends the copy or takes too long.

    Raises `Failed` if `work` raises an exception."""
    take, give = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(take)
            try:
                found = {"result": work()}
            except Exception:
                found = {"error": traceback.format_exc()}
            with os.fdopen(give, "w") as file:
                file.write(json.dumps(found))
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
        found = json.loads(b"".join(parts))
    except ValueError:
        return None
    if "error" in found:
        raise Failed(found["error"])
    return found["result"]


def time_limit(seconds):
    """Returns a function that says whether the time is over: whether this process has used this much processor time
    since now, or `SLOWER` times as much wall time has passed."""
    computed, passed = time.process_time() + seconds, time.monotonic() + SLOWER * seconds
    return lambda: time.process_time() > computed or time.monotonic() > passed


class TookTooLong(BaseException):
    """Raised in a call that has passed its time limit. It is not derived from `Exception`, so that code which catches
    `Exception` does not catch it."""


@contextlib.contextmanager
def one_call(seed=0):
    """Stops a call that takes too long, hides what it prints, and seeds its random numbers."""
    quiet = io.StringIO()

    def stop(*_):
        raise TookTooLong

    random.seed(seed)
    # Repeat the signal, because code may catch the exception.
    limits = (signal.ITIMER_PROF, signal.SIGPROF, CALL_SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, SLOWER * CALL_SECONDS)
    for timer, number, seconds in limits:
        signal.signal(number, stop)
        signal.setitimer(timer, seconds, seconds)
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            yield
    finally:
        for timer, _, _ in limits:
            signal.setitimer(timer, 0)
