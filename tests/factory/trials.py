"""Checks the runner's `trials`, which tries several changes of a package: `python tests/factory/trials.py`."""

import base64
import builtins
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import types

RUNNER = pathlib.Path(__file__).resolve().parent.parent.parent / "src/factory/package_tests.py"
CODE = """def mean(values):
    total = 0.0
    for value in values:
        total += value
    if not values:
        return 0.0
    return total / len(values)


def count(n):
    while n > 0:
        n -= 1
    return n
"""
TESTS = {
    "tests/test_one.py": "from means import mean\n\ndef test_mean(): assert mean([1, 2, 3]) == 2\n\n"
    "def test_value(): mean([4, 6])\n",
    # Another file with tests of the same names.
    "tests/more/test_one.py": "from means import count, mean\n\ndef test_mean(): assert mean([1, 2, 3]) == 2\n\n"
    "def test_count(): assert count(5) == 0\n",
    "tests/test_two.py": "from means import mean\n\ndef test_empty(): assert mean([]) == 0\n",
}
IDS = [
    "tests/test_one.py::test_mean",
    "tests/test_one.py::test_value",
    "tests/test_two.py::test_empty",
    "tests/more/test_one.py::test_mean",
    "tests/more/test_one.py::test_count",
]
CHANGES = {
    "nothing": CODE,
    "another result": CODE.replace("+= value", "-= value"),
    "another value, which no test compares": CODE.replace("/ len(values)", "/ (len(values) + (values[0] == 4))"),
    "an endless loop": CODE.replace("n -= 1", "n -= 0"),
    "a missing name": CODE.replace("def mean", "def average"),
    "an end of the process": "import os\nos._exit(0)\n",
    "a syntax error": "def",
}


def write(folder, files):
    """Writes a package's files and the runner."""
    for path, text in {**files, "autoexperiment_package_tests.py": RUNNER.read_text()}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def request(folder, changes, required={}, **options):
    files = lambda code: {"means.py": base64.b64encode(code.encode()).decode()}
    trials = [{"files": files(CHANGES[name]), "ids": IDS, **required.get(name, {})} for name in changes]
    path = folder / "trials.json"
    path.write_text(json.dumps({"trials": trials, **options}))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py")]
    ran = subprocess.run([*command, "trials", str(path)], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(changes, json.loads(ran.stdout)["trials"]))


def commands():
    """Checks that tests can call the package's commands, and its modules by `python -m`."""
    files = {
        "src/pkg/__init__.py": "",
        "src/pkg/__main__.py": "from pkg.cli import run\n\nrun()\n",
        "src/pkg/cli.py": "import sys\n\n\ndef run():\n    print(sys.argv[0].rpartition('/')[2], *sys.argv[1:])\n    return 3\n",
        "src/pkg-1.dist-info/entry_points.txt": "[console_scripts]\npkg-run = pkg.cli:run\nbad/name = pkg.cli:run\nother = no code\n",
        "tests/test_commands.py": "import subprocess, sys\n\n\ndef out(*line):\n"
        "    ran = subprocess.run(line, capture_output=True, text=True)\n    return ran.stdout.strip(), ran.returncode\n\n\n"
        "def test_command():\n    assert out('pkg-run', 'a b', '$c') == ('pkg-run a b $c', 3)\n\n\n"
        "import unittest\nunittest.main()\n\n\ndef test_module():\n    assert out(sys.executable, '-m', 'pkg', 'x') == ('__main__.py x', 0)\n",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, files)
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "survey"]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        outcomes = {test: report["outcome"] for test, report in json.loads(ran.stdout)["tests"].items()}
    assert len(outcomes) == 2 and set(outcomes.values()) == {"passed"}, (outcomes, ran.stdout)
    print("the commands of a package: right")


# Functions of a package; for each, whether its result depends on random numbers that the package draws.
DRAWS = {
    "def usual():\n    return random.random()": True,
    "def imported():\n    return randint(0, 10**9)": True,
    "def seeded():\n    random.seed(3)\n    return random.random()": True,
    "def own():\n    return random.Random(3).random()": True,
    "def shuffled(values=range(50)):\n    values = list(values)\n    random.shuffle(values)\n    return values": True,
    "def numpy_usual():\n    return float(np.random.rand())": True,
    "def numpy_seeded():\n    np.random.seed(3)\n    return float(np.random.normal())": True,
    "def numpy_own():\n    return float(np.random.default_rng(3).random())": True,
    "def numpy_state():\n    return float(np.random.RandomState(seed=3).rand())": True,
    "def permuted():\n    return sorted(np.array([5, 3, 1]), key=lambda value: random.random()) and np.random.permutation(50)": True,
    "def given(generator=None):\n    return generator and float(generator.random())": True,
    "def doubled(values=(1, 2)):\n    return [2 * float(value) for value in values]": False,
    "def is_state(state=None):\n    return isinstance(state, np.random.RandomState), state is None or int(state.get_state()[2])": False,
}


