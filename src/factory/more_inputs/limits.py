"""Time limits, and processes for calls that may end or change the process they run in."""

import contextlib
import io
import json
import os
import random
import select
import signal
import time

# Time limit in seconds of one call, and of a process that makes the calls of a function.
CALL_SECONDS, FORK_SECONDS = 0.3, 60
# Time limits on a function's calls are processor time, so that a busy machine does not change which calls are kept. They
# may take this many times as long.
SLOWER = 4


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


@contextlib.contextmanager
def one_call(seconds=CALL_SECONDS):
    """Stops a call that takes too long, hides what it prints, and lets it draw the same random numbers each time."""
    quiet = io.StringIO()

    def stop(*_):
        raise TookTooLong

    signal.signal(signal.SIGALRM, stop)
    random.seed(0)
    # Again and again, because code may catch the exception.
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
