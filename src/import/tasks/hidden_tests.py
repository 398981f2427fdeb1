"""Runs a file of hidden unit tests on code that is not trusted, and prints one line of JSON:

    {"tests": {NAME: "passed"}, "passed": N, "canaries": {NAME: "failed"}, "changed": 0}

    python hidden_tests.py [--remove] TEST [REFERENCE...]

The code under test is imported by the tests, so it runs in their process and could make them pass. So this process never
imports it, and takes no verdict from the process of the tests. It starts a server, which imports the tests' libraries and
forks several processes that run the tests, one after the other. Each of them gets one of four variants of the tests:

- plain: the tests as they are;
- first: the first operand of every assertion is wrong, so that every test must fail (a canary);
- second: the same with the second operand;
- references: the references (right solutions) return wrong numbers. Tests that compare with them must fail.

Which process gets which variant is drawn at random, and only this process knows it. The processes get compiled code, in
which the alterations are constants, and report nothing but the outcome of each test. Code that makes every assertion pass,
ends the process early, or reports outcomes of its own makes a canary pass, too, and is found out. Code that borrows from a
reference, in any way, passes where the reference is wrong. The outcome of this canary is called `NAME (references)`; it is
"passed" for a test that does not depend on what a reference returns.

References must run in the process of the tests, which compare with them. Their source does not get there. A guard ends the
process when the code under test calls a reference, reads the code of a reference or of a test, or inspects frames or all
objects of the process. Each process also reports which functions of the test framework, of the libraries and of the
references differ from what they were before the code under test was imported.

With `--remove`, tests and references are removed from the disk once they have been read, together with this program: only for
a copy of the repo.
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
import warnings

# Variants of the tests in a process.
PLAIN, FIRST, SECOND, REFERENCES = range(4)
# Number of processes. Of six, one to three are plain, in 41 equally likely ways.
PROCESSES = 6
# Calls that compare their first two arguments.
COMPARISONS = {"allclose", "isclose", "equal", "array_equal", "array_equiv"}
# Comparisons, with the kinds of wrong values that make them false on the left and on the right side.
ORDERS = {
    ast.Eq: ("value", "value"),
    ast.Lt: ("high", "low"),
    ast.LtE: ("high", "low"),
    ast.Gt: ("low", "high"),
    ast.GtE: ("low", "high"),
}
# Assertions of which no argument can be made wrong.
OTHER = {"assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs"}
DIFFERENT = {"assertNotEqual", "assertNotAlmostEqual", "assertIsNot", "assertNotIn", "assertFalse", "assertNotIsInstance"}
# Packages, modules and classes all of whose functions are watched. Others replace some of their own while they are used:
# of these, what assertions name is watched.
WATCHED = ("builtins", "math", "numpy", "operator", "torch.testing", "unittest")
CLASSES = ("torch.Tensor", "torch._C.TensorBase", "pandas.DataFrame", "pandas.Series")
PROBE = "_probe_"
# Constants that stand for functions: the one which is called at the beginning of each reference function and test method,
# and the one through which reference functions pass what they return.
ENTERED = "autoexperiment: entered"
RETURNED = "autoexperiment: returned"
# Audit events of operations that give access to the frames or to all objects of a process, or to its memory.
INSPECTIONS = {
    "sys.addaudithook",
    "sys._getframe",
    "sys._current_frames",
    "sys._current_exceptions",
    "sys.settrace",
    "sys.setprofile",
    "sys.monitoring.register_callback",
    "gc.get_objects",
    "gc.get_referrers",
    "gc.get_referents",
    "code.__new__",
    "marshal.loads",
    "ctypes.PyObj_FromPtr",
    "ctypes.cdata",
    "ctypes.string_at",
}
# Attributes that give access to frames and their code.
FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_code", "gi_code", "cr_code", "ag_code"}


# Alterations.


def with_entry(node):
    """Calls the function that `ENTERED` stands for at the beginning of a function, behind its docstring."""
    place = int(ast.get_docstring(node, clean=False) is not None)
    node.body.insert(place, ast.copy_location(ast.Expr(ast.Call(ast.Constant(ENTERED), [], [])), node))
    return node


class Entries(ast.NodeTransformer):
    """Adds the calls of `ENTERED` and `RETURNED` to the functions of a reference."""

    def __init__(self, variant):
        self.is_wrong = variant == REFERENCES

    def returned(self, node):
        # The amounts are the same in each run, so that the outcomes of tests are, too.
        amount = ast.Constant(1.0 + node.lineno % 7 if self.is_wrong else 0.0)
        return ast.copy_location(ast.Call(ast.Constant(RETURNED), [node, amount], []), node)

    def visit_FunctionDef(self, node):
        return with_entry(self.generic_visit(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Return(self, node):
        self.generic_visit(node)
        node.value = node.value and self.returned(node.value)
        return node

    def visit_Lambda(self, node):
        self.generic_visit(node)
        both = ast.Tuple([ast.Call(ast.Constant(ENTERED), [], []), self.returned(node.body)], ast.Load())
        node.body = ast.copy_location(ast.Subscript(both, ast.Constant(1), ast.Load()), node.body)
        return node


class Probes(ast.NodeTransformer):
    """Passes operands of each assertion through the probe, which makes them wrong in a canary."""

    def __init__(self, variant, chance):
        self.variant, self.chance = variant, chance
        # Names of the classes in the file that are test cases.
        self.cases = set()

    def probe(self, node, kind, side=None):
        """The probe of an operand on this side, or on both sides if `side` is `None`."""
        is_wrong = self.variant in (FIRST, SECOND) and side in (None, self.variant)
        amount = ast.Constant(self.chance.uniform(1, 9) if is_wrong else 0.0)
        call = ast.Call(ast.Name(PROBE, ast.Load()), [node, ast.Constant(kind), amount], [])
        return ast.copy_location(call, node)

    def operands(self, arguments, left="value", right="value"):
        """Makes one of the first two arguments wrong, or the only one."""
        has_two = len(arguments) > 1 and not isinstance(arguments[1], ast.Starred)
        arguments[0] = self.probe(arguments[0], left, FIRST if has_two else None)
        if has_two:
            arguments[1] = self.probe(arguments[1], right, SECOND)

    def compared(self, node):
        """Makes an operand of a comparison wrong if it decides about a condition. Returns whether there is one."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in ORDERS:
            sides = [node.left, node.comparators[0]]
            self.operands(sides, *ORDERS[type(node.ops[0])])
            node.left, node.comparators[0] = sides
            return True
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return any(map(self.compared, node.values))
        if not isinstance(node, ast.Call):
            return False
        name = name_of(node)
        if name in COMPARISONS and len(node.args) > 1 and not isinstance(node.args[0], ast.Starred):
            self.operands(node.args)
            return True
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        return name in ("all", "bool", "item") and self.compared(inner)

    def truth(self, node):
        """Makes a condition wrong: one of the values that it compares, or else its outcome."""
        return node if self.compared(node) else self.probe(node, "truth")

    def visit_ClassDef(self, node):
        """Ends each test with one more assertion, for tests in which no other one can be made wrong."""
        self.generic_visit(node)
        bases = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
        if not any(base.endswith("TestCase") or base in self.cases for base in bases):
            return node
        self.cases.add(node.name)
        for method in node.body:
            is_function = isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
            if not is_function or not method.name.startswith("test"):
                continue
            given = method.args.posonlyargs + method.args.args
            static = any(getattr(one, "id", "") in ("staticmethod", "classmethod") for one in method.decorator_list)
            right = self.probe(ast.copy_location(ast.Constant(True), method), "truth")
            end = ast.Assert(right)
            if given and not static:
                check = ast.Attribute(ast.Name(given[0].arg, ast.Load()), "assertTrue", ast.Load())
                end = ast.Expr(ast.Call(check, [right], []))
            method.body.append(ast.copy_location(end, method))
            with_entry(method)
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
            comparing = name in ("assertNotEqual", "assertNotAlmostEqual", "assertIsNot") and len(node.args) > 1
            if comparing and self.variant in (FIRST, SECOND):
                node.args[1] = ast.copy_location(ast.Name("_first_", ast.Load()), first)
                node.args[0] = ast.copy_location(ast.NamedExpr(ast.Name("_first_", ast.Store()), first), first)
        elif name.startswith("assertLess"):
            self.operands(node.args, "high", "low")
        elif name.startswith("assertGreater"):
            self.operands(node.args, "low", "high")
        elif name in ("assertIn", "assertIsInstance", "assertIs"):
            node.args[0] = self.probe(first, "some")
        else:
            self.operands(node.args)
        return node