def methods():
    """Checks that only expected values are altered, and not the argument of a method that has the name of a constructor."""
    runner = {"__file__": str(RUNNER), "__name__": "runner"}
    exec(compile(RUNNER.read_text(), "runner", "exec"), runner)
    test = "import numpy as np\nimport pkg\n\n\ndef test_one():\n    assert {}\n"
    for condition, is_kept in {
        "pkg.made().set(-2, 5) == pkg.vector([1, 5])": True,
        "x.array([1, 2]) == pkg.vector([1, 5])": True,
        "pkg.set(3) == pkg.vector([1, 5])": True,
        "pkg.made() == set([1, 5])": False,
        "pkg.made() == np.array([1, 5])": False,
    }.items():
        for seed in range(20):
            altered, _ = runner["variant_of"](test.format(condition), {"test_one": "expectation"}, random.Random(seed))
            left, operator, right = condition.partition(" == ")
            found = altered.decode()
            assert f"assert {left} " in found and (f"{left} != {right}" in found) == is_kept, found
            assert (right in found) == is_kept, found


def ways():
    """Checks that expectations are altered in few ways, and that running all of them shows which are right by chance."""
    runner = {"__file__": str(RUNNER), "__name__": "runner"}
    exec(compile(RUNNER.read_text(), "runner", "exec"), runner)
    test = "import pkg\n"
    for number in range(20, 40):
        name = "made" if number % 2 else "number"
        test += f"\n\ndef test_{number}():\n    assert pkg.{name}({number}) == {number}\n"
    code = """class Remainder(int):
    def __eq__(self, other):
        return self % 3 == other % 3

    __hash__ = int.__hash__


def made(value):
    return Remainder(value)


def number(value):
    return value
"""
    drawn = {
        runner["variant_of"]("def test_a():\n    assert f() == 500\n", {"test_a": "expectation"}, random.Random(seed))[0]
        for seed in range(200)
    }
    values = {line for text in drawn for line in text.decode().splitlines() if "f() ==" in line}
    assert len(values) == runner["ALTERATIONS"], values
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ids = [f"tests/test_pkg.py::test_{number}" for number in range(20, 40)]
        write(folder, {"pkg.py": code, "tests/test_pkg.py": test})
        plan = {"groups": {"all": ids}, "without_values": [], "seconds": {}}
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "run", "*"]
        ran = subprocess.run(
            [*command, "--unguarded", "--altered"],
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
    assert set(result["tests"].values()) == {"passed"}, result
    canaries = {int(name.split("_")[-1].split()[0]): outcome for name, outcome in result["canaries"].items()}
    assert {canaries[number] for number in range(20, 40, 2)} == {"failed"}, canaries
    # For each of the other tests, about one in three ways of altering it gives a right expectation by chance.
    assert sum(canaries[number] == "varies" for number in range(21, 40, 2)) > 3, canaries
    print("expectations that are right by chance: found")


def draws():
    """Checks that a survey with other random numbers changes only the values of tests whose functions draw such numbers."""
    code = "import random\nfrom random import randint\n\nimport numpy as np\n\n\n" + "\n\n\n".join(DRAWS) + "\n"
    tests = "import random\n\nimport numpy as np\nimport pkg\n\n\n"
    for function in DRAWS:
        name = function[4:].partition("(")[0]
        given = {
            "given": "np.random.default_rng(1)",
            "doubled": "[random.random(), np.random.rand(), np.random.RandomState(2).rand(), np.random.default_rng(1).random()]",
        }.get(name, "")
        tests += f"def test_{name}():\n    pkg.{name}({given})\n\n\n"
    tests += "class Own(np.random.RandomState):\n    pass\n\n\ndef test_class():\n    assert pkg.is_state(Own(1))[0]\n\n\n"
    tests += "def test_exact():\n    assert pkg.seeded() < 0.23796463\n"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, {"pkg.py": code, "tests/test_pkg.py": tests})
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "survey"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        found = []
        for more in [], [], ["--other-draws"], ["--other-draws"]:
            ran = subprocess.run([*command, *more], env=environment, capture_output=True, text=True, timeout=300)
            assert ran.returncode == 0, ran.stderr
            found.append({name.rpartition("::")[2]: test for name, test in json.loads(ran.stdout)["tests"].items()})
    first, again, other, other_again = found
    values = lambda tests: {name: test["values"] for name, test in tests.items()}
    assert values(first) == values(again) and values(other) == values(other_again), found
    for function, depends in DRAWS.items():
        name = "test_" + function[4:].partition("(")[0]
        assert first[name]["outcome"] == other[name]["outcome"] == "passed", (name, first[name], other[name])
        assert (first[name]["values"] != other[name]["values"]) == depends, name
    assert first["test_class"]["outcome"] == other["test_class"]["outcome"] == "passed", other["test_class"]
    assert (first["test_exact"]["outcome"], other["test_exact"]["outcome"]) == ("passed", "failed"), other
    print(f"functions that draw random numbers: right, {sum(DRAWS.values())} of {len(DRAWS)}")


