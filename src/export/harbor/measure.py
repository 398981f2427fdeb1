"""Runs a task's experiments and reads their results by the task's rules."""

import json
import math
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

MOST_OUTPUT = 4 << 20
MOST_BYTES = 16 << 20
# Maximum length of an integer's text: every integer of at most this length fits into a double.
MOST_DIGITS = 308
MOST_LEVELS = 128


def integer(text):
    """Converts an integer's text; returns the text itself if the integer is too large."""
    return int(text) if len(text) <= MOST_DIGITS else text


def read_json(text):
    """Parses JSON, with NaN, infinities and integers that are too large as strings.

    Raises ValueError if the text is not JSON or is nested too deeply.
    """
    try:
        value = json.loads(text, parse_constant=str, parse_int=integer)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(MOST_LEVELS):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [one for several in inner for one in several]
        if not level:
            return value
    raise ValueError("nested too deeply")


def unquoted(text):
    """Converts a text to a number if it is a finite one; otherwise returns the text."""
    short = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,18}", short):
        return int(short)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", short) and math.isfinite(float(short)):
        return float(short)
    return text


def read_file(root, path):
    """Returns a regular file's text; raises ValueError if it is missing or a link, which could lead to gold."""
    *folders, name = Path(path).parts
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        # Without O_NONBLOCK, opening a FIFO would block for ever.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        with os.fdopen(file, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"`{path}` is no regular file")
            found = file.read(MOST_BYTES + 1)
    except OSError:
        raise ValueError(f"`{path}` was not written") from None
    finally:
        os.close(here)
    if len(found) > MOST_BYTES:
        raise ValueError(f"`{path}` is too large")
    return found.decode(errors="replace")


def result_of(rule, stdout, root):
    """Returns an experiment's result, found by its rule; raises ValueError if there is none."""
    kind, what = next(iter(rule.items()))
    if kind == "json_file":
        return read_json(read_file(root, what))
    if kind == "json_line":
        for line in reversed(stdout.splitlines()):
            line = line.strip()
            if line.startswith("{") and line.endswith("}"):
                try:
                    return read_json(line)
                except ValueError:
                    continue
        # The object may extend over several lines, as json.dumps(result, indent=2) writes it.
        lines = [line.rstrip() for line in stdout.split("\n")]
        if "}" in lines:
            end = len(lines) - 1 - lines[::-1].index("}")
            if "{" in lines[:end]:
                start = end - 1 - lines[:end][::-1].index("{")
                try:
                    return read_json("\n".join(lines[start : end + 1]))
                except ValueError:
                    pass
        raise ValueError("no line of stdout is a JSON object")
    found = {}
    for name, expression in what.items():
        matches = list(re.finditer(expression, stdout))
        text = matches[-1].group(1) if matches else None
        found[name] = unquoted(text) if text is not None else None
    if all(value is None for value in found.values()):
        raise ValueError("no expression matches stdout")
    return found


def output(process, limit):
    """Returns the last MOST_OUTPUT bytes of a process's output, which may be endless; raises TimeoutExpired."""
    ends = time.monotonic() + limit
    stream, kept = process.stdout.fileno(), bytearray()
    ready = select.poll()
    ready.register(stream, select.POLLIN | select.POLLHUP)
    while True:
        left = ends - time.monotonic()
        if left <= 0 or not ready.poll(left * 1000):
            raise subprocess.TimeoutExpired(process.args, limit)
        part = os.read(stream, 1 << 16)
        if not part:
            break
        kept += part
        if len(kept) > 2 * MOST_OUTPUT:
            del kept[:-MOST_OUTPUT]
    process.wait(max(ends - time.monotonic(), 0))
    return bytes(kept[-MOST_OUTPUT:])


def run(experiment, root, user=None):
    """Runs one experiment in the folder `root`; returns `{"result": ...}` or `{"error": "..."}`."""
    rule = experiment["result"]
    options = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    if "json_file" in rule:
        # Remove an old result as the experiment's user, because a link in its path could lead to files of other users.
        subprocess.run(["rm", "-rf", "--", rule["json_file"]], cwd=root, check=False, **options)
    process = subprocess.Popen(
        ["sh", "-c", experiment["command"]],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        **options,
    )
    try:
        stdout = output(process, experiment["time_limit"])
    except subprocess.TimeoutExpired:
        return {"error": "timed out"}
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()
    if process.returncode != 0:
        return {"error": f"exit code {process.returncode}"}
    try:
        return {"result": result_of(rule, stdout.decode(errors="replace"), root)}
    except ValueError as error:
        return {"error": str(error)}


def answer(experiments, root):
    """Returns the results of the unmasked code, in the form of an agent's answer."""
    results = {}
    for experiment in experiments:
        outcome = run(experiment, root)
        if "result" in outcome:
            results[experiment["key"]] = outcome["result"]
    return results


if __name__ == "__main__":
    listed, root = Path(sys.argv[1]), Path(sys.argv[2])
    (root / "answer.json").write_text(json.dumps(answer(json.loads(listed.read_text()), root)))
