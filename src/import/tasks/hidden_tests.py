"""Runs a file of hidden unit tests on code that is not trusted, and prints one line of JSON:

    {"tests": {NAME: "passed"}, "passed": N, "canaries": {NAME: "failed"}, "changed": 0}

    python hidden_tests.py [--remove] TEST [REFERENCE...]

The code under test is imported by the tests, so it runs in their process and could make them pass. So this process never
imports it. It starts a server, which imports the tests' libraries and forks two processes. Each of them gets the tests, as
they were when this process began, and runs them once:

- in one, the tests are as they are;
- in the other, the canary, every assertion is given a wrong value, so that it must fail.

Which one is the canary is drawn at random and is not said in the process. Code that makes every assertion pass, ends the
process early, or reports results of its own makes the canary pass, too, and is found out. Both processes also report which
functions of the test framework, of the libraries and of the references differ from what they were before the code under
test was imported, and which functions of references that code has called. With `--remove`, tests and references are removed
from the disk once they have been read, together with this program: only for a copy of the repo.
"""

import os
import sys

if __name__ == "__main__":
    # The folder of this file is the repo, whose code this process and the server must not import.
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != os.path.realpath(os.getcwd())]

import ast
import json
import marshal
import random
import signal
import subprocess

# Calls that compare their first two arguments.
COMPARISONS = {"allclose", "isclose", "equal", "array_equal", "array_equiv"}
# Assertions of which no argument can be made wrong.
OTHER = {"assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs"}
DIFFERENT = {"assertNotEqual", "assertNotAlmostEqual", "assertIsNot", "assertNotIn", "assertFalse", "assertNotIsInstance"}
# Packages, modules and classes all of whose functions are watched. Others replace some of their own while they are used:
# of these, what assertions name is watched.
WATCHED = ("builtins", "math", "numpy", "operator", "torch.testing", "unittest")
CLASSES = ("torch.Tensor", "torch._C.TensorBase", "pandas.DataFrame", "pandas.Series")
PROBE = "_probe_"


class Probes(ast.NodeTransformer):
    """Passes one argument of each assertion through the probe, which makes it wrong in the canary."""

    def probe(self, node, kind, *more):
        call = ast.Call(ast.Name(PROBE, ast.Load()), [node, ast.Constant(kind), *more], [])
        return ast.copy_location(call, node)

    def truth(self, node):
        """Makes a condition wrong: one of the values that it compares, or else its outcome."""
        if isinstance(node, ast.Call) and name_of(node) in COMPARISONS and len(node.args) > 1:
            node.args[0] = self.probe(node.args[0], "value")
            return node
        return self.probe(node, "truth")

    def visit_FunctionDef(self, node):
        """Ends each test with one more assertion, for tests in which no other one can be made wrong."""
        self.generic_visit(node)
        if node.name.startswith("test") and node.args.args:
            check = ast.Attribute(ast.Name(node.args.args[0].arg, ast.Load()), "assertTrue", ast.Load())
            call = ast.Call(check, [self.probe(ast.copy_location(ast.Constant(True), node), "truth")], [])
            node.body.append(ast.copy_location(ast.Expr(call), node))
        return node

    def visit_Assert(self, node):
        self.generic_visit(node)
        node.test = self.truth(node.test)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = name_of(node)
        if not name.startswith("assert") or name in OTHER or not node.args or isinstance(node.args[0], ast.Starred):
            return node
        first = node.args[0]
        if name in ("assertTrue", "assert_"):
            node.args[0] = self.truth(first)
        elif name in ("assertFalse", "assertIsNone", "assertIsNotNone"):
            node.args[0] = self.probe(first, {"assertFalse": "truth", "assertIsNone": "some"}.get(name, "none"))
        elif name in DIFFERENT:
            if len(node.args) > 1 and name in ("assertNotEqual", "assertNotAlmostEqual", "assertIsNot"):
                node.args[1] = ast.copy_location(ast.Name("_first_", ast.Load()), first)
                node.args[0] = ast.copy_location(ast.NamedExpr(ast.Name("_first_", ast.Store()), first), first)
                return node
        elif name.startswith("assertLess"):
            node.args[0] = self.probe(first, "high")
        elif name.startswith("assertGreater"):
            node.args[0] = self.probe(first, "low")
        elif name in ("assertIn", "assertIsInstance", "assertIs"):
            node.args[0] = self.probe(first, "some")
        else:
            node.args[0] = self.probe(first, "value")
        return node