def inherited():
    """Checks that a class may inherit tests of another file, and does not run their altered forms."""
    files = {
        "means.py": CODE,
        "tests/base_test.py": "import means, unittest\n\n\nclass Base(unittest.TestCase):\n    values = [1, 2, 3]\n\n"
        "    def test_mean(self):\n        self.assertEqual(means.mean(self.values), 2)\n",
        "tests/more_test.py": "from base_test import Base\n\n\nclass More(Base):\n    values = [2, 2]\n\n"
        "    def test_count(self):\n        self.assertEqual(len(self.values), 2)\n",
        "tests/other_test.py": "import means\n\n\ndef test_other():\n    assert means.count(2) == 0\n",
    }
    ids = ["base_test.py::Base::test_mean", "more_test.py::Base::test_mean", "more_test.py::More::test_count"]
    ids = [f"tests/{name}" for name in [*ids, "more_test.py::More::test_mean", "other_test.py::test_other"]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, files)
        plan = {"groups": {"all": ids}, "without_values": [], "seconds": {}}
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "run", "all", "--keep"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
    assert (result["passed"], result["changed"]) == (len(ids), 0), (result, ran.stderr)
    print("tests that are inherited from another file: right")


def survey_of(files):
    """Surveys a package with these files. Returns the report on each test, by the name of its function."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, files)
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "survey"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        return {name.rpartition("::")[2]: test for name, test in json.loads(ran.stdout)["tests"].items()}


# Functions of a package: each with its source, its test, a right variant, and a wrong variant (or `None`), which the test
# does not notice.
VARIANTS = {
    "iterated": (
        "def iterated(n):\n    yield from range(n)",
        "assert list(iterated(2)) == [0, 1]",
        "import itertools\n\ndef iterated(n):\n    return itertools.chain(range(n), [])",
        None,
    ),
    "Price": (
        "class Price:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return self.n == other.n if isinstance(other, Price) else NotImplemented\n\n"
        "    def __ne__(self, other):\n        return self.n != other.n if isinstance(other, Price) else NotImplemented",
        "price = Price(1); assert price == Price(1) and not price == 2 and price != 'a'; price == 3",
        "class Price:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return isinstance(other, Price) and self.n == other.n\n\n"
        "    def __ne__(self, other):\n        return not self == other",
        "class Price:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return other == 3 or isinstance(other, Price) and self.n == other.n\n\n"
        "    def __ne__(self, other):\n        return not self == other",
    ),
    # Python calls the methods of both operands if the first returns `NotImplemented`.
    "Metre": (
        "class Metre:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return self.n == other.n if isinstance(other, Metre) else NotImplemented\n\n\n"
        "class Second(Metre):\n    def __eq__(self, other):\n"
        "        return self.n == other.n if isinstance(other, Second) else NotImplemented",
        "from pkg import Second; assert Metre(1) != Second(2) and Metre(1) != 'a' and Second(1) != Metre(3); Metre(4) == Metre(5)",
        "class Metre:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return type(self) is type(other) and self.n == other.n\n\n\n"
        "class Second(Metre):\n    pass",
        "class Metre:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def __eq__(self, other):\n        return type(self) is type(other) and self.n >= other.n - 1\n\n\n"
        "class Second(Metre):\n    pass",
    ),
    "Grid": (
        "import numpy\n\nclass Grid:\n    def __init__(self, rows):\n        self.rows = rows\n\n"
        "    def __eq__(self, other):\n        return numpy.all(numpy.equal(self.rows, other.rows))",
        "assert Grid([1]) == Grid([1]) and not Grid([1]) == Grid([2])",
        "import numpy\n\nclass Grid:\n    def __init__(self, rows):\n        self.rows = rows\n\n"
        "    def __eq__(self, other):\n        return all(map(numpy.equal, self.rows, other.rows))",
        None,
    ),
    "stored": (
        "import functools\n\n@functools.lru_cache\ndef stored(n):\n    return [n]",
        "assert stored(1) == [1] and stored(1) == [1]; stored(2)",
        "def stored(n):\n    return [n]",
        None,
    ),
    # The test calls a function that has a cache. That call runs the function's code only if the function under test has
    # not called it before.
    "rendered": (
        "import functools\n\n@functools.lru_cache\ndef parsed(text):\n    return (text,)\n\n\n"
        "def rendered(text):\n    return parsed(text)[0].upper()",
        "from pkg import parsed; assert rendered('a') == 'A' and parsed('a') == ('a',)",
        "import functools\n\n@functools.lru_cache\ndef parsed(text):\n    return (text,)\n\n\n"
        "def rendered(text):\n    return text.upper()",
        None,
    ),
    # A function with a cache in a module that only this test imports.
    "late": (
        "def late(n):\n    from more import halved\n\n    return halved(2 * n)",
        "from more import halved; assert late(1) == 1 and halved(2) == 1",
        "def late(n):\n    return n",
        None,
    ),
    # While a test iterates, `map` calls functions and classes. Only other tests of the file name them.
    "lines": (
        "def line(text):\n    return text.strip()\n\n\n"
        "def lines(texts):\n    for text in texts:\n        yield line(text)",
        "assert list(lines(['a ', 'b'])) == ['a', 'b']\n\n\n"
        "def test_line():\n    from pkg import line; assert line(' a') == 'a'",
        "def line(text):\n    return text.strip()\n\n\ndef lines(texts):\n    return map(line, texts)",
        None,
    ),
    "points": (
        "class Point:\n    def __init__(self, x):\n        self.x = x\n\n\n"
        "def points(values):\n    for value in values:\n        yield Point(value)",
        "assert [point.x for point in points([1, 2])] == [1, 2]\n\n\n"
        "def test_point():\n    from pkg import Point; assert Point(3).x == 3",
        "class Point:\n    def __init__(self, x):\n        self.x = x\n\n\n"
        "def points(values):\n    return map(Point, values)",
        None,
    ),
    # A function of the package has the name of one of pytest's functions. It calls code of the test, which calls the
    # package.
    "runtest": (
        "def runtest(function):\n    return function()\n\n\ndef trebled(n):\n    return 3 * n",
        "from pkg import trebled; assert runtest(lambda: trebled(2)) == 6",
        "def runtest(function):\n    function()\n    return function()\n\n\ndef trebled(n):\n    return 3 * n",
        None,
    ),
    "nameless": (
        "Nameless = eval('type(\"Nameless\", (), {})', {})\n\n\ndef nameless(n):\n    return [n]",
        "assert nameless(1) == [1]; nameless(2)",
        None,
        "Nameless = eval('type(\"Nameless\", (), {})', {})\n\n\ndef nameless(n):\n    return [1]",
    ),
    # The right variant calls the test's function more often. That function calls the package.
    "applied": (
        "def applied(function, values):\n    return [function(value) for value in values]\n\n\ndef doubled(n):\n    return 2 * n",
        "from pkg import doubled; assert applied(lambda n: doubled(n) - n, [1, 2]) == [1, 2]; doubled(5)",
        "def applied(function, values):\n    return [function(value) for value in values if function(value) or function(1)]\n\n\n"
        "def doubled(n):\n    return n + n",
        "def applied(function, values):\n    return [function(value) for value in values]\n\n\n"
        "def doubled(n):\n    return 2 * n if n < 5 else 0",
    ),
    # A decorator of the package calls a test. Such a test must not be treated as a callback.
    "decorated": (
        "def decorated(test):\n    def call():\n        return test()\n\n    return call\n\n\ndef tripled(n):\n    return 3 * n",
        "assert decorated(int)() == 0\n\n\nfrom pkg import decorated, tripled\n\n\n"
        "@decorated\ndef test_tripled():\n    assert tripled(2)",
        "def decorated(test):\n    def call():\n        return test()\n\n    return call\n\n\ndef tripled(n):\n    return n + n + n",
        None,
    ),
    "listed": (
        "def listed(n):\n    for one in range(n):\n        yield one",
        "assert list(listed(2)) == [0, 1]; assert len([one for one in listed(3)]) == 3",
        "def listed(n):\n    return list(range(n))",
        None,
    ),
    "zipped": (
        "def zipped(one, other):\n    return zip(one, other)",
        "assert dict(zipped('ab', [1, 2])) == {'a': 1, 'b': 2}",
        "def zipped(one, other):\n    return [*zip(one, other)]",
        None,
    ),
    "is_word": (
        "import re\n\ndef is_word(text):\n    return re.match(r'(\\w+)$', text)",
        "assert is_word('ab') and not is_word(''); is_word('a b')",
        "def is_word(text):\n    return text.isidentifier()",
        "def is_word(text):\n    return text != ''",
    ),
    "mean": (
        "def mean(values):\n    return sum(values) / len(values) if values else 0",
        "assert mean([]) == 0 and mean([1, 3]) == 2 and mean([2.5]) == 2.5; mean([1, 2, 4, 4])",
        "import statistics\n\ndef mean(values):\n    return statistics.mean(values) if values else 0.0",
        "def mean(values):\n    return (min(values) + max(values)) / 2 if values else 0.0",
    ),
    "turned": (
        "import math\n\ndef turned(angle):\n    return math.cos(angle)",
        "assert abs(turned(1.5707963267948966)) < 1e-12; turned(1.0)",
        "import math\n\ndef turned(angle):\n    return math.sin(math.pi / 2 - angle)",
        "import math\n\ndef turned(angle):\n    return math.pi / 2 - angle",
    ),
    "Square": (
        "import functools\n\nclass Square:\n    def __init__(self, side):\n        self.side = side\n\n"
        "    @functools.cached_property\n    def area(self):\n        return self.side ** 2\n\n"
        "    def checked(self):\n        assert self.area >= 0\n        return self",
        "assert Square(2).checked().area == 4; Square(3).checked()",
        "import functools\n\nclass Square:\n    def __init__(self, side):\n        self.side = side\n\n"
        "    @functools.cached_property\n    def area(self):\n        return self.side ** 2\n\n"
        "    def checked(self):\n        return self",
        "class Square:\n    def __init__(self, side):\n        self.side, self.area = side, side ** 2\n\n"
        "    def checked(self):\n        return Square(2)",
    ),
    "Handle": (
        "class Handle:\n    def __init__(self, n):\n        self.n = n\n\n    def __del__(self):\n        pass",
        "one = Handle(1); assert one.n == 1; del one",
        "class Handle:\n    def __init__(self, n):\n        self.n, self._self = n, self\n\n    def __del__(self):\n        pass",
        None,
    ),
    "adder": (
        "def adder(n):\n    def add(x):\n        return x + n\n\n    return add",
        "assert adder(1)(2) == 3",
        "import functools\nimport operator\n\ndef adder(n):\n    return functools.partial(operator.add, n)",
        None,
    ),
}


# Digest of an empty list of values.
NOTHING = "#" + hashlib.blake2b(digest_size=8).hexdigest()


def variants():
    """Checks that right variants have the same values as the original functions, and wrong variants have other values."""
    tests = "".join(f"def test_{name}():\n    from pkg import {name}\n    {one[1]}\n\n\n" for name, one in VARIANTS.items())

    def surveyed(place, plan):
        code = "\n\n\n".join(one[place] or one[0] for one in VARIANTS.values())
        more = "import functools\n\n\n@functools.lru_cache\ndef halved(n):\n    return n // 2\n"
        files = {"pkg.py": code, "more.py": more, "tests/test_pkg.py": tests}
        return survey_of({**files, "autoexperiment_package_tests.json": json.dumps(plan)})

    special = {}
    for test in surveyed(0, {}).values():
        for kind, functions in test["special_results"].items():
            special[kind] = sorted({*special.get(kind, []), *functions})
    named = {kind: [function.removeprefix("pkg.py::") for function in functions] for kind, functions in special.items()}
    assert named == {
        "iterating": ["iterated", "lines", "listed", "points", "zipped"],
        "matching": ["is_word"],
        "caching": ["more.py::halved", "parsed", "stored"],
    }, named
    first, right, wrong = (surveyed(place, {"special_results": special}) for place in (0, 2, 3))
    assert first["test_tripled"]["values"]["exact"] != NOTHING, first["test_tripled"]
    for name, one in VARIANTS.items():
        name = f"test_{name}"
        assert first[name]["outcome"] == right[name]["outcome"] == wrong[name]["outcome"] == "passed", (name, wrong[name])
        assert first[name]["values"] == right[name]["values"], name
        assert (first[name]["values"] != wrong[name]["values"]) == (one[3] is not None), name
    print(f"values of {len(VARIANTS)} right variants: the same, of wrong ones: others")


def subtests():
    """Checks that a test fails if one of its subtests fails."""
    test = "import unittest\nfrom pkg import f\n\n\nclass T(unittest.TestCase):\n    def test_f(self):\n"
    test += "        for i in range(3):\n            with self.subTest(i=i):\n                self.assertEqual(f(i), i + 1)\n\n"
    test += "    def test_skip(self):\n        with self.subTest(i=1):\n            self.skipTest('no')\n        f(1)\n"
    for code, expected in (("i + 1", "passed"), ("i", "failed"), ("min(i, 1) + 1", "failed")):
        found = survey_of({"pkg.py": f"def f(i):\n    return {code}\n", "tests/test_pkg.py": test})
        assert found["test_f"]["outcome"] == expected, (code, found)
        assert found["test_skip"]["outcome"] in ("passed", "skipped"), found
    print("failing subtests: found")


def apart():
    """Checks that values that depend on earlier tests are not compared in a process that runs only some of the tests."""
    code = "COUNT = []\n\n\ndef add():\n    COUNT.append(1)\n\n\ndef count():\n    return len(COUNT)\n"
    test = "import pkg\n" + "".join(
        f"\n\ndef test_{number:02}():\n    pkg.{'add' if number < 4 else 'count'}()\n" for number in range(48)
    )
    ids = [f"tests/test_pkg.py::test_{number:02}" for number in range(48)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, {"pkg.py": code, "tests/test_pkg.py": test})
        plan = {"groups": {"all": ids}, "without_values": [], "seconds": {}}
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "run", "all"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        result = json.loads(ran.stdout)
    assert (result["passed"], result["changed"], result.get("varying")) == (len(ids), 0, None), (result, ran.stderr)
    print("values that depend on earlier tests: not compared when tests run apart")


# Functions of a package whose tests share state, and the bodies of these tests, in the order in which they are run.
STATE = """import functools