def name_of(call):
    """The last name of what is called: `allclose` for `torch.allclose(...)`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def probe(value, kind, amount):
    """Returns a value unchanged if the amount is 0, and otherwise a wrong one of similar magnitude."""
    if not amount:
        return value
    if kind == "truth":
        return not value
    if kind in ("some", "none"):
        return object() if kind == "some" else None
    if kind in ("high", "low"):
        return value + amount * (1e30 if kind == "high" else -1e30)
    try:
        return wrong(value, amount)
    except Exception:
        return object()


def wrong(value, amount):
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return not value
    if isinstance(value, str):
        return value + (value[-1:] or "a")
    if isinstance(value, (tuple, list)):
        return type(value)([wrong(value[0], amount), *value[1:]] if value else [amount])
    if isinstance(value, dict):
        return {**value, str(amount): amount}
    if value is None or isinstance(value, type):
        return object()
    return ~value if "bool" in str(getattr(value, "dtype", "")) else value + amount * (abs(value) + 1)


def wrong_result(value, amount, is_whole=True):
    """Another value of the same kind. Whole numbers in a list, and arrays of them, stay: they may be sizes or indices."""
    if type(value) in (tuple, list):
        return type(value)(wrong_result(part, amount, False) for part in value)
    if type(value) is dict:
        return {key: wrong_result(part, amount, False) for key, part in value.items()}
    kind = str(getattr(value, "dtype", type(value).__name__))
    fits = "float" in kind or "complex" in kind or is_whole and type(value) in (bool, int, str)
    return wrong(value, int(amount)) if fits else value


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

    def __init__(self, codes, folder):
        # `codes`: the compiled code of each module by its file. Until a module runs, its code is the body of a function,
        # because the guard notices when the code of a function is read.
        self.loaded, self.waiting, self.folder = {}, {}, folder
        for file, code in codes.items():
            name = file[:-3].replace("/", ".")
            module = self.module(name, file)
            self.waiting[name] = module, type(code_of)(code, vars(module))

    def importer(self, imported=__import__):
        """The `__import__` of modules that can import references. No reference stays in `sys.modules` or in a package."""

        def find(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 0 and self.has(name):
                module = self.load(name)
                return module if fromlist else self.package(name, module, imported)
            found = imported(name, globals, locals, fromlist, level)
            inner = [one for one in fromlist or () if level == 0 and self.has(f"{name}.{one}")]
            return with_parts(found, {one: self.load(f"{name}.{one}") for one in inner}) if inner else found

        return find

    def has(self, name):
        return name in self.loaded or name in self.waiting

    def package(self, name, module, imported):
        """What `import a.b` binds: a copy of the package `a` with the reference `b` in it."""
        while "." in name:
            name, _, part = name.rpartition(".")
            module = with_parts(imported(name, fromlist=["_"]), {part: module})
        return module

    def load(self, name):
        if name in self.waiting:
            self.loaded[name], run = self.waiting.pop(name)
            # Decorators look for the module of a class while it is made.
            sys.modules[name] = self.loaded[name]
            try:
                run()
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


def armed(code, called):
    """The code with functions in the place of the constants that stand for them."""

    def arm(part):
        if type(part) is type(code):
            return armed(part, called)
        return called.get(part, part) if type(part) is str else part

    return code.replace(co_consts=tuple(map(arm, code.co_consts)))


def parts_of(code):
    """Yields a code object and all code objects in it."""
    yield code
    for part in code.co_consts:
        if type(part) is type(code):
            yield from parts_of(part)


def prepare(request, folder, give):
    """Installs the guard, and returns the references, the module of the tests, the function that fills it, and its imports.

    The guard's functions use no global names, and keep what they need in defaults, because the code under test could change
    anything else. They end the process at once, so that it cannot take back what they noticed.
    """
    import _thread

    hidden = {os.path.join(folder, file) for file in (*request["references"], request["file"])}
    hidden.add(os.path.abspath(__file__))

    def is_own(names, folder=folder + os.sep, hidden=frozenset(hidden), kind=type, text=str):
        """Whether these global names belong to the code under test."""
        file = names.get("__file__")
        if kind(file) is not text or not file.startswith("/"):
            return True
        return file.startswith(folder) and file not in hidden

    def refuse(what, write=os.write, give=give, exit=os._exit):
        try:
            write(give, ('{"refused": "%s"}\n' % what).encode())
        finally:
            exit(1)

    references = {os.path.join(folder, file) for file in request["references"]}

    def entered(
        frame_of=sys._getframe, is_own=is_own, refuse=refuse, references=frozenset(references), kind=type, text=str
    ):
        """Refuses a call for which the code under test is responsible: unlike a call of a reference by its base class in
        the repo, or by a function of the repo that the reference has called. Code without a file may be a library's, such
        as a decorator's."""
        frame = frame_of(1)
        name = frame.f_code.co_name
        by_own = False
        while frame is not None:
            file = frame.f_globals.get("__file__")
            if kind(file) is text:
                by_own = file not in references and (by_own or is_own(frame.f_globals))
            frame = frame.f_back
        if by_own:
            refuse("called `%s` of a test or reference" % name)

    def returned(value, amount, frame_of=sys._getframe, references=frozenset(references), wrong=wrong_result):
        """Makes a value wrong unless another function of a reference has asked for it."""
        frame = frame_of(1).f_back if amount else None
        while frame is not None and frame.f_globals.get("__file__") not in references:
            frame = frame.f_back
        return wrong(value, amount) if amount and frame is None else value

    called = {ENTERED: entered, RETURNED: returned}
    codes = {file: armed(code, called) for file, code in request["references"].items()}
    tests = armed(request["code"], called)
    guarded = [part for code in (*codes.values(), tests) for part in parts_of(code)]

    def guard(
        event,
        args,
        frame_of=sys._getframe,
        is_own=is_own,
        refuse=refuse,
        inspections=frozenset(INSPECTIONS),
        frames=frozenset(FRAMES),
        guarded=frozenset(map(id, guarded)),
        # The code objects must not be freed, because other objects could then get their addresses.
        kept=tuple(guarded),
        place=id,
        # Threads that are in this function, whose own operations cause events, too.
        busy=set(),
        thread=_thread.get_ident,
    ):
        is_attribute = event == "object.__getattr__" or event == "object.__setattr__"
        if not is_attribute and event not in inspections or thread() in busy:
            return
        busy.add(thread())
        try:
            frame = frame_of(1)
            while frame.f_back is not None and frame.f_globals.get("__name__") == "inspect":
                frame = frame.f_back
            # Functions of these modules return frames to their callers, but other callers only get texts.
            if frame.f_back is not None and frame.f_globals.get("__name__") in ("logging", "traceback"):
                frame = frame.f_back
            if not is_own(frame.f_globals):
                return
            if not is_attribute:
                refuse("inspected the process of its tests by `%s`" % event)
            if args[1] in frames:
                refuse("inspected the process of its tests by `%s`" % args[1])
            if args[1] == "__code__":
                if event == "object.__setattr__" and not is_own(args[0].__globals__):
                    refuse("changed the code of a function that is not its own")
                if place(args[0].__code__) in guarded:
                    refuse("read the code of a test or reference")
        finally:
            busy.discard(thread())

    references = References(codes, folder)
    module = references.module(request["name"], request["file"])
    vars(module)[PROBE] = probe
    run = type(code_of)(tests, vars(module))
    sys.addaudithook(guard)
    return references, module, run, request["imports"]


