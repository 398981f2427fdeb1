"""The program: where it is, how it is started, and its errors as exceptions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

if TYPE_CHECKING:
    from ._runs import Run

__all__ = [
    "AttemptsLost",
    "Error",
    "GoldNotReproduced",
    "Interrupted",
    "MachineError",
    "ModelError",
    "PlaceError",
    "StoreError",
    "SuiteError",
    "Unfinished",
    "UsageError",
    "program",
    "version",
]


class Error(Exception):
    """Something that the program could not do. ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str | None = None, causes: Sequence[str] = (), code: int = 1) -> None:
        lines = [message, *(f"cause: {cause}" for cause in causes), *([f"hint: {hint}"] if hint else [])]
        super().__init__("\n".join(lines))
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)
        self.code = code
        """The program's exit code."""


class UsageError(Error):
    """An option or a name that does not exist."""


class SuiteError(Error):
    """A faulty paper, repository or environment file."""


class GoldNotReproduced(Error):
    """The unmasked repository does not give its reference results on this machine."""


class MachineError(Error):
    """The machine lacks something; ``autoexperiment doctor`` says what."""


class PlaceError(MachineError):
    """The cache, the scratch folder or the data folder cannot be used; the hint names the setting."""


class ModelError(Error):
    """No key, an unknown model or price, or a provider that is down."""


class StoreError(Error):
    """A stored run that cannot be read or written."""


class Unfinished(Error):
    """A run that did not come to its end. What was finished is kept in ``run``."""

    run: Run | None = None


class AttemptsLost(Unfinished):
    """Attempts were lost to infrastructure."""


class Interrupted(Unfinished):
    """The run was stopped."""


_KINDS: dict[int, type[Error]] = {
    2: UsageError,
    3: SuiteError,
    4: GoldNotReproduced,
    5: MachineError,
    6: ModelError,
    7: StoreError,
    8: AttemptsLost,
    11: ModelError,
    12: PlaceError,
    130: Interrupted,
}


def program() -> Path:
    """The program's path: ``AUTOEXPERIMENT_PROGRAM``, else the one beside this Python, else the one on the path."""
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
    """The environment of the program: agents in Python run in this very Python."""
    return {"AUTOEXPERIMENT_PYTHON": sys.executable, **os.environ}


def command(arguments: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The program with these arguments."""
    return [str(program()), *(os.fspath(argument) for argument in arguments)]


def call(arguments: Sequence[str | os.PathLike[str]], stdin: str | None = None) -> str:
    """Runs the program to its end; what it printed."""
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
    """The same for what it prints as JSON."""
    return json.loads(call(arguments, stdin))


def failure(code: int, stderr: str) -> Error:
    """The exception for how the program ended."""
    lines = stderr.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        said = stderr.strip() or f"`autoexperiment` ended with exit code {code}"
        return _KINDS.get(code, Error)(said, code=code)
    message = [lines[starts[-1]].removeprefix("error: ")]
    hint: str | None = None
    causes = []
    for line in lines[starts[-1] + 1 :]:
        if line.startswith("  hint: "):
            hint = line.removeprefix("  hint: ")
        elif line.startswith("  cause: "):
            causes.append(line.removeprefix("  cause: "))
        elif line.startswith("    "):
            message.append(line.strip())
    return _KINDS.get(code, Error)("\n".join(message), hint, causes, code)


def version() -> str:
    """The program's version."""
    return call(["--version"]).split()[-1]
