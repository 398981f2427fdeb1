"""Agents in Python: the decorator, what an agent's function is given, and the process that runs it.

The harness starts this file as a program of its own for every attempt (``python -c TEXT attempt FILE NAME``) and talks with
it in lines of JSON: this side asks on standard output, the harness answers on standard input. The file therefore needs
nothing but Python's own library; the text is compiled into the binary, so that both sides always fit each other.

What the function prints goes to standard error, which is kept in the attempt's record.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import inspect
import json
import os
import sys
import threading
import traceback
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Sequence, TypeVar

__all__ = [
    "AgentError",
    "BudgetExceeded",
    "Entry",
    "Exec",
    "Left",
    "Model",
    "ModelRefused",
    "Reply",
    "Sandbox",
    "SandboxRefused",
    "Task",
    "TaskExperiment",
    "TaskFunction",
    "agent",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__autoexperiment_agent__"
_PARAMETERS = ("task", "sandbox", "model")


class AgentError(Exception):
    """Something that an agent asked for was not done."""


class BudgetExceeded(AgentError):
    """A limit of the attempt is reached. Return what you have: no further call is answered."""


class SandboxRefused(AgentError):
    """The sandbox could not do it: a file that is not there, a path that leads out."""


class ModelRefused(AgentError):
    """The model did not answer this conversation; another one may be answered."""


def agent(function: _Function) -> _Function:
    """Marks a function as an agent.

    The function takes any of the parameters ``task``, ``sandbox`` and ``model``, by these names. It returns its answer: a
    string, or what ``json.dumps`` takes. It may be ``async``. An agent that takes ``model`` needs a model in the run.

    >>> @agent
    ... def nothing(task, sandbox):
    ...     return {}
    >>> nothing(None, None)
    {}
    """
    _parameters(function)
    setattr(function, _MARK, True)
    return function


def _parameters(function: Callable[..., Any]) -> list[str]:
    names = list(inspect.signature(function).parameters)
    wrong = [name for name in names if name not in _PARAMETERS]
    if wrong:
        raise TypeError(f"an agent's parameters are `task`, `sandbox` and `model`, not `{wrong[0]}`")
    return names


@dataclass(frozen=True)
class TaskFunction:
    """A masked function."""

    at: str
    """``path/file.py::Class.method``."""
    description: str
    passages: list[str]
    """Headings of the paper's sections that describe it."""


@dataclass(frozen=True)
class TaskExperiment:
    """An experiment that is to be run and reported."""

    id: str
    key: str
    """Its key in the answer: ``Experiment 3``."""
    description: str
    command: str
    time_limit: float
    """Seconds."""


@dataclass
class Left:
    """What is left of the attempt's budget."""

    steps: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    tokens: int | None = None


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    sample: str
    attempt: int
    """Number of this attempt at the sample, from 0."""
    instructions: str
    """What is to be done, in words: enough for any kind of task."""
    answer: str
    """What the answer must be, in words."""
    paper: str | None = None
    """The paper's text without its results; ``None`` for other kinds of tasks."""
    functions: list[TaskFunction] = field(default_factory=list)
    experiments: list[TaskExperiment] = field(default_factory=list)
    seed: int | None = None
    """A seed that differs from attempt to attempt."""
    left: Left = field(default_factory=Left)
    """What is left of the budget, as of the last call."""


@dataclass(frozen=True)
class Exec:
    """What a command gave."""

    code: int | None
    """Its exit code; ``None`` where a signal or a limit ended it."""
    ended: str
    """``exit``, ``signal``, ``timeout`` or ``disk``."""
    stdout: str
    stderr: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.code == 0


@dataclass(frozen=True)
class Entry:
    """An entry of a folder."""

    name: str
    kind: str
    """``file``, ``folder``, ``link`` or ``other``."""
    size: int


@dataclass(frozen=True)
class Reply:
    """What the model answered."""

    text: str
    reasoning: str | None
    tool_calls: list[dict[str, Any]]
    """Each with ``id``, ``name`` and ``arguments``."""
    usage: dict[str, int]
    cost: float
    """Dollars."""
    message: dict[str, Any]
    """The reply as a message, to go on from: ``messages.append(reply.message)``."""


def _encoded(message: dict[str, Any]) -> str:
    """A message as a line that the harness can read.

    Raises ``ValueError`` for a message that it could not read: one with a number like NaN, or with half of a character (a
    lone surrogate).
    """
    line = json.dumps(message, ensure_ascii=False, allow_nan=False)
    line.encode()
    return line


def _readable(text: str) -> str:
    """The text with a question mark for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()


class _Channel:
    """The harness at the other end."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self.reader, self.writer = reader, writer
        self.lock = threading.Lock()
        self.left = Left()

    def send(self, message: dict[str, Any]) -> None:
        self.write(_encoded(message))

    def write(self, line: str) -> None:
        self.writer.write(line + "\n")
        self.writer.flush()

    def receive(self) -> dict[str, Any]:
        line = self.reader.readline()
        if not line:
            # The harness is gone, and so is the attempt.
            os._exit(0)
        message: dict[str, Any] = json.loads(line)
        for name, value in message.get("left", {}).items():
            setattr(self.left, name, value)
        return message

    def call(self, call: str, **arguments: Any) -> dict[str, Any]:
        with self.lock:
            self.send({"call": call, **arguments})
            message = self.receive()
        if "error" in message:
            kinds = {"budget": BudgetExceeded, "sandbox": SandboxRefused, "model": ModelRefused}
            error = message["error"]
            raise kinds.get(error["kind"], AgentError)(error["message"])
        ok: dict[str, Any] = message["ok"]
        return ok