def run_tests(references, tests, run, imports, libraries, names, folder):
    """Runs the tests, and returns what is reported of them."""
    import unittest

    sys.path.insert(0, folder)
    # The references come before the code under test, as far as they don't import it themselves.
    for name, (module, _) in list(references.waiting.items()):
        try:
            references.load(name)
        except Exception as error:
            file = os.path.relpath(module.__file__, folder)
            return {"unusable": f"`{file}` cannot be imported: {type(error).__name__}: {error}"}
    known = list(references.loaded.items())
    before = {**libraries, **functions(known)}
    sys.modules[tests.__name__] = tests
    try:
        run()
    except BaseException as error:
        return {"unusable": f"the tests cannot be imported: {type(error).__name__}: {error}"}
    odd = [
        f"{tests.__name__}.{bound}"
        for module, name, bound in imports
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
    return {"tests": outcomes, "messages": messages, "changed": odd}


def serve(folder, modules, names, channels):
    """Imports these modules, then forks one process for each channel, and waits for them."""
    import importlib
    import unittest
    import unittest.mock

    protect()
    # Libraries may print while they are imported, but this process's output must contain only the numbers of processes.
    output = os.dup(1)
    os.dup2(2, 1)
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
            os.write(output, b"%d\n" % child)
            continue
        os.close(output)
        os.setsid()
        warnings.resetwarnings()
        for other, pair in enumerate(channels):
            for descriptor in pair if other != place else ():
                os.close(descriptor)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        confine()
        with os.fdopen(take, "rb") as file:
            text = file.read()
        if text:
            # No frame may keep the request, which contains the code of the references.
            ready = prepare(marshal.loads(text), folder, give)
            del text
            report = run_tests(*ready, libraries, names, folder)
            with os.fdopen(give, "w") as file:
                file.write(json.dumps(report) + "\n")
        os._exit(0)
    os.close(output)
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


def confine():
    """Denies this process and its children access to the memory of other processes, and signals to them, even as root, by
    Landlock, where the kernel has it."""
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(444, None, 0, 1)
    # The first version always forbids renaming files into other folders, which right code may do.
    if version < 2:
        return
    # Each ruleset must restrict some access to files: here, the creation of block devices. Each one also restricts renaming
    # files into other folders, unless a rule for the root folder allows it. The last field is for signals.
    devices, renaming = 1 << 11, 1 << 13
    attributes = struct.pack("QQQ", devices | renaming, 0, 2)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = libc.syscall(444, attributes, len(attributes), 0)
    if rules >= 0:
        root = os.open("/", os.O_PATH)
        libc.syscall(445, rules, 1, struct.pack("=Qi", renaming, root), 0)
        os.close(root)
        libc.prctl(38, 1, 0, 0, 0)
        libc.syscall(446, rules, 0)
        os.close(rules)


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


def draw():
    """Draws the variant of each process: at least one of each."""
    chance = random.SystemRandom()
    while True:
        plain = [chance.random() < 0.5 for _ in range(PROCESSES)]
        if 1 <= sum(plain) <= PROCESSES - 3:
            break
    canaries = [FIRST, SECOND, REFERENCES]
    canaries += (chance.choice(canaries) for _ in range(PROCESSES - sum(plain) - 3))
    chance.shuffle(canaries)
    return [PLAIN if one else canaries.pop() for one in plain]


def merged(reports, expected):
    """The outcome of each test in several processes: the expected one only if it is the outcome in all of them."""
    # What is made wrong may also fit nothing any more, depending on the types that right code returns.
    alike = lambda outcome: expected if expected == "failed" and outcome == "error" else outcome
    names = dict.fromkeys(name for report in reports for name in report["tests"])
    outcomes = {name: [alike(report["tests"].get(name, "missing")) for report in reports] for name in names}
    return {name: next((one for one in found if one != expected), expected) for name, found in outcomes.items()}


def main(remove, test, files):
    folder = os.getcwd()
    read = lambda file: open(os.path.join(folder, file), "rb").read()
    source, texts = read(test), {file: read(file) for file in files}
    tree = ast.parse(source)
    modules, names = imports_of(tree)
    for text in texts.values():
        modules |= imports_of(ast.parse(text))[0]
    is_own = lambda name: any(os.path.exists(os.path.join(folder, name.partition(".")[0] + end)) for end in ("", ".py"))
    libraries = sorted(name for name in modules if not is_own(name))
    watched = asserted(tree)

    def compiled(tree, file):
        with warnings.catch_warnings():
            # The constant that is called looks like a mistake.
            warnings.simplefilter("ignore")
            return compile(ast.fix_missing_locations(tree), os.path.join(folder, file), "exec", dont_inherit=True)

    variants = draw()
    chance = random.SystemRandom()
    codes = [compiled(Probes(variant, chance).visit(ast.parse(source)), test) for variant in variants]
    references = [
        {file: compiled(Entries(variant).visit(ast.parse(text)), file) for file, text in texts.items()}
        for variant in variants
    ]
    protect()
    pipes = [(os.pipe(), os.pipe()) for _ in variants]
    theirs = [(take[0], give[1]) for take, give in pipes]
    server = subprocess.Popen(
        [sys.executable, "-B", os.path.abspath(__file__), "--serve", json.dumps([folder, libraries, watched, theirs])],
        pass_fds=[one for pair in theirs for one in pair], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )
    for pair in theirs:
        for descriptor in pair:
            os.close(descriptor)
    children = [server.stdout.readline().strip() for _ in pipes]
    if not all(child.isdigit() for child in children):
        sys.exit("the libraries of the tests cannot be imported")
    # Everything is in memory now. The code under test must not find the tests and the references on the disk.
    for file in [test, *files, __file__] if remove else []:
        os.remove(os.path.join(folder, file))
    reports = []
    name = test[:-3].replace("/", ".")
    for child, code, own, (take, give) in zip(children, codes, references, pipes):
        request = {"name": name, "file": test, "code": code, "references": own, "imports": names}
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
        if isinstance(report, dict) and "refused" in report:
            sys.exit(f"the code under test {report['refused']}")
        if isinstance(report, dict) and "unusable" in report:
            sys.exit(report["unusable"])
        parts = {"tests": dict, "messages": dict, "changed": list}
        if not isinstance(report, dict) or any(type(report.get(name)) is not part for name, part in parts.items()):
            sys.exit("the code under test ended the process of its tests")
        reports.append(report)
    server.kill()
    of = lambda *chosen: [report for report, variant in zip(reports, variants) if variant in chosen]
    plain = of(PLAIN)
    tests = merged(plain, "passed")
    canaries = merged(of(FIRST, SECOND), "failed")
    canaries.update({f"{name} (references)": one for name, one in merged(of(REFERENCES), "failed").items()})
    for name, outcome in tests.items():
        if outcome != "passed":
            messages = (report["messages"].get(name) for report in plain)
            print(f"{name}: {outcome}: {next(filter(None, messages), None)}", file=sys.stderr)
    odd = sorted({path for report in reports for path in report["changed"]})
    for path in odd[:20]:
        print(f"changed by the code under test: {path}", file=sys.stderr)
    passed = sum(outcome == "passed" for outcome in tests.values())
    print(json.dumps({"tests": tests, "passed": passed, "canaries": canaries, "changed": len(odd)}))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(*json.loads(sys.argv[2]))
    else:
        remove = sys.argv[1] == "--remove"
        main(remove, sys.argv[1 + remove], sys.argv[2 + remove :])
