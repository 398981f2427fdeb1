"""Python runs this file when it starts. It records what the program asks for, one line of JSON each:

- the arguments that the process was started with,
- what the parsers of argparse give,
- the bound arguments of calls to the watched functions of the repository or of an installed package,
- digests of the objects and arrays that these calls, made by the program itself, get and return.

The plan, a JSON file, names the functions. For a right program it names none, and then all public functions are
recorded that the program calls itself, with what these call, but only the arguments that the program sets by a constant
or leaves at their defaults.
"""

import argparse
import json
import os
import sys

MOST_LINES = 4000
# Calls recorded of a function: by the program itself, and within other calls.
MOST_CALLS = 20000
MOST_INNER_CALLS = 1000
MOST_PARTS = 1000
DEEPEST = 3
# Different digests of a process, and bytes of all objects digested.
MOST_DIGESTS = 300
MOST_CONTENT = 16 << 20
# Depth of calls while an object is digested. Deeper ones have no digest.
DEEPEST_OBJECT = 2000
SENTINEL = 904173520618


class Recorder:
    def __init__(self, plan):
        import threading

        self.path = plan["out"]
        self.root = os.path.realpath(plan["root"])
        self.own = os.path.dirname(os.path.realpath(__file__))
        self.start = os.getcwd()
        self.program = os.path.realpath(plan["program"])
        self.packages = plan["packages"]
        self.stops = plan["stops"]
        self.shift = plan.get("shift")
        # By function: the arguments to record, or None for all that are simple.
        self.watch = plan["watch"]
        self.literals = None
        self.files = {}
        self.written = {}
        self.counts = {}
        self.digests, self.content = set(), MOST_CONTENT
        self.makers = {}
        self.local = threading.local()

    def write(self, line):
        """Writes a line, once. Returns its number."""
        text = json.dumps(line, sort_keys=True)
        number = self.written.get(text)
        if number is None and len(self.written) < MOST_LINES:
            # Processes that this one forks go on with the same numbers.
            number = self.written[text] = (os.getpid() << 20) + len(self.written)
            if "function" in line:
                line = dict(line, number=number)
            stream = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(stream, (json.dumps(line) + "\n").encode())
            os.close(stream)
        return number

    # Values

    def text(self, value):
        """A text as it is, or a path from the repository's root."""
        if len(value) < 1000 and (os.sep in value or os.path.exists(value)) and "\0" not in value:
            path = os.path.realpath(value)
            if path == self.root or path.startswith(self.root + os.sep):
                return os.path.relpath(path, self.root)
            return os.path.normpath(value)
        return value

    def plain(self, value, level=0):
        """A value as JSON; an object that has no such form as {"object": its type}."""
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return value if value - value == 0 else repr(value)
        if isinstance(value, str):
            return self.text(str(value))
        if isinstance(value, os.PathLike):
            return self.text(str(os.fspath(value)))
        if level < 8:
            if isinstance(value, (list, tuple)) and len(value) <= MOST_PARTS:
                return [self.plain(part, level + 1) for part in value]
            if isinstance(value, (set, frozenset)) and len(value) <= MOST_PARTS:
                return sorted((self.plain(part, level + 1) for part in value), key=repr)
            if isinstance(value, dict) and len(value) <= MOST_PARTS:
                return {str(key): self.plain(part, level + 1) for key, part in value.items()}
        if type(value).__module__ == "numpy" and hasattr(value, "tolist") and getattr(value, "size", 1) <= MOST_PARTS:
            if getattr(getattr(value, "dtype", None), "kind", "O") in "biufUS":
                return self.plain(value.tolist(), level + 1)
        if isinstance(value, range) and len(value) <= MOST_PARTS:
            return list(value)
        return {"object": getattr(value, "__qualname__", None) or type(value).__qualname__}

    def digest(self, value):
        """The digest of an object or array by its contents; None for what JSON can express, and for what has no contents
        to compare, such as a function of the program's own or an entry of an enumeration."""
        import hashlib
        import pickle

        if self.content <= 0 or len(self.digests) >= MOST_DIGESTS:
            return None
        if type(value).__module__ == "numpy":
            if getattr(value, "size", 0) < 4:
                return None
        elif isinstance(value, type) or type(value).__module__ == "builtins" or not is_object(self.plain(value)):
            return None
        # These are pickled by their names.
        if any(one.__name__ in ("Enum", "Logger") for one in type(value).__mro__):
            return None
        # Tensors are copied as a whole before they are written.
        if type(value).__module__.split(".")[0] == "torch" and getattr(value, "nbytes", 0) > self.content:
            return None
        content = Content(hashlib.sha256(), self.content)
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(min(limit, DEEPEST_OBJECT))
            pickler = pickle.Pickler(content, 5, buffer_callback=content.take)
            # Equal contents give equal bytes, whether they are the same object or not.
            pickler.fast = True
            pickler.dump(value)
        except Exception:
            return None
        finally:
            sys.setrecursionlimit(limit)
            self.content = content.room
        digest = content.digest.hexdigest()
        self.digests.add(digest)
        return digest

    def is_literal(self, value):
        """Whether the program's text holds this value, or all parts of it."""
        if isinstance(value, (list, tuple)):
            return bool(value) and all(self.is_literal(part) for part in value)
        if isinstance(value, dict):
            return bool(value) and "object" not in value and all(self.is_literal(part) for part in value.values())
        return (isinstance(value, bool), value) in self.literals

    def read_literals(self):
        import ast

        found = set()
        with open(self.program, encoding="utf-8") as stream:
            tree = ast.parse(stream.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and not isinstance(node.value, (bytes, complex, type(...))):
                parts = [node.value]
                if isinstance(node.value, str):
                    parts += [self.text(node.value), *node.value.split()]
                elif isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
                    parts.append(-node.value)
                found.update((isinstance(part, bool), part) for part in parts)
        return found

    # Files

    def place(self, file):
        """A file in the repository by its path there, one of a package from `site-packages/` on, and else its name."""
        file = os.path.realpath(os.path.join(self.start, file))
        if file.startswith(self.root + os.sep):
            return os.path.relpath(file, self.root)
        _, found, rest = file.rpartition(os.sep + "site-packages" + os.sep)
        return "site-packages/" + rest if found else os.path.basename(file)

    def is_watched(self, file):
        """Whether a file is of the repository or of a watched package; None for the program itself."""
        known = self.files.get(file)
        if known is None:
            path = os.path.realpath(os.path.join(self.start, file))
            if path == self.program or file.startswith("<"):
                known = "program"
            elif path.startswith(self.own + os.sep):
                known = "other"
            elif path.startswith(self.root + os.sep):
                known = "watched"
            else:
                _, found, rest = path.rpartition(os.sep + "site-packages" + os.sep)
                first = rest.split(os.sep)[0].split(".")[0]
                known = "watched" if found and first in self.packages else "other"
            self.files[file] = known
        return known

    def is_from_program(self, frame):
        while frame is not None:
            of = self.is_watched(frame.f_code.co_filename)
            if of != "other":
                return of == "program"
            frame = frame.f_back
        return False

    # Parsers

    def hook_argparse(self):
        import functools

        original = argparse.ArgumentParser.parse_known_args
        make = argparse.ArgumentParser.__init__
        own = {argparse.__file__, __file__}
        recorder = self
        depth = 0

        def caller(frame):
            while frame is not None and frame.f_code.co_filename in own:
                frame = frame.f_back
            return frame.f_code.co_filename if frame is not None else None

        def __init__(self, *args, **kwargs):
            recorder.makers[id(self)] = self, caller(sys._getframe(1))
            make(self, *args, **kwargs)

        def parse_known_args(self, args=None, namespace=None):
            nonlocal depth
            depth += 1
            try:
                parsed, rest = original(self, args, namespace)
            finally:
                depth -= 1
            if depth == 0:
                file = caller(sys._getframe(1))
                # A program may ask the repository's parser itself.
                if file is not None and recorder.is_watched(file) == "program":
                    file = recorder.makers.get(id(self), (None, file))[1] or file
                file = recorder.place(file) if file is not None else ""
                values = {name: recorder.named(value) for name, value in vars(parsed).items()}
                recorder.write({"file": file, "parsed": values, "rest": recorder.plain(rest)})
                if recorder.stops:
                    os._exit(0)
                shift = recorder.shift
                if shift and is_at(shift["at"], file):
                    if equal(recorder.plain(getattr(parsed, shift["name"], None)), shift["old"]):
                        setattr(parsed, shift["name"], shift["new"])
            return parsed, rest

        argparse.ArgumentParser.parse_known_args = parse_known_args
        argparse.ArgumentParser.__init__ = functools.wraps(make)(__init__)

    def named(self, value):
        """A parsed value; a file that the parser has opened by its name."""
        name = getattr(value, "name", None)
        if isinstance(name, str) and hasattr(value, "fileno"):
            return self.text(name)
        if isinstance(value, (list, tuple)):
            return [self.named(part) for part in value]
        return self.plain(value)

    # Functions

    def hook_imports(self):
        recorder = self

        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                for finder in sys.meta_path:
                    find = getattr(finder, "find_spec", None)
                    spec = find(name, path, target) if find and finder is not Finder else None
                    if spec is not None:
                        recorder.hook_loader(spec)
                        return spec
                return None

        sys.meta_path.insert(0, Finder)

    def hook_loader(self, spec):
        loader, origin = spec.loader, spec.origin
        run = getattr(loader, "exec_module", None)
        if run is None or not spec.has_location or not origin or self.is_watched(origin) != "watched":
            return

        def exec_module(module):
            run(module)
            try:
                self.wrap_module(module, os.path.splitext(self.place(origin))[0].split(".")[0] + ".py")
            except Exception:
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass

    def wrap_module(self, module, file):
        import enum

        for name, value in list(vars(module).items()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if isinstance(value, type):
                if not issubclass(value, (BaseException, enum.Enum)):
                    self.wrap_class(value, file)
            else:
                self.wrap(module, name, value, file)

    def wrap_class(self, cls, file):
        for name, value in list(vars(cls).items()):
            if name in ("__init__", "__call__") or not name.startswith("_") or name == "__new__" and issubclass(cls, tuple):
                if isinstance(value, (staticmethod, classmethod)):
                    self.wrap(None, name, value.__func__, file)
                else:
                    self.wrap(cls, name, value, file)

    def wrap(self, holder, attribute, function, file):
        import functools
        import inspect
        import types

        is_python = isinstance(function, types.FunctionType)
        if not is_python and type(function).__name__ not in ("cython_function_or_method", "fused_cython_function"):
            return
        if is_python and inspect.iscoroutinefunction(function):
            return
        if holder is None and (not is_python or function.__closure__):
            return
        name = file + "::" + function.__qualname__
        if attribute.startswith("_") and attribute not in ("__init__", "__call__", "__new__"):
            return
        if self.watch is not None and name not in self.watch or getattr(function, "__recorded__", False):
            return
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return
        # In place where that can be, so that tables of functions hold recorded ones too.
        if is_python and not function.__closure__:
            original = types.FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__
            )
            original.__kwdefaults__ = function.__kwdefaults__
            handle = self.handler(name, original, signature)
            constants = tuple(handle if part == SENTINEL else part for part in trampoline.__code__.co_consts)
            changed = {"co_consts": constants, "co_name": function.__name__, "co_filename": __file__}
            if hasattr(function.__code__, "co_qualname"):
                changed["co_qualname"] = function.__qualname__
            function.__code__ = trampoline.__code__.replace(**changed)
            function.__signature__ = signature
            function.__recorded__ = True
        else:
            handle = self.handler(name, function, signature)

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return handle(*args, **kwargs)

            wrapper.__recorded__ = True
            try:
                setattr(holder, attribute, wrapper)
            except (AttributeError, TypeError):
                pass

    def handler(self, name, original, signature):
        def handle(*args, **kwargs):
            local = self.local
            depth = getattr(local, "depth", 0)
            if depth < 0 or depth >= 50:
                return original(*args, **kwargs)
            parent, number, seen = getattr(local, "parent", None), None, None
            count = self.counts[name] = self.counts.get(name, 0) + 1
            most = MOST_INNER_CALLS if depth else MOST_CALLS
            if count <= most and (self.watch is not None or depth <= DEEPEST):
                local.depth = -1
                try:
                    number, seen, args, kwargs = self.record(
                        name, signature, args, kwargs, sys._getframe(2), depth, parent
                    )
                except Exception:
                    pass
            local.depth = depth + 1
            if number is not None:
                local.parent = number
            try:
                result = original(*args, **kwargs)
            finally:
                local.depth, local.parent = depth, parent
            if seen is not None and number is not None:
                local.depth = -1
                try:
                    if name.endswith("__init__"):
                        self.write_digest(seen[0], number)
                    elif not any(result is one for one in seen):
                        self.write_digest(result, number)
                except Exception:
                    pass
                local.depth = depth
            return result

        return handle

    def write_digest(self, value, of=None):
        try:
            digest = self.digest(value)
        except Exception:
            return
        if digest is not None:
            self.write({"digest": digest, "of": of})

    def record(self, name, signature, args, kwargs, frame, depth, parent):
        """Records a call. Returns the line's number; the arguments of a call that no other recorded one makes, else None;
        and the arguments to go on with."""
        bound = signature.bind(*args, **kwargs)
        explicit = set(bound.arguments)
        bound.apply_defaults()
        values, given = {}, set()
        for key, parameter in signature.parameters.items():
            value = bound.arguments[key]
            if key in ("self", "cls", "_cls") and not values:
                if name.endswith(("__init__", "__new__")):
                    values["self"] = self.class_of(value)
                    given.add("self")
            elif parameter.kind is parameter.VAR_KEYWORD:
                values.update(value)
                given.update(value)
            else:
                values[key] = value
                if key in explicit:
                    given.add(key)
        direct = depth == 0 and self.is_from_program(frame)
        line = {"function": name, "direct": direct}
        is_outermost = direct or self.watch is not None and depth == 0
        seen = list(bound.arguments.values()) if is_outermost else None
        if self.watch is None:
            if not direct and parent is None:
                return None, None, args, kwargs
            if self.literals is None:
                self.literals = self.read_literals()
            plain = {key: self.plain(value) for key, value in values.items()}
            line["set"] = {key: plain[key] for key in plain if key == "self" or key in given and self.is_literal(plain[key])}
            left = {key: plain[key] for key in plain if key not in given and not is_object(plain[key])}
            line["left"] = left if direct else {}
            if parent is not None:
                line["parent"] = parent
        else:
            keys = self.watch[name]
            plain = {key: self.plain(value) for key, value in values.items() if keys is None or key in keys}
            line["set"] = {key: value for key, value in plain.items() if keys is not None or not is_object(value)}
            if depth > 0 and not self.is_from_program(frame):
                line["within"] = True
        number = self.write(line)
        if direct and self.watch is not None:
            is_made = name.endswith("__init__")
            for value in list(bound.arguments.values())[is_made:]:
                self.write_digest(value)
        shift = self.shift
        if shift and shift["at"] == name and equal(self.plain(values.get(shift["name"])), shift["old"]):
            if shift["name"] in bound.arguments:
                bound.arguments[shift["name"]] = shift["new"]
            else:
                next(value for value in bound.arguments.values() if isinstance(value, dict))[shift["name"]] = shift["new"]
            return number, seen, bound.args, bound.kwargs
        return number, seen, args, kwargs

    def class_of(self, value):
        """The first class of an object, or of a class, that is not the program's own."""
        cls = value if isinstance(value, type) else type(value)
        own = (c for c in cls.__mro__ if c.__module__ != "__main__")
        return next(own, cls).__qualname__


class Content:
    """A file that keeps the digest of what is written to it. What finds no room is charged all the same, so that the work
    for all objects together is bounded."""

    def __init__(self, digest, room):
        self.digest, self.room = digest, room

    def write(self, part):
        self.room -= len(part)
        if self.room < 0:
            raise ValueError("too large")
        self.digest.update(part)

    def take(self, buffer):
        """Takes an array's memory as it is, without a copy."""
        self.write(buffer.raw().cast("B"))


def is_object(value):
    """Whether a value has an object in it that JSON cannot express."""
    if isinstance(value, dict):
        return list(value) == ["object"] or any(map(is_object, value.values()))
    return isinstance(value, list) and any(map(is_object, value))


def equal(one, other):
    """Whether two JSON values are equal. As in verdicts, numbers are compared up to rounding in the last digits, and True
    equals 1."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        try:
            return abs(one - other) <= 1e-14 * max(abs(one), abs(other))
        except OverflowError:
            return one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(part, other[key]) for key, part in one.items())
    return one == other


def is_at(at, file):
    """Whether a file that calls a parser is the file `at`, or in the same installed package, whose other commands may have
    the same effect."""
    return at == file or "::" not in at and package(at) is not None and package(at) == package(file)


def package(file):
    """The installed package of a file; None for a file of the repository, or of no package."""
    parts = file.split("/")
    return parts[1] if parts[0] == "site-packages" and len(parts) > 2 else None


def trampoline(*args, **kwargs):
    handle = 904173520618
    return handle(*args, **kwargs)


def install(path):
    with open(path, encoding="utf-8") as stream:
        plan = json.load(stream)
    recorder = Recorder(plan)
    try:
        with open("/proc/self/cmdline", "rb") as stream:
            argv = stream.read().decode(errors="replace").split("\0")[:-1]
        recorder.write({"argv": argv, "folder": os.path.relpath(os.getcwd(), recorder.root)})
    except OSError:
        pass
    recorder.hook_argparse()
    if plan["functions"]:
        recorder.hook_imports()


if os.environ.get("AUTOEXPERIMENT_RECORDER"):
    install(os.environ["AUTOEXPERIMENT_RECORDER"])
