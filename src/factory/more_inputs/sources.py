"""Converts values to source texts: expressions that make equal values."""

import ast
import base64
import builtins
import contextlib
import datetime
import decimal
import fractions
import functools
import hashlib
import inspect
import io
import linecache
import math
import os
import pickle
import re
import sys
import types

from . import helpers

# Maximum characters of an argument's source: without and with a pickled object. A source with a pickled object may be
# longer, because the tests of a file share pickled objects.
LONGEST_ARGUMENT, LONGEST_PICKLE = 3000, 8000
# Maximum characters of a call's outcome: of an outcome that a test contains as a literal, and of an outcome whose
# digest a test contains.
LONGEST_LITERAL, LONGEST_OUTCOME = 1500, 30000
# Flags of the code of coroutines and asynchronous generators.
ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class NoSource(Exception):
    """Raised for a value for which there is no source text."""


def source_of(value, depth=0):
    """Returns an expression that makes an equal value: a literal, a lambda, or a call of a constructor of the standard
    library or of `loaded` (for a pickled value)."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, complex, range):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if depth < 6 and kind in (list, tuple, set, frozenset, dict):
        with contextlib.suppress(NoSource):
            source = written_container(value, kind, lambda part: source_of(part, depth + 1))
            # If a member must be pickled, the whole container (except a dict) is pickled, so that its members still
            # share objects.
            if kind is dict or "loaded(" not in source:
                return source
    if kind is slice:
        return f"slice({', '.join(source_of(part, depth + 1) for part in (value.start, value.stop, value.step))})"
    if kind.__module__ == "datetime" and kind.__name__ in ("date", "datetime", "time", "timedelta"):
        if getattr(value, "tzinfo", None) in (None, datetime.timezone.utc):
            return repr(value)
    if kind in (decimal.Decimal, fractions.Fraction):
        return f"{kind.__module__}.{value!r}"
    return lambda_of(value) or pickled(value)


def written_container(value, kind, written):
    """Returns an expression for a built-in container. `written` converts a member to its expression."""
    if kind is dict:
        parts = (f"{written(key)}: {written(part)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    parts = [written(part) for part in (sorted(value, key=repr) if kind in (set, frozenset) else value)]
    inner = ", ".join(parts)
    if kind is list:
        return f"[{inner}]"
    if kind is tuple:
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    return f"{kind.__name__}([{inner}])"


def pickled(value):
    if getattr(value, "nbytes", 0) > LONGEST_ARGUMENT:
        raise NoSource
    try:
        text = pickle.dumps(value, 4)
        same = type(WithoutTests(io.BytesIO(text)).load()) is type(value)
    except Exception as error:
        raise NoSource from error
    if not same or b"__main__" in text or SURROUNDINGS.folder.encode() in text:
        raise NoSource
    return f"loaded({base64.b64encode(text).decode()!r})"


class Surroundings:
    """The files of the tests that are being run, and the temporary folder in which they run. Each run has another
    folder, so its path must not be in a test."""

    def __init__(self):
        self.test_files, self.folder = frozenset(), ""

    def surround(self, repo, test_files):
        self.test_files = frozenset(os.path.join(repo, file) for file in test_files)
        self.folder = os.path.dirname(repo)


SURROUNDINGS = Surroundings()


class WithoutTests(pickle.Unpickler):
    """Unpickler that refuses classes from test files: a test file may be emptied while tests of other files run."""

    def find_class(self, module, name):
        found = super().find_class(module, name)
        if getattr(sys.modules.get(module), "__file__", None) in SURROUNDINGS.test_files:
            raise NoSource
        return found


def lambda_of(value):
    """Returns the source of a function as a lambda. The function must be in a test file, and only return an expression
    that uses nothing but its arguments and built-in names. Returns `None` for all other values."""
    if type(value) is not types.FunctionType:
        return None
    code = value.__code__
    if essence_of(code) in LAMBDAS:
        return LAMBDAS[essence_of(code)]
    if code.co_filename not in SURROUNDINGS.test_files or not is_built_in(code):
        return None
    if code.co_freevars or value.__defaults__ or value.__kwdefaults__:
        return None
    for node in functions_of(code.co_filename):
        if node.lineno != code.co_firstlineno:
            continue
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if node.name != code.co_name or len(body) != 1 or not isinstance(body[0], ast.Return) or not body[0].value:
                continue
            node = ast.Lambda(node.args, body[0].value)
        source = f"({ast.unparse(ast.Lambda(without_annotations(node.args), node.body))})"
        if essence_of(eval(source, {}).__code__) == essence_of(code):
            LAMBDAS[essence_of(code)] = source
            return source
    return None


# Sources of functions, as `lambda_of` returns them, by the result of `essence_of`. They are kept because a function
# that is evaluated from such a source has no file from which the source could be read again.
LAMBDAS = {}


def essence_of(code):
    """Returns the parts of a code object that determine what it does, without its name and its position in the file."""
    constants = [repr(one) for one in code.co_consts if one is not None]
    # Ignore the flag of functions that are defined inside other functions: it does not change what they do.
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~inspect.CO_NESTED
    return (code.co_code, code.co_varnames, code.co_names, counts, *constants)


def without_annotations(arguments):
    for node in ast.walk(arguments):
        if isinstance(node, ast.arg):
            node.annotation = None
    return arguments


def is_built_in(code):
    """Whether a function uses no global names except built-in ones, and contains no inner functions."""
    is_inner = any(isinstance(one, types.CodeType) for one in code.co_consts)
    return not is_inner and all(hasattr(builtins, name) or hasattr(str, name) or hasattr(list, name) for name in code.co_names)


@functools.cache
def functions_of(file):
    """Returns the syntax trees of the functions and lambdas in a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Lambda, ast.FunctionDef))]


