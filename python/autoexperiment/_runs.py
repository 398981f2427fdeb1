"""Makes, reads, reports and scores runs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Iterator, Union

from ._errors import Error, Unfinished, UsageError, failure
from ._notebook import agent_file
from ._program import call, call_json, command, environment, lines_of
from ._progress import Progress
from ._suite import StrPath, in_suite, named, numbers
from ._tables import html_table

__all__ = ["Report", "Run", "load", "run", "score"]

AgentLike = Union[str, Callable[..., Any]]

# Names of the files that contain records: one file, or one for each shard, whose name consists of digits and hyphens.
_RECORDS = re.compile(r"attempts(-[0-9-]+)?\.jsonl")


@dataclass(frozen=True, repr=False)
class Report:
    """Pass rates by agent and n. Notebooks show them as a table."""

    data: dict[str, Any]
    """The report as printed by ``autoexperiment report --json``."""
    text: str
    """The report as shown on a terminal."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        header = ["agent", "model", "n", "samples", "attempts", "passed", "pass@1", "interval", "lost"]
        rows = []
        for row in self.data["rows"]:
            first = (row["pass_at"] or [{"rate": None, "interval": None}])[0]
            interval = first["interval"]
            rows.append(
                [
                    row["agent"],
                    row["model"] or "",
                    "all" if row["n"] is None else row["n"],
                    row["samples"],
                    row["attempts"],
                    row["passed"],
                    "" if first["rate"] is None else first["rate"],
                    "" if interval is None else f"{interval['low']:.3g} to {interval['high']:.3g}",
                    row["lost"],
                ]
            )
        return html_table(header, rows)


class Run:
    """A stored run."""

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder)
        if not (self.folder / "run.json").is_file():
            raise UsageError(f"no run in `{self.folder}`", "give a run's folder, as `runs/2026-11-21T10-30-00Z`", code=2)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    @property
    def name(self) -> str:
        """The run's name."""
        return self.folder.resolve().name

    @property
    def settings(self) -> dict[str, Any]:
        """The contents of ``run.json``: the run's settings."""
        about: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        return about

    @property
    def records(self) -> list[dict[str, Any]]:
        """The attempts as they are stored, one dictionary each.

        A run made with ``--shard`` has a file of records for each process. These files may contain two records of the same
        attempt, of which reports count only one.
        """
        files = sorted(file for file in self.folder.glob("attempts*.jsonl") if _RECORDS.fullmatch(file.name))
        return [record for file in files for record in _records(file)]

    @property
    def attempts(self) -> Any:
        """The attempts as a ``pandas.DataFrame``, one row each."""
        return self.frame("attempts")

    def frame(self, table: str = "attempts", *, library: str = "pandas") -> Any:
        """Returns the table ``attempts`` or ``values`` of the run as a data frame of pandas or, if so chosen, of polars.

        docs/formats.md describes the columns. The data are passed as Parquet if a reader for it is installed, otherwise as CSV.
        """
        for given, known in ((table, ("attempts", "values")), (library, ("pandas", "polars"))):
            if given not in known:
                raise UsageError(
                    f"there is no {'table' if known[0] == 'attempts' else 'library'} `{given}`",
                    f"give `{known[0]}` or `{known[1]}`",
                    code=2,
                )
        if library == "polars":
            import polars  # type: ignore[import-not-found, unused-ignore]

            return polars.read_parquet(self._table(table, "parquet"))
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

        try:
            import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: F401
        except ImportError:
            return pandas.read_csv(self._table(table, "csv"))
        return pandas.read_parquet(self._table(table, "parquet"))

    def _table(self, table: str, form: str) -> Any:
        import io

        with tempfile.TemporaryDirectory() as folder:
            call(["export", self.folder, "--format", form, "-o", folder])
            return io.BytesIO((Path(folder) / f"{table}.{form}").read_bytes())

    def report(self, *, k: Iterable[int] = (), intervals: str = "suite") -> Report:
        """Returns the pass rates by agent and n."""
        options = [option for it in k for option in ("-k", str(it))]
        options += ["--intervals", intervals]
        return Report(
            call_json(["report", self.folder, "--json", *options]), call(["report", self.folder, *options])
        )

    def html(self, file: StrPath) -> Path:
        """Writes the page for a browser, with samples and trajectories."""
        call(["report", self.folder, "--html", file])
        return Path(file)

    def figures(self, folder: StrPath) -> list[Path]:
        """Writes the figures as SVG, PDF and PNG, with their numbers as CSV."""
        call(["report", self.folder, "--figures", folder])
        return sorted(Path(folder).iterdir())

    def trajectory(self, sample: str, *, attempt: int = 0, agent: str | None = None) -> list[dict[str, Any]]:
        """Returns the events of one attempt, in the order in which they happened."""
        named = [] if agent is None else ["--agent", agent]
        text = call(["show", self.folder, f"{sample}.{attempt}", "--json", "--no-pager", *named])
        return [json.loads(line) for line in lines_of(text)]

    def resume(self, *, progress: bool | None = None) -> "Run":
        """Makes the attempts that have no verdict yet."""
        return _watch(["resume", self.folder, "--json-events"], progress)

    def score(self, *, scoring: str | None = None, suite: StrPath | None = None) -> Report:
        """Same as :func:`score` for this run."""
        return score(self, scoring=scoring, suite=suite)


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """Reads the records in a file. Skips broken lines, and a last line that is incomplete."""
    # The text after the last line break is an incomplete line or empty, so drop it.
    for line in file.read_bytes().split(b"\n")[:-1]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def load(folder: StrPath) -> Run:
    """Opens a stored run."""
    return Run(folder)


