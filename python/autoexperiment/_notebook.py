"""Agents as files: the harness runs each attempt in a process of its own, which loads the agent from a file.

A function of a module is loaded from there. One of a notebook or of a prompt is written to a file first, with the modules,
plain values, functions and classes that it uses.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, Callable

from ._agents import _MARK
from ._errors import UsageError

__all__ = ["agent_file"]


def agent_file(function: Callable[..., Any], runs: Path, scratch: Path) -> str:
    """The agent as the command line names it."""
    name = getattr(function, "__name__", "")
    if not getattr(function, _MARK, False):
        raise UsageError(
            f"`{name or function}` is not marked as an agent", "put `@autoexperiment.agent` above the function", code=2
        )
    module = sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and function.__qualname__ == name and Path(file).suffix == ".py":
        return f"python:{Path(file).resolve()}:{name}"
    text = _as_file(function)
    # Kept beside the runs that it makes: `resume` needs it again.
    folder = runs / ".agents"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    path.write_text(text, encoding="utf-8")
    return f"python:{path.resolve()}:{name}"


def _as_file(function: Callable[..., Any]) -> str:
    parts: dict[str, str] = {}
    _collect(function, parts)
    return "\n\n".join(["import autoexperiment", *parts.values()]) + "\n"


def _collect(thing: Any, parts: dict[str, str]) -> None:
    """The source of a function or class, behind that of what it uses."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError) as error:
        raise UsageError(
            f"the source of `{thing.__name__}` is not known", "put the agent into a file and import it", code=2
        ) from error
    names = compile(source, "<agent>", "exec")
    space = thing.__globals__ if isinstance(thing, types.FunctionType) else vars(sys.modules[thing.__module__])
    for name in sorted(_names(names)):
        if name in parts or name == thing.__name__ or name not in space:
            continue
        value = space[name]
        if isinstance(value, types.ModuleType):
            parts[name] = f"import {value.__name__} as {name}"
        elif getattr(value, "__module__", None) not in (None, thing.__module__) and hasattr(value, "__qualname__"):
            parts[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
        elif isinstance(value, (types.FunctionType, type)):
            _collect(value, parts)
        elif _is_plain(value):
            parts[name] = f"{name} = {value!r}"
        else:
            raise UsageError(
                f"`{thing.__name__}` uses `{name}`, a {type(value).__name__}, which cannot be taken along",
                "make it inside the function, or put the agent into a file and import it",
                code=2,
            )
    parts[thing.__name__] = source.rstrip()


def _names(code: types.CodeType) -> set[str]:
    """The global names that code may use, that of the functions in it too."""
    inner = [it for it in code.co_consts if isinstance(it, types.CodeType)]
    return set(code.co_names).union(*(_names(it) for it in inner))


def _is_plain(value: Any) -> bool:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return True
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, dict) and all(_is_plain(it) for pair in value.items() for it in pair)