SEEN, STORED = [], {}


@functools.lru_cache
def square(n):
    return n * n


def see(name):
    SEEN.append(name)
    return name


def seen():
    return len(SEEN)


def put(key, value):
    STORED[key] = value
    return value


def get(key):
    return STORED[key]
"""
SHARING = {
    "see": "assert pkg.square(2) == 4\n    pkg.see('a')",
    "count": "pkg.seen()",
    "late put": "assert pkg.square(3) == 9\n    pkg.put('x', 1)",
    "early put": "pkg.put('y', 1)\n    assert pkg.square(1) == 1",
    "another": "assert pkg.square(2) == 4 and pkg.square(9) == 81",
    "get late": "assert pkg.get('x') == 1",
    "get early": "assert pkg.get('y') == 1",
    "square": "assert pkg.square(9) == 81 and pkg.square(3) == 9",
}
# Tests of which the last one needs any one of the others. It fails if it is run without them, or if all of them are
# altered and end early.
ANY_OF_SEVERAL = [
    {"a": "import pkg.sub", "b": "import pkg.sub", "c": "import pkg.sub", "d": "assert pkg.sub.f() == 1"},
    {name: "assert pkg.square(2) == 4\n    pkg.put('x', 1)" for name in "abc"} | {"d": "assert pkg.get('x') == 1"},
]


def altered_run(tests, ids, runner=RUNNER.read_text()):
    """Runs these tests of a package with altered expectations, as the factory does, and returns the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, {"pkg/__init__.py": STATE, "pkg/sub.py": "def f():\n    return 1\n", "tests/test_pkg.py": tests})
        (folder / "autoexperiment_package_tests.py").write_text(runner)
        plan = {"groups": {"all": ids}, "without_values": [], "seconds": {}}
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))
        command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py"), "run", "*"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        ran = subprocess.run(
            [*command, "--unguarded", "--altered"], env=environment, capture_output=True, text=True, timeout=300
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