class Sandbox:
    """The attempt's sandbox. Paths are inside it, relative ones to the repository."""

    def __init__(self, channel: _Channel, workdir: str) -> None:
        self._channel = channel
        self.workdir = workdir
        """The repository's path inside."""

    def exec(
        self, command: str | Sequence[str], *, cwd: str = "", timeout: float | None = None, stdin: str = ""
    ) -> Exec:
        """Runs a command: a string for ``sh``, or a program with its arguments."""
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        done = self._channel.call("exec", argv=argv, cwd=cwd, seconds=timeout, stdin=stdin)
        return Exec(**done)

    def read(self, path: str) -> bytes:
        """A file's bytes."""
        return base64.b64decode(self._channel.call("read", path=path)["base64"])

    def read_text(self, path: str) -> str:
        """A file's text, in UTF-8."""
        return self.read(path).decode("utf-8", errors="replace")

    def write(self, path: str, content: str | bytes) -> None:
        """Creates or replaces a file."""
        data = content.encode() if isinstance(content, str) else content
        self._channel.call("write", path=path, base64=base64.b64encode(data).decode())

    def list(self, path: str = ".") -> list[Entry]:
        """A folder's entries."""
        return [Entry(**entry) for entry in self._channel.call("list", path=path)["entries"]]


class Model:
    """The run's model. What it costs is charged to the attempt, and every call is in its record."""

    def __init__(self, channel: _Channel, name: str) -> None:
        self._channel = channel
        self.name = name

    def ask(
        self,
        messages: str | Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> Reply:
        """Asks the model: a question, or a conversation of messages with ``role`` and ``content``.

        Each tool has ``name``, ``description`` and ``parameters`` (a JSON schema). A message that answers a call has the
        role ``tool`` and the call's id as ``tool_call_id``. Every reply is a step.
        """
        asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
        reply = self._channel.call(
            "ask", messages=asked, tools=list(tools), temperature=temperature, max_tokens=max_tokens
        )
        return Reply(**reply)


def _load(file: str, name: str) -> Callable[..., Any]:
    """The function of this name, or the only agent, of a file."""
    path = Path(file).resolve()
    sys.path.insert(0, str(path.parent))
    if importlib.util.find_spec("autoexperiment") is None:
        package = types.ModuleType("autoexperiment")
        package.__dict__.update({word: globals()[word] for word in __all__})
        sys.modules["autoexperiment"] = package
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{file}` is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    if not name:
        marked = [word for word, value in vars(module).items() if getattr(value, _MARK, False)]
        if len(marked) != 1:
            which = ", ".join(marked) or "none"
            raise LookupError(f"give the agent's name, as `python:{path.name}:NAME`: marked with `@agent` are {which}")
        name = marked[0]
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None or not callable(function):
        raise LookupError(f"`{path.name}` has no function `{name}`")
    return function


def _describe(file: str, name: str) -> dict[str, Any]:
    function = _load(file, name)
    return {
        "name": getattr(function, "__name__", name),
        "model": "model" in _parameters(function),
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def _attempt(file: str, name: str, channel: _Channel) -> dict[str, Any]:
    begun = channel.receive()
    told = begun["task"]
    task = Task(
        **{
            **told,
            "functions": [TaskFunction(**it) for it in told["functions"]],
            "experiments": [TaskExperiment(**it) for it in told["experiments"]],
            "left": channel.left,
        }
    )
    function = _load(file, name)
    given = {"task": task, "sandbox": Sandbox(channel, begun["workdir"])}
    if begun["model"] is not None:
        given["model"] = Model(channel, begun["model"])
    result = function(**{word: given[word] for word in _parameters(function)})
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if result is not None and not isinstance(result, str):
        result = json.dumps(result, ensure_ascii=False)
    return {"call": "answer", "answer": None if result is None else _readable(result)}


def _die_with_parent() -> None:
    """Where the harness is killed, so is this process."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)
    except (OSError, AttributeError, ImportError):
        pass


def _main(arguments: list[str]) -> int:
    verb, file, name = arguments
    # `from autoexperiment import ...` in the agent's file finds these very classes.
    sys.modules["autoexperiment._agents"] = sys.modules["__main__"]
    sys.argv = [file]
    # Standard output is the harness's; what the function and its children print there goes to standard error.
    writer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    reader = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    channel = _Channel(reader, writer)
    if verb == "describe":
        try:
            channel.send(_describe(file, name))
        except BaseException as error:
            traceback.print_exc()
            channel.send({"error": _readable(f"{type(error).__name__}: {error}")})
        return 0
    _die_with_parent()
    try:
        last = _encoded(_attempt(file, name, channel))
    except BaseException as error:
        if isinstance(error, MemoryError):
            # What fills the memory is in the function's variables, and saying so takes some.
            traceback.clear_frames(error.__traceback__)
        traceback.print_exc()
        said = _readable(f"{type(error).__name__}: {error}")
        last = _encoded({"call": "failed", "error": said, "budget": isinstance(error, BudgetExceeded)})
    sys.stdout.flush()
    sys.stderr.flush()
    channel.write(last)
    # Threads that the function has left are not waited for.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
