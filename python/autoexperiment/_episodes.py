"""Episodes for learners: a client of ``autoexperiment serve``, and the server itself."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence
from urllib.parse import urlencode

from ._errors import Error, failure
from ._program import command, environment
from ._websocket import WebSocket

__all__ = ["Episodes", "EpisodeError", "EpisodeServer", "Step", "serve"]


class EpisodeError(Error):
    """The server refused a request. ``kind`` is OpenEnv's code, such as ``CAPACITY_REACHED``."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message, None, code=2)
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Step:
    """What a learner is shown after ``reset`` or a call."""

    text: str
    reward: float | None
    done: bool
    observation: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the episode rather than the learner."""
        return bool(self.metadata.get("truncated"))

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools, after ``reset``: each with its name, description and the schema of its arguments."""
        return list(self.observation.get("tools", []))


class Episodes:
    """A session with a server. Calls and verdicts that take long are waited for."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        client: str = "client",
        token: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._socket = WebSocket(url, "/ws?" + urlencode({"client": client}), token, timeout)

    def reset(self, **asked: Any) -> Step:
        """Begins an episode: of a ``sample``; or of a ``paper``, ``n``, ``seed``, ``split`` or ``index``."""
        return self._step("reset", {name: value for name, value in asked.items() if value is not None})

    def step(self, tool: str, arguments: Mapping[str, Any] | None = None, text: str = "") -> Step:
        """Calls a tool. ``text`` is what the learner wrote with the call, for the record."""
        return self._step("step", {"tool": tool, "arguments": dict(arguments or {}), "text": text})

    def submit(self, answer: Mapping[str, Any] | str) -> Step:
        """Reports the results and ends the episode."""
        return self.step("submit", {"answer": answer if isinstance(answer, str) else json.dumps(answer)})

    def state(self) -> dict[str, Any]:
        """The session's state."""
        return self._ask("state", {})

    def close(self) -> None:
        """Leaves; an episode that has not ended counts as given up."""
        self._socket.close()

    def __enter__(self) -> Episodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _step(self, kind: str, data: Mapping[str, Any]) -> Step:
        found = self._ask(kind, data)
        while found["observation"].get("pending"):
            found = self._ask("step", {"tool": "wait"})
        shown = found["observation"]
        return Step(shown.get("text", ""), found["reward"], bool(found["done"]), shown, found.get("metadata") or {})

    def _ask(self, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
        self._socket.send(json.dumps({"type": kind, "data": data}))
        answer = json.loads(self._socket.receive())
        if answer["type"] == "error":
            raise EpisodeError(answer["data"]["message"], answer["data"]["code"])
        found: dict[str, Any] = answer["data"]
        return found


class EpisodeServer:
    """A server that runs until it is closed. ``url`` is its address."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def connect(self, client: str = "client") -> Episodes:
        """A session with this server."""
        return Episodes(self.url, client=client)

    def close(self) -> None:
        """Stops the server; running episodes are stored as cancelled."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> EpisodeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    papers: Sequence[str] = (),
    *,
    n: int | range | Sequence[int] = 1,
    suite: str | os.PathLike[str] | None = None,
    runs: str | os.PathLike[str] | None = None,
    name: str | None = None,
    jobs: int | None = None,
    reward: str = "pass",
    curriculum: float | None = None,
    options: Sequence[str] = (),
) -> EpisodeServer:
    """Starts ``autoexperiment serve`` on a free port of this machine. ``options`` are further ones of the command line."""
    numbers = [n] if isinstance(n, int) else list(n)
    arguments: list[str] = ["serve", *papers, "-n", ",".join(map(str, numbers)), "--reward", reward]
    if not any(option.split("=")[0] in ("--socket", "--listen", "--port") for option in options):
        arguments += ["--port", "0"]
    for option, value in (("--suite", suite), ("--runs", runs), ("--name", name), ("--jobs", jobs), ("--curriculum", curriculum)):
        if value is not None:
            arguments += [option, os.fspath(value) if isinstance(value, (str, Path)) else str(value)]
    process = subprocess.Popen(
        command([*arguments, *options]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        text=True, encoding="utf-8", env=environment(),
    )
    assert process.stdout is not None and process.stderr is not None
    url = process.stdout.readline().strip()
    if not url:
        said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        raise failure(process.wait(), said)
    # What the server says later must not fill the pipe.
    _drain(process)
    return EpisodeServer(process, url)


def _drain(process: subprocess.Popen[str]) -> None:
    import threading

    def read() -> None:
        try:
            for _ in process.stderr or ():
                pass
        except ValueError:
            # Closed meanwhile.
            pass

    threading.Thread(target=read, daemon=True).start()