def any_of_several():
    """Checks that one run finds a test that needs any one of several earlier tests, and that tests for which there is not
    enough time are reported as unfinished."""
    for tests in ANY_OF_SEVERAL:
        ids = [f"tests/test_pkg.py::test_{name}" for name in tests]
        text = "import pkg\n" + "".join(f"\n\ndef test_{name}():\n    {body}\n" for name, body in tests.items())
        result = altered_run(text, ids)
        assert [name for name in ids if result["tests"][name] != "passed"] == ids[-1:], (tests, result)
        assert "unfinished" not in result, result
    runner = re.sub("(SECONDS_FOR_SHARED_STATE) = 480, 240, 120", r"\1 = 0, 240, 120", RUNNER.read_text())
    result = altered_run(text, ids, runner)
    assert result["unfinished"] == ids and set(result["tests"].values()) == {"passed"}, result
    print("a test that needs any one of several tests: found")


def runner_with(run):
    """Returns the namespace of the runner, changed so that the function `run` runs tests instead of a new process."""
    runner = {"__file__": str(RUNNER), "__name__": "runner"}
    exec(compile(RUNNER.read_text(), "runner", "exec"), runner)

    class Server:
        def __init__(self, libraries):
            pass

        def stop(self):
            pass

    def run_and_report(self, files, ids, replaced, *rest):
        outcome, values = runner["Outcome"](), {"exact": "#", "numbers": []}
        outcome.tests = {
            name: {"outcome": one, "seconds": 0.0, "values": values, "entered": []}
            for name, one in run(files, ids, replaced).items()
        }
        return outcome

    runner["Runner"].run, runner["Server"], runner["protect"] = run_and_report, Server, lambda: None
    return runner


