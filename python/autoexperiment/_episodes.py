"""Episodes for learners: a client of ``autoexperiment serve``, and the server itself."""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlencode

from ._errors import Error, MachineError, failure
from ._program import command, environment
from ._suite import named, numbers
from ._websocket import WebSocket

__all__ = ["Episodes", "EpisodeError", "EpisodeServer", "Step", "begin", "serve"]

# Seconds between two requests for an episode while the server is full: the first pause, and the longest one.
_PAUSES = (0.5, 5.0)
# A text that is sent with a call is cut to this many characters at its beginning and at its end; the server keeps
# fewer.
_MOST_TEXT = 20_000
# Maximum bytes of a message; the server closes the connection of a client that sends a longer one.
_LONGEST = 4 << 20


class EpisodeError(Error):
    """The server refused a request. ``kind`` is OpenEnv's code, such as ``CAPACITY_REACHED``."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message, None, code=2)
        self.kind = kind

    @property
    def refuses_call(self) -> bool:
        """Whether only one message was refused, because it was invalid, so that the session and its episode continue."""
        return self.kind in ("EXECUTION_ERROR", "VALIDATION_ERROR", "INVALID_JSON", "UNKNOWN_TYPE")


@dataclasses.dataclass(frozen=True)
class Step:
    """The observation after ``reset`` or a call."""

    text: str
    reward: float | None
    done: bool
    observation: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def truncated(self) -> bool:
        """Whether a limit, and not the learner, ended the episode."""
        return bool(self.metadata.get("truncated"))

    @property
    def lost(self) -> bool:
        """Whether the episode ended because the machine failed. It has no reward and says nothing about the learner."""
        return self.done and self.reward is None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools, after ``reset``: each with its name, description and the schema of its arguments."""
        return list(self.observation.get("tools", []))


