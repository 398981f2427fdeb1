"""The protocol of the independent judges of masks: frames on stdin, and one line of JSON per file on stdout."""

import gc
import json
import sys
import warnings


def serve(open_file):
    """Serves until stdin ends. `open_file(frame)` returns the judge of one file, with `check(frame, masked)` and
    `answer()`, or raises an exception if Python does not accept the file."""
    warnings.simplefilter("ignore")
    gc.disable()
    stdin = sys.stdin.buffer
    file = rejected = None
    while line := stdin.readline():
        frame = json.loads(line)
        if frame["op"] == "file":
            file = rejected = None
            try:
                file = open_file(frame)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                rejected = f"{type(error).__name__}: {error}"
        elif frame["op"] == "mask":
            source = stdin.read(frame["length"])
            if file is not None:
                file.check(frame, source)
        else:
            print(json.dumps({"rejected": rejected} if rejected else file.answer()), flush=True)