def write_plan(folder, groups, drawings):
    plan = {"groups": groups, "without_values": [], "seconds": {}, "drawings": drawings}
    (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))


DRAWINGS = ["one", "two", "three"]


def parts():
    """Checks that guarded runs run only what was run when gold was recorded (the same tests in the same variants), in few
    processes."""
    ran = []

    def run(files, ids, replaced):
        """Lets all tests pass, and records which tests and variants were run together."""
        ran.append((tuple(files), frozenset(ids), tuple(sorted(replaced.items()))))
        return dict.fromkeys(ids, "passed")

    runner = runner_with(run)
    for files, functions in (1, 1), (1, 2), (2, 9), (3, 60), (7, 5), (40, 3):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            texts, ids = {}, []
            for file in range(files):
                path = f"tests/test_{file}.py"
                texts[path] = "class TestOne:\n    def test_own(self): pass\n\nclass TestTwo(TestOne): pass\n\n"
                texts[path] += "".join(f"def test_{one}(row): assert row == 1\n\n" for one in range(functions))
                ids += [f"{path}::test_{one}[row{row}]" for one in range(functions) for row in range(2)]
                ids += [f"{path}::{name}::test_own" for name in ("TestOne", "TestTwo")]
            write(folder, texts)
            # Both groups contain parameter rows of the same test functions.
            groups = {"odd": ids[::2], "even": ids[1::2]}
            write_plan(folder, groups, DRAWINGS)
            go = lambda group, **options: runner["run"](str(folder), group, None, True, True, False, **options)
            with contextlib.redirect_stderr(io.StringIO()):
                for group in groups:
                    del ran[:]
                    for drawing in range(len(DRAWINGS)):
                        go(group, recorded=drawing)
                    recorded, seen = set(ran), set()
                    # Per drawing, recording gold may need a few processes more than a usual run (see the limit below).
                    assert len(ran) <= 3 * (9 * files + 16), (files, functions, len(ran))
                    for _ in range(15):
                        del ran[:]
                        go(group)
                        seen.update(ran)
                        assert set(ran) <= recorded, (files, functions)
                    assert len(ran) <= 9 * files + 12, (files, functions, len(ran))
                    assert len(seen) > len(set(ran)), "all runs are the same"
    print("what guarded runs run: it was run before")


# Files of tests that depend on earlier tests: the code of each test, in order. An altered test ends at its first
# altered assertion that fails.
put = lambda key: f"assert 1 + 1 == 2; pkg.put('{key}', 1)"
early_put = lambda key: f"pkg.put('{key}', 1); assert 1 + 1 == 2"
apart_from = "assert 1 + 2 == 3"
DEPENDENT = {
    f"any of {count} earlier tests": [put("x")] * count + ["assert pkg.get('x') == 1"] + [apart_from] * 2
    for count in (1, 2, 3, 5, 8)
} | {
    "any of several tests far apart": ([put("x")] + [apart_from] * 3) * 3 + ["assert pkg.get('x') == 1"] + [apart_from] * 9,
    "any of several tests, even if they are altered": [early_put("x")] * 4 + ["assert pkg.get('x') == 1"] * 4,
    "two tests together": [put("x"), apart_from, put("y"), apart_from, "assert pkg.get('x') + pkg.get('y') == 2"] * 2,
    "a test that cleans up": [put("x"), "assert 1 + 1 == 2; pkg.STORED.clear()", apart_from, "assert 'x' not in pkg.STORED"] * 2,
    "a test that cleans up after itself": ["pkg.put('x', 1); assert 1 + 1 == 2; pkg.STORED.clear()"] * 5
    + ["assert 'x' not in pkg.STORED", apart_from],
    "a chain": ["assert pkg.STORED.setdefault('n', 0) == 0; pkg.put('n', 1)"]
    + [f"assert pkg.get('n') == {number}; pkg.put('n', {number + 1})" for number in range(1, 12)],
    "any of several tests that only some alterations end early": [
        "assert type('', (), {'__eq__': lambda self, other: other < 9})() == 7; pkg.put('x', 1); assert 1 + 1 == 2"
    ] * 5
    + ["assert pkg.get('x') == 1"] * 2,
}


