"""Runs a task's experiments and reads their results by the task's rules."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

MOST_OUTPUT = 4 << 20


def read_json(text):
    """JSON in which NaN and the like are texts, which no value passes for."""
    return json.loads(text, parse_constant=str)


def result_of(rule, stdout, root):
    """An experiment's result; raises ValueError where there is none."""
    kind, what = next(iter(rule.items()))
    if kind == "json_file":
        path = root / what
        if not path.is_file():
            raise ValueError(f"`{what}` was not written")
        return read_json(path.read_text(errors="replace"))
    if kind == "json_line":
        for line in reversed(stdout.splitlines()):
            line = line.strip()
            if line.startswith("{") and line.endswith("}"):
                try:
                    return read_json(line)
                except ValueError:
                    continue
        raise ValueError("no line of stdout is a JSON object")
    found = {}
    for name, expression in what.items():
        matches = list(re.finditer(expression, stdout))
        text = matches[-1].group(1) if matches else None
        try:
            found[name] = json.loads(text) if text is not None else None
        except ValueError:
            found[name] = text
    if all(value is None for value in found.values()):
        raise ValueError("no expression matches stdout")
    return found


def run(experiment, root, user=None):
    """Runs one experiment in the folder `root`: `{"result": ...}` or `{"error": "..."}`."""
    rule = experiment["result"]
    if "json_file" in rule:
        subprocess.run(["rm", "-rf", "--", rule["json_file"]], cwd=root, check=False)
    options = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
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
        stdout, _ = process.communicate(timeout=experiment["time_limit"])
    except subprocess.TimeoutExpired:
        return {"error": "timed out"}
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if process.returncode != 0:
        return {"error": f"exit code {process.returncode}"}
    try:
        return {"result": result_of(rule, stdout[-MOST_OUTPUT:].decode(errors="replace"), root)}
    except ValueError as error:
        return {"error": str(error)}


def answer(experiments, root):
    """What the unmasked code gives, as an agent reports it."""
    results = {}
    for experiment in experiments:
        outcome = run(experiment, root)
        if "result" in outcome:
            results[experiment["key"]] = outcome["result"]
    return results


if __name__ == "__main__":
    listed, root = Path(sys.argv[1]), Path(sys.argv[2])
    (root / "answer.json").write_text(json.dumps(answer(json.loads(listed.read_text()), root)))
