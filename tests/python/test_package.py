"""The Python package over the program: `python -m unittest discover tests/python`, with the package installed, or with
`PYTHONPATH=python AUTOEXPERIMENT_PROGRAM=target/debug/autoexperiment`."""

import contextlib
import doctest
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import autoexperiment as ae  # noqa: E402
import my_agents  # noqa: E402


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
        import linecache

        name = "<input>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        space: dict[str, object] = {"__name__": "notebook_cells"}
        import types

        module = types.ModuleType("notebook_cells")
        module.__dict__.update(space)
        sys.modules["notebook_cells"] = module
        exec(compile(code, name, "exec"), module.__dict__)
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