def name_of(call):
    """The last name of what is called: `allclose` for `torch.allclose(...)`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def make_probe(shift):
    """Returns the function that changes nothing if `shift` is 0, and makes values wrong otherwise."""

    def wrong(value):
        if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
            return not value
        if isinstance(value, str):
            return value + str(shift)
        if isinstance(value, (tuple, list)):
            return type(value)([wrong(value[0]), *value[1:]] if value else [shift])
        if isinstance(value, dict):
            return {**value, str(shift): shift}
        if value is None or isinstance(value, type):
            return object()
        try:
            return ~value if "bool" in str(getattr(value, "dtype", "")) else value + shift
        except Exception:
            return object()

    def probe(value, kind):
        if not shift:
            return value
        if kind == "truth":
            return not value
        if kind in ("some", "none"):
            return object() if kind == "some" else None
        if kind in ("high", "low"):
            return value + (1e30 if kind == "high" else -1e30)
        return wrong(value)

    return probe


# In the forked processes.


def watched():
    """The watched modules and classes that are loaded, by name."""
    for name, module in list(sys.modules.items()):
        if module is not None and any((name + ".").startswith(package + ".") for package in WATCHED):
            yield name, module
    for name in CLASSES:
        found = look_up(name)
        if found is not None:
            yield name, found


def look_up(path):
    """What a dotted name stands for, without importing anything."""
    first, *rest = path.split(".")
    found = sys.modules.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return found


def functions(spaces, names=()):
    """What can be called in these pairs of a name and an object, in its classes, and by these names: by path, with its
    code."""
    found = {}
    for path in names:
        value = look_up(path)
        if callable(value):
            found[path] = (value, *code_of(value))
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


def changed(before, spaces, names):
    """Paths of functions that are not what they were."""
    after = functions(spaces, names)
    same = lambda one, other: len(one) == len(other) and all(a is b for a, b in zip(one, other))
    return sorted(path for path, was in before.items() if path not in after or not same(was, after[path]))


def with_parts(module, parts):
    """A copy of a module with more names in it."""
    copy = type(sys)(module.__name__)
    vars(copy).update(vars(module), **parts)
    return copy


class References:
    """The reference modules, which only the tests and other references can import."""

    def __init__(self, sources, folder):
        self.folder, self.loaded, self.used, self.code = folder, {}, set(), {}
        self.sources = {file[:-3].replace("/", "."): (file, text) for file, text in sources.items()}

    def importer(self, imported=__import__):
        """The `__import__` of modules that can import references. No reference stays in `sys.modules` or in a package."""

        def find(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 0 and name in self.sources:
                module = self.load(name)
                return module if fromlist else self.package(name, module, imported)
            found = imported(name, globals, locals, fromlist, level)
            inner = [one for one in fromlist or () if level == 0 and f"{name}.{one}" in self.sources]
            return with_parts(found, {one: self.load(f"{name}.{one}") for one in inner}) if inner else found

        return find

    def package(self, name, module, imported):
        """What `import a.b` binds: a copy of the package `a` with the reference `b` in it."""
        while "." in name:
            name, _, part = name.rpartition(".")
            module = with_parts(imported(name, fromlist=["_"]), {part: module})
        return module

    def load(self, name):
        if name not in self.loaded:
            file, text = self.sources[name]
            code = compile(text, os.path.join(self.folder, file), "exec")
            self.loaded[name] = module = self.module(name, file)
            self.watch(code, name)
            # Decorators look for the module of a class while it is made.
            sys.modules[name] = module
            try:
                exec(code, vars(module))
            finally:
                sys.modules.pop(name, None)
        return self.loaded[name]

    def module(self, name, file):
        """A module whose code can import references."""
        import builtins
        import types

        module = types.ModuleType(name)
        module.__file__ = os.path.join(self.folder, file)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self.importer()}
        return module

    def watch(self, code, name):
        """Notes when a function of a reference is entered from the code under test."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            # Python 3.11 and older: slower, since it sees every call.
            sys.setprofile(lambda frame, event, _: event == "call" and self.entered(frame.f_code, 0))
        elif not self.code:
            monitoring.use_tool_id(4, "references")
            monitoring.register_callback(4, monitoring.events.PY_START, self.entered)
        for part in (part for part in code.co_consts if type(part) is type(code)):
            # Equal functions of other files have equal code.
            self.code[id(part)] = part, f"{name}.{getattr(part, 'co_qualname', part.co_name)}"
            if monitoring is not None:
                monitoring.set_local_events(4, part, monitoring.events.PY_START)
            self.watch(part, name)

    def entered(self, code, offset):
        if id(code) not in self.code:
            return
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self.folder + os.sep) and os.path.relpath(file, self.folder) not in self.files:
                self.used.add(f"{self.code[id(code)][1]}, called by {os.path.relpath(file, self.folder)}")
                return
            frame = frame.f_back


