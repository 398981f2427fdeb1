"""Lists the papers, functions and samples of a suite."""

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
    """Number of the function in its paper, as used in sample ids and by :func:`mask`."""
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
    """A task for agents: a paper and a set of masked functions."""

    id: str
    paper: str
    n: int
    functions: builtins.list[str]
    experiments: builtins.list[str]


class Suite(Sequence[Paper]):
    """The papers of a suite, which can be indexed by number or by id. Notebooks show them as a table."""

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
    """Returns the command-line option that names a suite; empty for the default suite."""
    return [] if suite is None else ["--suite", os.fspath(suite)]


def named(names: str | Iterable[str], what: str) -> builtins.list[str]:
    """Returns one or several names as a list. ``what`` is the word for the names in the error message."""
    given = [names] if isinstance(names, str) else builtins.list(names)
    for name in given:
        if not isinstance(name, str):
            raise UsageError(f"{what} are given as text, not as a {type(name).__name__}: {name!r}", code=2)
    return given


def numbers(n: int | str | Iterable[int]) -> str:
    """Formats numbers of masked functions for the command line."""
    if isinstance(n, (int, str)):
        return str(n)
    if isinstance(n, range) and n.step == 1 and len(n) > 0:
        return f"{n.start}..{n.stop - 1}"
    return ",".join(str(it) for it in n)


def list(papers: str | Iterable[str] = (), *, suite: StrPath | None = None) -> Suite:
    """Returns papers of a suite with their functions and experiments; by default, all papers.

    The default suite is the one in or above the current folder or, if there is none, the bundled one.
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
    """Returns the samples that a run with the same options would use.

    ``n`` is the number of masked functions: a number, several, a ``range``, or a string like ``"1..3"`` (both ends included).
    """
    arguments = ["sample", "-n", numbers(n), "--limit", str(limit), "--seed", str(seed), *in_suite(suite)]
    for paper in named(papers, "papers"):
        arguments += ["-p", paper]
    lines = (json.loads(line) for line in lines_of(call(arguments)))
    return [Sample(it["sample"], it["paper"], it["n"], it["functions"], it["experiments"]) for it in lines]


def init(folder: StrPath, *, bundled: bool = False) -> None:
    """Creates a new suite with one small example paper or, if ``bundled``, a copy of the bundled suite."""
    call(["init", folder, *(["--bundled"] if bundled else [])])