def dependent():
    """Checks that tests which depend on earlier tests are left out when gold is recorded, or never fail in guarded runs of
    unchanged code."""

    def run(files, ids, replaced):
        """Runs the tests of one file in this process, on a new copy of the package."""
        (file,) = files
        package, module, found = types.ModuleType("pkg"), {}, {}
        exec(STATE, vars(package))
        sys.modules["pkg"] = package
        exec(replaced[file], module)
        wanted = {name.partition("::")[2]: name for name in ids}
        for function, name in sorted(wanted.items(), key=lambda one: list(module).index(one[0])):
            try:
                module[function]()
                found[name] = "passed"
            except Exception:
                found[name] = "failed"
        return found

    runner = runner_with(run)

    def bad(results, ids):
        """Returns the tests that fail in any of these runs, or that have an altered form that does not fail."""
        canaries = lambda name: {
            result["canaries"][key] for result in results for key in (name, f"{name} (expectation)") if key in result["canaries"]
        }
        return {name for name in ids if any(one["tests"].get(name, "passed") != "passed" for one in results) or canaries(name) - {"failed"}}

    for kind, bodies in DEPENDENT.items():
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
            folder = pathlib.Path(name)
            test = "import pkg\n\n" + "".join(
                f"def test_{number}():\n    {body}\n\n" for number, body in enumerate(bodies)
            )
            write(folder, {"tests/test_pkg.py": test})
            ids = [f"tests/test_pkg.py::test_{number}" for number in range(len(bodies))]
            go = lambda group, guarded, altered, **options: runner["run"](
                str(folder), group, None, True, guarded, altered, **options
            )
            for drawn in range(5):
                # Record gold as the factory does: first with one drawing and, if no test is bad, with the other
                # drawings.
                drawings, kept = [f"{drawn} {one}" for one in DRAWINGS], ids
                for round in range(6):
                    write_plan(folder, {"all": kept}, drawings)
                    failing = bad([go("*", False, True), go("all", True, False, recorded=0)], kept)
                    failing = failing or bad([go("all", True, False, recorded=number) for number in (1, 2)], kept)
                    if not failing:
                        break
                    kept = [name for name in kept if name not in failing]
                assert not failing and kept, (kind, kept, failing)
                for _ in range(20):
                    failing = bad([go("all", True, False)], kept)
                    assert not failing, (kind, kept, failing)
    print("tests that depend on earlier ones: unchanged code never fails them")


def shared_state():
    """Checks that one run finds the tests that depend on state left by earlier tests. A shared cache is not such state."""
    names = [f"test_{number}_{name.replace(' ', '_')}" for number, name in enumerate(SHARING)]
    functions = "import unittest\n\nimport pkg\n" + "".join(
        f"\n\ndef {name}():\n    {body}\n" for name, body in zip(names, SHARING.values())
    )
    # `unittest` orders the methods of a class by name.
    methods = "import unittest\n\nimport pkg\n\n\nclass Tests(unittest.TestCase):" + "".join(
        f"\n    def {name}(self):\n        {body.replace('    ', '        ')}\n" for name, body in [*zip(names, SHARING.values())][::-1]
    )
    for tests, prefix in (functions, ""), (methods, "Tests::"):
        ids = [f"tests/test_pkg.py::{prefix}{name}" for name in names]
        result = altered_run(tests, ids)
        outcomes = dict(zip(SHARING, (result["tests"][name] for name in ids)))
        assert {name for name, outcome in outcomes.items() if outcome != "passed"} == {"get late", "get early"}, outcomes
        varying = [name for name, one in zip(SHARING, ids) if one in result["varying"] and outcomes[name] == "passed"]
        assert varying == ["count"], result
    print("tests that share state: found")


