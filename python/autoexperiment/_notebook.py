"""Agents as files: the harness runs each attempt in a separate process, which loads the agent from a file.

An agent that is defined in a module is loaded from the module's file. An agent that is defined in a notebook or at a prompt
is first written to a file, together with the modules, plain values, functions and classes that it uses.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import math
import sys
import textwrap
import types
from pathlib import Path
from typing import Any, Callable, Iterator

from ._agents import _MARK
from ._errors import UsageError

__all__ = ["agent_file"]


def agent_file(function: Callable[..., Any], runs: Path, scratch: Path) -> str:
    """Returns the name of an agent for the command line, such as ``python:FILE:NAME``. Writes its file if it has none."""
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
    # Keep the file next to the runs, because `resume` needs it again.
    folder = runs / ".agents"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    path.write_text(text, encoding="utf-8")
    return f"python:{path.resolve()}:{name}"


def _as_file(function: Callable[..., Any]) -> str:
    definitions = _Definitions(function.__module__)
    definitions.add(function.__name__, function, function.__name__)
    return "\n\n".join(["import autoexperiment", *definitions.texts]) + "\n"


class _Definitions:
    """The definitions of an agent and of all global names that it uses. Each definition follows those that it needs."""

    def __init__(self, module: str) -> None:
        self.texts: list[str] = []
        self._module = module
        # The values by their names. A value is added before its definition is read, because functions may call each
        # other.
        self._values: dict[str, Any] = {}

    def add(self, name: str, value: Any, user: str) -> None:
        """Adds the definition of a global name that ``user`` uses."""
        if name not in self._values:
            self._values[name] = value
            self.texts.append(self._definition(name, value, user))
        elif self._values[name] is not value:
            raise _refused(f"`{user}` and other parts of the agent use different things called `{name}`", "rename one")

    def _definition(self, name: str, value: Any, user: str) -> str:
        if isinstance(value, types.ModuleType):
            return f"import {value.__name__} as {name}"
        inner = inspect.unwrap(value) if callable(value) else value
        if isinstance(inner, (types.FunctionType, type)) and inner.__module__ == self._module:
            return self._written(name, inner)
        text = self._imported(name, value)
        if text is None and (plain := _plain(value)) is not None:
            text = f"{name} = {plain}"
        if text is None:
            raise _refused(f"`{user}` uses `{name}`, a {type(value).__name__}, which cannot be taken along")
        return text

    def _written(self, name: str, thing: Any) -> str:
        """Returns the definition of a function or class of the agent's own module."""
        try:
            source = textwrap.dedent(inspect.getsource(thing)).rstrip()
        except (OSError, TypeError) as error:
            raise UsageError(
                f"the source of `{name}` is not known", "put the agent into a file and import it", code=2
            ) from error
        own, space = thing.__name__, _space(thing)
        if own == "<lambda>":
            source = f"{name} = {_lambda(name, source)}"
        elif own != name:
            original = space.get(own)
            self.add(own, original if callable(original) and inspect.unwrap(original) is thing else thing, name)
            return f"{name} = {own}"
        try:
            # Do not inherit the `__future__` import of this module, because it would remove annotations from the
            # compiled code.
            code = compile(source, "<agent>", "exec", dont_inherit=True)
        except SyntaxError as error:
            raise _refused(f"the source of `{name}` cannot stand alone: {error.msg}") from error
        names, attributes = _names(code)
        for used in sorted(names & space.keys() - {name}):
            self.add(used, space[used], name)
            if isinstance(space[used], types.ModuleType):
                for inside, module in _submodules(space[used].__name__, space[used], attributes):
                    if inside not in self._values:
                        self._values[inside] = module
                        self.texts.append(f"import {inside}")
        return source

    def _imported(self, name: str, value: Any) -> str | None:
        """Returns code that imports a value from another module; ``None`` if that module does not contain the value."""
        module = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
        for path in (getattr(value, "__qualname__", None), getattr(value, "__name__", None), name):
            if module == self._module or not isinstance(path, str):
                continue
            found: Any = sys.modules.get(module)
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is value and value is not None:
                first, *rest = path.split(".")
                inside = f"\n{name} = {'.'.join([name, *rest])}" if rest else ""
                return f"from {module} import {first} as {name}{inside}"
        return None


def _refused(what: str, hint: str = "make it inside the function") -> UsageError:
    return UsageError(what, f"{hint}, or put the agent into a file and import it", code=2)


def _space(thing: Any) -> dict[str, Any]:
    """Returns the names that a function or class can use, with their values: globals, and variables of enclosing functions."""
    if not isinstance(thing, types.FunctionType):
        return vars(sys.modules[thing.__module__])
    around = {}
    for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or ()):
        try:
            around[name] = cell.cell_contents
        except ValueError:
            # The variable has no value yet.
            pass
    return {**thing.__globals__, **around}


def _lambda(name: str, source: str) -> str:
    """Returns the source of the only lambda in these lines."""
    try:
        pending: list[ast.AST] = [ast.parse(source)]
    except SyntaxError:
        pending = []
    found = []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            found.append(ast.unparse(node))
        else:
            pending.extend(ast.iter_child_nodes(node))
    if len(found) != 1:
        raise _refused(f"`{name}` is a lambda whose source is not known", "define it with `def`")
    return found[0]


def _names(code: types.CodeType) -> tuple[set[str], set[str]]:
    """Returns the global names and the attributes that code may use, including those in nested functions."""
    names, attributes = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            names.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(step.argval)
        elif isinstance(step.argval, types.CodeType):
            inner = _names(step.argval)
            names |= inner[0]
            attributes |= inner[1]
    return names, attributes


def _submodules(path: str, module: types.ModuleType, attributes: set[str]) -> Iterator[tuple[str, types.ModuleType]]:
    """Finds submodules that are used as attributes of a module, such as ``urllib.request``."""
    for attribute in sorted(attributes):
        inside = f"{path}.{attribute}"
        found = getattr(module, attribute, None)
        if isinstance(found, types.ModuleType) and found is sys.modules.get(inside):
            yield inside, found
            yield from _submodules(inside, found, attributes)


def _plain(value: Any) -> str | None:
    """Returns the source of a value of a plain built-in type; ``None`` for any other value, also of a subclass of such a type."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is dict:
        pairs = [(_plain(key), _plain(it)) for key, it in value.items()]
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{key}: {it}" for key, it in pairs) + "}"
    if kind not in (list, tuple, set, frozenset):
        return None
    parts = [part for part in map(_plain, value) if part is not None]
    if len(parts) != len(value):
        return None
    shown = f"[{', '.join(parts)}]"
    return shown if kind is list else f"{kind.__name__}({shown})"
