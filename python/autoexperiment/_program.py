"""Finds and starts the program ``autoexperiment``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Sequence

from ._errors import MachineError, failure

__all__ = ["call", "call_json", "command", "environment", "lines_of", "program", "version"]


def program() -> Path:
    """Returns the program's path: ``AUTOEXPERIMENT_PROGRAM``, else the one installed with this Python, else the one on ``PATH``."""
    named = os.environ.get("AUTOEXPERIMENT_PROGRAM")
    if named:
        return Path(named)
    schemes = ["", f"{os.name}_user"]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        beside = Path(folder) / "autoexperiment"
        if beside.is_file():
            return beside
    found = shutil.which("autoexperiment")
    if found is None:
        raise MachineError(
            "the program `autoexperiment` is not there",
            "install it again with `pip install --force-reinstall autoexperiment`, or name it with "
            "`AUTOEXPERIMENT_PROGRAM`",
            code=5,
        )
    return Path(found)


def environment() -> dict[str, str]:
    """Returns the program's environment. By default, it makes agents in Python run in the Python that runs this module."""
    return {"AUTOEXPERIMENT_PYTHON": sys.executable, **os.environ}


def command(arguments: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the command line of the program with these arguments."""
    return [str(program()), *(os.fspath(argument) for argument in arguments)]


def call(arguments: Sequence[str | os.PathLike[str]], stdin: str | None = None) -> str:
    """Runs the program until it ends, and returns its standard output."""
    done = subprocess.run(
        command(arguments),
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(),
        check=False,
    )
    if done.returncode != 0:
        raise failure(done.returncode, done.stderr)
    return done.stdout


def call_json(arguments: Sequence[str | os.PathLike[str]], stdin: str | None = None) -> Any:
    """Same as :func:`call`, but parses the output as JSON."""
    return json.loads(call(arguments, stdin))


def lines_of(text: str) -> list[str]:
    """Splits JSON Lines. ``splitlines`` would also split at characters that JSON strings may contain, such as U+2028."""
    return [line for line in text.split("\n") if line]


def version() -> str:
    """Returns the program's version."""
    return call(["--version"]).split()[-1]