class Episodes:
    """A session with a server. Methods wait until a call or the verdict is finished, even if that takes long.

    If several threads use the session, they take turns. After a request was interrupted or failed, all further requests
    raise :class:`MachineError`, because a late answer to the failed request could be taken for the answer to a later one.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        client: str = "client",
        token: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        self._address = (url, "/ws?" + urlencode({"client": client}), token, timeout)
        self._turn = threading.Lock()
        self._unusable: str | None = None
        self._socket = WebSocket(*self._address)

    @property
    def usable(self) -> bool:
        """Whether the session can be used: it was not closed, and no request was interrupted or failed."""
        return self._unusable is None

    def reset(self, *, wait: float = 600.0, **asked: Any) -> Step:
        """Begins an episode. The arguments choose the task: ``sample``, or ``paper``, ``n``, ``seed``, ``split`` and ``index``.

        While the server is full, asks again for at most ``wait`` seconds.
        """
        data = {name: value for name, value in asked.items() if value is not None}
        until = time.monotonic() + wait
        pause, most = _PAUSES
        refused = False
        while True:
            try:
                return self._step(_message("reset", data))
            except EpisodeError as error:
                left = until - time.monotonic()
                if error.kind != "CAPACITY_REACHED" or left <= 0:
                    raise
                refused = True
                time.sleep(min(pause, left))
                pause = min(2 * pause, most)
            except MachineError:
                # A server with too many connections refuses the request and then closes the connection.
                if not refused:
                    raise
                refused = False
                self._connect_again()

    def step(self, tool: str, arguments: Mapping[str, Any] | None = None, text: str = "") -> Step:
        """Calls a tool. ``text`` is what the learner wrote with the call, for the record.

        The server answers a malformed call with an error and counts it as a step.
        """
        message, wrong = _call(tool, dict(arguments or {}), text)
        step = self._step(message)
        return step if wrong is None else dataclasses.replace(step, text=f"The call was {wrong}.\n\n{step.text}")

    def submit(self, answer: Mapping[str, Any] | str) -> Step:
        """Reports the results and ends the episode."""
        return self.step("submit", {"answer": answer if isinstance(answer, str) else json.dumps(answer)})

    def state(self) -> dict[str, Any]:
        """The session's state."""
        with self._exclusive():
            return self._ask(_message("state", {}))

    def close(self) -> None:
        """Leaves; an episode that has not ended counts as given up."""
        if self._unusable is None:
            self._unusable = "the session was closed"
            self._socket.close()

    def __enter__(self) -> Episodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect_again(self) -> None:
        with self._turn:
            self._socket = WebSocket(*self._address)
            self._unusable = None

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Makes other threads wait. Ends the connection if a request fails or is interrupted: its answer may come later."""
        with self._turn:
            if self._unusable is not None:
                raise MachineError(self._unusable, "connect again, with a new session", code=5)
            try:
                yield
            except EpisodeError:
                raise
            except BaseException as error:
                self._unusable = "the connection was interrupted"
                self._socket.abort()
                if isinstance(error, (OSError, ValueError)):
                    raise MachineError(f"the connection to the server failed: {error}", None, code=5) from error
                raise

    def _step(self, message: str) -> Step:
        with self._exclusive():
            found = self._ask(message)
            while found["observation"].get("pending"):
                found = self._ask(_message("step", {"tool": "wait"}))
        shown = found["observation"]
        return Step(shown.get("text", ""), found["reward"], bool(found["done"]), shown, found.get("metadata") or {})

    def _ask(self, message: str) -> dict[str, Any]:
        self._socket.send(message)
        answer = json.loads(self._socket.receive())
        if answer["type"] == "error":
            raise EpisodeError(answer["data"]["message"], answer["data"]["code"])
        found: dict[str, Any] = answer["data"]
        return found


def _message(kind: str, data: Mapping[str, Any]) -> str:
    return json.dumps({"type": kind, "data": data})


def _call(tool: str, arguments: Mapping[str, Any], text: str) -> tuple[str, str | None]:
    """Returns a call as a message.

    A call that cannot be sent is replaced by a malformed call, which counts as one step. If it raised an exception instead,
    a learner could end its episode without a reward. Also returns what is wrong with such a call. The text is only for the
    record, so it is changed until it can be sent: if it is long, its middle is left out, and lone surrogates are replaced.
    """
    if len(text) > 2 * _MOST_TEXT:
        text = text[:_MOST_TEXT] + text[-_MOST_TEXT:]
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        message = _message("step", {"tool": tool, "arguments": arguments, "text": text})
        if len(message) <= _LONGEST:
            return message, None
        wrong = f"too long: {len(message):,} bytes, where at most {_LONGEST:,} are allowed"
    except RecursionError:
        wrong = "nested too deeply"
    return _message("step", {"tool": tool[:100], "arguments": wrong}), wrong


def begin(episodes: Episodes | None, connection: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[Episodes, Step]:
    """Begins an episode. Connects first if there is no session, or if the session has ended, for example for being idle."""
    if episodes is not None and episodes.usable:
        try:
            return episodes, episodes.reset(**asked)
        except MachineError:
            pass
    episodes = Episodes(**connection)
    try:
        return episodes, episodes.reset(**asked)
    except BaseException:
        episodes.close()
        raise


class EpisodeServer:
    """A server that runs until it is closed or this process ends. ``url`` is its address, ``token`` its secret, if any."""

    def __init__(self, process: subprocess.Popen[str], url: str, token: str | None = None) -> None:
        self._process = process
        self.url = url
        self.token = token
        atexit.register(self.close)

    def connect(self, client: str = "client") -> Episodes:
        """Opens a session with this server."""
        return Episodes(self.url, client=client, token=self.token)

    def close(self) -> None:
        """Stops the server; running episodes are stored as cancelled."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> EpisodeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    papers: str | Iterable[str] = (),
    *,
    n: int | str | Iterable[int] = 1,
    suite: str | os.PathLike[str] | None = None,
    runs: str | os.PathLike[str] | None = None,
    name: str | None = None,
    jobs: int | None = None,
    reward: str = "pass",
    curriculum: float | None = None,
    token: str | None = None,
    options: Sequence[str] = (),
) -> EpisodeServer:
    """Starts ``autoexperiment serve`` on a free port of this machine. ``options`` are further command-line options.

    ``papers`` and ``n`` are given as to :func:`samples`.
    Clients must send the ``token``; by default it is ``AUTOEXPERIMENT_TOKEN`` of the environment, if that is set.
    """
    arguments: list[str] = ["serve", *named(papers, "papers"), "-n", numbers(n), "--reward", reward]
    # With this option, the server stops when its standard input ends, which happens even if this process is killed.
    arguments.append("--until-eof")
    if not any(option.split("=")[0] in ("--socket", "--listen", "--port") for option in options):
        arguments += ["--port", "0"]
    for option, value in (("--suite", suite), ("--runs", runs), ("--name", name), ("--jobs", jobs), ("--curriculum", curriculum)):
        if value is not None:
            arguments += [option, os.fspath(value) if isinstance(value, (str, Path)) else str(value)]
    secret = _option("--token", options) or token or os.environ.get("AUTOEXPERIMENT_TOKEN")
    process = subprocess.Popen(
        command([*arguments, *options]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
        text=True, encoding="utf-8", errors="replace",
        # Unlike its options, a process's environment is not shown to other users.
        env={**environment(), **({} if secret is None else {"AUTOEXPERIMENT_TOKEN": secret})},
        # Ctrl-C reaches only this process, which then stops the server once: a second signal would end it at once.
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    # Read the server's messages from the beginning: if they filled the pipe, the server would block.
    said, drained = _drain(process)
    try:
        url = process.stdout.readline().strip()
    except BaseException:
        process.terminate()
        raise
    if not url:
        drained.join()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        raise failure(process.wait(), "".join(said))
    return EpisodeServer(process, url, secret)


def _option(name: str, options: Sequence[str]) -> str | None:
    """Returns the value of a command-line option. If the option is given several times, the last value counts."""
    found = None
    for place, option in enumerate(options):
        if option.startswith(f"{name}="):
            found = option.removeprefix(f"{name}=")
        elif option == name and place + 1 < len(options):
            found = options[place + 1]
    return found


def _drain(process: subprocess.Popen[str]) -> tuple[collections.deque[str], threading.Thread]:
    """Reads a process's standard error in a thread, which ends with the process. Keeps the last lines."""
    lines: collections.deque[str] = collections.deque(maxlen=1000)

    def read() -> None:
        try:
            lines.extend(process.stderr or ())
        except ValueError:
            # The stream was closed meanwhile.
            pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return lines, thread
