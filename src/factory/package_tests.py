"""Runs a Python package's own tests on code that is not trusted, and prints one line of JSON.

    python -B -I autoexperiment_package_tests.py survey [--seconds 5] [--doctests] [--added] [--other-draws] [--output FILE]
    python -B -I autoexperiment_package_tests.py inputs FILE [--output FILE]
    python -B -I autoexperiment_package_tests.py check FILE [--hash-seed N] [--output FILE]
    python -B -I autoexperiment_package_tests.py run GROUP [--ids FILE] [--unguarded] [--keep] [--drawing N] [--output FILE]
    python -B -I autoexperiment_package_tests.py trials FILE [--output FILE]

`survey` finds all tests of the original code and reports each one's outcome, time, values and entered functions. With
`--other-draws`, the package's code draws other random numbers than usual, and the tests' code the usual ones, and sets have
another order; with `--added`, only tests that `inputs` has made are run. `inputs` makes tests of the original code with more
inputs, and starts `check`, which tells which calls of these tests have the same outcomes with another seed of hashes. `run`
runs one group of the plan, `autoexperiment_package_tests.json`, on code that an agent may have written. `--unguarded`
runs each test once, for code that is trusted; `--keep` leaves the test files on the disk. `trials` runs tests on each of
several changes of trusted code. With `-I`, Python imports nothing from the repo before this file does; `PYTHONPATH` is
then read here.

The code under test runs in the process of the tests and could make them pass. So a pass is not taken from one process.
Each test file runs in several processes, one after the other, each in a fresh copy of the repo. In each process, each
test function is in one of three variants, which are drawn at random:

- `plain`: the test as its authors wrote it;
- `expectation`: every value that the test expects is another one, so the test must fail;
- `ending`: one more assertion at the end of the test is false, so the test must fail.

A test may depend on what earlier tests leave behind, and an altered test ends early. So right code could fail where the
altered tests are others than in the runs of the original code. Therefore, the plan holds a few `drawings`, random texts from
which all variants follow. When gold is recorded, each run uses one of them (`--drawing N`). Each later run draws one of them
for each file. So all of its processes have run on the original code before. Agents never see the plan.

The variants differ only in the source of the test files, written to the copy before the process starts. The process
isn't told which variant a test is in, and holds no secret. Code that swallows failures, patches the test framework,
returns objects that equal everything, copies the expected value from its caller, or reports outcomes of its own does so
in all variants, and makes a test pass that must fail.

This process and the server that it starts never import the repo's code. The server imports libraries and forks one
process for each file and variant. A "value" is a digest of what functions of the package return to the test files.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    # The folder of this file is the repo. Remove it from the import path, because this process must import neither the
    # repo's code nor a `json.py` that was planted there.
    sys.path[:] = [
        entry for entry in sys.path if not (os.path.realpath(entry or ".") + os.sep).startswith(HERE + os.sep)
    ]

import ast
import base64
import builtins
import collections.abc
import configparser
import contextlib
import enum
import fnmatch
import functools
import gc
import hashlib
import itertools
import json
import random
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import types

VENDORED = "autoexperiment_vendored" + os.sep
PLAN = "autoexperiment_package_tests.json"
RUNNER = "autoexperiment_package_tests.py"
# Beginning of the names of the test files that the command `inputs` makes.
ADDED = "test_autoexperiment_inputs"
# Name of the package that contains the code of the command `inputs`.
MORE_INPUTS = "autoexperiment_more_inputs"
SETTINGS = {
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "COLUMNS": "80",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "TERM": "dumb",
}
# Variables that change what Python or pytest import, or how they behave.
REMOVED_SETTINGS = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "PYTHONOPTIMIZE",
    "PYTHONSAFEPATH",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
)
# Variable that keeps the value of `PYTHONPATH`. Python itself must not see this value, because it would import a
# `sitecustomize.py` from the folders that the value names.
ROOTS = "AUTOEXPERIMENT_IMPORT_ROOTS"
SKIPPED_FOLDERS = {
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".eggs",
}
TEST_FOLDER = re.compile(r"_?(unit)?_?tests?$|test[-_]?(data|files|utils)$|testing[-_]?data$", re.IGNORECASE)
CONFIGURATION = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
# Plugins of pytest that are not loaded even if they are installed: they change the order of tests, run them in parallel
# or again, or only report results.
UNWANTED_PLUGINS = {
    "xdist",
    "xdist.looponfail",
    "randomly",
    "random_order",
    "random-order",
    "pytest_cov",
    "rerunfailures",
    "sugar",
    "html",
    "metadata",
    "pytest_jsonreport",
    "json-report",
    "instafail",
    "testmon",
    "picked",
    "forked",
    "flakefinder",
    "repeat",
    "pytest-reverse",
    "flake8",
    "mypy",
    "black",
    "ruff",
    "isort",
    "pycodestyle",
    "codspeed",
    "profiling",
    "memray",
    "xvfb",
}
# Libraries that are worth importing once instead of once for each process.
SHARED_LIBRARIES = (
    "numpy",
    "scipy",
    "pandas",
    "sympy",
    "matplotlib",
    "hypothesis",
    "sklearn",
    "torch",
    "xarray",
    "astropy",
)
# Largest total size of files that are kept in memory, in bytes; larger ones are copied from the disk.
LARGEST_IN_MEMORY = 4 << 20
# Maximum characters of a file of added tests, unless it tests a single function.
LARGEST_ADDED = 300_000
# Number of hash seeds with which the calls of added tests are checked. Each seed may give sets another order.
HASH_SEEDS = 10
# Time limit in seconds while no test runs, such as for importing a test file.
COLLECTION_SECONDS = 60


# The tests' configuration, and the files that belong to the tests.


def walk(folder):
    """Yields the files below `folder` as sorted relative paths, without version control, caches and environments."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED_FOLDERS and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            yield os.path.relpath(os.path.join(place, name), folder)


def read_text(path):
    with open(path, "rb") as file:
        text = file.read()
    return text.decode("utf-8", "replace")


def configured(folder):
    """Reads pytest's configuration in one folder: the file's name and its options, or `None`."""
    for name in CONFIGURATION:
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        if name.endswith(".toml"):
            try:
                import tomllib
            except ImportError:
                # Before Python 3.11, pytest requires `tomli`.
                import tomli as tomllib
            try:
                tool = tomllib.loads(read_text(path)).get("tool", {}).get("pytest", {})
            except (ValueError, AttributeError):
                continue
            options = tool.get("ini_options") or {key: value for key, value in tool.items() if key != "ini_options"}
            if options:
                return name, options
            continue
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(read_text(path))
        except configparser.Error:
            continue
        section = "tool:pytest" if name == "setup.cfg" else "pytest"
        if parser.has_section(section):
            return name, dict(parser.items(section))
        if name.endswith("pytest.ini"):
            return name, {}
    return None


def words(value):
    return shlex.split(value, comments=True) if isinstance(value, str) else [str(part) for part in value or ()]


KEPT_OPTIONS = {
    "--import-mode",
    "-W",
    "--pythonwarnings",
    "--strict-markers",
    "--asyncio-mode",
    "-m",
    "-k",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "--confcutdir",
    "--ds",
    "--mpl",
    "--doctest-continue-on-failure",
}
KEPT_WITH_VALUE = {"--import-mode", "-W", "--pythonwarnings", "--asyncio-mode", "-m", "-k", "--confcutdir", "--ds"}


def kept_options(added):
    """Options of the package's `addopts` that decide which tests there are and how they are imported."""
    kept, given = [], iter(words(added))
    for word in given:
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if word in ("-m", "-k", "-W") or word in KEPT_WITH_VALUE:
            kept += [word, next(given, "")]
        elif name in KEPT_OPTIONS and name != "--strict-markers":
            kept.append(word)
    return kept


def roots_of_path(folder):
    """Folders of the repo in `PYTHONPATH`, relative to it."""
    entries = [os.path.realpath(entry) for entry in os.environ.get(ROOTS, "").split(os.pathsep) if entry]
    inside = [entry for entry in entries if os.path.isdir(entry) and (entry + os.sep).startswith(folder + os.sep)]
    return list(dict.fromkeys(os.path.relpath(entry, folder) for entry in inside))


class Layout:
    """Where a repo has its code, its tests and their configuration."""

    def __init__(self, folder, plan):
        self.folder = folder
        self.files = [file for file in walk(folder) if not file.startswith(VENDORED)]
        self.name, self.options = configured(folder) or (None, {})
        self.roots = plan.get("roots") or roots_of_path(folder) or self.find_roots()
        self.tests = self.find_tests()
        self.test_files = self.find_test_files()
        self.special_results = plan.get("special_results", {})

    def find_roots(self):
        """Folders that modules are imported from."""
        folders = [entry for entry in ("src", "lib", "python", "source") if self.has_modules(entry)]
        if "lib" in folders or "python" in folders or "source" in folders:
            named = "".join(
                read_text(os.path.join(self.folder, name))
                for name in ("setup.py", "setup.cfg", "pyproject.toml")
                if os.path.isfile(os.path.join(self.folder, name))
            )
            folders = [one for one in folders if one == "src" or re.search(rf"['\"= ]{one}['\"/\s]", named)]
        return [*folders, "."]

    def has_modules(self, folder):
        path = os.path.join(self.folder, folder)
        if not os.path.isdir(path) or os.path.exists(os.path.join(path, "__init__.py")):
            return False
        return any(
            name.endswith(".py") or any(file.endswith(".py") for file in os.listdir(os.path.join(path, name)))
            for name in os.listdir(path)
            if name.endswith(".py") or os.path.isdir(os.path.join(path, name))
        )

    def find_tests(self):
        """Python files with tests: those that pytest's configuration names, and files with tests in test folders."""
        patterns = words(self.options.get("python_files")) or ["test_*.py", "*_test.py"]
        below = [os.path.normpath(path) for path in words(self.options.get("testpaths"))]
        below = [path for path in below if os.path.exists(os.path.join(self.folder, path)) and path != "."]
        found = []
        for file in self.files:
            name = os.path.basename(file)
            if not name.endswith(".py") or name in (RUNNER, "conftest.py", "setup.py", "__init__.py", "noxfile.py"):
                continue
            parts = file.split(os.sep)[:-1]
            if below and not any((file + os.sep).startswith(path + os.sep) for path in below):
                continue
            if any(part.startswith(".") or part in ("build", "dist") or part.endswith(".egg-info") for part in parts):
                continue
            matches = any(fnmatch.fnmatch(name if "/" not in one else file, one) for one in patterns)
            in_tests = any(TEST_FOLDER.match(part) for part in parts)
            named = re.match(
                r"_?tests?\.py$" + (r"|_?tests?_|.*tests?\.py$|test" if in_tests else ""), name, re.IGNORECASE
            )
            if matches or named or name.startswith(ADDED):
                text = read_text(os.path.join(self.folder, file))
                if re.search(r"^\s*(async\s+)?def\s+test|\bTestCase\b|class\s+Test", text, re.MULTILINE):
                    found.append(file)
        return found

    def find_test_files(self):
        """Files that belong to the tests: modules, helpers and data beside them, and configuration of the runner."""
        folders = {os.path.dirname(file) for file in self.tests}
        folders = {one for one in folders if one and any(TEST_FOLDER.match(part) for part in one.split(os.sep))}
        found = set(self.tests)
        for file in self.files:
            name, parts = os.path.basename(file), file.split(os.sep)[:-1]
            if name in ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini") or any(map(TEST_FOLDER.match, parts)):
                found.add(file)
            elif any((file + os.sep).startswith(folder + os.sep) for folder in folders):
                found.add(file)
        return sorted(found - {RUNNER, PLAN})

    def commands(self):
        """The package's commands by name, as shell scripts that run what its entry points name."""
        found = {}
        for file in self.files:
            if os.path.basename(file) != "entry_points.txt" or ".dist-info" not in file:
                continue
            parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
            parser.optionxform = str
            try:
                parser.read_string(read_text(os.path.join(self.folder, file)))
            except configparser.Error:
                continue
            points = parser.items("console_scripts") if parser.has_section("console_scripts") else ()
            for name, point in points:
                parts = re.fullmatch(r"([\w.]+)\s*:\s*([\w.]+)(\s*\[.*\])?", point.strip())
                if parts and re.fullmatch(r"\w[\w.-]*", name):
                    code = f"import sys, {parts[1]}; sys.argv[0] = {name!r}; sys.exit({parts[1]}.{parts[2]}())"
                    found[name] = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B -c {shlex.quote(code)} "$@"\n'
        return found

    def doctests(self):
        """Modules of the package with examples in docstrings."""
        tests = set(self.test_files)
        for file in self.files:
            if file.endswith(".py") and file not in tests and file not in (RUNNER, "setup.py"):
                top = file.split(os.sep)[0]
                if top not in ("docs", "doc", "examples", "build", "benchmarks") and not top.startswith("."):
                    if ">>>" in read_text(os.path.join(self.folder, file)):
                        yield file

    def configuration(self, file):
        """The configuration that pytest would use for this test file: the nearest one above it."""
        place = os.path.dirname(file)
        while place:
            found = configured(os.path.join(self.folder, place))
            if found:
                return os.path.join(place, found[0]), found[1]
            place = os.path.dirname(place)
        return self.name, self.options

    def arguments(self, files, doctest):
        """Options of pytest for test files that share a configuration."""
        name, options = self.configuration(files[0])
        given = [
            "-q",
            "--tb=native",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            "-o",
            "required_plugins=",
            "--color=no",
        ]
        given += ["-c", name] if name else []
        given += ["--rootdir", "."]
        given += kept_options(options.get("addopts"))
        for category in (
            "PytestConfigWarning",
            "PytestAssertRewriteWarning",
            "PytestCacheWarning",
            "PytestUnknownMarkWarning",
        ):
            given += ["-W", f"ignore::pytest.{category}"]
        given += ["--doctest-modules"] if doctest else []
        given += ["--continue-on-collection-errors"] if len(files) > 1 else []
        return [*given, *files]


class Snapshot:
    """The files of a repo as they were when the run began, from which copies are made.

    Large files are copied from the disk, but for those in `removed`, which will not stay there."""

    def __init__(self, folder, removed):
        self.folder, self.files, self.links, self.folders = folder, {}, {}, []
        for place, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            relative = os.path.relpath(place, folder)
            self.folders.append(relative)
            for name in [*files, *(name for name in folders if os.path.islink(os.path.join(place, name)))]:
                path, file = os.path.join(place, name), os.path.normpath(os.path.join(relative, name))
                if os.path.islink(path):
                    self.links[file] = os.readlink(path)
                elif os.path.isfile(path) and file not in (RUNNER, PLAN):
                    state = os.stat(path)
                    large = state.st_size > LARGEST_IN_MEMORY and file not in removed
                    with open(path, "rb") as opened:
                        self.files[file] = None if large else opened.read(), state.st_mode & 0o777

    def copy(self, to, replaced):
        """Writes the files to a new folder, with the texts of `replaced` instead of their own."""
        for folder in self.folders:
            os.makedirs(os.path.join(to, folder), exist_ok=True)
        for file, (content, mode) in self.files.items():
            path = os.path.join(to, file)
            content = replaced.get(file, content)
            if content is None:
                shutil.copyfile(os.path.join(self.folder, file), path)
            else:
                with open(path, "wb") as opened:
                    opened.write(content)
            os.chmod(path, mode | 0o600)
        for file, target in self.links.items():
            os.symlink(target, os.path.join(to, file))


# Variants of tests.

