"""Masks functions in a paper's repository or in any Python source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Mapping

from ._errors import UsageError
from ._program import call, call_json
from ._suite import StrPath, in_suite, named

__all__ = ["Masked", "mask", "mask_source"]


@dataclass(frozen=True)
class Masked:
    """A repository with masked functions, as an agent would get it."""

    sample: str
    """The sample's id."""
    functions: list[str]
    files: dict[str, str]
    """The masked files by their path."""
    diff: str

    def __str__(self) -> str:
        return self.diff


def mask(
    paper: str, functions: int | Iterable[int] = (), *, suite: StrPath | None = None, to: StrPath | None = None
) -> Masked:
    """Masks functions of a paper, by their numbers. Also writes the tree that an agent would get into the folder ``to``, if given."""
    given = [functions] if isinstance(functions, int) else functions
    if isinstance(given, str):
        raise UsageError(
            f"functions are given by number, not as the text {given!r}",
            "give numbers of `list(paper)`, or mask by name with `mask_source`",
            code=2,
        )
    numbers = ",".join(str(number) for number in sorted(set(given)))
    arguments = ["mask", paper, *(["-f", numbers] if numbers else []), *in_suite(suite)]
    if to is not None:
        call([*arguments, "-o", to])
    it = call_json([*arguments, "--json"])
    return Masked(it["sample"], it["functions"], {file["path"]: file["masked"] for file in it["files"]}, it["diff"])


def mask_source(text: str, functions: str | Iterable[str], *, descriptions: Mapping[str, str] | None = None) -> str:
    """Masks functions of any Python source, given by their qualified names. All other bytes stay the same.

    A description becomes the docstring of a function that has none.

    >>> print(mask_source("class A:\\n    def f(self): return 1\\n", ["A.f"], descriptions={"A.f": "One."}))
    class A:
        def f(self):
            \"\"\"One.\"\"\"
            raise NotImplementedError
    <BLANKLINE>
    """
    if not isinstance(text, str):
        raise UsageError(
            f"the source is text, not {type(text).__name__}", "decode it first, as `source.decode(\"utf-8\")`", code=2
        )
    arguments = ["mask", "--source", "-"]
    for name in named(functions, "functions"):
        description = (descriptions or {}).get(name)
        arguments += ["--function", name if description is None else f"{name}={description}"]
    return call(arguments, stdin=text)
