"""Checks the runner's `trials`, which tries several changes of a package: `python tests/factory/trials.py`."""

import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

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


def request(folder, changes, **options):
    files = lambda code: {"means.py": base64.b64encode(code.encode()).decode()}
    trials = [{"files": files(CHANGES[name]), "ids": IDS} for name in changes]
    path = folder / "trials.json"
    path.write_text(json.dumps({"trials": trials, **options}))
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-B", "-I", str(folder / "autoexperiment_package_tests.py")]
    ran = subprocess.run([*command, "trials", str(path)], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(changes, json.loads(ran.stdout)["trials"]))


def commands():
    """Tests may call the package's commands, and its modules by `python -m`."""
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


# Functions of a package, and whether they depend on random numbers that the package draws.
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
    """Only what a test expects is altered, not the argument of a method that has the name of a constructor."""
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
    """Expectations are altered in few ways, and a run of all of them shows where one is right by chance."""
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
    # Each of the other tests is right by chance in one way of three.
    assert sum(canaries[number] == "varies" for number in range(21, 40, 2)) > 3, canaries
    print("expectations that are right by chance: found")


def draws():
    """A survey with other draws changes the values of the tests whose functions draw, and no others."""
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
    """A class may inherit the tests of another file, whose altered forms it must not run."""
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


def main():
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

        # Two unnoticed changes are enough to know that the tests notice too few.
        found = request(folder, ["nothing"] * 2 + ["another result"], expected=expected, most_unnoticed=0)
        assert len(found) == 1, found
    print(f"{len(CHANGES)} changes of a package: right")


if __name__ == "__main__":
    main()