PLAIN, EXPECTATION, ENDING = "plain", "expectation", "ending"
# Number of ways in which the expectations of a test function are altered. A test with altered expectations must fail.
# But an altered expectation may be right by chance, so that right solutions pass the test. To find out, all ways are
# tried on the original code when gold is recorded.
ALTERATIONS = 4
# Constructors whose calls with literals count as literals.
CONSTRUCTORS = {
    "approx",
    "array",
    "asarray",
    "Decimal",
    "Fraction",
    "date",
    "datetime",
    "time",
    "timedelta",
    "set",
    "frozenset",
    "list",
    "tuple",
    "dict",
    "OrderedDict",
    "DataFrame",
    "Series",
    "Index",
    "complex",
    "float",
    "int",
    "str",
    "bytes",
    "bytearray",
    "Path",
    "PurePath",
    "UUID",
    "Counter",
    "deque",
    "dedent",
    "range",
    "Timestamp",
    "Timedelta",
    "sorted",
    "matrix",
    "float32",
    "float64",
    "int32",
    "int64",
    "uint8",
}
OPPOSITE_CALLS = {
    "assertEqual": "assertNotEqual",
    "assertEquals": "assertNotEqual",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertTrue": "assertFalse",
    "assertFalse": "assertTrue",
    "assert_": "assertFalse",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIsNotNone": "assertIsNone",
    "assertIn": "assertNotIn",
    "assertNotIn": "assertIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertNotIsInstance": "assertIsInstance",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual",
    "assertGreaterEqual": "assertLess",
    "assertLessEqual": "assertGreater",
    "assertNotEqual": "assertEqual",
    "assertIsNot": "assertIs",
    "assertRegex": "assertNotRegex",
    "assertNotRegex": "assertRegex",
    "assertListEqual": "assertNotEqual",
    "assertDictEqual": "assertNotEqual",
    "assertSetEqual": "assertNotEqual",
    "assertTupleEqual": "assertNotEqual",
    "assertSequenceEqual": "assertNotEqual",
    "assertMultiLineEqual": "assertNotEqual",
}
OPPOSITE_OPERATORS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
RAISING = {"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex", "deprecated_call"}
# Exceptions and warnings that altered tests expect. They are as common in tests as the built-in ones that they replace, so
# that their names don't show that a test was altered. If the package defines the class that a test expects, it shows.
OTHER_ERRORS = (
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "AttributeError",
    "ZeroDivisionError",
    "OSError",
    "RuntimeError",
    "LookupError",
)
# Libraries such as numpy emit `RuntimeWarning` themselves, so it is not among them.
OTHER_WARNINGS = ("UserWarning", "DeprecationWarning", "FutureWarning", "PendingDeprecationWarning")
# Exceptions and warnings of `OTHER_ERRORS` and `OTHER_WARNINGS` from which classes are seldom derived. They replace
# classes whose bases are unknown.
UNUSUAL_BASES = {"IndexError", "AttributeError", "ZeroDivisionError", "FutureWarning", "PendingDeprecationWarning"}
# Exceptions and warnings that replace `Exception` and other classes to which all common ones are related. A test that
# expects `Exception` accepts any error, so code gains nothing by recognising these rare names.
RARE_ERRORS = ("BufferError", "BrokenPipeError", "RecursionError", "FloatingPointError", "ChildProcessError")
RARE_WARNINGS = ("BytesWarning", "ImportWarning", "UnicodeWarning")
CHECKER = re.compile(r"_?(assert|check|verify|expect|compare|ensure|validate)", re.IGNORECASE)
# Name under which transformed test files import pytest, for code that is added to them.
PYTEST = "_autoexperiment_pytest"


def nodes_of(tree):
    """Yields what `ast.walk` does, except for contexts such as `Load`, in two thirds of the time."""
    waiting = [tree]
    for node in waiting:
        yield node
        for name in node._fields:
            part = getattr(node, name, None) if name != "ctx" else None
            if isinstance(part, ast.AST):
                waiting.append(part)
            elif type(part) is list:
                waiting += [one for one in part if isinstance(one, ast.AST)]


def name_of(call):
    """The last name of what is called: `approx` for `pytest.approx(...)`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


class Alterations:
    """Alters the values and exceptions that one test function expects, so that the test must fail."""

    def __init__(self, chance, imported):
        # Names that the test file imports.
        self.chance, self.imported = chance, imported
        self.changed = 0

    # Literals.

    def is_literal(self, node):
        """Whether an expression is made of constants only, with at least one that can be altered."""
        return self.fits(node) and any(isinstance(part, ast.Constant) or self.is_empty(part) for part in nodes_of(node))

    def fits(self, node):
        if isinstance(node, ast.Constant):
            return node.value is not Ellipsis
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return all(map(self.fits, node.elts))
        if isinstance(node, ast.Dict):
            return all(key is not None and self.fits(key) for key in node.keys) and all(map(self.fits, node.values))
        if isinstance(node, ast.UnaryOp):
            return self.fits(node.operand)
        if isinstance(node, ast.BinOp):
            return self.fits(node.left) and self.fits(node.right)
        if isinstance(node, ast.Call):
            return self.is_constructor(node) and bool(node.args) and self.is_literal(node.args[0])
        return False

    def is_constructor(self, node):
        """Whether a call is one of `CONSTRUCTORS`, and not a method of the same name, such as `x.set(1)`."""
        name, base = name_of(node), node.func
        if isinstance(base, ast.Attribute) and hasattr(builtins, name):
            return False
        while isinstance(base, ast.Attribute):
            base = base.value
        is_known = isinstance(base, ast.Name) and (base is node.func or base.id in self.imported)
        return name in CONSTRUCTORS and is_known

    def is_empty(self, node):
        return isinstance(node, (ast.List, ast.Tuple)) and not node.elts or isinstance(node, ast.Dict) and not node.keys

    def alter(self, node):
        """Changes all constants of a literal, because a comparison may ignore some, and returns the literal."""
        if isinstance(node, ast.Call):
            node.args[0] = self.alter(node.args[0])
            return node
        if isinstance(node, ast.UnaryOp):
            node.operand = self.alter(node.operand)
            return node
        if isinstance(node, ast.BinOp):
            node.right = self.alter(node.right) if self.fits(node.right) else node.right
            return node
        self.changed += 1
        if isinstance(node, ast.Constant):
            return ast.copy_location(ast.Constant(self.other(node.value)), node)
        if isinstance(node, ast.Dict):
            if not node.keys:
                node.keys, node.values = [ast.Constant("key")], [ast.Constant(self.chance.randrange(1, 9))]
                return node
            node.values = [self.alter(value) for value in node.values]
            return node
        if not node.elts:
            node.elts = [ast.Constant(self.chance.randrange(1, 9))]
            return node
        node.elts = [self.alter(part) for part in node.elts]
        return node

    def other(self, value):
        """Another value that looks as natural as this one."""
        pick = self.chance
        if value is None:
            return pick.randrange(2, 99)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return (
                value + pick.choice([-1, 1]) * pick.randrange(1, max(9, abs(value)) + 1)
                if abs(value) > 1
                else value + 2
            )
        if isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                return 1.5
            digits = max(1, len(repr(value).partition(".")[2]))
            changed = value * pick.uniform(1.5, 3.5) if value else pick.uniform(1, 9)
            shorter = round(changed, digits) if digits < 15 else changed
            return shorter if shorter != value else changed
        if isinstance(value, complex):
            return value * 2 + 1
        if isinstance(value, (str, bytes)):
            if not value:
                return pick.choice("aeinst") if isinstance(value, str) else b"a"
            text = value if isinstance(value, str) else value.decode("latin-1")
            places = [place for place, sign in enumerate(text) if sign.isalnum()] or range(len(text))
            places = list(places)
            # Change the first, the middle and the last letter or digit: a comparison may ignore a part of the text, its case or
            # the order.
            for place in {places[0], places[len(places) // 2], places[-1]}:
                sign = text[place]
                pool = "0123456789" if sign.isdigit() else "abcdefghiklmnoprstuvw"
                pool = pool.upper() if sign.isupper() else pool
                other = pick.choice([one for one in pool if one.lower() != sign.lower()])
                text = text[:place] + other + text[place + 1 :]
            return text if isinstance(value, str) else text.encode("latin-1")
        return value

    # Assertions.

    def function(self, node, names):
        """Alters the assertions of a test function. `names` are local names that only hold expected values."""
        self.names = names
        node.body = [self.statement(part) for part in node.body]

    def statement(self, node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return node
        if isinstance(node, ast.Assert):
            node.test = self.condition(node.test)
            return node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Assign) and self.is_expected(node.targets) and self.is_literal(node.value):
            node.value = self.alter(node.value)
            return node
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.raising(item.context_expr)
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, [self.statement(part) for part in getattr(node, field)])
        for handler in getattr(node, "handlers", ()):
            handler.body = [self.statement(part) for part in handler.body]
        return node

    def is_expected(self, targets):
        return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id in self.names

    def expected(self, node):
        """Whether an operand is altered elsewhere: it is a name that only holds expected values."""
        return isinstance(node, ast.Name) and node.id in self.names

    def condition(self, node):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = node.left, node.comparators[0]
            if isinstance(node.ops[0], ast.Eq):
                if self.expected(left) or self.expected(right):
                    return node
                if self.is_literal(right):
                    node.comparators = [self.alter(right)]
                    return node
                if self.is_literal(left):
                    node.left = self.alter(left)
                    return node
            self.changed += 1
            return ast.copy_location(ast.Compare(left, [OPPOSITE_OPERATORS[type(node.ops[0])]()], [right]), node)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            node.values = [self.condition(value) for value in node.values]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.changed += 1
            return node.operand
        if isinstance(node, ast.Call) and len(node.args) > 1 and self.is_literal(node.args[1]):
            if name_of(node) in ("allclose", "isclose", "array_equal", "array_equiv", "equal"):
                node.args[1] = self.alter(node.args[1])
                return node
        self.changed += 1
        return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)

    def call(self, node):
        """Alters an assertion that is a call: of `unittest`, of a library, or of a helper of the tests."""
        call = node.value
        name = name_of(call)
        if name in RAISING:
            self.raising(call)
            return node
        if not CHECKER.match(name) or any(isinstance(argument, ast.Starred) for argument in call.args):
            return node
        if any(map(self.expected, call.args)):
            return node
        if "Not" not in name and not name.startswith(("assertLess", "assertGreater", "assertTrue", "assertFalse")):
            literal = [place for place, part in enumerate(call.args[:2]) if self.is_literal(part)]
            if not literal and not name.startswith("assert"):
                literal = [place for place, part in enumerate(call.args) if self.is_literal(part)]
            if literal and len(call.args) > 1:
                call.args[literal[-1]] = self.alter(call.args[literal[-1]])
                return node
        if name in OPPOSITE_CALLS and isinstance(call.func, ast.Attribute):
            self.changed += 1
            call.func.attr = OPPOSITE_CALLS[name]
            call.keywords = [one for one in call.keywords if one.arg in ("msg", "places", "delta")]
            return node
        if not name.startswith(("assert", "_assert")):
            return node
        self.changed += 1
        error = ast.Call(
            ast.Attribute(ast.Name(PYTEST, ast.Load()), "raises", ast.Load()),
            [ast.Name("AssertionError", ast.Load())],
            [],
        )
        return ast.copy_location(ast.With([ast.withitem(error, None)], [node]), node)

    def raising(self, call):
        """Expects another exception or warning."""
        if isinstance(call, ast.Call) and name_of(call) in RAISING and call.args:
            is_warning = "arn" in name_of(call)
            names, rare = (OTHER_WARNINGS, RARE_WARNINGS) if is_warning else (OTHER_ERRORS, RARE_ERRORS)
            name = self.chance.choice(self.unrelated(call.args[0], names) or rare)
            self.changed += 1
            call.args[0] = ast.copy_location(ast.Name(name, ast.Load()), call.args[0])

    def unrelated(self, expected, names):
        """Returns the built-in classes of `names` that are neither bases of an expected class nor derived from one."""
        names = [one for one in names if one not in self.imported]
        for node in expected.elts if isinstance(expected, ast.Tuple) else [expected]:
            name = node.id if isinstance(node, ast.Name) and node.id not in self.imported else ""
            known = getattr(builtins, name, None)
            if isinstance(known, type):
                is_related = lambda one: issubclass(one, known) or issubclass(known, one)
                names = [one for one in names if not is_related(getattr(builtins, one))]
            else:
                names = [one for one in names if one in UNUSUAL_BASES]
        return names


def loads(function):
    """Counts how often a function reads each name."""
    found = {}
    for node in nodes_of(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] = found.get(node.id, 0) + 1
    return found


def expected_names(function, alterations):
    """Local names and arguments that are used only as the expected side of assertions that test equality."""
    uses, sides = loads(function), {}
    for node in nodes_of(function):
        pair = ()
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
            if isinstance(node.test.ops[0], ast.Eq):
                pair = (node.test.left, node.test.comparators[0])
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) > 1:
            name = name_of(node.value)
            if (
                CHECKER.match(name)
                and "Not" not in name
                and not name.startswith(("assertLess", "assertGreater", "assertIs"))
            ):
                pair = node.value.args[:2]
        for one, other in (pair, pair[::-1]) if pair else ():
            while isinstance(one, ast.Call) and name_of(one) in CONSTRUCTORS and one.args:
                one = one.args[0]
            if isinstance(one, ast.Name) and not alterations.is_literal(other):
                sides[one.id] = sides.get(one.id, 0) + 1
    stored = {}
    for node in nodes_of(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in nodes_of(target):
                    if isinstance(part, ast.Name):
                        whole = len(node.targets) == 1 and part is target and alterations.is_literal(node.value)
                        stored.setdefault(part.id, []).append(whole)
    return {name: stored.get(name) for name, count in sides.items() if uses.get(name) == count}


def parametrizations(function):
    """Decorators `pytest.mark.parametrize` with literal names and a list of values: the names and the list."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and name_of(decorator) == "parametrize" and len(decorator.args) > 1:
            first, second = decorator.args[:2]
            try:
                names = ast.literal_eval(first)
            except ValueError:
                continue
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            if isinstance(second, (ast.List, ast.Tuple)):
                yield decorator, [name for name in names if name], second


class Transformation(ast.NodeTransformer):
    """Writes one variant of a test file."""

    def __init__(self, variants, chance, called, imported, way):
        # `called`: names of test functions that other tests call, whose assertions are kept. `imported`: names that the file
        # imports.
        self.variants, self.chance, self.called, self.imported = variants, chance, called, imported
        # Which of the `ALTERATIONS` ways of altering expectations to use, from 0. If it is None, one is drawn for each
        # test function.
        self.way = way
        self.path, self.units = [], []

    def visit_ClassDef(self, node):
        self.path.append(node.name)
        self.generic_visit(node)
        self.path.pop()
        return node

    def visit_FunctionDef(self, node):
        name = "::".join([*self.path, node.name])
        if (
            not node.name.startswith("test")
            or node.name in self.called
            or any(name_of_decorator(one) == "fixture" for one in node.decorator_list)
        ):
            return node
        self.units.append(name)
        if self.variants is None:
            return node
        variant = self.variants.get(name, PLAIN)
        may_yield = False
        for part in nodes_of(node):
            if isinstance(part, ast.Assert):
                # The message of an assertion may state the expected value.
                part.msg = None
            may_yield = may_yield or isinstance(part, (ast.Yield, ast.YieldFrom))
        way = self.chance.randrange(ALTERATIONS) if self.way is None else self.way
        alterations = Alterations(random.Random(f"{name} {way}"), self.imported)
        names = expected_names(node, alterations) if variant == EXPECTATION else {}
        arguments = {argument.arg for argument in node.args.args}
        unset = {name for name, stored in names.items() if name in arguments and not stored}
        altered = self.parameters(node, unset, variant, alterations)
        if variant == EXPECTATION:
            alterations.function(node, altered | {name for name, stored in names.items() if stored and all(stored)})
        if not may_yield or not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in own_nodes(node)):
            self.ending(node, variant == ENDING or variant == EXPECTATION and not alterations.changed)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def ending(self, node, wrong):
        """Adds an assertion at the end, which is false if `wrong`."""
        one = self.chance.randrange(1000, 9999)
        test = ast.Compare(ast.Constant(one), [ast.Eq()], [ast.Constant(one + wrong * self.chance.randrange(1, 9))])
        # Insert the assertion before a `return` at the end: code after the `return` would not run.
        place = len(node.body) - isinstance(node.body[-1], ast.Return)
        node.body.insert(place, ast.Assert(test, None))

    def parameters(self, node, names, variant, alterations):
        """Numbers the rows of parameters, because ids made of values would show what has been altered, and alters those
        in `names`. Returns the altered ones: a name is altered in all rows or in none."""
        done = set()
        for decorator, given, values in parametrizations(node):
            rows = [self.row(one, len(given)) for one in values.elts]
            if not all(rows):
                continue
            for place, name in enumerate(given):
                fits = all(alterations.is_literal(parts[place]) for parts, _ in rows)
                if variant == EXPECTATION and name in names and fits:
                    done.add(name)
                    for parts, _ in rows:
                        parts[place] = alterations.alter(parts[place])
            target = ast.Attribute(ast.Name(PYTEST, ast.Load()), "param", ast.Load())
            for place, (parts, keywords) in enumerate(rows):
                ident = ast.keyword("id", ast.Constant(f"row{place}"))
                values.elts[place] = ast.Call(target, parts, [*keywords, ident])
            decorator.args = decorator.args[:2]
            decorator.keywords = [keyword for keyword in decorator.keywords if keyword.arg != "ids"]
        return done

    def row(self, node, width):
        """Returns the values of one row of parameters, and its keywords except for the id; `None` if the row is written
        in a form that is not supported."""
        if isinstance(node, ast.Call) and name_of(node) == "param" and len(node.args) == width:
            return list(node.args), [keyword for keyword in node.keywords if keyword.arg != "id"]
        if width == 1:
            return None if isinstance(node, ast.Starred) else ([node], [])
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == width:
            return None if any(isinstance(part, ast.Starred) for part in node.elts) else (list(node.elts), [])
        return None


