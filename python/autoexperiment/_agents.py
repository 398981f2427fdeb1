"""Agents in Python: the decorator, the arguments of an agent's function, and the process that runs the function.

The harness starts this file as a separate process for every attempt (``python -c TEXT attempt FILE NAME``) and exchanges
lines of JSON with it: this process writes requests to standard output, and the harness writes the answers to standard
input. The text of this file is compiled into the harness, so that both sides always use the same version of the protocol.
The file needs only Python's standard library.

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
    """A request of the agent failed."""


class BudgetExceeded(AgentError):
    """A limit of the attempt is reached. Return what you have: no further call is answered."""


class SandboxRefused(AgentError):
    """The sandbox refused a request, for example because a file does not exist or a path leads out of the sandbox."""


class ModelRefused(AgentError):
    """The model did not answer this conversation; it may answer a different one."""


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
    """Where the function is: ``path/file.py::Class.method``."""
    description: str
    passages: list[str]
    """Headings of the paper's sections that describe the function."""


@dataclass(frozen=True)
class TaskExperiment:
    """An experiment that is to be run and reported."""

    id: str
    key: str
    """Key of the experiment's result in the answer, such as ``Experiment 3``."""
    description: str
    command: str
    time_limit: float
    """Time limit of the command, in seconds."""


@dataclass
class Left:
    """The remaining budget of an attempt."""

    steps: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    tokens: int | None = None


@dataclass(frozen=True)
class Task:
    """The task of an attempt."""

    sample: str
    attempt: int
    """Number of this attempt at the sample, from 0."""
    instructions: str
    """The task in words. For every kind of task, this text suffices."""
    answer: str
    """The required form of the answer, in words."""
    paper: str | None = None
    """The paper's text without its results; ``None`` for other kinds of tasks."""
    functions: list[TaskFunction] = field(default_factory=list)
    experiments: list[TaskExperiment] = field(default_factory=list)
    seed: int | None = None
    """A seed that differs from attempt to attempt."""
    left: Left = field(default_factory=Left)
    """The remaining budget after the last call."""


@dataclass(frozen=True)
class Exec:
    """The result of a command."""

    code: int | None
    """The exit code; ``None`` if a signal or a limit ended the command."""
    ended: str
    """How the command ended: ``exit``, ``signal``, ``timeout`` or ``disk``."""
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
    """A reply of the model."""

    text: str
    reasoning: str | None
    tool_calls: list[dict[str, Any]]
    """The tools that the model calls, each call with ``id``, ``name`` and ``arguments``."""
    usage: dict[str, int]
    cost: float
    """Dollars."""
    message: dict[str, Any]
    """The reply as a message, to continue the conversation: ``messages.append(reply.message)``."""


def _encoded(message: dict[str, Any]) -> str:
    """Returns a message as a line that the harness can read.

    Raises ``ValueError`` for a message that the harness could not read, because it contains a number like NaN or a lone
    surrogate (half of a character).
    """
    line = json.dumps(message, ensure_ascii=False, allow_nan=False)
    line.encode()
    return line


def _readable(text: str) -> str:
    """Returns the text with each lone surrogate replaced by a question mark."""
    return text.encode("utf-8", "replace").decode()


class _Channel:
    """The connection with the harness."""

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
            # The harness has ended, and the attempt with it.
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
    """The attempt's sandbox. Paths are paths in the sandbox; relative paths start at the repository."""

    def __init__(self, channel: _Channel, workdir: str) -> None:
        self._channel = channel
        self.workdir = workdir
        """The repository's path in the sandbox."""

    def exec(
        self, command: str | Sequence[str], *, cwd: str = "", timeout: float | None = None, stdin: str = ""
    ) -> Exec:
        """Runs a command: a string for ``sh``, or a program with its arguments."""
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        done = self._channel.call("exec", argv=argv, cwd=cwd, seconds=timeout, stdin=stdin)
        return Exec(**done)

    def read(self, path: str) -> bytes:
        """Returns a file's bytes."""
        return base64.b64decode(self._channel.call("read", path=path)["base64"])

    def read_text(self, path: str) -> str:
        """Returns a file's text, decoded as UTF-8."""
        return self.read(path).decode("utf-8", errors="replace")

    def write(self, path: str, content: str | bytes) -> None:
        """Creates or replaces a file."""
        data = content.encode() if isinstance(content, str) else content
        self._channel.call("write", path=path, base64=base64.b64encode(data).decode())

    def list(self, path: str = ".") -> list[Entry]:
        """Returns a folder's entries."""
        return [Entry(**entry) for entry in self._channel.call("list", path=path)["entries"]]


class Model:
    """The run's model. The attempt pays for every call, and its record contains every call."""

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
    """Loads the function with this name from a file; without a name, the file's only agent."""
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
    """Makes the kernel kill this process if the harness is killed."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)
    except (OSError, AttributeError, ImportError):
        pass


def _main(arguments: list[str]) -> int:
    verb, file, name = arguments
    # Make `from autoexperiment import ...` in the agent's file find the classes of this module, not copies of them.
    sys.modules["autoexperiment._agents"] = sys.modules["__main__"]
    sys.argv = [file]
    # Standard output is for messages to the harness. Redirect output of the function and its child processes to
    # standard error.
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
            # The function's variables probably fill the memory. Free them, because reporting the error needs some
            # memory.
            traceback.clear_frames(error.__traceback__)
        traceback.print_exc()
        said = _readable(f"{type(error).__name__}: {error}")
        last = _encoded({"call": "failed", "error": said, "budget": isinstance(error, BudgetExceeded)})
    sys.stdout.flush()
    sys.stderr.flush()
    channel.write(last)
    # Do not wait for threads that the function has started.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
