"""What there is to run: papers, functions and samples."""

from __future__ import annotations

import builtins
import json
import os
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Sequence, Union

from ._errors import UsageError
from ._program import call, call_json, lines_of

__all__ = ["Function", "Paper", "Sample", "Suite", "StrPath", "in_suite", "init", "list", "named", "numbers", "samples"]

StrPath = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Function:
    """A function that can be masked."""

    number: int
    """As sample ids and :func:`mask` use it."""
    at: str
    lines: int
    calls: int


@dataclass(frozen=True)
class Paper:
    """A paper of a suite."""

    id: str
    title: str
    authors: builtins.list[str]
    year: int
    url: str
    functions: builtins.list[Function]
    experiments: builtins.list[dict[str, Any]]


@dataclass(frozen=True)
class Sample:
    """What attempts are made at: a paper and a set of masked functions."""

    id: str
    paper: str
    n: int
    functions: builtins.list[str]
    experiments: builtins.list[str]


class Suite(Sequence[Paper]):
    """The papers of a suite, by number or by id; a table in a notebook."""

    def __init__(self, papers: Iterable[Paper]) -> None:
        self._papers = builtins.list(papers)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            for paper in self._papers:
                if paper.id == which:
                    return paper
            raise KeyError(which)
        return self._papers[which]

    def __len__(self) -> int:
        return len(self._papers)

    def __iter__(self) -> Iterator[Paper]:
        return iter(self._papers)

    def __repr__(self) -> str:
        return f"Suite({', '.join(paper.id for paper in self._papers)})"

    def _repr_html_(self) -> str:
        from ._tables import html_table

        rows = [[p.id, p.title, p.year, len(p.functions), len(p.experiments)] for p in self._papers]
        return html_table(["paper", "title", "year", "functions", "experiments"], rows)


def in_suite(suite: StrPath | None) -> builtins.list[str]:
    """The option that names a suite."""
    return [] if suite is None else ["--suite", os.fspath(suite)]


def named(names: str | Iterable[str], what: str) -> builtins.list[str]:
    """One name or several as a list. ``what`` says what they are, for the error."""
    given = [names] if isinstance(names, str) else builtins.list(names)
    for name in given:
        if not isinstance(name, str):
            raise UsageError(f"{what} are given as text, not as a {type(name).__name__}: {name!r}", code=2)
    return given


def numbers(n: int | str | Iterable[int]) -> str:
    """Numbers of masked functions as the command line takes them."""
    if isinstance(n, (int, str)):
        return str(n)
    if isinstance(n, range) and n.step == 1 and len(n) > 0:
        return f"{n.start}..{n.stop - 1}"
    return ",".join(str(it) for it in n)


def list(papers: str | Iterable[str] = (), *, suite: StrPath | None = None) -> Suite:
    """The papers of a suite with their functions and experiments; by default all of them.

    Without ``suite`` it is the suite in or above the current folder, else the bundled one.
    """
    ids = named(papers, "papers")
    if not ids:
        ids = [row["paper"] for row in call_json(["list", "--json", *in_suite(suite)])]
    if not ids:
        return Suite([])
    return Suite(_paper(it) for it in call_json(["list", *ids, "--json", *in_suite(suite)]))


def _paper(it: dict[str, Any]) -> Paper:
    functions = [
        Function(number, function["at"], function["lines"], function["calls"])
        for number, function in enumerate(it["functions"])
    ]
    return Paper(it["paper"], it["title"], it["authors"], it["year"], it["url"], functions, it["experiments"])


def samples(
    papers: str | Iterable[str] = (),
    *,
    n: int | str | Iterable[int] = 1,
    limit: int = 100,
    seed: int = 0,
    suite: StrPath | None = None,
) -> builtins.list[Sample]:
    """The samples that a run with the same options takes.

    ``n`` is a number of masked functions, several, a ``range``, or a string as ``"1..3"`` (both ends included).
    """
    arguments = ["sample", "-n", numbers(n), "--limit", str(limit), "--seed", str(seed), *in_suite(suite)]
    for paper in named(papers, "papers"):
        arguments += ["-p", paper]
    lines = (json.loads(line) for line in lines_of(call(arguments)))
    return [Sample(it["sample"], it["paper"], it["n"], it["functions"], it["experiments"]) for it in lines]


def init(folder: StrPath, *, bundled: bool = False) -> None:
    """Writes a suite of your own, with one small example paper; or a copy of the bundled one."""
    call(["init", folder, *(["--bundled"] if bundled else [])])