def own_nodes(function):
    """Yields the nodes of a function, without the nodes of functions inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def name_of_decorator(node):
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))


def variant_of(text, variants, chance, way=None):
    """Returns the source of a test file in these variants of its functions, and the names of all its test functions.
    Expectations are altered in this way, or in one that is drawn for each function. If `variants` is `None`, only the names
    are found."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None, []
    # Long sources may contain deeply nested expressions.
    sys.setrecursionlimit(20000)
    nodes = list(nodes_of(tree))
    called = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    called |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}
    transformation = Transformation(variants, chance, called, imported, way)
    tree = transformation.visit(tree)
    if variants is None:
        return None, transformation.units
    place = 0
    for place, node in enumerate(tree.body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and place == 0
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
    tree.body.insert(place, ast.Import([ast.alias("pytest", PYTEST)]))
    return ast.unparse(tree).encode("utf-8", "surrogateescape") + b"\n", transformation.units


def bases_of(text):
    """Returns for each class in a file: the names of the functions that its body defines, and the names of its
    bases."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.ClassDef):
            own = {part.name for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
            found[node.name] = own, [base.id for base in node.bases if isinstance(base, ast.Name)]
    return found


def unit_of(ident, units, classes):
    """Returns the test function that the test with this id runs, such as `Class::test` for `file::Class::test[1]`;
    `None` if it is not found."""
    path = ident.split("[")[0].split("::")[1:]
    if "::".join(path) in units:
        return "::".join(path)
    if len(path) < 2:
        return None
    waiting, seen = [path[-2]], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in classes:
            continue
        seen.add(name)
        own, bases = classes[name]
        if path[-1] in own and f"{name}::{path[-1]}" in units:
            return f"{name}::{path[-1]}"
        waiting += bases
    return None


# Values that functions of the package return to the tests.

MASK = (1 << 64) - 1
# Limits of what is digested for one test: the number of values that functions return to the test, the number of parts
# of one value, and the number of parts of all values.
MOST_VALUES = 400
MOST_PARTS = 1500
MOST_PARTS_IN_ALL = 20000
# Floats with a larger absolute value are added to sums as if they had this absolute value.
HUGE = 1e150
# Maximum difference between a float and the whole number that it counts as, relative to this number, or absolute for 0. It
# is a little more than the scorer's tolerance for sums. It is not a round number, so that rounding errors don't decide
# about floats such as 1.00001.
NEARLY_WHOLE = 1.37e-5
# Largest whole number that a float counts as. Larger integers differ from all floats.
LARGEST_WHOLE = 10_000
# A sum of floats counts as 0 if it is smaller than the first of these numbers, or than this part of the larger one of the
# sums of positive and of negative floats. This bound is subtracted from larger sums, so that rounding errors don't
# decide about sums that are near it.
SMALLEST_SUM, SMALLEST_PART = 1e-12, 1e-9
# A sum also counts as 0 if it is smaller than this part of the largest absolute value of a whole number: whole numbers are
# not in the sums, but floats beside them have rounding errors of their size.
SMALLEST_BESIDE_WHOLE = 1e-12
DEEPEST = 6
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
# Names of the types of descriptors that compute an attribute when it is first used.
CACHED_PROPERTY = re.compile(r"cached_?property|lazy|reify|memoize", re.IGNORECASE)
UNSTABLE_ATTRIBUTE = re.compile(r"cache|lock|memo|weak|thread|time_?stamp|_id$|^id$", re.IGNORECASE)


def mixed(place):
    """A pseudo-random 64-bit number for a place (the finalizer of SplitMix64)."""
    place = (place + 0x9E3779B97F4A7C15) & MASK
    place = ((place ^ (place >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    place = ((place ^ (place >> 27)) * 0x94D049BB133111EB) & MASK
    return place ^ (place >> 31)


class Summary:
    """A digest of values. Exact parts go to a hash. Floats go to three sums of positive terms, weighted by their
    place: a small relative change of floats is a small relative change of the sums, and no permutation keeps them.
    Integers, and floats that are nearly whole numbers, go to the hash instead, so that 1 and 1.0 are equal. Floats that
    are nearly 0 go to both, because small floats differ from each other. 0.0 and -0.0 are equal."""

    def __init__(self, private=()):
        self.hash, self.sums, self.floats, self.parts = hashlib.blake2b(digest_size=8), [0.0, 0.0, 0.0], 0, 0
        # Largest absolute value of a number that counts as a whole number, at most `LARGEST_WHOLE`.
        self.largest = 0
        self.active = set()
        # Folders whose names differ between runs.
        self.private = private

    def report(self):
        least = max(SMALLEST_SUM, SMALLEST_BESIDE_WHOLE * self.largest)
        floor = max(least, SMALLEST_PART * max(self.sums[:2]))
        # The third sum has terms that are up to 1000 times as large as those of the others.
        floors = (floor, floor, 1000 * least)
        sums = [max(0.0, value - floor) for value, floor in zip(self.sums, floors)]
        numbers = [float(f"{value:.12g}") for value in sums] if self.floats else []
        # A hash may consist of digits only. Gold must not contain a string that is a number, so put a `#` before the
        # hash.
        return {"exact": "#" + self.hash.hexdigest(), "numbers": numbers}

    def value(self, value):
        """Adds a value that is not a part of another one."""
        self.parts = 0
        self.add(value, 0)

    def join(self, kind, exact, sums, floats, place):
        """Adds the digest of another value, whose sums get the weights of this place."""
        self.mark(kind, exact)
        weights = [0.5 + mixed(place * 3 + shift) / MASK for shift in range(3)]
        self.sums = [have + weight * more for have, weight, more in zip(self.sums, weights, sums)]
        self.floats += floats

    def mark(self, kind, text=""):
        data = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        self.hash.update(b"%d;" % len(data) + data)

    def number(self, value):
        """Adds a float to the sums: one of positive, one of negative and, for small ones, one of logarithms."""
        import math

        if value != value:
            return self.mark("nan")
        if value in (math.inf, -math.inf):
            return self.mark("inf", value > 0)
        self.floats += 1
        place = self.floats * 3
        weights = [0.5 + mixed(place + shift) / MASK for shift in range(3)]
        size = min(abs(value), HUGE)
        if abs(value) > HUGE:
            # The sums must stay finite, so only `HUGE` is added to them. Record the size of the value here.
            self.mark("huge", math.frexp(value)[1] // 8)
        self.sums[value < 0] += weights[value < 0] * size
        self.sums[2] += weights[2] * math.log1p(size * 1000)

    def real(self, value):
        """Adds an integer or a float."""
        import math

        whole = round(value) if math.isfinite(value) else LARGEST_WHOLE + 1
        if abs(whole) > LARGEST_WHOLE or abs(value - whole) > NEARLY_WHOLE * max(1, abs(whole)):
            self.mark("float")
            return self.number(value)
        self.mark("number", whole)
        self.largest = max(self.largest, abs(whole))
        return None if whole else self.number(value)

    def decimal(self, value):
        """Adds a decimal number by its value: 1.0 and 1.00 are equal, and so are 0 and -0."""
        sign, digits, exponent = value.as_tuple()
        if type(exponent) is str:
            return self.mark("Decimal", str(value))
        digits = "".join(map(str, digits)).lstrip("0")
        significant = digits.rstrip("0")
        exponent += len(digits) - len(significant)
        self.mark("Decimal", f"{'-' * sign}{significant}e{exponent}" if significant else "0")

    def text(self, value):
        for folder, name in self.private:
            if folder in value:
                value = value.replace(folder, name)
        if "0x" in value:
            value = ADDRESS.sub("0x", value)
        self.mark("text", value)

    def add(self, value, depth):
        kind = type(value)
        self.parts += 1
        if self.parts > MOST_PARTS or depth > DEEPEST:
            return self.mark("deep")
        if value is None or value is Ellipsis or value is NotImplemented or kind is bool:
            return self.mark("constant", {True: "True", False: "False"}[value] if kind is bool else kind.__name__)
        if kind is int and abs(value) > LARGEST_WHOLE:
            return self.mark("int", hex(value))
        if kind in (int, float):
            return self.real(value)
        if kind is str:
            return self.text(value)
        if kind is complex:
            self.mark("complex")
            self.number(value.real)
            return self.number(value.imag)
        if kind in (bytes, bytearray):
            return self.mark("bytes", hashlib.blake2b(value, digest_size=8).hexdigest())
        if kind in (list, tuple, dict, set, frozenset) or id(value) in self.active:
            if id(value) in self.active:
                return self.mark("cycle")
            self.active.add(id(value))
            try:
                return self.container(value, kind, depth)
            finally:
                self.active.discard(id(value))
        if issubclass(kind, type):
            return self.mark("type", class_name(value))
        self.active.add(id(value))
        try:
            self.other(value, kind, depth)
        except Exception as error:
            self.mark("unreadable", type(error).__name__)
        finally:
            self.active.discard(id(value))

    def container(self, value, kind, depth):
        self.mark(kind.__name__, len(value))
        if kind in (list, tuple):
            for part in list(value):
                self.add(part, depth + 1)
            return
        if kind is dict:
            for _, key, part in sorted(
                ((self.part(key, depth), key, part) for key, part in list(value.items())), key=lambda one: one[0]
            ):
                self.add(key, depth + 1)
                self.add(part, depth + 1)
            return
        place = self.floats
        for exact, sums, floats in sorted(self.part(one, depth) for one in list(value)):
            self.join("member", exact, sums, floats, place)

    def part(self, value, depth):
        """A digest of a member, by which the members of sets and dicts are sorted."""
        inner = Summary(self.private)
        inner.parts, inner.active = self.parts, self.active
        inner.add(value, depth + 1)
        self.parts, self.largest = inner.parts, max(self.largest, inner.largest)
        return inner.hash.hexdigest(), inner.sums, inner.floats

    def other(self, value, kind, depth):
        """Adds an object of any other type, without running code of this type, except for the iteration of a collection and
        the offset of a time zone."""
        module = module_of(kind)
        library = module.partition(".")[0]
        if is_library_iterator(kind):
            # A correct solution may have any kind of iterator. Reading it would take its values from the test.
            return self.mark("iterator")
        if library == "numpy" and self.numpy(value, kind, depth):
            return
        if library == "pandas" and self.pandas(value, kind, depth):
            return
        if module == "decimal" and kind.__name__ == "Decimal":
            return self.decimal(value)
        if module == "fractions" and kind.__name__ == "Fraction":
            return self.mark("Fraction", str(value))
        if module == "datetime" and kind.__name__ in ("date", "datetime", "time", "timedelta", "timezone"):
            zone = getattr(value, "tzinfo", None)
            self.mark(kind.__name__, str(value if zone is None else value.replace(tzinfo=None)))
            # Time zones of different types may be equal, so only the offset counts.
            return None if zone is None else self.mark("offset", value.utcoffset())
        if module in (
            "builtins",
            "collections",
            "types",
            "functools",
            "itertools",
            "_io",
            "re",
            "weakref",
            "abc",
            "operator",
        ):
            if kind.__name__ in ("OrderedDict", "defaultdict", "Counter", "mappingproxy"):
                return self.container(dict(value), dict, depth)
            if kind.__name__ == "deque":
                return self.container(list(value), list, depth)
            if kind.__name__ in ("range", "slice"):
                return self.mark(kind.__name__, repr(value) if kind is range else "")
            if kind.__name__ in CALLABLES:
                # A correct solution may return another kind of function, with another name.
                return self.mark("callable")
            if kind.__name__ in ("dict_keys", "dict_values", "dict_items"):
                return self.container(list(value), list, depth)
            if kind.__name__ == "Match":
                return self.add((value.span(), value.groups()), depth)
            if kind.__name__ == "Pattern":
                return self.mark("Pattern", value.pattern)
            if not issubclass(kind, BaseException):
                return self.mark("object", class_name(kind))
        if library in ("pathlib", "ntpath", "posixpath"):
            return self.text(str(value))
        self.mark("object", class_name(kind))
        for base, read in (
            (str, str.__str__),
            (bytes, lambda one: b"".join([one])),
            (float, float.__float__),
            (int, lambda one: int.__add__(one, 0)),
            (complex, lambda one: complex.__add__(one, 0j)),
            (list, lambda one: list(list.__iter__(one))),
            (tuple, lambda one: tuple(tuple.__iter__(one))),
            (dict, lambda one: {key: dict.get(one, key) for key in dict.keys(one)}),
            (set, lambda one: set(set.__iter__(one))),
            (frozenset, lambda one: frozenset(frozenset.__iter__(one))),
            (BaseException, lambda one: BaseException.args.__get__(one)),
        ):
            if issubclass(kind, base):
                plain = read(value)
                # The object's class extends a built-in type, so the object has a value of this type besides its
                # attributes.
                self.add(plain, depth + 1)
                break
        is_collection = self.members(value, kind, depth)
        # A correct solution may store what it needs in other private attributes, unless the class declares them. It may
        # store the members of a collection in another way in any case.
        for name, part in sorted(attributes(value, kind).items()):
            if isinstance(name, str) and name.startswith("_") and (is_collection or not is_declared(name, kind)):
                continue
            if isinstance(name, str) and not UNSTABLE_ATTRIBUTE.search(name) and not name.startswith("__"):
                self.mark("attribute", name)
                # An attribute counts as two levels of the maximum depth, because following attributes leads to very
                # many objects.
                self.add(part, depth + 2)

    def members(self, value, kind, depth):
        """Adds the members of an object whose class is registered as a collection. Returns whether it is one."""
        if issubclass(kind, (str, bytes, bytearray, list, tuple, dict, set, frozenset)):
            return False
        try:
            if issubclass(kind, collections.abc.Mapping):
                found, plain = {key: value[key] for key in itertools.islice(iter(value), MOST_PARTS)}, dict
            elif issubclass(kind, collections.abc.Set):
                found, plain = set(itertools.islice(iter(value), MOST_PARTS)), set
            elif issubclass(kind, collections.abc.Sequence):
                found, plain = list(itertools.islice(iter(value), MOST_PARTS)), list
            else:
                return False
        except Exception:
            return False
        self.container(found, plain, depth)
        return True

    def numpy(self, value, kind, depth):
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return False
        if issubclass(kind, numpy.generic) and module_of(kind) == "numpy":
            if issubclass(kind, (numpy.bool_, numpy.integer, numpy.floating, numpy.complexfloating)):
                plain = numpy.generic.item(value)
                self.add(plain if type(plain) in (bool, int, float, complex) else float(value), depth)
            else:
                self.mark(kind.__name__, str(value))
            return True
        if issubclass(kind, numpy.dtype):
            self.mark("dtype", str(value))
            return True
        if not issubclass(kind, numpy.ndarray) or not module_of(kind).startswith("numpy"):
            return False
        # Comparisons of arrays ignore which type of numbers they have.
        type_name = {"i": "number", "u": "number", "f": "number", "c": "complex"}.get(value.dtype.kind, value.dtype.str)
        self.mark(kind.__name__, f"{type_name} {value.shape}")
        if isinstance(value, numpy.ma.MaskedArray):
            self.add(numpy.ma.getmaskarray(value), depth + 1)
            value = value.filled(0)
        self.array(numpy, numpy.asarray(value), depth)
        return True

    def array(self, numpy, array, depth):
        if array.dtype.names:
            for name in array.dtype.names:
                self.array(numpy, array[name], depth)
            return
        kind = array.dtype.kind
        if kind == "O":
            for part in array.ravel().tolist():
                self.add(part, depth + 1)
            return
        if kind == "c":
            self.array(numpy, array.real, depth)
            return self.array(numpy, array.imag, depth)
        flat = numpy.ascontiguousarray(array).ravel()
        if kind not in "iuf":
            return self.mark("array", hashlib.blake2b(flat.tobytes(), digest_size=8).hexdigest())
        whole = None
        if kind != "f":
            fits = kind == "i" or not flat.size or int(flat.max()) <= MASK >> 1
            whole = flat.astype("int64") if fits else flat
        flat = flat.astype("float64")
        odd = ~numpy.isfinite(flat)
        if odd.any():
            places = numpy.flatnonzero(odd)
            kinds = numpy.where(numpy.isnan(flat[places]), 2, numpy.sign(flat[places])).astype("int8")
            self.mark(
                "odd", hashlib.blake2b(places.astype("int64").tobytes() + kinds.tobytes(), digest_size=8).hexdigest()
            )
            flat = numpy.where(odd, 0.0, flat)
        elif whole is None:
            nearest = numpy.rint(flat)
            size = numpy.abs(nearest)
            is_near = numpy.abs(flat - nearest) <= NEARLY_WHOLE * numpy.maximum(1, size)
            if (is_near & (size <= LARGEST_WHOLE)).all():
                whole = nearest.astype("int64")
        if whole is not None:
            self.mark("array", f"{whole.dtype} {hashlib.blake2b(whole.tobytes(), digest_size=8).hexdigest()}")
            if whole.size:
                self.largest = max(self.largest, min(LARGEST_WHOLE, max(int(whole.max()), -int(whole.min()))))
            flat = flat[whole == 0]
        places = (numpy.arange(self.floats + 1, self.floats + 1 + flat.size, dtype="uint64")) * numpy.uint64(3)
        self.floats += int(flat.size)
        size = numpy.abs(flat)
        if (size > HUGE).any():
            places_of_huge = numpy.flatnonzero(size > HUGE).astype("int64")
            self.mark("huge", hashlib.blake2b(places_of_huge.tobytes(), digest_size=8).hexdigest())
            size = numpy.minimum(size, HUGE)
        with numpy.errstate(all="ignore"):
            for part, terms in enumerate(
                (numpy.where(flat >= 0, size, 0), numpy.where(flat < 0, size, 0), numpy.log1p(size * 1000))
            ):
                place = places + numpy.uint64(part) + numpy.uint64(0x9E3779B97F4A7C15)
                place = (place ^ (place >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
                place = (place ^ (place >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
                place ^= place >> numpy.uint64(31)
                self.sums[part] += float(numpy.dot(0.5 + place.astype("float64") / float(MASK), terms))

    def pandas(self, value, kind, depth):
        pandas = sys.modules.get("pandas")
        if pandas is None or kind.__name__ not in ("DataFrame", "Series") and not kind.__name__.endswith("Index"):
            if kind.__name__ in ("Timestamp", "Timedelta", "NaTType", "Period", "Interval", "CategoricalDtype"):
                self.mark(kind.__name__, str(value))
                return True
            return False
        self.mark(kind.__name__, value.shape)
        if kind.__name__ == "DataFrame":
            self.add(list(value.columns), depth + 1)
            self.add(value.index, depth + 1)
            for place in range(value.shape[1]):
                self.series(value.iloc[:, place], depth)
        elif kind.__name__ == "Series":
            self.add(value.name, depth + 1)
            self.add(value.index, depth + 1)
            self.series(value, depth)
        else:
            self.add(list(value.names), depth + 1)
            self.series(value, depth)
        return True

    def series(self, column, depth):
        self.mark("dtype", str(column.dtype))
        array = column.to_numpy()
        if array.dtype.kind == "M" or array.dtype.kind == "m":
            array = array.astype("int64")
        self.array(sys.modules["numpy"], array, depth)


class Results:
    """A digest of what functions of the package return to one test."""

    def __init__(self, private):
        self.private, self.summary = private, Summary(private)
        self.count, self.parts = 0, 0

    def add(self, value):
        if self.count >= MOST_VALUES or self.parts >= MOST_PARTS_IN_ALL:
            return self.summary.mark("more")
        one = Summary(self.private)
        one.value(value)
        self.parts += one.parts
        self.count += 1
        self.summary.largest = max(self.summary.largest, one.largest)
        self.summary.join("result", one.hash.hexdigest(), one.sums, one.floats, self.summary.floats)

    def report(self):
        return self.summary.report()


# Types of functions and of what is called like a function.
CALLABLES = {
    "function",
    "builtin_function_or_method",
    "method",
    "method-wrapper",
    "wrapper_descriptor",
    "method_descriptor",
    "classmethod_descriptor",
    "partial",
    "_lru_cache_wrapper",
    "itemgetter",
    "attrgetter",
    "methodcaller",
}


def module_of(kind):
    """The name of a class's module, read without code of the class; empty if the class has none."""
    try:
        module = type.__dict__["__module__"].__get__(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def class_name(kind):
    """The module and name of a class, except for a class inside a function: a correct solution may give it another name."""
    name = type.__dict__["__qualname__"].__get__(kind)
    return "<locals>" if "<locals>" in name else f"{module_of(kind)}.{name}"


def spaces_of(kind):
    """The namespaces of a class and its bases, read without code of the class."""
    return [type.__dict__["__dict__"].__get__(base) for base in type.__dict__["__mro__"].__get__(kind)]


def is_library_iterator(kind):
    """Whether objects of a class are iterators, and the class is one of Python or of an installed package."""
    module = sys.modules.get(module_of(kind))
    file = getattr(module, "__file__", None)
    is_of_library = module is not None and (file is None or type(file) is str and file.startswith(LIBRARIES))
    return is_of_library and any("__next__" in space for space in spaces_of(kind))


def is_computed(name, kind):
    """Whether an attribute is the result of a `cached_property`, or of another such descriptor of a library or of the package.
    A correct solution need not have used it."""
    found = next((space[name] for space in spaces_of(kind) if name in space), None)
    names = [type.__dict__["__name__"].__get__(base) for base in type.__dict__["__mro__"].__get__(type(found))]
    is_data = any("__set__" in space for space in spaces_of(type(found)))
    return not is_data and any(map(CACHED_PROPERTY.search, names))


def attributes(value, kind):
    """Attributes that an object stores itself, except for cached properties, read without code of its class."""
    found = {}
    for base in type.__dict__["__mro__"].__get__(kind):
        for name, member in list(type.__dict__["__dict__"].__get__(base).items()):
            if type(member).__name__ == "member_descriptor":
                try:
                    found[name] = type(member).__get__(member, value)
                except AttributeError:
                    pass
    for base in type.__dict__["__mro__"].__get__(kind):
        member = type.__dict__["__dict__"].__get__(base).get("__dict__")
        if type(member).__name__ == "getset_descriptor":
            stored = type(member).__get__(member, value)
            if type(stored) is dict or isinstance(stored, dict):
                found.update((name, part) for name, part in dict.items(stored) if not is_computed(name, kind))
            break
    return found


# Folders of Python and of installed packages.
LIBRARIES = (sys.prefix + os.sep, sys.base_prefix + os.sep)


def is_declared(name, kind):
    """Whether the body of a class or of its bases declares an attribute, as a slot or a field of a dataclass. True for all
    attributes of enums and of classes of libraries, because nobody masks the code that sets them."""
    if issubclass(kind, enum.Enum):
        return True
    file = getattr(sys.modules.get(module_of(kind)), "__file__", None)
    if type(file) is str and file.startswith(LIBRARIES):
        return True
    for base in type.__dict__["__mro__"].__get__(kind):
        own = type.__dict__["__dict__"].__get__(base)
        fields = own.get("__dataclass_fields__")
        if type(own.get(name)).__name__ == "member_descriptor" or type(fields) is dict and name in fields:
            return True
    return False


# The forked process that runs tests.


class Watch:
    """Records which functions of the package are entered, and what they return to the test files."""

    def __init__(self, folder, job, private):
        self.folder, self.private = folder + os.sep, private
        self.test_files = {os.path.join(folder, file) for file in job["test_files"]}
        # Functions of the original code, as `path.py::Class.method`, that return an iterator to a test, that return a match of
        # a regular expression, and that have a cache. They are not known when the original code is surveyed.
        special = job["special_results"]
        self.iterating, self.matching, self.caching = (
            set(special.get(kind, ())) for kind in ("iterating", "matching", "caching")
        )
        # Collect now the words in each test file, which show what functions it names. Code of the repo that runs later
        # could change how files are read.
        modules = [file for file in self.test_files if file.endswith(".py") and os.path.isfile(file)]
        self.words = {file: set(re.findall(r"\w+", read_text(file))) for file in modules}
        self.kinds, self.entered, self.generators, self.cached = {}, set(), set(), set()
        # The names in each code object that calls the package, with the code object, by its id.
        self.names_in_code = {}
        self.new_test()
        self.monitoring = getattr(sys, "monitoring", None)
        self.busy, self.names = False, {}
        self.other_draws = OtherDraws(self) if job["other_draws"] else None
        self.profile = self.make_profile()

    def start(self):
        """Begins to record, and to count entered functions."""
        if self.monitoring is None:
            sys.setprofile(self.profile)
            return
        events = self.monitoring.events
        if self.monitoring.get_tool(4) is None:
            self.monitoring.use_tool_id(4, "tests")
            self.monitoring.register_callback(4, events.PY_START, self.on_start)
            self.monitoring.register_callback(4, events.PY_RETURN, self.on_return)
        self.monitoring.set_events(4, events.PY_START | events.PY_RETURN)

    def stop(self):
        if self.monitoring is None:
            sys.setprofile(None)
        elif self.monitoring.get_tool(4) is not None:
            self.monitoring.set_events(4, 0)

    def restart(self):
        """Begins a new set of entered functions, and returns the set so far."""
        before, self.entered = self.entered, set()
        if self.monitoring is not None:
            self.monitoring.restart_events()
        return before

    def new_test(self):
        """Forgets what functions have returned to the test before."""
        self.results, self.gave_iterator, self.gave_match = Results(self.private), set(), set()

    def special_results(self, entered):
        """Returns the functions with special results in this test (see `special_results` in `__init__`). `entered`
        contains all functions that the test entered."""
        iterating = self.gave_iterator | entered & self.generators
        found = {"iterating": iterating, "matching": self.gave_match, "caching": entered & self.cached}
        return {kind: sorted(functions) for kind, functions in found.items()}

    def kind(self, code):
        """Returns `None` for code of a library, `""` for code of a test file, and otherwise the name of the package's
        function."""
        known = self.kinds.get(id(code))
        if known is None:
            # Also store the code object: if it were freed, another code object could get its id, which is the key.
            known = self.kinds[id(code)] = self.find_kind(code), code
        return known[0]

    def find_kind(self, code):
        file = code.co_filename
        if file.startswith("<"):
            return "" if file.startswith("<doctest ") else None
        file = os.path.abspath(file)
        if not file.startswith(self.folder) or file.startswith(self.folder + VENDORED):
            return None
        if file in self.test_files:
            return ""
        name = code.co_qualname.partition(".<locals>")[0] if COMPLETE_NAMES else self.find_name(code, file)
        # Code with a name such as `<module>` or `<lambda>` is not a named function. The `\0` marks such names, so that
        # they are not reported as entered functions.
        name = f"{os.path.relpath(file, self.folder)}::{name}" + ("\0" if name.startswith("<") else "")
        if code.co_flags & GENERATOR and not code.co_flags & NESTED:
            self.generators.add(name)
        return name

    def on_start(self, code, offset):
        name = self.kind(code)
        if name:
            self.entered.add(name)
            if self.other_draws:
                self.started(sys._getframe(1))
                return None
        return self.monitoring.DISABLE

    def on_return(self, code, offset, value):
        if not self.kind(code):
            return self.monitoring.DISABLE
        if not self.busy:
            self.returned(sys._getframe(1), value)
        return None

    def make_profile(self):
        kinds, kind, returned = self.kinds, self.kind, self.returned

        def profile(frame, event, value):
            if event == "call":
                code = frame.f_code
                known = kinds.get(id(code))
                name = known[0] if known is not None else kind(code)
                if name:
                    self.entered.add(name)
                    if self.other_draws:
                        self.started(frame)
            elif event == "return":
                known = kinds.get(id(frame.f_code))
                if known is not None and known[0] and not self.busy and (value is not None or is_return(frame)):
                    returned(frame, value)

        return profile

    def find_name(self, code, file):
        """The qualified name of a function, for Python 3.10 and older, whose code only has the last part."""
        places = self.names.get(file)
        if places is None:
            places = self.names[file] = {}
            try:
                collect_names(ast.parse(read_text(file)), (), places)
            except (SyntaxError, OSError):
                pass
        return places.get((code.co_name, code.co_firstlineno), code.co_name)

    def started(self, frame):
        if frame.f_back is not None and self.kind(frame.f_back.f_code) == "" and not self.busy:
            self.busy = True
            try:
                self.other_draws.advance(frame)
            finally:
                self.busy = False

    def returned(self, frame, value):
        back, code = frame.f_back, frame.f_code
        if back is None or self.kind(back.f_code) != "" or code.co_name.startswith("<"):
            return
        # Leave out functions inside functions, and functions that the calling code does not name: a correct solution
        # may return a `map` that calls one of them while the test iterates.
        if code.co_flags & NESTED or not self.is_called_by_name(frame):
            return
        if code.co_name in UNRECORDED or self.is_in_callback(back):
            return
        function = self.kind(code)
        # Leave out iterators, and what a correct solution returns instead of them: it may return any kind of iterator, or a
        # list, and the tests compare the values that it gives.
        if code.co_flags & GENERATOR or is_library_iterator(type(value)):
            self.gave_iterator.add(function)
            return
        # Also leave out functions with a cache. If other code of the package has called such a function with the same
        # arguments in this test, a call of the test does not enter it. A correct solution may call it or not.
        if function in self.iterating or function in self.caching or is_default(code.co_name, value):
            return
        if type(value) is re.Match:
            self.gave_match.add(function)
        if function in self.matching:
            # Tests mostly ask whether there is a match, which a correct solution may also answer by a bool.
            value = False if value is None else True if type(value) is re.Match else value
        self.busy = True
        try:
            if code.co_name in ("__init__", "__post_init__") and value is None and code.co_argcount:
                value = frame.f_locals.get(code.co_varnames[0])
            self.results.add(value)
        finally:
            self.busy = False

    def is_in_callback(self, frame):
        """Whether the code of a test file in this frame was called back by the package: a test has called the package,
        which has called this code, directly or through other calls. A correct solution may call such code more or less
        often."""
        is_below_package = False
        while frame is not None:
            kind = self.kind(frame.f_code)
            # Functions of the package may have the same names as those of pytest.
            if kind is None and frame.f_code.co_name in TEST_CALLERS:
                return False
            if kind == "" and is_below_package:
                return True
            is_below_package = is_below_package or bool(kind)
            frame = frame.f_back
        return False

    def caches(self):
        """Returns the caches of those functions and methods of the package that test files name, and adds these functions to
        `cached`. Runs no code of the package."""
        found = []
        for module in list(sys.modules.values()):
            if not issubclass(type(module), types.ModuleType):
                continue
            space = types.ModuleType.__dict__["__dict__"].__get__(module)
            file = space.get("__file__") if type(space) is dict else None
            if type(file) is not str or not file.startswith(self.folder) or file in self.test_files:
                continue
            members = list(space.items())
            for _, kind in list(members):
                if issubclass(type(kind), type) and module_of(kind) == space.get("__name__"):
                    members += type.__dict__["__dict__"].__get__(kind).items()
            for name, member in members:
                member = member.__func__ if type(member) in (staticmethod, classmethod) else member
                if type(member) is CACHE and type(name) is str and any(self.is_named(name, one) for one in self.words):
                    found.append(member)
                    function = CACHE.__dict__["__dict__"].__get__(member).get("__wrapped__")
                    if type(function) is types.FunctionType:
                        self.cached.add(self.kind(function.__code__))
        return found

    def is_named(self, function, file):
        """Whether a test file contains a function's name, or the name is a special method's."""
        return is_special(function) or function in self.words[file]

    def is_called_by_name(self, frame):
        """Whether the code that calls this function contains its name, or that of the class if the function is
        `__init__`. True for other special methods, and for calls by examples in docstrings."""
        code, caller = frame.f_code, frame.f_back.f_code
        if caller.co_filename not in self.words:
            return True
        if id(caller) not in self.names_in_code:
            names = {*caller.co_names, *caller.co_varnames, *caller.co_cellvars, *caller.co_freevars}
            self.names_in_code[id(caller)] = names, caller
        names, _ = self.names_in_code[id(caller)]
        if code.co_name == "__init__" and code.co_argcount and code.co_name not in names:
            made = frame.f_locals.get(code.co_varnames[0])
            return type.__dict__["__name__"].__get__(type(made)) in names
        return code.co_name in names or is_special(code.co_name)


# Methods that are left out because Python calls them implicitly, and for a correct solution perhaps at other times:
# `__del__`, for example, when no variable refers to an object any more. A hash may also depend on an address in memory,
# which may differ between runs.
UNRECORDED = {"__new__", "__hash__", "__del__", "__getattr__", "__getattribute__", "__init_subclass__", "__set_name__"}
# For each method that compares: the result that counts as equal to `NotImplemented` from both operands, see
# `is_default`.
COMPARISONS = {"__eq__": False, "__ne__": True, "__lt__": False, "__le__": False, "__gt__": False, "__ge__": False}
# Names of pytest's functions that call tests and fixtures.
TEST_CALLERS = {"pytest_pyfunc_call", "runtest", "call_fixture_func"}
# The type of functions with a cache of `functools.lru_cache`.
CACHE = functools._lru_cache_wrapper
# Flags in `co_flags` of generators, coroutines and asynchronous generators.
GENERATOR = 0x20 | 0x80 | 0x200
# Flag in `co_flags` of functions that are defined inside functions.
NESTED = 0x10
# Whether code objects know their qualified names: since Python 3.11.
COMPLETE_NAMES = hasattr(read_text.__code__, "co_qualname")


def is_special(name):
    """Whether a name is that of a special method, such as `__len__`."""
    return name.startswith("__") and name.endswith("__")


def is_default(method, value):
    """Whether a value is `NotImplemented`, or what a comparison results in if both operands return `NotImplemented`. A correct
    solution may return either, and Python calls the method of the other operand only after `NotImplemented`."""
    if method not in COMPARISONS or value is NotImplemented:
        return value is NotImplemented
    default = COMPARISONS[method]
    return value is default or value is getattr(sys.modules.get("numpy"), f"{default}_", default)


def is_return(frame):
    """Whether a function that ends with the value `None` returns `None` and does not raise an exception."""
    import opcode

    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["RETURN_VALUE"]


def collect_names(node, path, places):
    """Finds the qualified names of functions by name and first line, decorators included."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([part.lineno, *(one.lineno for one in part.decorator_list)])
            is_local = path and path[-1] is None
            name = ".".join(one for one in (path[:-1] if is_local else (*path, part.name)) if one)
            places[part.name, first] = name
            collect_names(part, path if is_local else (*path, part.name, None), places)
        elif isinstance(part, ast.ClassDef):
            collect_names(part, path if path and path[-1] is None else (*path, part.name), places)
        else:
            collect_names(part, path, places)


class OtherDraws:
    """Gives the package's code other random numbers than usual.

    A right function may draw its numbers in another order, so what a test sees must not depend on them. Random numbers
    that the tests' own code draws stay the same. Affects `random` and `numpy.random`: their global generators, new
    generators with a seed, and generators that a test passes to the package."""

    def __init__(self, watch):
        self.watch = watch
        random.Random.seed = self.with_other_seed(random.Random.seed)
        self.replace_globals(random, random._inst, random.Random(1))
        numpy = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            self.replace_numpy(numpy.random)

    def is_in_package(self):
        """Whether the random number is drawn by the package's code, directly or through a library, and not by the code
        of a test."""
        frame = sys._getframe(2)
        while frame is not None:
            kind = self.watch.kind(frame.f_code)
            if kind is not None:
                return kind != ""
            frame = frame.f_back
        return False

    def other_seed(self, seed):
        if isinstance(seed, (int, str, bytes, float)):
            return int.from_bytes(hashlib.sha256(repr(seed).encode()).digest()[:4], "little")
        if isinstance(seed, (list, tuple)):
            return [*map(int, seed), 1]
        return int(seed) ^ 1 if hasattr(seed, "__index__") else seed

    def with_other_seed(self, usual):
        def seed(generator, a=None, *version, **named):
            usual(generator, self.other_seed(a) if self.is_in_package() else a, *version, **named)

        return seed

    def replace_globals(self, module, usual, other):
        """Replaces a module's functions that draw from its global generator."""
        for name, function in list(vars(module).items()):
            if getattr(function, "__self__", None) is usual and hasattr(other, name):
                setattr(module, name, self.either(function, getattr(other, name)))

    def either(self, usual, other):
        def draw(*given, **named):
            return (other if self.is_in_package() else usual)(*given, **named)

        return draw

    def replace_numpy(self, module):
        State, default_rng = module.RandomState, module.default_rng
        other = State(1)
        # numpy's generators are compiled classes, whose methods cannot be replaced. So replace the functions and
        # classes of `numpy.random` that take a seed, and change the seed there.
        seed = other.seed
        self.replace_globals(module, module.mtrand._rand, other)
        usual_seed = module.seed

        def set_seed(*given):
            if self.is_in_package():
                seed(*map(self.other_seed, given))
            else:
                usual_seed(*given)

        module.seed = set_seed
        module.default_rng = lambda seed=None: default_rng(self.other_seed(seed) if self.is_in_package() else seed)
        is_in_package, other_seed = self.is_in_package, self.other_seed

        class Kind(type):
            def __call__(cls, *given, **named):
                if cls is not replaced:
                    return type.__call__(cls, *given, **named)
                if is_in_package():
                    given, named = [*map(other_seed, given)], {key: other_seed(named[key]) for key in named}
                return State(*given, **named)

            def __instancecheck__(cls, value):
                return isinstance(value, State) if cls is replaced else type.__instancecheck__(cls, value)

        replaced = module.RandomState = Kind("RandomState", (State,), {})

    def advance(self, frame):
        """Draws once from each generator that a test passes to the package."""
        numpy = sys.modules.get("numpy")
        kinds = (random.Random,)
        if numpy is not None and hasattr(numpy, "random"):
            kinds += (numpy.random.RandomState, numpy.random.Generator)
        for value in list(frame.f_locals.values()):
            if isinstance(value, kinds):
                value.random() if hasattr(value, "random") else value.random_sample()


# Maximum number of a function's calls whose arguments are recorded, and of different arguments among them.
MOST_RECORDED_CALLS, MOST_DIFFERENT_CALLS = 2000, 20


class Plugin:
    """Runs the wanted tests of one file and reports each of them."""

    def __init__(self, job, watch, send):
        self.wanted = None if job["ids"] is None else set(job["ids"])
        self.done, self.watch, self.send = set(job["done"]), watch, send
        self.imported, self.fixtures, self.outcome, self.reason = set(), {}, None, ""
        self.records_calls, self.calls, self.recorded_calls = job["records_calls"], set(), 0
        self.modules, self.caches = 0, []

    def pytest_configure(self, config):
        self.seed()

    def pytest_collection(self, session):
        self.watch.start()
        yield
        self.watch.stop()

    def pytest_runtest_setup(self, item):
        self.watch.start()
        yield
        self.watch.stop()

    def pytest_runtest_call(self, item):
        self.watch.start()
        yield
        self.watch.stop()

    def pytest_runtest_teardown(self, item, nextitem):
        self.watch.start()
        yield
        self.watch.stop()

    def pytest_internalerror(self, excrepr):
        self.send(["uncollected", "", last_line(excrepr)])

    def pytest_collectreport(self, report):
        if report.failed:
            self.send(["uncollected", report.nodeid, last_line(report.longrepr)])
        elif report.skipped:
            self.send(["uncollected", report.nodeid, "skipped: " + last_line(report.longrepr)])

    def pytest_collection_modifyitems(self, items):
        items[:] = [
            item
            for item in items
            if item.nodeid not in self.done and (self.wanted is None or item.nodeid in self.wanted)
        ]

    def pytest_collection_finish(self, session):
        self.imported = self.watch.restart()
        self.send(["collected", [item.nodeid for item in session.items]])

    def seed(self):
        random.seed(0)
        if "numpy" in sys.modules and hasattr(sys.modules["numpy"], "random"):
            sys.modules["numpy"].random.seed(0)
        if "torch" in sys.modules and hasattr(sys.modules["torch"], "manual_seed"):
            sys.modules["torch"].manual_seed(0)

    def pytest_fixture_setup(self, fixturedef, request):
        """Attributes what a fixture enters to every test that uses it, not only to the first one."""
        before = self.watch.restart()
        yield
        own = self.watch.restart()
        self.fixtures.setdefault(id(fixturedef), set()).update(own)
        self.watch.entered |= before | own

    def pytest_runtest_protocol(self, item, nextitem):
        self.seed()
        self.empty_caches()
        self.outcome, self.reason = None, ""
        self.watch.restart()
        self.watch.new_test()
        self.send(["start", item.nodeid])
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        # The test may have imported modules whose functions have caches.
        self.find_caches()
        entered = self.watch.restart() | self.imported
        for used in getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values():
            for fixture in used:
                entered |= self.fixtures.get(id(fixture), set())
        report = {
            "outcome": self.outcome or "error",
            "seconds": round(seconds, 4),
            "reason": self.reason,
            "values": self.watch.results.report(),
            "entered": sorted(name for name in entered if "\0" not in name),
            "special_results": self.watch.special_results(entered),
        }
        if self.records_calls:
            # Cases (parts of a function that have run, see src/code/case.rs) and calls so far in this process, if the code
            # records them.
            report["cases"] = sorted(getattr(sys, "autoexperiment_cases", ()))
            report["calls"] = sorted(self.calls)
        self.send(["end", item.nodeid, report])

    def empty_caches(self):
        """Empties caches of the package: otherwise, earlier tests, which may be altered and end early, would decide which
        functions a test still calls."""
        self.find_caches()
        for cache in self.caches:
            CACHE.cache_clear(cache)

    def find_caches(self):
        """Finds the caches of the package again if modules were imported since the last time."""
        if len(sys.modules) != self.modules:
            self.modules, self.caches = len(sys.modules), self.watch.caches()

    def called(self, given):
        """Records the arguments of a call."""
        self.recorded_calls += 1
        if self.watch.busy or self.recorded_calls > MOST_RECORDED_CALLS or len(self.calls) >= MOST_DIFFERENT_CALLS:
            return
        self.watch.busy = True
        try:
            summary = Summary(self.watch.private)
            for value in given.values():
                # Record only the type of an iterator: reading it would take its values from the function.
                summary.value(type(value).__name__ if hasattr(type(value), "__next__") else value)
            self.calls.add(json.dumps(summary.report()))
        except Exception:
            pass
        finally:
            self.watch.busy = False

    def pytest_runtest_logreport(self, report):
        # A test with subtests has a report for each of them, and one for itself, which comes last and may say that it passed.
        if self.outcome in ("failed", "error"):
            return
        expected = hasattr(report, "wasxfail")
        if report.when == "call" or self.outcome is None and not report.passed:
            if report.passed:
                self.outcome = "xpassed" if expected else "passed"
            elif report.skipped:
                self.outcome = "xfailed" if expected else "skipped"
                self.reason = last_line(report.longrepr)
            else:
                self.outcome = "failed" if report.when == "call" else "error"
                self.reason = last_line(report.longrepr)
        elif report.failed and self.outcome in ("passed", "xfailed", "xpassed", "skipped"):
            self.outcome, self.reason = "error", last_line(report.longrepr)


def last_line(problem):
    """The line of a report that says what went wrong."""
    if isinstance(problem, tuple):
        return str(problem[-1])[:300]
    crash = getattr(problem, "reprcrash", None)
    text = getattr(crash, "message", None) or str(problem)
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E ")]
    return (errors[-1][1:].strip() if errors else lines[0] if crash and lines else lines[-1] if lines else "")[:300]


def ignore_wall_time(hypothesis):
    """Keeps Hypothesis from failing a test that is slow, which right solutions may be on a busy machine, whatever the package's
    own settings are."""
    suppressed, slow = hypothesis.settings.__dict__["suppress_health_check"], hypothesis.HealthCheck.too_slow
    with_slow = lambda settings: (*suppressed.__get__(settings, type(settings)), slow)
    set_suppressed = lambda settings, value: suppressed.__set__(settings, value)
    # `settings` forbids changes of its attributes, so use `type`. Older versions of Hypothesis assign them to each object, so
    # these properties need setters.
    type.__setattr__(hypothesis.settings, "suppress_health_check", property(with_slow, set_suppressed))
    type.__setattr__(hypothesis.settings, "deadline", property(lambda settings: None, lambda settings, value: None))


def prepare_hypothesis():
    """Ends a test of Hypothesis at its first failing example: it would look for a smaller one and for a cause, which takes longer
    than all tests that pass, and altered tests fail. Makes its tables of characters, which takes two seconds, here and
    not in each process. Keeps it from trying constants of the package's source, which a right solution need not have, and from
    measuring time."""
    import hypothesis
    import hypothesis.configuration

    phases = [phase for phase in hypothesis.Phase if phase.name in ("explicit", "generate", "target")]
    hypothesis.settings.register_profile("autoexperiment", phases=phases, database=None)
    hypothesis.settings.load_profile("autoexperiment")
    ignore_wall_time(hypothesis)
    # Older versions of Hypothesis don't read the source.
    with contextlib.suppress(ImportError, AttributeError):
        from hypothesis.internal.conjecture import providers

        no_constants = providers.Constants()
        providers._get_local_constants = lambda: no_constants
    # Otherwise, Hypothesis would store its tables of characters in the folder of the repo.
    hypothesis.configuration.set_hypothesis_home_dir(os.devnull)
    try:
        hypothesis.settings(max_examples=1)(hypothesis.given(hypothesis.strategies.text())(lambda text: None))()
    finally:
        hypothesis.configuration.set_hypothesis_home_dir(None)


def import_plugins():
    """Imports the wanted pytest plugins of the environment, some of which patch pytest, and returns their names."""
    import importlib.metadata

    found = set()
    for distribution in importlib.metadata.distributions():
        for entry in distribution.entry_points:
            if entry.group == "pytest11" and entry.name not in UNWANTED_PLUGINS:
                try:
                    entry.load()
                except Exception:
                    continue
                found.add(entry.name)
    return sorted(found)


def load(texts):
    """Makes the package `autoexperiment_more_inputs` importable from the texts of its modules by name. Returns a function that
    imports one of its modules."""
    import importlib.abc
    import importlib.util

    class Loader(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
        def find_spec(self, name, path=None, target=None):
            package, _, module = name.partition(".")
            if package != MORE_INPUTS or (module or "__init__") not in texts:
                return None
            return importlib.util.spec_from_loader(name, self, origin=f"<{name}>", is_package=not module)

        def get_source(self, name):
            return texts[name.partition(".")[2] or "__init__"]

        def get_code(self, name):
            return compile(self.get_source(name), f"<{name}>", "exec")

        def is_package(self, name):
            return name == MORE_INPUTS

    if MORE_INPUTS not in sys.modules:
        sys.meta_path.insert(0, Loader())
    return lambda module: importlib.import_module(f"{MORE_INPUTS}.{module}")


def run_job(job, report, plugins, libraries):
    """Runs one job in this process, which ends here."""
    sys.argv = ["pytest"]
    folder = job["folder"]
    os.chdir(folder)
    os.environ.update({name: os.path.join(os.path.dirname(folder), "tmp") for name in ("TMPDIR", "TEMP", "TMP")})
    os.environ["HOME"] = os.path.join(os.path.dirname(folder), "home")
    os.environ["PATH"] = os.path.join(os.path.dirname(folder), "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    tempfile.tempdir = None
    confine(os.path.dirname(folder))
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.path[:0] = [os.path.normpath(os.path.join(folder, root)) for root in job["roots"]]
    # Python programs that the tests start get the same import path.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[: len(job["roots"])])
    os.environ.pop(ROOTS, None)
    private = [(folder, "<repo>"), (os.path.dirname(folder), "<temporary>")]
    watch = Watch(folder, job, private)
    output = os.fdopen(report, "w", encoding="utf-8", errors="backslashreplace")

    def send(message):
        output.write(json.dumps(message) + "\n")
        output.flush()

    import pytest

    for name in (
        "collection",
        "fixture_setup",
        "runtest_protocol",
        "runtest_setup",
        "runtest_call",
        "runtest_teardown",
    ):
        pytest.hookimpl(hookwrapper=True, tryfirst=True)(getattr(Plugin, "pytest_" + name))
    plugin = Plugin(job, watch, send)
    if job["records_calls"]:
        sys.autoexperiment_called = plugin.called
    arguments = list(job["arguments"])
    for name in plugins:
        arguments[:0] = ["-p", name]
    arguments += ["--benchmark-disable"] if "benchmark" in plugins else []
    arguments += ["--hypothesis-seed=0"] if "hypothesispytest" in plugins else []
    plugins_of_job = [plugin]
    if job["recorder"]:
        options, recorder = job["recorder"], load(job["recorder"]["code"])("recorder")
        plugins_of_job.append(
            recorder.Checker(options["checked"], folder, job["test_files"])
            if "checked" in options
            else recorder.Recorder(options["functions"], folder, job["test_files"], options["until"])
        )
    try:
        code = int(pytest.main(arguments, plugins=plugins_of_job))
    except BaseException as error:
        code = f"{type(error).__name__}: {error}"
    for recorder in plugins_of_job[1:]:
        for made in recorder.made():
            send(["inputs", *made] if made else ["alive"])
    send(["finished", code, changed(libraries)])
    os._exit(0)


# The server.

WATCHED = (
    "builtins",
    "math",
    "operator",
    "unittest",
    "pytest",
    "_pytest",
    "pluggy",
    "numpy.testing",
    "os",
    "gc",
    "atexit",
    "ast",
)
CLASSES = ("pandas.DataFrame", "pandas.Series", "numpy.ndarray")


def functions():
    """Returns all functions and classes in the watched modules, and all methods in their classes: each by its path,
    with its code."""
    found = {}
    spaces = [
        (name, module)
        for name, module in list(sys.modules.items())
        if module is not None
        and any((name + ".").startswith(watched + ".") for watched in WATCHED)
        and name != "os.path"
    ]
    for place, space in spaces:
        for name, value in list(vars(space).items()):
            if callable(value):
                found[place + "." + name] = (value, *code_of(value))
            if isinstance(value, type) and value.__module__ == getattr(space, "__name__", None):
                for inner, method in list(vars(value).items()):
                    if callable(method) or isinstance(method, (staticmethod, classmethod, property)):
                        found[f"{place}.{name}.{inner}"] = (method, *code_of(method))
    return found


def code_of(value):
    if type(value) is not type(code_of):
        return ()
    return value.__code__, value.__defaults__, value.__kwdefaults__


def changed(before):
    """Returns the paths of functions that were replaced, changed or removed since `before` was returned by
    `functions`."""
    after = functions()
    same = lambda one, other: len(one) == len(other) and all(a is b for a, b in zip(one, other))
    return sorted(
        path for path, was in before.items() if path in after and not same(was, after[path]) or path not in after
    )


def confine(folder):
    """Lets this process and its children write only below `folder` and to devices, by Landlock, where the kernel has
    it.

    So a process leaves nothing behind that tells a later one which variants it has seen. Landlock also denies signals
    to this program's other processes, and access to their memory, even for root.
    """
    import ctypes
    import struct

    call = ctypes.CDLL(None, use_errno=True).syscall
    create, add, restrict = 444, 445, 446
    version = call(create, None, 0, 1)
    if version < 1:
        return False
    # The rights to write, remove and create files and, in newer versions of Landlock, to move them between folders and
    # to truncate them.
    writes = 1 << 1 | sum(1 << bit for bit in range(4, 13)) | (version > 1) << 13 | (version > 2) << 14
    # The last field denies signals to other processes than this one and its children, and connections to their abstract
    # sockets.
    attributes = struct.pack("QQQ", writes, 0, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = call(create, attributes, len(attributes), 0)
    if rules < 0:
        return False
    for path, allowed in ((folder, writes), ("/dev", 1 << 1 | (version > 2) << 14), ("/dev/shm", writes)):
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        call(add, rules, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    confined = call(restrict, rules, 0) == 0
    os.close(rules)
    return confined


SEMAPHORE = re.compile(r"sem\.mp-\w{8}$|psm_\w{8}$|sem\.loky-[\w-]+$")


def shared_memory():
    """Objects in memory that outlive processes: files of `/dev/shm`, and shared objects of System V."""
    found = set()
    try:
        # Leave out semaphores of `multiprocessing`: those of other programs are here, too, and may appear and disappear
        # at any time.
        found |= {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if not SEMAPHORE.match(name)}
        for kind in ("shm", "msg", "sem"):
            with open(f"/proc/sysvipc/{kind}") as file:
                found |= {f"{kind} {line.split()[1]}" for line in file.readlines()[1:]}
    except OSError:
        pass
    return found


def protect():
    """Makes memory and descriptors of this process unreadable for others of the same user."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def adopt_orphans():
    """Makes processes whose parents ended children of this one, so that they can be found."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def serve(descriptor, libraries):
    """Imports libraries, then forks a process for each job that arrives."""
    import importlib
    import unittest.mock
    import warnings

    protect()
    adopt_orphans()
    import pytest

    for name in libraries:
        try:
            importlib.import_module(name)
        except Exception:
            # No error is needed here: each test that needs this library will report that it cannot be imported.
            pass
    # Test files that are made to be run as scripts may call it when they are imported.
    unittest.main = lambda *_, **__: None
    if "hypothesis" in sys.modules:
        # `prepare_hypothesis` uses functions that some versions of Hypothesis lack. Tests also run without it.
        with contextlib.suppress(Exception):
            prepare_hypothesis()
    plugins = import_plugins()
    warnings.simplefilter("ignore")
    known = functions()
    warnings.resetwarnings()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    channel = socket.socket(fileno=descriptor)
    channel.sendall(b"ready\n")
    waiting = b""
    while True:
        data, sent, _, _ = socket.recv_fds(channel, 1 << 16, 1)
        if not data:
            return
        waiting += data
        while not waiting.endswith(b"\n"):
            waiting += channel.recv(1 << 16)
        job, waiting = json.loads(waiting), b""
        child = os.fork()
        if child:
            os.close(sent[0])
            channel.sendall(b"%d\n" % child)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        channel.close()
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        run_job(job, sent[0], plugins, known)


# This process.


class Server:
    """The process that forks the tests' processes."""

    def __init__(self, libraries):
        self.channel, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-B",
            os.path.abspath(__file__),
            "--serve",
            str(theirs.fileno()),
            json.dumps(libraries),
        ]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        if self.line() != b"ready":
            sys.exit("pytest cannot be imported from the environment of the tests")

    def line(self):
        text = b""
        while not text.endswith(b"\n"):
            data = self.channel.recv(4096)
            if not data:
                return b""
            text += data
        return text.strip()

    def start(self, job):
        """Starts a job, and returns its process and the descriptor of its reports."""
        take, give = os.pipe()
        data = json.dumps(job).encode() + b"\n"
        sent = socket.send_fds(self.channel, [data[:1]], [give])
        self.channel.sendall(data[sent:])
        os.close(give)
        return int(self.line() or 0), take

    def stop_children(self):
        """Kills every process that the tests have started, whatever session it is in."""
        for _ in range(50):
            parents = {}
            for name in os.listdir("/proc"):
                if name.isdigit():
                    try:
                        with open(f"/proc/{name}/stat") as file:
                            state, parent = file.read().rpartition(")")[2].split()[:2]
                    except OSError:
                        continue
                    if state != "Z":
                        parents[int(name)] = int(parent)
            found = {self.process.pid}
            while True:
                more = {child for child, parent in parents.items() if parent in found} - found
                if not more:
                    break
                found |= more
            found.discard(self.process.pid)
            if not found:
                return
            for child in found:
                try:
                    os.kill(child, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.002)

    def stop(self):
        self.stop_children()
        self.process.kill()
        self.process.wait()


class Outcome:
    """What one process reported of its tests."""

    def __init__(self, ends=None):
        self.collected, self.tests, self.uncollected, self.changed, self.finished = [], {}, {}, [], False
        self.inputs = []
        self.reason, self.ends, self.is_over = "", ends, False

    def take(self, message):
        kind, *rest = message
        if kind == "collected":
            self.collected += [one for one in rest[0] if one not in self.collected]
        elif kind == "uncollected":
            self.uncollected[rest[0]] = rest[1]
        elif kind == "end":
            self.tests[rest[0]] = rest[1]
            self.is_over = self.is_over or bool(self.ends and self.ends(rest[0], rest[1]))
        elif kind == "inputs":
            self.inputs.append(rest)
        elif kind == "finished":
            self.finished, self.changed = True, rest[1]
            if rest[0] not in (0, 1, 5):
                self.reason = str(rest[0])


def processor_seconds(process):
    """Processor time of the main thread of a process, in seconds."""
    try:
        with open(f"/proc/{process}/task/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Runner:
    """Runs test files of a repo in copies of it."""

    def __init__(self, folder, layout, limit, other_draws=False, records_calls=False, recorder=None, files=None):
        # `limit` returns the limit of a test in seconds. `files` are the files of tests that will be run, if that is known.
        self.folder, self.layout, self.limit, self.other_draws = folder, layout, limit, other_draws
        # `records_calls` and `recorder` are set only if the package's code is trusted. Code that is not trusted could
        # reach this program's pytest plugin through the function that records calls. `recorder` contains the code that
        # makes inputs. It also contains either the functions for which to make inputs, or the file with the calls to
        # check.
        self.records_calls, self.recorder = records_calls, recorder
        self.snapshot = Snapshot(folder, set(layout.test_files))
        self.texts = {file: read_text(os.path.join(folder, file)) for file in layout.tests}
        self.alone, self.commands = self.find_alone(), layout.commands()
        self.server = Server(self.libraries(self.texts if files is None else files))

    def find_alone(self):
        """Returns the test files that no other file of the tests names. Nothing needs such a file while tests of other
        files run, so it is then emptied, and its expected values stay hidden."""
        others = [
            file
            for file in self.layout.test_files
            if file.endswith((".py", ".ini", ".cfg", ".txt")) and file not in self.texts
        ]
        texts = {**self.texts, **{file: read_text(os.path.join(self.folder, file)) for file in others}}
        stem = lambda file: os.path.splitext(os.path.basename(file))[0]
        found = {file: set(re.findall(r"\w+", text)) for file, text in texts.items()}
        return [
            file
            for file in self.texts
            if not any(stem(file) in words for other, words in found.items() if other != file)
        ]

    def libraries(self, files):
        """Returns the libraries of `SHARED_LIBRARIES` that the repo's files import, without those that the repo itself
        contains. Hypothesis is left out unless these test files name it, because preparing it takes seconds."""
        imported = set()
        for file in self.layout.files:
            if file.endswith(".py"):
                text = read_text(os.path.join(self.folder, file))
                imported |= set(re.findall(r"^\s*(?:import|from)\s+(\w+)", text, re.MULTILINE))
        own = lambda name: any(
            os.path.exists(os.path.join(self.folder, root, name + end))
            for root in self.layout.roots
            for end in ("", ".py")
        )
        if not any("hypothesis" in self.texts.get(file, "") for file in files):
            imported.discard("hypothesis")
        return ["pytest", *(name for name in SHARED_LIBRARIES if name in imported and not own(name))]

    def processes(self, ids, guarded):
        """Splits tests by the process that runs them, as pairs of files and tests.

        If the code is trusted, files of one configuration share a process, if their modules have different names. Code
        that is not trusted sees one file at a time: the values that other files expect could tell it whether a test's
        own ones were changed, and a class may inherit tests of another file, which must then be as they were written."""
        found = []
        for file, names in by_file(ids).items():
            stem, configuration = os.path.basename(file), self.layout.configuration(file)[0]
            # Run the package's own tests and the added tests in different processes, so that neither depend on what the
            # others leave behind.
            key = file if guarded or file not in self.texts else (configuration, stem.startswith(ADDED))
            for one, stems, files, all_names in found:
                if one == key and stem not in stems:
                    stems.add(stem)
                    files.append(file)
                    all_names += names
                    break
            else:
                found.append((key, {stem}, [file], list(names)))
        return [(files, names) for _, _, files, names in found]

    def numbered(self, files):
        """Returns the texts of test files in which rows of parameters have numbers as their ids, as everywhere in this
        program."""
        texts = {file: variant_of(self.texts[file], {}, random.Random(0))[0] for file in files if file in self.texts}
        return {file: text for file, text in texts.items() if text}

    def run(self, files, ids, replaced, doctest=False, restarts=30, ends=None):
        """Runs tests of some files in a fresh copy, and starts again after a test that ends the process or hangs.

        If `ends` is given, it is called with each test's report, and the run is over once it returns true. A running
        test is then also stopped as slow once its processor time exceeds its limit, and not only after about twice this
        limit in wall time."""
        outcome, shared = Outcome(ends), shared_memory()
        for _ in range(restarts + 1):
            base = tempfile.mkdtemp(prefix="tests-")
            try:
                for name in ("workspace", "tmp", "home", "bin"):
                    os.mkdir(os.path.join(base, name))
                for name, script in self.commands.items():
                    with open(os.path.join(base, "bin", name), "w", encoding="utf-8") as file:
                        file.write(script)
                    os.chmod(file.name, 0o755)
                folder = os.path.realpath(os.path.join(base, "workspace"))
                self.snapshot.copy(folder, {**{other: b"" for other in self.alone if other not in files}, **replaced})
                job = {
                    "folder": folder,
                    "ids": ids,
                    "done": sorted(outcome.tests),
                    "arguments": self.layout.arguments(files, doctest),
                    "roots": self.layout.roots,
                    "other_draws": self.other_draws,
                    "records_calls": self.records_calls,
                    "recorder": self.recorder,
                    "test_files": [one for one in self.layout.test_files if one.endswith(".py")],
                    "special_results": self.layout.special_results,
                }
                culprit = self.follow(job, outcome)
            finally:
                self.server.stop_children()
                remove(base)
            for test, report in outcome.tests.items():
                if report["seconds"] > self.limit(test):
                    report.update(outcome="slow", reason=f"it takes {report['seconds']:.1f} s")
            if culprit is None or outcome.finished or outcome.is_over:
                break
            name, problem, slow = culprit
            if name is None:
                outcome.reason = outcome.reason or problem
                break
            outcome.tests[name] = {
                "outcome": "slow" if slow else "error",
                "seconds": 0.0,
                "reason": problem,
                "values": Summary().report(),
                "entered": [],
            }
            if ends and ends(name, outcome.tests[name]):
                break
        outcome.changed += [f"{name} is left behind" for name in sorted(shared_memory() - shared)]
        return outcome

    def follow(self, job, outcome):
        """Reads a job's reports until it ends. Returns the test that ended it early and how, or `None`."""
        child, take = self.server.start(job)
        running, waiting, limit, used = None, b"", time.monotonic() + COLLECTION_SECONDS, 0.0
        problem, slow = "it ended the process of the tests", False
        try:
            while True:
                ready, _, _ = select.select([take], [], [], 0.2)
                if ready:
                    data = os.read(take, 1 << 16)
                    if not data:
                        break
                    waiting += data
                    *lines, waiting = waiting.split(b"\n")
                    for line in lines:
                        try:
                            message = json.loads(line)
                            if message[0] == "start":
                                running, used = message[1], processor_seconds(child)
                            outcome.take(message)
                        except (ValueError, TypeError, KeyError, IndexError):
                            continue
                        running = None if message[0] == "end" else running
                        limit = time.monotonic() + (2 * self.limit(running) + 2 if running else COLLECTION_SECONDS)
                    if outcome.finished or outcome.is_over:
                        return None
                elif not os.path.exists(f"/proc/{child}"):
                    break
                is_slow = outcome.ends and running and processor_seconds(child) - used > self.limit(running)
                if is_slow or time.monotonic() > limit:
                    problem, slow = (
                        (f"it takes longer than {self.limit(running):g} s" if running else "importing it does not end"),
                        True,
                    )
                    break
        finally:
            os.close(take)
        return running, problem, slow


def remove(folder):
    for place, folders, _ in os.walk(folder):
        for name in folders:
            try:
                os.chmod(os.path.join(place, name), 0o700)
            except OSError:
                pass
    shutil.rmtree(folder, ignore_errors=True)


def more_inputs(folder, request):
    """Makes tests with more inputs: new test files by path; for each function its name, examples of its calls, and what the
    ids of its tests begin with; and the number of functions left out, by reason. The request is a JSON file with the `ids`
    of the tests that show how the functions are called; `functions`, each as its file and qualified name; the maximum
    number of `examples` of a function; the `seconds` after which no more calls are made, 600 unless given; and `code`, the
    texts of the modules that make inputs."""
    plan = read_plan(folder)
    layout, surveyed = Layout(folder, plan), plan.get("seconds") or {}
    recorder = {"code": request["code"], "functions": request["functions"]}
    recorder["until"] = time.monotonic() + request.get("seconds", 600)
    # Recording takes several times as long as the tests alone.
    limit = lambda name: max(10, 20 * surveyed.get(name, 1))
    runner = Runner(folder, layout, limit, recorder=recorder)
    imported = load(request["code"])
    selection, test_files = imported("selection"), imported("test_files")
    found, left_out, unfinished = {}, {}, []
    try:
        for files, names in runner.processes(request["ids"], False):
            if files[0] in runner.texts:
                outcome = runner.run(files, names, runner.numbered(files), False, 3)
                if not outcome.finished:
                    print(f"{files[0]}: making inputs did not end: {outcome.reason}", file=sys.stderr)
                    unfinished.append(files[0])
                for wanted, module, calls, sequences, digests in outcome.inputs:
                    if isinstance(calls, str):
                        left_out.setdefault(calls, set()).add(tuple(wanted))
                        continue
                    # Several test files may yield the same calls of a function. Keep each call once.
                    known = found.setdefault((*wanted, module), ({}, {}, set()))
                    known[0].update((repr(call["call"]), call) for call in calls)
                    known[1].update((repr(one["steps"]), one) for one in sequences)
                    known[2].update(digests)
    finally:
        runner.server.stop()
    beside = os.path.dirname(next((file for file in map(file_of, request["ids"]) if file in runner.texts), ""))
    path = lambda number: os.path.join(beside, f"{ADDED}_{number}.py")
    selected = []
    for (file, name, module), (calls, sequences, recorded) in sorted(found.items()):
        calls, sequences = list(calls.values()), list(sequences.values())
        most = min(request["examples"], len(calls) // selection.CALLS_PER_EXAMPLE)
        examples, calls = selection.apart(calls, recorded, most)
        # Also test the calls in examples, because a solution that contradicts an example must fail. Calls whose outcome
        # may mean nothing (`is_arbitrary`) are not tested.
        calls = selection.chosen(calls) + [call for call in examples if not call["is_arbitrary"]]
        sequences = selection.chosen(sequences, selection.MOST_SEQUENCES, selection.MOST_SEQUENCES_WITHOUT)
        if not calls and not sequences:
            left_out.setdefault(imported("recorder").NOTHING, set()).add((file, name))
            continue
        one = {"wanted": (file, name), "module": module, "calls": calls, "sequences": sequences}
        one["examples only"] = [call for call in examples if call["is_arbitrary"]]
        selected.append({**one, "examples": {call["example"] for call in examples}})
    # For code that is not trusted, several processes are started for each test file, and each process reads the whole
    # file. So write few files, but no large ones.
    texts, chunk, functions = [], [], []
    usable = set()
    for one in lasting(folder, selected, request):
        file, name = one["wanted"]
        if not one["calls"] and not one["sequences"]:
            left_out.setdefault(imported("recorder").UNSTEADY, set()).add((file, name))
            continue
        usable.add((file, name))
        added = one["module"], name, one["calls"], one["sequences"]
        text = test_files.written([*chunk, added])
        if chunk and len(text) > LARGEST_ADDED:
            chunk, text = [], test_files.written([added])
        if chunk:
            texts[-1] = text
        else:
            texts.append(text)
        lines = sorted(one["examples"].intersection(call["example"] for call in [*one["calls"], *one["examples only"]]))
        tests = f"{path(len(texts))}::{test_files.test_name(len(chunk), name)}"
        functions.append({"function": f"{file}::{name}", "tests": tests, "examples": lines})
        chunk.append(added)
    if unfinished:
        reason = "functions for which making inputs failed or took too long"
        left_out[reason] = set(map(tuple, request["functions"])).difference(*left_out.values())
    return {
        "files": {path(number): text for number, text in enumerate(texts, 1)},
        "functions": functions,
        # A function may be left out for one test file, although its calls from another test file can be used. Do not
        # count such a function.
        "left_out": {reason: len(names - usable) for reason, names in left_out.items() if names - usable},
    }


def file_of(test):
    """The file of a test with this id."""
    return test.split("::")[0]


def by_file(ids):
    """Lists of tests by their file."""
    files = {}
    for name in ids:
        files.setdefault(file_of(name), []).append(name)
    return files


def lasting(folder, selected, request):
    """Keeps the selected calls and sequences that have the same outcomes with other hash seeds, which give sets other
    orders. If the check of a function gives no result, none of its calls are kept. Each function has its `wanted` file
    and name, its `module`, its `calls` and `sequences`, and calls that are `examples only`."""
    with tempfile.TemporaryDirectory() as place:
        checked, asked, answer = (os.path.join(place, name) for name in ("checked", "asked", "answer"))
        with open(asked, "w", encoding="utf-8") as file:
            json.dump({"ids": request["ids"], "code": request["code"], "checked": checked}, file)
        # Use several seeds, because one other seed may not change the order of a set: a set of two texts has the same
        # order with about half of all seeds.
        for seed in range(1, HASH_SEEDS + 1):
            with open(checked, "w", encoding="utf-8") as file:
                everything = [(one["wanted"], one["module"], calls_of(one), one["sequences"]) for one in selected]
                json.dump(everything, file)
            line = [sys.executable, "-B", "-I", os.path.abspath(__file__), "check", asked]
            line += ["--hash-seed", str(seed), "--output", answer]
            subprocess.run(line, cwd=folder, stdout=subprocess.DEVNULL, check=True)
            with open(answer, encoding="utf-8") as file:
                found = json.load(file)
            for one, (calls, sequences) in itertools.zip_longest(selected, found, fillvalue=([], [])):
                steady = [calls_of(one)[number] for number in calls]
                one["calls"] = [call for call in one["calls"] if call in steady]
                one["examples only"] = [call for call in one["examples only"] if call in steady]
                one["sequences"] = [one["sequences"][number] for number in sequences]
    return selected


def calls_of(one):
    """Returns all calls of a function whose outcomes are checked."""
    return one["calls"] + one["examples only"]


def check(folder, request):
    """Returns the indices of the selected calls and sequences that have their expected outcomes in a new process, see
    `lasting`."""
    layout = Layout(folder, read_plan(folder))
    runner = Runner(folder, layout, lambda name: 60, recorder={"code": request["code"], "checked": request["checked"]})
    try:
        # Check the calls in a process that runs tests, because such a process can import what the calls need. One test
        # is enough to start the process.
        ids = [name for name in request["ids"] if file_of(name) in runner.texts][:1]
        for files, names in runner.processes(ids, False):
            return runner.run(files, names, runner.numbered(files), False, 3).inputs
    finally:
        runner.server.stop()
    return []


def survey(folder, seconds, doctests, other_draws, added):
    layout = Layout(folder, read_plan(folder, False))
    runner = Runner(folder, layout, lambda name: seconds, other_draws)
    tests, files = {}, {}
    try:
        jobs = [(file, False) for file in layout.tests] + [
            (file, True) for file in (layout.doctests() if doctests else ())
        ]
        jobs = [job for job in jobs if os.path.basename(job[0]).startswith(ADDED) or not added]
        for file, doctest in jobs:
            outcome = runner.run([file], None, {} if doctest else runner.numbered([file]), doctest)
            if doctest:
                add_examples(outcome, read_text(os.path.join(folder, file)))
            if not outcome.tests or outcome.reason:
                reason = "; ".join(outcome.uncollected.values()) or outcome.reason
                if reason or not doctest:
                    files[file] = reason or "it has no tests"
            for name, report in outcome.tests.items():
                tests[name] = {**report, "file": file}
            for name in outcome.collected:
                tests.setdefault(
                    name,
                    {
                        "outcome": "error",
                        "seconds": 0.0,
                        "reason": "it was not run",
                        "file": file,
                        "values": Summary().report(),
                        "entered": [],
                    },
                )
            print(f"{file}: {len(outcome.tests)} tests", file=sys.stderr)
    finally:
        runner.server.stop()
    return {"tests": tests, "files": files, "test_files": layout.test_files, "framework": "pytest"}


def examples_of(text):
    """Digests of the examples in each docstring of a module, by the qualified name of what it documents."""
    import doctest

    found, parser = {}, doctest.DocTestParser()

    def visit(node, name):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            try:
                examples = parser.get_examples(ast.get_docstring(node) or "")
            except ValueError:
                examples = []
            content = json.dumps([[one.source, one.want] for one in examples]).encode()
            found[name] = hashlib.blake2b(content, digest_size=8).hexdigest()
        for part in ast.iter_child_nodes(node):
            inner = (
                getattr(part, "name", None)
                if isinstance(part, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                else None
            )
            visit(part, f"{name}.{inner}".strip(".") if inner else name)

    try:
        visit(ast.parse(text), "")
    except (SyntaxError, ValueError):
        pass
    return found


def add_examples(outcome, text):
    """Adds the examples of doctests to their values, because they are in files that the code's author can write."""
    digests = examples_of(text)
    for name, report in outcome.tests.items():
        places = [place for place in digests if place and name.endswith("." + place)]
        digest = digests[max(places, key=len)] if places else digests.get("", "")
        exact = hashlib.blake2b(f"{report['values']['exact']} {digest}".encode(), digest_size=8).hexdigest()
        report["values"]["exact"] = "#" + exact


def read_plan(folder, needed=True):
    path = os.path.join(folder, PLAN)
    if not needed and not os.path.exists(path):
        return {}
    try:
        return json.loads(read_text(path))
    except (OSError, ValueError) as error:
        sys.exit(f"`{PLAN}` cannot be read: {error}")


class Draw:
    """The variants of all tests of one process.

    They follow from a drawing of the plan, from the number of the process, and from the names of the file and of each test
    function. So they stay the same when other tests are left out. The processes with numbers below `count` run whole files:
    together, they run each test function in each variant the same number of times. The process with the number `count` runs
    a part of a file."""

    def __init__(self, drawing, number, count):
        self.drawing, self.number, self.count = drawing, number, count

    def variant(self, unit):
        """The variant of a test function, which is given by its file and its name."""
        chance, all_variants = random.Random(f"{self.drawing} {unit}"), [PLAIN, EXPECTATION, ENDING]
        variants = all_variants * (self.count // 3)
        chance.shuffle(variants)
        return [*variants, chance.choice(all_variants)][self.number]

    def chance(self, file):
        """Decides how the tests of a file are altered."""
        return random.Random(f"{self.drawing} {self.number} {file}")


def processes_of_file(units):
    """Number of processes that run each whole file of a group with these test functions. Fewer test functions need more
    processes, so that outcomes cannot be guessed."""
    return 9 if len(units) == 1 else 6 if len(units) < 5 else 3


class Verdicts:
    """Outcomes of the tests of a group in all processes."""

    def __init__(self, ids, without_values):
        self.plain, self.canaries = {name: [] for name in ids}, {}
        self.without_values, self.values, self.odd, self.varying = set(without_values), {}, set(), set()
        # Tests of parts for which a run of the original code had no time.
        self.unfinished = set()

    def take(self, ids, variants, outcome, compares_values=True):
        """Adds what one process reported of these tests, of which it ran these variants."""
        self.odd |= set(outcome.changed)
        for name in ids:
            report = outcome.tests.get(name, {"outcome": "missing", "reason": "; ".join(outcome.uncollected.values())})
            variant = variants.get(name, PLAIN)
            if variant != PLAIN:
                canary = name if variant == ENDING else f"{name} (expectation)"
                result = report["outcome"]
                result = (
                    "failed" if result in ("error", "missing", "slow") else "passed" if result == "xpassed" else result
                )
                if self.canaries.setdefault(canary, result) != result:
                    self.canaries[canary] = "varies"
                continue
            self.plain[name].append(report)
            values = report.get("values")
            if compares_values and name not in self.without_values and values is not None:
                if not alike(self.values.setdefault(name, values), values):
                    self.odd.add(f"{name}: values differ between processes")
                    self.varying.add(name)

    def failed(self):
        """Whether a test did not pass as its authors wrote it."""
        return any(report["outcome"] != "passed" for reports in self.plain.values() for report in reports)

    def not_run(self):
        """Tests that no process has run as their authors wrote them."""
        return [name for name, reports in self.plain.items() if not reports]

    def result(self):
        tests = {}
        for name, reports in self.plain.items():
            outcomes = [report["outcome"] for report in reports]
            worst = next((report for report in reports if report["outcome"] != "passed"), reports[0])
            tests[name] = worst["outcome"]
            if len(set(outcomes)) > 1:
                self.odd.add(f"{name}: outcomes differ between processes")
            if worst["outcome"] != "passed":
                print(f"{name}: {worst['outcome']}: {worst.get('reason', '')}", file=sys.stderr)
        for path in sorted(self.odd)[:20]:
            print(f"changed by the code under test: {path}", file=sys.stderr)
        passed = sum(outcome == "passed" for outcome in tests.values())
        values = {name: {key: part for key, part in values.items() if part} for name, values in self.values.items()}
        result = {"tests": tests, "values": values, "canaries": self.canaries, "varying": sorted(self.varying)}
        result["unfinished"] = sorted(self.unfinished)
        return {**{key: part for key, part in result.items() if part}, "passed": passed, "changed": len(self.odd)}


# Limits in seconds of a run with `--altered` or `--drawing`, after which no further process is started: of the whole run,
# which must end before the factory's time limit for a run; and with `--altered`, of running parts of files, and of running
# tests after altered ones.
SECONDS_FOR_RECORDING, SECONDS_FOR_PARTS, SECONDS_FOR_SHARED_STATE = 480, 240, 120
# Maximum number of parts of one test file, and number of parts of all files of a group that are split.
PARTS_OF_FILE, PARTS_OF_GROUP = 4, 16


def parts_of(ids, units, order):
    """Splits the tests of a group into parts, each with tests of one file. A guarded run repeats some of the parts,
    each in a process of its own.

    The parts depend only on the ids of the group and on the test files, so that all of them can be run when gold is
    recorded. `units` are the file and the function of each test, `order` the
    place of each function in its file. Functions that follow each other often share state, so they are in different
    parts. In a group with many files, files have fewer parts, and some files are not split."""
    files = by_file(ids)
    own = {file: {units[name] for name in names if units[name][1]} for file, names in files.items()}
    # Sort by a hash: related files have similar names, and some of them should be split.
    several = [file for file in files if len(own[file]) > 1]
    several.sort(key=lambda file: hashlib.sha256(file.encode()).digest())
    count = max(2, min(PARTS_OF_FILE, PARTS_OF_GROUP // max(1, len(several))))
    split, parts = set(several[: PARTS_OF_GROUP // count]), []
    for file, names in files.items():
        if file in split:
            places = {name: order[units[name]] % count for name in names if units[name][1]}
            parts += [[name for name in places if places[name] == place] for place in sorted(set(places.values()))]
        elif own[file]:
            parts.append(names)
    return parts


def places_in_files(names, units):
    """The place of each test function among those of its file, from 0, in the order in which their tests ran."""
    places, counts = {}, {}
    for unit in dict.fromkeys(units[name] for name in names if name in units):
        if unit[1]:
            places[unit] = counts[unit[0]] = counts.get(unit[0], -1) + 1
    return places


def alike(one, other):
    if one["exact"] != other["exact"] or len(one["numbers"]) != len(other["numbers"]):
        return False
    return all(abs(a - b) <= max(1e-6 * max(abs(a), abs(b)), 1e-9) for a, b in zip(one["numbers"], other["numbers"]))


def run(folder, group, only, keep, guarded, altered, recorded=None):
    """Runs a group of tests. `recorded` is the number of the plan's drawing with which to run everything that guarded runs may
    run; if it is `None`, a guarded run draws."""
    began = time.monotonic()
    plan = read_plan(folder)
    groups = plan.get("groups", {})
    if group not in groups and group != "*":
        sys.exit(f"`{PLAN}` has no group `{group}`; it has {', '.join(sorted(groups)) or 'none'}")
    ids = groups[group] if group in groups else list(dict.fromkeys(name for names in groups.values() for name in names))
    if only is not None:
        try:
            wanted = set(json.loads(read_text(only)))
        except (OSError, ValueError, TypeError) as error:
            sys.exit(f"`{only}` is not a JSON list of test ids: {error}")
        ids = [name for name in ids if name in wanted]
        if not ids:
            sys.exit(f"no test of `{only}` is in the group `{group}`")
    drawings = plan.get("drawings") or [os.urandom(16).hex()]
    if recorded is not None:
        if not 0 <= recorded < len(drawings):
            sys.exit(f"`{PLAN}` has no drawing {recorded}: it has {len(drawings)}, numbered from 0")
        drawings = [drawings[recorded]]
    protect()
    layout = Layout(folder, plan)
    surveyed = plan.get("seconds") or {}
    limit = lambda name: max(5, 10 * surveyed[name]) if name in surveyed else 20
    runner = Runner(folder, layout, limit, files=set(map(file_of, ids)))
    if not keep and guarded:
        for file in [*layout.test_files, RUNNER, PLAN]:
            if os.path.lexists(os.path.join(folder, file)):
                os.remove(os.path.join(folder, file))
    chance = random.Random(os.urandom(32))
    files, texts = by_file(ids), {}
    units, order = {}, {}
    for file, names in files.items():
        if file not in runner.texts:
            path = os.path.join(folder, file)
            texts[file] = read_text(path) if os.path.isfile(path) else ""
        text = runner.texts.get(file, "")
        found, classes = variant_of(text, None, chance)[1], bases_of(text)
        order.update({(file, unit): place for place, unit in enumerate(found)})
        found = set(found)
        units.update({name: (file, unit_of(name, found, classes)) for name in names})
    every = sorted({unit for unit in units.values() if unit[1]})
    count = processes_of_file(every)
    verdicts, ran = Verdicts(ids, plan.get("without_values", ())), []

    def once(chosen, draws=None, variant=lambda unit: PLAIN, way=None, compares_values=True, guarded=guarded, end=None):
        """Runs these tests, with the variants of the draw of their file or, without draws, with those that `variant` returns
        for their functions. Starts no process after the time `end`, and returns whether it has started all."""
        for group, names in runner.processes(chosen, guarded):
            if end is not None and time.monotonic() > end:
                return False
            drawn = lambda unit: draws[unit[0]].variant(unit) if draws else variant(unit)
            variants = {units[name]: drawn(units[name]) for name in names if units[name][1]}
            replaced = {}
            for file in group:
                own = {unit: one for (place, unit), one in variants.items() if place == file}
                chance_of_file = draws[file].chance(file) if draws else chance
                text = variant_of(runner.texts[file], own, chance_of_file, way)[0] if file in runner.texts else None
                replaced.update({file: text} if text else {})
            is_doctest = group[0] not in runner.texts
            outcome = runner.run(group, names, replaced, is_doctest, 3)
            if is_doctest:
                add_examples(outcome, texts[group[0]])
            drawn_variants = {name: variants.get(units[name], PLAIN) for name in names}
            verdicts.take(names, drawn_variants, outcome, compares_values)
            ran.extend(outcome.tests)
        return True

    def draws_of_files():
        """Draws each file's variants in all of its processes that run the whole file, in any order, so that the place of a
        process in the order doesn't show what it is."""
        found = {}
        for file in files:
            drawing, numbers = chance.choice(drawings), list(range(count))
            chance.shuffle(numbers)
            found[file] = [Draw(drawing, number, count) for number in numbers]
        return [{file: draws[place] for file, draws in found.items()} for place in range(count)]

    try:
        for draws in draws_of_files() if guarded else [None]:
            once(ids, draws)
            if verdicts.failed() and recorded is None:
                # A test has failed as its authors wrote it, so the code does not pass, whatever it does to the altered
                # tests. Run only those tests that have not been run as their authors wrote them.
                once(verdicts.not_run())
                return verdicts.result()
        whole = [set(names) for names in files.values()]
        parts = parts_of(ids, units, order)
        if altered:
            for way in range(ALTERATIONS):
                once([name for name in ids if units[name][1]], variant=lambda unit: EXPECTATION, way=way)
            # Most tests that depend on earlier tests would also be found by the runs with the plan's drawings. The following
            # processes find nearly all of them at once, so that gold need not be recorded again for each few of them.
            latest = began + SECONDS_FOR_RECORDING
            places = places_in_files(ran, units)
            # Guarded runs repeat some parts of files, see below. A part may lack all earlier tests of which a test
            # needs one. So run all parts here.
            end = min(latest, time.monotonic() + SECONDS_FOR_PARTS)
            for names in groups.values():
                names = [name for name in names if name in units]
                whole_files = [set(one) for one in by_file(names).values()]
                for part in parts_of(names, units, order):
                    if set(part) not in whole_files:
                        is_done = once(part, compares_values=False, guarded=True, end=end)
                        verdicts.unfinished |= set() if is_done else set(part)
            # In the other processes of guarded runs, all tests of a file run, but some are altered and end early. A
            # test may need what one such test leaves behind, or any one of several. So run tests as they were written
            # after altered ones. Write the places of tests in their file with base 4. For each digit, and each of its
            # values, run the tests with this value as they were written, and all others altered. Any two places differ
            # in a digit, so there is a run with the later test as it was written and the earlier one altered. Four
            # places in a row differ in the last digit, so there is a run in which only the last of these four tests is
            # not altered.
            end, base = min(latest, time.monotonic() + SECONDS_FOR_SHARED_STATE), 1
            while base <= max(places.values(), default=0):
                for digit in range(4):
                    late = {unit for unit, place in places.items() if place // base % 4 == digit}
                    # With the value 0, the tests at places below `base` have no altered test before them.
                    late_files = {file for file, unit in late if digit or places[file, unit] > base}
                    chosen = [name for name in ids if units[name][0] in late_files]
                    late_plain = lambda unit: PLAIN if unit in late else EXPECTATION
                    once(chosen, variant=late_plain, way=0, guarded=True, end=end)
                base *= 4
        # Run some tests again in another process, without the others: their outcomes must not change. Their values may,
        # because the first test of a class or module also gets the values of fixtures, and caches are still empty. The
        # code under test may know all parts, but it can't know which are drawn, nor the variants of their tests.
        if recorded is not None:
            end = began + SECONDS_FOR_RECORDING
            for part in parts:
                # A part that is a whole file gets the variants of a process that has run the whole file.
                if set(part) not in whole:
                    draws = {file_of(part[0]): Draw(drawings[0], count, count)}
                    is_done = once(part, draws, compares_values=False, end=end)
                    verdicts.unfinished |= set() if is_done else set(part)
        elif guarded and len(every) > 1:
            most, repeated = max(1, min(len(every) // 4, 12)), 0
            chance.shuffle(parts)
            for part in parts:
                if repeated < most:
                    number = chance.randrange(count) if set(part) in whole else count
                    draws = {file_of(part[0]): Draw(chance.choice(drawings), number, count)}
                    once(part, draws, compares_values=False)
                    repeated += len({units[name] for name in part if units[name][1]})
    finally:
        runner.server.stop()
    return verdicts.result()


class Trials:
    """Runs tests on several changes of trusted code, and ends each trial at the first test that notices its change.

    The request is a JSON file: `trials`, each with `files` (new bytes by path, in Base64) and the `ids` of its tests; `expected`, the
    values of each test on the unchanged code; `whole`, whether to run all tests of each trial; and `most_unnoticed`, the
    number of unnoticed changes after which the remaining trials are of no use. They are of no use either after a trial
    whose tests run fewer cases than its `least_cases` or make fewer calls than its `least_calls`, and after a trial with
    `must_pass` of which a test fails. Such a trial ends with this test."""

    def __init__(self, folder, request):
        plan = read_plan(folder)
        surveyed = plan.get("seconds") or {}
        self.layout = Layout(folder, plan)
        self.runner = Runner(
            folder,
            self.layout,
            lambda name: max(5, 10 * surveyed[name]) if name in surveyed else 20,
            records_calls=True,
        )
        self.request, self.expected, self.texts = request, request.get("expected", {}), {}
        self.without_values = set(plan.get("without_values", ()))

    def run(self):
        """Returns the outcomes and values of each trial's tests."""
        found, unnoticed, most = [], 0, self.request.get("most_unnoticed")
        try:
            for trial in self.request["trials"]:
                if most is not None and unnoticed > most:
                    break
                reports = self.trial(trial)
                unnoticed += not any(self.notices(name, report) for name, report in reports.items())
                found.append(
                    {
                        "tests": {name: report["outcome"] for name, report in reports.items()},
                        "values": {
                            name: {key: part for key, part in report["values"].items() if part}
                            for name, report in reports.items()
                            if report["outcome"] == "passed" and name not in self.without_values
                        },
                        "cases": sorted({one for report in reports.values() for one in report.get("cases", ())}),
                        "calls": len({one for report in reports.values() for one in report.get("calls", ())}),
                    }
                )
                if len(found[-1]["cases"]) < trial.get("least_cases", 0) or found[-1]["calls"] < trial.get("least_calls", 0):
                    break
                if trial.get("must_pass") and set(found[-1]["tests"].values()) - {"passed"}:
                    break
        finally:
            self.runner.server.stop()
        return {"trials": found}

    def notices(self, name, report):
        """Whether a report is surely not that of the unchanged code. Numbers that are nearly the same are left to the reader
        of the results, who knows the tolerances."""
        if report["outcome"] != "passed":
            return True
        if name in self.without_values or name not in self.expected:
            return False
        expected, got = self.expected[name], report["values"]
        before, after = expected.get("numbers", []), got["numbers"]
        differs = lambda one, other: abs(one - other) > 1e-3 * max(abs(one), abs(other)) + 1e-6
        return expected.get("exact") != got["exact"] or len(before) != len(after) or any(map(differs, before, after))

    def trial(self, trial):
        changed = {path: base64.b64decode(content) for path, content in trial["files"].items()}
        reports = {}
        for files, names in self.runner.processes(trial["ids"], False):
            is_doctest = files[0] not in self.runner.texts
            if self.request.get("whole") and not trial.get("must_pass"):
                ends = lambda name, report: False
            elif is_doctest or trial.get("must_pass"):
                # Compare only outcomes here. The values that functions return to doctests are complete only after
                # `add_examples`, and of a trial that must pass, whoever reads the results compares them.
                ends = lambda name, report: report["outcome"] != "passed"
            else:
                ends = self.notices
            texts = {file: self.text(file) for file in files if not is_doctest}
            replaced = {**{file: text for file, text in texts.items() if text}, **changed}
            outcome = self.runner.run(files, names, replaced, is_doctest, 3, ends)
            if is_doctest:
                shown = changed.get(files[0])
                path = os.path.join(self.layout.folder, files[0])
                add_examples(outcome, read_text(path) if shown is None else shown.decode("utf-8", "replace"))
            reports.update((name, report) for name, report in outcome.tests.items() if name in names)
            if outcome.is_over:
                return reports
            missing = {"outcome": "missing", "values": {}}
            reports.update((name, missing) for name in names if name not in reports)
            if any(ends(name, reports[name]) for name in names):
                return reports
        return reports

    def text(self, file):
        """The source of a test file as the runner executes it everywhere."""
        if file not in self.texts:
            self.texts[file] = variant_of(self.runner.texts[file], {}, random.Random(0))[0]
        return self.texts[file]


def read_request(path):
    try:
        request = json.loads(read_text(path))
        if not all(isinstance(one["files"], dict) and one["ids"] for one in request["trials"]):
            raise ValueError("each of `trials` needs `files` and `ids`")
    except (OSError, ValueError, TypeError, KeyError) as error:
        sys.exit(f"`{path}` is not a list of trials: {error}")
    return request


def fix_addresses():
    """Makes addresses the same in every run, where this is allowed. Hashes of most objects are their addresses, and
    so is that of `None` before Python 3.12."""
    import ctypes

    ctypes.CDLL(None).personality(0x0040000)


USAGE = f"""usage: python -B -I {RUNNER} survey [--seconds S] [--doctests] [--added] [--output FILE]
       python -B -I {RUNNER} inputs FILE [--output FILE]
       python -B -I {RUNNER} check FILE [--hash-seed N] [--output FILE]
       python -B -I {RUNNER} run GROUP [--ids FILE] [--unguarded] [--altered] [--keep] [--drawing N] [--output FILE]
       python -B -I {RUNNER} trials FILE [--output FILE]"""


def main(given):
    if given[:1] == ["--serve"]:
        return serve(int(given[1]), json.loads(given[2]))
    # While tests are rewritten, the collector would search millions of nodes for cycles, of which there are none.
    gc.disable()
    # With `--other-draws`, not only the random numbers but also the order of sets must differ from those in other runs.
    # The order of sets depends on Python's hash seed.
    settings = {**SETTINGS, "PYTHONHASHSEED": "1"} if "--other-draws" in given else dict(SETTINGS)
    if "--hash-seed" in given[:-1]:
        settings["PYTHONHASHSEED"] = given[given.index("--hash-seed") + 1]
    if any(os.environ.get(name) != value for name, value in settings.items()) or any(
        map(os.environ.get, REMOVED_SETTINGS)
    ):
        environment = {name: value for name, value in os.environ.items() if name not in REMOVED_SETTINGS}
        if os.environ.get("PYTHONPATH"):
            environment[ROOTS] = os.environ["PYTHONPATH"]
        fix_addresses()
        os.execve(
            sys.executable, [sys.executable, "-B", os.path.abspath(__file__), *given], {**environment, **settings}
        )
    options = {}
    rest = iter(given[1:])
    places = []
    for word in rest:
        if word in ("--seconds", "--ids", "--hash-seed", "--drawing", "--output"):
            options[word] = next(rest, None)
        elif word in ("--doctests", "--added", "--other-draws", "--keep", "--unguarded", "--altered"):
            options[word] = True
        elif word.startswith("-"):
            sys.exit(USAGE)
        else:
            places.append(word)
    try:
        seconds = float(options.get("--seconds", 5))
        recorded = int(options["--drawing"]) if "--drawing" in options else None
    except (TypeError, ValueError):
        sys.exit(USAGE)
    if given[:1] == ["survey"] and not places:
        result = survey(HERE, seconds, "--doctests" in options, "--other-draws" in options, "--added" in options)
    elif given[:1] == ["inputs"] and len(places) == 1:
        result = more_inputs(HERE, json.loads(read_text(places[0])))
    elif given[:1] == ["check"] and len(places) == 1:
        result = check(HERE, json.loads(read_text(places[0])))
    elif given[:1] == ["run"] and len(places) == 1:
        keep, guarded = "--keep" in options, "--unguarded" not in options
        if recorded is not None and not guarded:
            sys.exit(USAGE)
        result = run(HERE, places[0], options.get("--ids"), keep, guarded, "--altered" in options, recorded)
    elif given[:1] == ["trials"] and len(places) == 1:
        result = Trials(HERE, read_request(places[0])).run()
    else:
        sys.exit(USAGE)
    line = json.dumps(result, sort_keys=True)
    if options.get("--output"):
        with open(options["--output"], "w", encoding="utf-8") as file:
            file.write(line + "\n")
    print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
