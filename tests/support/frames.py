"""What an independent judge of masks is asked, frame by frame on stdin; its answers, a JSON line for each file."""

import gc
import json
import sys
import warnings


def serve(open_file):
    """Answers until stdin ends. `open_file(frame)` gives the judge of one file, with `check(frame, masked)` and
    `answer()`, or raises where Python does not take it."""
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