def arguments_of(frame, source):
    """Returns the source texts of a call's positional arguments, and pairs of name and source text for its named
    arguments. `source` converts a value to its source text.

    Raises `NoSource` if one of them cannot be in a test: if it is too long, or names the temporary folder."""
    code, values = frame.f_code, frame.f_locals
    names, count = code.co_varnames, code.co_argcount + code.co_kwonlyargcount
    found = [source(values[name]) for name in names[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        found += [source(value) for value in values[names[count]]]
    named = {name: source(values[name]) for name in names[code.co_argcount : count]}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        extra = values[names[count + bool(code.co_flags & inspect.CO_VARARGS)]]
        named.update((name, source(value)) for name, value in extra.items())
    if not all(is_short(one) and SURROUNDINGS.folder not in one for one in [*found, *named.values()]):
        raise NoSource
    return tuple(found), tuple(named.items())


def is_short(source):
    """Whether the source text of an argument is short enough to be in a test."""
    return len(source) <= (LONGEST_PICKLE if "loaded(" in source else LONGEST_ARGUMENT)


def is_lasting(shown, sources):
    """Whether an outcome may be in a test. It must not be too long. An outcome with floats must be shorter than others,
    because it needs a literal: a digest cannot be compared with a tolerance. It must not contain a memory address, the
    temporary folder, or the current year, unless the year is also in the sources of the arguments."""
    year = str(datetime.date.today().year)
    is_today = re.search(rf"(?<!\d){year}(?!\d)", shown) and not any(year in source for source in sources)
    has_float = re.search(r"\d\.\d|\de[+-]?\d", shown)
    fits = len(shown) <= (LONGEST_LITERAL if has_float else LONGEST_OUTCOME)
    return fits and " at 0x" not in shown and SURROUNDINGS.folder not in shown and not is_today


def value_of(source, names=None):
    """Evaluates a source text, which may use the names in `names` and those that test files import or define."""
    return eval(source, vars(helpers), names or {})


@functools.cache
def type_of(source):
    """Returns the type of a source text's value, for an array with the type of its members. Returns "number" for int,
    float and complex, and `None` if the source text cannot be evaluated."""
    try:
        kind = kind_of(value_of(source))
    # Evaluating the source of a changed value may raise any exception.
    except Exception:
        return None
    return "number" if kind in (int, float, complex) else kind


def kind_of(value):
    """Returns the type of a value, for an array together with the type of its members."""
    kind = type(value)
    return (kind, value.dtype.char) if kind.__module__ == "numpy" and kind.__name__ == "ndarray" else kind


def by_place(positional, named):
    """Returns the source texts of a call's arguments by their index or name."""
    return dict([*enumerate(positional), *named])


def digest(positional, named):
    """Returns a digest of a call's arguments."""
    return hashlib.sha256(repr((tuple(positional), tuple(map(tuple, named)))).encode()).hexdigest()[:16]
