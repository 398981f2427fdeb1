"""Runs a task's experiments and reads their results by the task's rules."""

import contextlib
import json
import math
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_OUTPUT = 4 << 20
MOST_BYTES = 16 << 20
# Maximum bytes of an answer. The harness has the same limit.
MOST_ANSWER = 4 << 20
MOST_LEVELS = 128
# Maximum number of unclosed objects skipped while searching for an answer.
MOST_UNCLOSED = 16

# A string without escaped characters.
PLAIN = re.compile(r'"[^"\\]*"')
# A quote, or a backslash with the character that it escapes.
INSIDE = re.compile(r'"|\\.', re.DOTALL)
# An escaped pair of surrogates, a lone one (as the group), or another escaped character.
ESCAPED = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u([dD][89a-fA-F]..)|.)", re.DOTALL)
TOKENS = re.compile(r"[A-Za-z0-9+\-._]+")
BRACES = re.compile(r'["{}]')
OPENED = re.compile(r'[ \t\n\f\r]*["}0-9]')
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LIKE_NUMBER = re.compile(r"[0-9+\-.]|(nan|inf|infinity)\Z", re.IGNORECASE)


def quoted(match):
    """Returns a token of JSON; in quotes if it is a number that JSON does not have, such as NaN, `.5` or 1e999."""
    token = match.group()
    if NUMBER.fullmatch(token) and math.isfinite(float(token)) or not LIKE_NUMBER.match(token):
        return token
    return json.dumps(token)


def string_end(text, start):
    """Returns the position after the string that opens at `start`, or the text's end if it never closes.

    Strings with escaped characters are not matched by one regular expression, which would need memory for each of them.
    """
    if plain := PLAIN.match(text, start):
        return plain.end()
    return next((match.end() for match in INSIDE.finditer(text, start + 1) if match.group() == '"'), len(text))


def quote_tokens(text):
    """Applies `quoted` to all tokens of a text that are not in strings."""
    parts, at = [], 0
    while (start := text.find('"', at)) >= 0:
        end = string_end(text, start)
        parts += [TOKENS.sub(quoted, text[at:start]), text[start:end]]
        at = end
    return "".join([*parts, TOKENS.sub(quoted, text[at:])])


def has_lone_surrogate(text):
    """Whether a string in JSON contains an escaped surrogate that is not part of a pair."""
    return "\\u" in text and any(match.group(1) for match in ESCAPED.finditer(text))


def same(one, other):
    """Whether two JSON values are equal: 1 equals 1.0, but not True."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def without_doubles(pairs):
    """Returns an object in which two different values under one key are replaced by a text, which no gold equals."""
    found = {}
    for key, value in pairs:
        is_double = key in found and not same(found[key], value)
        found[key] = f"given twice: {found[key]} and {value}" if is_double else value
    return found


def read_json(text):
    """Parses JSON as programs and models write it. Numbers that JSON does not have become strings.

    Raises ValueError if the text is not JSON, is nested too deeply or contains a lone surrogate.
    """
    try:
        value = json.loads(quote_tokens(text), object_pairs_hook=without_doubles)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if has_lone_surrogate(text):
        raise ValueError("a string contains a lone surrogate")
    level = [value]
    for _ in range(MOST_LEVELS):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [one for several in inner for one in several]
        if not level:
            return value
    raise ValueError("nested too deeply")


def read_answer(text):
    """Returns the JSON object in an answer: bare, in a code fence, or in prose; raises ValueError if there is none."""
    text = text.lstrip("\ufeff").strip()
    try:
        value = read_json(text)
    except ValueError:
        return last_object(text)
    if not isinstance(value, dict):
        raise ValueError("the answer must be a JSON object")
    return value


def last_object(text):
    """Returns the last complete and readable JSON object in a text; an empty one only if there is no other."""
    found, unclosed, at = None, 0, 0
    while (start := text.find("{", at)) >= 0:
        at = start + 1
        if not OPENED.match(text, at):
            continue
        end = object_end(text, start)
        if end is None:
            # An object inside of an unclosed one is not an answer, so continue at the next line that begins with `{`.
            unclosed += 1
            line = text.find("\n{", at) if unclosed < MOST_UNCLOSED else -1
            if line < 0:
                break
            at = line + 1
            continue
        try:
            value = read_json(text[start:end])
        except ValueError:
            pass
        else:
            found = value if value or found is None else found
        at = end
    if found is None:
        raise ValueError("the answer is not JSON")
    return found


def object_end(text, start):
    """Returns the position after the brace that closes the one at `start`; None if there is none."""
    depth, at = 0, start
    while match := BRACES.search(text, at):
        if match.group() == '"':
            at = string_end(text, match.start())
            continue
        depth += 1 if match.group() == "{" else -1
        at = match.end()
        if depth == 0:
            return at
    return None


def unquoted(text):
    """Converts a text to a number if it is a finite one; otherwise returns the text."""
    short = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,18}", short):
        return int(short)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", short) and math.isfinite(float(short)):
        return float(short)
    return text


def read_file(root, path, most=MOST_BYTES):
    """Returns the text of a regular file of at most `most` bytes.

    Raises ValueError if the file is larger or missing, or if it is a link, which could lead to gold.
    """
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
            found = file.read(most + 1)
    except OSError:
        raise ValueError(f"`{path}` was not written") from None
    finally:
        os.close(here)
    if len(found) > most:
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


@contextlib.contextmanager
def temporary_folder():
    """Creates a folder for a `with` statement; at its end, removes it as far as possible.

    `TemporaryDirectory` can ignore files that it cannot remove only since Python 3.10.
    """
    folder = tempfile.mkdtemp()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(experiment, root, user=None):
    """Runs one experiment in the folder `root`; returns `{"result": ...}` or `{"error": "..."}`.

    Its home is an empty folder: in a home inside of the repo, Python would run an attempt's code before every program.
    """
    with temporary_folder() as home:
        if user is not None:
            os.chown(home, user, user)
        return run_at(experiment, root, home, user)


def run_at(experiment, root, home, user):
    """Runs one experiment with the given home, and with the variables with which gold was recorded."""
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
        env={**os.environ, **experiment.get("variables", {}), "HOME": home},
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