def run_tests(request, libraries, names, folder):
    """Runs the tests of a request, and returns what is reported of them."""
    import unittest

    sys.path.insert(0, folder)
    references = References(request["references"], folder)
    references.files = {*request["references"], request["file"], os.path.relpath(os.path.abspath(__file__), folder)}
    # The references come before the code under test, as far as they don't import it themselves.
    for name, (file, _) in references.sources.items():
        try:
            references.load(name)
        except Exception as error:
            return {"unusable": f"`{file}` cannot be imported: {type(error).__name__}: {error}"}
    known = list(references.loaded.items())
    before = {**libraries, **functions(known)}
    tests = references.module(request["name"], request["file"])
    vars(tests)[PROBE] = make_probe(request["shift"])
    sys.modules[tests.__name__] = tests
    try:
        exec(marshal.loads(request["code"]), vars(tests))
    except BaseException as error:
        return {"unusable": f"the tests cannot be imported: {type(error).__name__}: {error}"}
    odd = [
        f"{tests.__name__}.{bound}"
        for module, name, bound in request["imports"]
        if module in references.loaded and vars(tests).get(bound) is not vars(references.loaded[module]).get(name)
    ]
    own = [(tests.__name__, tests)]
    before.update(functions(own))
    outcomes, messages = {}, {}

    class Outcomes(unittest.TestResult):
        def startTest(self, test):
            super().startTest(test)
            self.note(test, None, "passed")

        def note(self, test, problem, outcome):
            name = ".".join(test.id().split(".")[-2:])
            if outcomes.get(name, "passed") == "passed":
                outcomes[name] = outcome
                messages[name] = problem and f"{problem[0].__name__}: {problem[1]}"[:300]

        def addFailure(self, test, problem):
            self.note(test, problem, "failed")

        def addError(self, test, problem):
            self.note(test, problem, "error")

        def addSkip(self, test, reason):
            self.note(test, None, "skipped")

        def addExpectedFailure(self, test, problem):
            self.note(test, problem, "expected failure")

        def addUnexpectedSuccess(self, test):
            self.note(test, None, "unexpected success")

        def addSubTest(self, test, subtest, problem):
            if problem is not None:
                self.note(test, problem, "failed" if issubclass(problem[0], test.failureException) else "error")

    unittest.defaultTestLoader.loadTestsFromModule(tests).run(Outcomes())
    odd += changed(before, [*watched(), *known, *own], names)
    odd += sorted(references.used)
    return {"tests": outcomes, "messages": messages, "changed": odd}


def serve(folder, modules, names, channels):
    """Imports these modules, then forks one process for each channel, and waits for them."""
    import importlib
    import unittest
    import unittest.mock
    import warnings

    protect()
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            # The tests then say that it is missing.
            pass
    # Looking at libraries, and a fork where they have threads, warns.
    warnings.simplefilter("ignore")
    libraries = functions(watched(), names)
    for place, (take, give) in enumerate(channels):
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        os.setsid()
        warnings.resetwarnings()
        for other, pair in enumerate(channels):
            for descriptor in pair if other != place else ():
                os.close(descriptor)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        with os.fdopen(take, "rb") as file:
            text = file.read()
        if text:
            request = marshal.loads(text)
            report = run_tests(request, libraries, names, folder)
            with os.fdopen(give, "w") as file:
                file.write(json.dumps({"secret": request["secret"], **report}) + "\n")
        os._exit(0)
    for pair in channels:
        for descriptor in pair:
            os.close(descriptor)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


