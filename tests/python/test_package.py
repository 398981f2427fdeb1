"""The Python package over the program: `python -m unittest discover tests/python`, with the package installed, or with
`PYTHONPATH=python AUTOEXPERIMENT_PROGRAM=target/debug/autoexperiment`."""

import contextlib
import doctest
import importlib.util
import io
import json
import linecache
import os
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import autoexperiment as ae  # noqa: E402
import my_agents  # noqa: E402


def notebook(code: str) -> Any:
    """A module whose code is in no file."""
    name = f"<input {hash(code)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    module = types.ModuleType("notebook_cells")
    sys.modules[module.__name__] = module
    exec(compile(code, name, "exec"), module.__dict__)
    return module


def taken_along(definitions: str, result: str) -> Any:
    """What an agent of a notebook returns in a process of its own, which has only the agent's file."""
    from autoexperiment._notebook import agent_file

    code = f"from autoexperiment import agent\n{definitions}\n@agent\ndef typed(task):\n    return repr(({result}))\n"
    with tempfile.TemporaryDirectory() as folder:
        file = agent_file(notebook(code).typed, Path(folder), Path(folder)).removeprefix("python:").removesuffix(":typed")
        script = f"space = {{}}\nexec(open({file!r}).read(), space)\nprint(space['typed'](None))"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.strip()


class Notebook(unittest.TestCase):
    def test_what_an_agent_uses_is_taken_along(self) -> None:
        for definitions, result, expected in (
            ("f = lambda x: x + 1\ng = lambda x: f(x) * 2", "g(1)", "4"),
            ("def f(n): return n and g(n - 1)\ndef g(n): return f(n)", "f(3)", "0"),
            ("def helper(): return 1\nother = helper", "other(), helper()", "(1, 1)"),
            ("best, worst = float('inf'), -float('inf')", "best, worst", "(inf, -inf)"),
            ("plain = {1: (2, float('nan')), None: [{'a'}, set(), frozenset([b'c']), True]}", "plain",
             "{1: (2, nan), None: [{'a'}, set(), frozenset({b'c'}), True]}"),
            ("class Other: pass\nname = Other()", "None and task.name", "None"),
            ("from functools import lru_cache\n@lru_cache\ndef f(x): return x", "f(2)", "2"),
            ("from random import choice", "choice([1])", "1"),
            ("from pathlib import Path\nfrom typing import Any\ndef f(x: Path) -> Any: return x", "f(1)", "1"),
            ("import json\ndecode = json.JSONDecoder.decode", "decode.__qualname__", "'JSONDecoder.decode'"),
            ("import urllib.request\nimport xml as x, xml.etree.ElementTree",
             "urllib.request.Request('http://a').host, x.etree.ElementTree.XML('<b/>').tag",
             "('a', 'b')"),
        ):
            with self.subTest(definitions):
                self.assertEqual(taken_along(definitions, result), expected)

    def test_an_agent_made_by_a_function_takes_along_the_variables_of_the_function(self) -> None:
        made = "def make(n):\n    @agent\n    def made(task): return n\n    return made\nmade = make(3)\n"
        self.assertEqual(taken_along(f"{made}\ndef inside(): return made(None)", "inside()"), "3")

    def test_what_cannot_be_taken_along_is_refused(self) -> None:
        for definitions, result, message in (
            ("import enum\nclass Colour(enum.IntEnum): RED = 1\nred = Colour.RED", "int(red)", "cannot be taken along"),
            ("f, g = lambda: 1, lambda: 2", "f()", "a lambda"),
            ("def f(): return 1\nold = f\ndef f(): return old()", "f()", "different things called `f`"),
            ("def make():\n    n = 0\n    def f():\n        nonlocal n\n        return n\n    return f\nf = make()", "f()", "cannot stand alone"),
        ):
            with self.subTest(definitions), self.assertRaises(ae.UsageError) as caught:
                taken_along(definitions, result)
            self.assertIn(message, caught.exception.message)