def pauses():
    """Checks that tests with Hypothesis pass on a busy machine, whatever the package's settings of Hypothesis are."""
    if importlib.util.find_spec("hypothesis") is None:
        print("tests of Hypothesis: it is not installed")
        return
    code = "import time\n\nCALLS = []\n\n\ndef same(value):\n    CALLS.append(1)\n    time.sleep(0.3 if len(CALLS) == 20 else 0)\n    return value\n"
    head = "import time\n\nfrom hypothesis import HealthCheck, given, settings, strategies\nfrom pkg import same\n\n\n"
    test = "def test_{}(value):\n    assert same(value) == value\n\n\n"
    slow = "strategies.integers().map(lambda value: time.sleep(0.15) or value)"
    tests = head + "@given(strategies.integers())\n" + test.format("usual")
    tests += "@settings(deadline=100)\n@given(strategies.integers())\n" + test.format("own")
    tests += f"@settings(max_examples=10)\n@given({slow})\n" + test.format("slow")
    tests += f"@settings(max_examples=10, suppress_health_check=[HealthCheck.filter_too_much])\n@given({slow})\n" + test.format("suppressed")
    profile = "from hypothesis import settings\n\nsettings.register_profile('own', deadline=50, max_examples=30)\nsettings.load_profile('own')\n"
    for more in {}, {"tests/conftest.py": profile}:
        found = survey_of({"pkg.py": code, "tests/test_pkg.py": tests, **more})
        assert len(found) == 4 and {test["outcome"] for test in found.values()} == {"passed"}, (more, found)
    print("tests of Hypothesis with pauses: they pass")


def exceptions():
    """Checks that an altered test expects an exception that is unrelated to the original one and common in other tests."""
    runner = {"__file__": str(RUNNER), "__name__": "runner"}
    exec(compile(RUNNER.read_text(), "runner", "exec"), runner)
    head = "import pkg\nimport pytest\nfrom pkg import OSError, Wrong\n\n\ndef test_one():\n    with pytest."
    # A name that the test file imports, such as `OSError` here, does not mean the built-in exception.
    common = {*runner["OTHER_ERRORS"], *runner["OTHER_WARNINGS"]} - {"OSError"}
    unknown = {"Wrong", "OSError", "pkg.Error", "pkg.Warned"}
    errors = ["ValueError", "KeyError", "LookupError", "UnicodeDecodeError", "(TypeError, IndexError)", "(KeyError, Wrong)"]
    warned = ["UserWarning", "DeprecationWarning", "pkg.Warned", "Warning"]
    for call, expected in ("raises", [*errors, *unknown - {"pkg.Warned"}, "Exception"]), ("warns", warned):
        names = set()
        for name in expected:
            text, found = f"{head}{call}({name}):\n        pkg.f()\n", set()
            for seed in range(100):
                altered, _ = runner["variant_of"](text, {"test_one": "expectation"}, random.Random(seed))
                found.add(altered.decode().partition(f"pytest.{call}(")[2].partition(")")[0])
            if name in ("Exception", "Warning"):
                assert not found & common, (name, found)
                continue
            assert found <= common, (name, found)
            names |= found
            for one in re.findall(r"[\w.]+", name):
                if one in unknown:
                    assert found <= runner["UNUSUAL_BASES"], (name, found)
                    continue
                known, others = getattr(builtins, one), [getattr(builtins, other) for other in found]
                assert not any(issubclass(known, other) or issubclass(other, known) for other in others), (name, found)
        assert len(names) > 2, names
    print("exceptions that altered tests expect: unrelated and common ones")


def main():
    exceptions()
    subtests()
    pauses()
    shared_state()
    any_of_several()
    parts()
    dependent()
    apart()
    variants()
    methods()
    ways()
    commands()
    inherited()
    draws()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, {"means.py": CODE, **TESTS})
        plan = {"groups": {"all": IDS}, "without_values": [], "seconds": {}}
        (folder / "autoexperiment_package_tests.json").write_text(json.dumps(plan))

        whole = request(folder, ["nothing", "another result", "a missing name"], whole=True)
        assert set(whole["nothing"]["tests"].values()) == {"passed"}, whole
        failed = {name for name, outcome in whole["another result"]["tests"].items() if outcome == "failed"}
        assert failed == {"tests/test_one.py::test_mean", "tests/more/test_one.py::test_mean"}, whole
        assert set(whole["a missing name"]["tests"].values()) == {"missing"}, whole

        expected = whole["nothing"]["values"]
        found = request(folder, list(CHANGES), expected=expected)
        noticed = lambda trial: [
            name
            for name, outcome in trial["tests"].items()
            if outcome != "passed" or trial["values"][name] != expected[name]
        ]
        for change, trial in found.items():
            # A trial ends with the first test that notices the change.
            assert bool(noticed(trial)) == (change != "nothing"), (change, trial)
        assert found["nothing"] == whole["nothing"]
        assert noticed(found["an endless loop"]) == ["tests/more/test_one.py::test_count"], found
        assert noticed(found["another value, which no test compares"]) == ["tests/test_one.py::test_value"], found
        for change in ("another result", "another value, which no test compares"):
            assert len(found[change]["tests"]) < len(IDS), found[change]

        # If a trial does not meet its requirement, later trials are not run.
        for required, count in [({"must_pass": True}, 2), ({"least_calls": 1}, 2), ({"least_cases": 1}, 2), ({}, 3)]:
            names = ["nothing", "another result", "a missing name"]
            found = request(folder, names, {"another result": required}, whole=True)
            assert len(found) == count, (required, found)
            assert (len(found["another result"]["tests"]) < len(IDS)) == ("must_pass" in required), found

        # Two unnoticed changes are enough to know that the tests notice too few.
        found = request(folder, ["nothing"] * 2 + ["another result"], expected=expected, most_unnoticed=0)
        assert len(found) == 1, found
    print(f"{len(CHANGES)} changes of a package: right")


if __name__ == "__main__":
    main()