def score(run: Run | StrPath, *, scoring: str | None = None, suite: StrPath | None = None) -> Report:
    """Scores a stored run again with the gold of the suite as it is now, without running anything.

    ``scoring`` is ``"strict"`` or ``"reference"``; by default the run's own.
    """
    folder = run.folder if isinstance(run, Run) else Path(run)
    options = [] if scoring is None else ["--scoring", scoring]
    arguments: list[StrPath] = ["score", folder, *options, *in_suite(suite)]
    return Report(call_json([*arguments, "--json"]), call(arguments))


def run(
    agents: AgentLike | Iterable[AgentLike],
    *,
    papers: str | Iterable[str] = (),
    n: int | str | Iterable[int] | None = None,
    k: int = 1,
    limit: int | None = None,
    samples: str | Iterable[str] = (),
    model: str | None = None,
    base_url: str | None = None,
    price: str | tuple[float, float] | None = None,
    temperature: float | None = None,
    steps: int | None = None,
    jobs: int | None = None,
    max_cost: float | None = None,
    seed: int = 0,
    name: str | None = None,
    runs: StrPath = "runs",
    suite: StrPath | None = None,
    options: Iterable[str] = (),
    progress: bool | None = None,
) -> Run:
    """Makes k attempts at every sample with every agent, and shows the progress.

    An agent is a name as on the command line (``"gold"``, ``"react:history=window:5"``) or a function marked with
    :func:`agent`. Samples are drawn from ``papers`` (by default all) with ``n`` masked functions (by default 1), at most
    ``limit`` for each paper and n, or named one by one with ``samples``. ``model``, ``base_url``, ``price`` (dollars per
    million tokens read and written), ``temperature``, ``steps``, ``jobs`` and ``max_cost`` are the options of
    ``autoexperiment run`` with the same names; ``options`` are further options, such as ``["--max-tokens", "2000"]``.
    ``progress`` turns progress messages on or off. By default, they are a bar on a terminal and in a notebook, and elsewhere
    a line every few seconds.

    Attempts lost to infrastructure raise :class:`AttemptsLost`, a stopped run (also by Ctrl-C) :class:`Interrupted`; both
    have the :class:`Run` as their ``run``, which :meth:`Run.resume` continues.
    """
    if os.environ.get("AUTOEXPERIMENT_AGENT"):
        raise UsageError(
            "a run was started while an agent's file was being loaded",
            "put the call of `run` below `if __name__ == \"__main__\":`",
            code=2,
        )
    given = [agents] if isinstance(agents, str) or callable(agents) else list(agents)
    if not given:
        raise UsageError("no agent is named", "name one or more, such as `[\"gold\", \"noop\"]`", code=2)
    chosen, drawn = named(samples, "samples"), named(papers, "papers")
    if chosen and (drawn or n is not None or limit is not None):
        raise UsageError(
            "`samples` names samples, so `papers`, `n` and `limit`, which draw samples, cannot be given too",
            "leave one or the other out",
            code=2,
        )
    if not isinstance(price, (str, type(None))):
        price = ",".join(str(dollars) for dollars in price)
    with tempfile.TemporaryDirectory(prefix="autoexperiment-") as scratch:
        arguments: list[StrPath] = ["run", "--json-events", "--seed", str(seed), "--runs", runs, *in_suite(suite)]
        for it in given:
            arguments += ["--agent", it if isinstance(it, str) else agent_file(it, Path(runs), Path(scratch))]
        for sample in chosen:
            arguments += ["--sample", sample]
        if not chosen:
            arguments += ["-n", numbers(1 if n is None else n)]
            for paper in drawn:
                arguments += ["-p", paper]
            if limit is not None:
                arguments += ["--limit", str(limit)]
        arguments += ["-k", str(k)]
        for option, value in (
            ("--model", model),
            ("--base-url", base_url),
            ("--price", price),
            ("--temperature", temperature),
            ("--steps", steps),
            ("--jobs", jobs),
            ("--max-cost", max_cost),
            ("--name", name),
        ):
            if value is not None:
                arguments += [option, str(value)]
        return _watch([*arguments, *options], progress)


@contextlib.contextmanager
def _passing_on_ctrl_c(process: subprocess.Popen[str]) -> Iterator[None]:
    """On Ctrl-C, makes the program stop its run, unless the caller has installed a handler for Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: process.send_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _lines(stdout: IO[str]) -> Iterator[str]:
    """Iterates over the lines that the program writes.

    A separate thread reads the lines. If the main thread read them, a signal that arrives just before a read would be handled
    only after the next line, because Python handles signals between two steps of the main thread.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        try:
            with stdout:
                for line in stdout:
                    lines.put(line)
        finally:
            lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            continue
        if line is None:
            return
        yield line


def _watch(arguments: list[StrPath], progress: bool | None) -> Run:
    """Runs the program, shows its events, and returns the run that it has made."""
    folder: str | None = None
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        process = subprocess.Popen(
            command(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            env=environment(),
            # Ctrl-C reaches only this process, which passes it on once: a second signal would end the program at once.
            start_new_session=True,
        )
        assert process.stdout is not None
        with _passing_on_ctrl_c(process), Progress(progress) as shown:
            try:
                for line in _lines(process.stdout):
                    event = json.loads(line)
                    shown.on(event)
                    if event["event"] == "ended":
                        folder = event["run"]
                code = process.wait()
            finally:
                if process.poll() is None:
                    process.terminate()
        stderr.seek(0)
        said = stderr.read()
    if code not in (0, 9, 10):
        error: Error = failure(code, said)
        if folder is not None and isinstance(error, Unfinished):
            error.run = Run(folder)
        raise error
    if folder is None:
        raise failure(code or 1, said)
    return Run(folder)