class AgentProcess(unittest.TestCase):
    """The process of an agent, with this test as the harness."""

    def attempt(self, body: str) -> list[dict[str, Any]]:
        """The messages of an agent, whose calls get no answer."""
        from autoexperiment import _agents

        task = {"sample": "a_0", "attempt": 0, "instructions": "", "answer": "", "functions": [], "experiments": []}
        begun = json.dumps({"task": task, "workdir": "/", "model": None}) + "\n"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.py"
            file.write_text(f"from autoexperiment import agent\n\n@agent\ndef mine(sandbox):\n{textwrap.indent(body, '    ')}\n")
            command = [sys.executable, "-c", Path(_agents.__file__).read_text(), "attempt", str(file), "mine"]
            done = subprocess.run(command, input=begun.encode(), capture_output=True, check=False)
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def test_every_message_can_be_read_by_the_harness(self) -> None:
        for body, call, said in (
            (r"return 'half \ud83d of a character'", "answer", "half ? of a character"),
            (r"return {'a': 'half \ud83d of a character'}", "answer", '{"a": "half ? of a character"}'),
            (r"return 'a whole \N{GRINNING FACE}'", "answer", "a whole \N{GRINNING FACE}"),
            (r"sandbox.exec(['echo', '\ud83d'])", "failed", "surrogates not allowed"),
            ("sandbox.exec('true', timeout=float('nan'))", "failed", "not JSON compliant"),
            (r"raise ValueError('half \ud83d of a character')", "failed", "ValueError: half ? of a character"),
        ):
            with self.subTest(body):
                (message,) = self.attempt(body)
                self.assertEqual(message["call"], call)
                self.assertIn(said, message["answer" if call == "answer" else "error"])

    def test_an_agent_may_continue_after_a_message_that_could_not_be_sent(self) -> None:
        body = "try:\n    sandbox.exec('true', timeout=float('nan'))\nexcept ValueError:\n    return {}"
        self.assertEqual(self.attempt(body), [{"call": "answer", "answer": "{}"}])


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) if sys.version_info >= (3, 11) else Path(tempfile.mkdtemp())
        os.environ.setdefault("AUTOEXPERIMENT_DATA", str(cls.folder / "data"))
        cls.suite = cls.folder / "suite"
        ae.init(cls.suite)
        cls.runs = cls.folder / "runs"
        cls.run_ = ae.run(
            ["gold", "noop", my_agents.rewrites_quantile],
            samples=["example_3"], suite=cls.suite, runs=cls.runs, name="r", progress=False,
        )

    def test_a_suite_is_listed_with_its_functions_and_samples(self) -> None:
        suite = ae.list(suite=self.suite)
        self.assertEqual([paper.id for paper in suite], ["example"])
        self.assertEqual(suite["example"].functions[3].at, "example/errors.py::quantile")
        self.assertIn("<td>example</td>", suite._repr_html_())
        samples = ae.samples(["example"], n=range(1, 3), suite=self.suite)
        self.assertEqual((len(samples), {it.n for it in samples}), (10, {1, 2}))

    def test_the_bundled_suite_is_there_in_an_empty_folder(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            text = subprocess.run([ae.program(), "list"], cwd=empty, capture_output=True, text=True, check=True).stdout
        self.assertIn("bundled with autoexperiment", text)

    def test_functions_of_papers_and_of_any_source_are_masked(self) -> None:
        masked = ae.mask("example", [1], suite=self.suite)
        self.assertEqual(masked.sample, "example_1")
        self.assertIn("raise NotImplementedError", masked.files["example/estimators.py"])
        self.assertIn("-    means = [", str(masked))
        source = "class A:\n    # kept\n    def f(self, x): return x\n"
        self.assertEqual(
            ae.mask_source(source, ["A.f"]),
            "class A:\n    # kept\n    def f(self, x):\n        raise NotImplementedError\n",
        )

    def test_errors_are_exceptions_with_hints(self) -> None:
        with self.assertRaises(ae.SuiteError) as caught:
            ae.mask_source("def f(: pass", ["f"])
        self.assertIn("syntax error", caught.exception.message)
        with self.assertRaises(ae.UsageError) as caught:
            ae.samples(["nobody"], suite=self.suite)
        self.assertEqual((caught.exception.hint, caught.exception.code), ("the papers are: example", 2))
        with self.assertRaises(ae.UsageError):
            ae.load(self.folder)
        with self.assertRaises(ae.UsageError) as caught:
            ae.run([len], suite=self.suite)
        self.assertIn("not marked as an agent", str(caught.exception))

    def test_one_name_may_stand_alone(self) -> None:
        self.assertEqual([paper.id for paper in ae.list("example", suite=self.suite)], ["example"])
        self.assertEqual(len(ae.samples("example", suite=self.suite)), 4)
        source = "def f(x):\n    return x\n"
        self.assertEqual(ae.mask_source(source, "f"), "def f(x):\n    raise NotImplementedError\n")
        self.assertEqual(ae.mask("example", 1, suite=self.suite).sample, "example_1")
        run = ae.run(
            "noop", samples="example_3", suite=self.suite, runs=self.runs, jobs=1, steps=5, options=["--no-baseline"],
            progress=False,
        )
        self.assertEqual((run.settings["configuration"]["jobs"], run.settings["configuration"]["limits"]["steps"]), (1, 5))

    def test_arguments_that_make_no_sense_are_refused_with_a_hint(self) -> None:
        for call, message, hint in (
            (lambda: ae.run([]), "no agent is named", "gold"),
            (lambda: ae.run("gold", samples=["example_3"], papers="example"), "cannot be given too", "leave one"),
            (lambda: ae.run("gold", samples=["example_3"], n=2), "cannot be given too", "leave one"),
            (lambda: ae.run("gold", samples=["example_3"], limit=2), "cannot be given too", "leave one"),
            (lambda: ae.mask_source(b"def f(): pass", ["f"]), "the source is text, not bytes", "decode"),
            (lambda: ae.mask("example", "f"), "by number", "mask_source"),
            (lambda: self.run_.frame("nonsense"), "no table `nonsense`", "`values`"),
            (lambda: self.run_.frame(library="arrow"), "no library `arrow`", "`polars`"),
            (lambda: ae.samples([1]), "papers are given as text", None),
        ):
            with self.assertRaises(ae.UsageError) as caught:
                call()
            self.assertIn(message, caught.exception.message)
            self.assertIn(hint or "", caught.exception.hint or "")

    def test_a_run_stopped_by_ctrl_c_is_an_error_that_holds_the_run(self) -> None:
        # In a process of its own, which gets the signal once the first attempt runs.
        script = textwrap.dedent(
            f"""
            import os, signal, sys, threading, time
            import autoexperiment as ae

            @ae.agent
            def waits(task, sandbox):
                open({str(self.folder / "begun")!r}, "w").close()
                sandbox.exec("sleep 60")

            if __name__ == "__main__":
                # What runs in the background of a shell ignores the signal.
                signal.signal(signal.SIGINT, signal.default_int_handler)

                def stop():
                    while not os.path.exists({str(self.folder / "begun")!r}):
                        time.sleep(0.05)
                    os.kill(os.getpid(), signal.SIGINT)
                threading.Thread(target=stop, daemon=True).start()
                try:
                    ae.run([waits], samples=["example_3"], suite={str(self.suite)!r}, runs={str(self.runs)!r},
                           name="stopped", options=["--no-baseline"], progress=False)
                except ae.Interrupted as stopped:
                    print("interrupted", stopped.run.name)
            """
        )
        (self.folder / "stopped.py").write_text(script)
        done = subprocess.run(
            [sys.executable, self.folder / "stopped.py"], capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.stdout, "interrupted stopped\n", done.stderr)

    def test_progress_is_shown_without_a_terminal(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            ae.run("noop", samples="example_3", suite=self.suite, runs=self.runs, options=["--no-baseline"])
        self.assertIn("1 of 1, 0 passed", said.getvalue())

    def test_a_run_is_made_and_read(self) -> None:
        run = ae.load(self.runs / "r")
        passed = {record["agent"]: record["pass"] for record in run.records}
        self.assertEqual(passed, {"gold": True, "noop": False, "rewrites_quantile": True})
        report = run.report()
        self.assertIn("rewrites_quantile", str(report))
        self.assertIn("<td>gold</td>", report._repr_html_())
        events = [event["event"] for event in run.trajectory("example_3", agent="rewrites_quantile")]
        self.assertEqual((events[0], events.count("verification") > 0), ("started", True))
        self.assertIn("gold", str(ae.score(run)))
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(any(path.suffix == ".svg" for path in run.figures(Path(folder) / "figures")))
            self.assertIn("<html", run.html(Path(folder) / "page.html").read_text()[:500])

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "needs pandas")
    def test_attempts_are_a_table_of_pandas(self) -> None:
        table = self.run_.attempts
        self.assertEqual(sorted(table["agent"]), ["gold", "noop", "rewrites_quantile"])

    @unittest.skipUnless(importlib.util.find_spec("polars"), "needs polars")
    def test_attempts_are_a_table_of_polars(self) -> None:
        table = self.run_.frame("values", library="polars")
        self.assertIn("gold", table["agent"].to_list())

    def test_an_agent_written_where_no_file_is_takes_along_what_it_uses(self) -> None:
        code = textwrap.dedent(
            """
            import json as j
            from math import ceil

            import autoexperiment as ae

            LIMIT = {"share": 1}

            def helper():
                return ceil(LIMIT["share"] / 2)

            @ae.agent
            def typed(task, sandbox):
                return j.dumps({"typed": helper()})
            """
        )
        module = notebook(code)
        run = ae.run(
            module.typed, samples=["example_3"], suite=self.suite, runs=self.runs, options=["--no-baseline"],
            progress=False,
        )
        self.assertEqual(run.records[0]["answer"], '{"typed": 1}')
        module.LIMIT = io.StringIO()
        with self.assertRaises(ae.UsageError) as caught:
            ae.run(module.typed, suite=self.suite)
        self.assertIn("cannot be taken along", str(caught.exception))

    def test_the_bar_says_how_far_a_run_is(self) -> None:
        from autoexperiment._progress import Progress

        said = io.StringIO()
        with contextlib.redirect_stderr(said), Progress(True) as bar:
            bar.on({"event": "planned", "total": 4, "finished": 1})
            bar.on({"event": "finished", "outcome": "pass", "cost": 0.5})
        self.assertIn("attempts, 2 of 4, 1 passed, $0.50", said.getvalue())

    def test_the_examples_of_the_documentation_hold(self) -> None:
        from autoexperiment import _agents, _masking

        for module in (ae, _masking, _agents):
            self.assertEqual(doctest.testmod(module).failed, 0, module.__name__)


if __name__ == "__main__":
    unittest.main()
