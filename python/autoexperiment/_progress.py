"""Shows the progress of a run: a bar on a terminal and in a notebook, elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import Any

__all__ = ["Progress"]

_WIDTH = 30
_SECONDS = 10.0
"""Minimum number of seconds between two lines if there is no terminal."""


class Progress:
    """Shows events of a run on standard error, or as a display of the notebook."""

    def __init__(self, wanted: bool | None) -> None:
        self._display = _notebook_display() if wanted is not False else None
        self._terminal = wanted if wanted is not None else sys.stderr.isatty()
        if self._display is not None or wanted is False:
            self._terminal = False
        self._lines = wanted is None and self._display is None and not self._terminal
        self._shown_at = float("-inf")
        self._what = "starting"
        self._total = self._done = self._passed = self._lost = 0
        self._cost = 0.0
        self._begun = time.monotonic()
        self._handle: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show(last=True)
        if self._terminal:
            sys.stderr.write("\n")

    def on(self, event: dict[str, Any]) -> None:
        """Handles an event of ``--json-events``."""
        kind = event["event"]
        if kind == "stage":
            self._what = event["what"]
        elif kind == "planned":
            self._total, self._done = event["total"], event["finished"]
            self._what = "attempts"
        elif kind == "finished":
            self._done += 1
            self._passed += event["outcome"] == "pass"
            self._lost += event["outcome"] == "lost"
            self._cost += event["cost"]
        elif kind == "ended":
            self._what = event["outcome"]
        self._show()

    def _words(self) -> str:
        seconds = int(time.monotonic() - self._begun)
        words = f"{self._what}, {self._done} of {self._total}, {self._passed} passed"
        if self._lost:
            words += f", {self._lost} lost"
        if self._cost:
            words += f", ${self._cost:.2f}"
        return f"{words}, {seconds // 60}:{seconds % 60:02}"

    def _show(self, last: bool = False) -> None:
        now = time.monotonic()
        if self._lines and (last or now - self._shown_at >= _SECONDS):
            self._shown_at = now
            sys.stderr.write(f"{self._words()}\n")
        if self._terminal:
            filled = _WIDTH * self._done // max(self._total, 1)
            sys.stderr.write(f"\r\x1b[K[{'#' * filled}{'.' * (_WIDTH - filled)}] {self._words()}")
            sys.stderr.flush()
        if self._display is not None:
            html = _Html(
                f'<progress value="{self._done}" max="{max(self._total, 1)}"></progress> {escape(self._words())}',
                self._words(),
            )
            if self._handle is None:
                self._handle = self._display(html, display_id=True)
            else:
                self._handle.update(html)


class _Html:
    """A text with an HTML version, which notebooks show."""

    def __init__(self, html: str, text: str) -> None:
        self.html, self.text = html, text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def _notebook_display() -> Any:
    """Returns IPython's ``display`` if this process is a notebook's kernel, otherwise ``None``."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    return display