# In this process.


def protect():
    """Makes memory and descriptors of this process unreadable for others of the same user."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def imports_of(tree):
    """Names that the file imports: pairs of a module and the names from it, with what they are bound to."""
    modules, names = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
            names += [(node.module, alias.name, alias.asname or alias.name) for alias in node.names]
    return modules, names


def asserted(tree):
    """Dotted names of library functions in the assertions of the tests."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    is_assertion = lambda node: isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call) and name_of(node).startswith("assert")
    )
    found = set()
    for node in (part for node in ast.walk(tree) if is_assertion(node) for part in ast.walk(node)):
        path = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in bound:
            found.add(".".join([bound[node.id], *path]))
    return sorted(found)


def main(remove, test, files):
    folder = os.getcwd()
    read = lambda file: open(os.path.join(folder, file), "rb").read()
    tree, references = ast.parse(read(test)), {file: read(file) for file in files}
    modules, names = imports_of(tree)
    for source in references.values():
        modules |= imports_of(ast.parse(source))[0]
    is_own = lambda name: any(os.path.exists(os.path.join(folder, name.partition(".")[0] + end)) for end in ("", ".py"))
    libraries = sorted(name for name in modules if not is_own(name))
    watched = asserted(tree)
    code = marshal.dumps(compile(ast.fix_missing_locations(Probes().visit(tree)), os.path.join(folder, test), "exec"))
    protect()
    pipes = [(os.pipe(), os.pipe()) for _ in range(2)]
    theirs = [(take[0], give[1]) for take, give in pipes]
    server = subprocess.Popen(
        [sys.executable, "-B", os.path.abspath(__file__), "--serve", json.dumps([folder, libraries, watched, theirs])],
        pass_fds=[one for pair in theirs for one in pair], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )
    for pair in theirs:
        for descriptor in pair:
            os.close(descriptor)
    random.seed(os.urandom(16))
    shifts = [0, random.randrange(1000, 10000)]
    random.shuffle(shifts)
    reports = {}
    children = [server.stdout.readline().strip() for _ in pipes]
    if not all(child.isdigit() for child in children):
        sys.exit("the libraries of the tests cannot be imported")
    # Everything is in memory now. The code under test must not find the tests and the references on the disk.
    for file in [test, *files, __file__] if remove else []:
        os.remove(os.path.join(folder, file))
    for child, shift, (take, give) in zip(children, shifts, pipes):
        secret = os.urandom(16).hex()
        request = {
            "name": test[:-3].replace("/", "."), "file": test, "code": code, "references": references, "imports": names,
            "shift": shift, "secret": secret,
        }
        try:
            with os.fdopen(take[1], "wb") as file:
                file.write(marshal.dumps(request))
        except BrokenPipeError:
            pass
        # Only a line: processes that the code under test has started may keep the pipe open.
        with os.fdopen(give[0]) as file:
            text = file.readline()
        try:
            os.killpg(int(child), signal.SIGKILL)
        except OSError:
            pass
        try:
            report = json.loads(text)
        except ValueError:
            report = {}
        if not isinstance(report, dict) or report.get("secret") != secret:
            sys.exit("the code under test ended the process of its tests")
        if "unusable" in report:
            sys.exit(report["unusable"])
        reports["canary" if shift else "tests"] = report
    server.kill()
    real, canary = reports["tests"], reports["canary"]
    for name, outcome in real["tests"].items():
        if outcome != "passed":
            print(f"{name}: {outcome}: {real['messages'][name]}", file=sys.stderr)
    odd = sorted({*real["changed"], *canary["changed"]})
    for path in odd[:20]:
        print(f"changed by the code under test: {path}", file=sys.stderr)
    passed = sum(outcome == "passed" for outcome in real["tests"].values())
    # What is made wrong may also fit nothing any more, depending on the types that right code returns.
    canaries = {name: "failed" if outcome == "error" else outcome for name, outcome in canary["tests"].items()}
    print(json.dumps({"tests": real["tests"], "passed": passed, "canaries": canaries, "changed": len(odd)}))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(*json.loads(sys.argv[2]))
    else:
        remove = sys.argv[1] == "--remove"
        main(remove, sys.argv[1 + remove], sys.argv[2 + remove :])
