"""The program's errors as exceptions."""

from __future__ import annotations

from typing import Any, Sequence

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
    "failure",
]


class Error(Exception):
    """An error of the program. ``hint`` says what the user can do about it."""

    def __init__(self, message: str, hint: str | None = None, causes: Sequence[str] = (), code: int = 1) -> None:
        lines = [message, *(f"cause: {cause}" for cause in causes), *([f"hint: {hint}"] if hint else [])]
        super().__init__("\n".join(lines))
        self.message = message
        self.hint = hint
        self.causes = tuple(causes)
        self.code = code
        """The program's exit code."""


class UsageError(Error):
    """An invalid command line: for example, an option or a name does not exist."""


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
    """A run ended early. ``run`` contains the finished attempts."""

    run: Any = None
    """The :class:`Run`; ``None`` if the run had not begun."""


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


def failure(code: int, stderr: str) -> Error:
    """Returns the exception for an exit code and the text on standard error."""
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
