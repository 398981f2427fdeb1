"""Adapters for learners, with the real libraries where they are installed: `python -m unittest discover tests/python`.

Each library needs an environment of its own: gymnasium 1.4, openenv 0.10, verifiers 0.4, mcp 2.3. `.ci/run training` makes
them. The class for TRL is tried as the source of TRL 1.16 uses it, without TRL, whose trainer needs gigabytes."""

import asyncio
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import types
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import autoexperiment as ae  # noqa: E402
from scripted_server import ScriptedServer, observation, refusal  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "training.md"
ENVIRONMENT = Path(ae.__file__).parent / "openenv"


def is_missing(library: str) -> bool:
    return importlib.util.find_spec(library) is None


def environment_is_over() -> type[Exception]:
    import gymnasium

    return gymnasium.error.ResetNeeded


def script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp())
        os.environ.setdefault("AUTOEXPERIMENT_DATA", str(cls.folder / "data"))
        cls.suite = cls.folder / "suite"
        ae.init(cls.suite)
        cls.server = ae.serve(
            suite=cls.suite, runs=cls.folder / "runs", name="s", n=[1, 2], jobs=8, options=["--no-baseline"]
        )
        cls.addClassCleanup(cls.server.close)
        # What an agent with the right functions answers, and these functions.
        run = ae.run(["gold"], samples=["example_3"], suite=cls.suite, runs=cls.folder / "gold", progress=False)
        cls.answer = run.records[0]["answer"]
        cls.original = (cls.suite / "repos" / "example" / "example" / "errors.py").read_text()

    def test_right_work_is_rewarded_and_no_work_is_not(self) -> None:
        with self.server.connect("plain") as episodes:
            first = episodes.reset(sample="example_3")
            self.assertIn("quantile", first.text)
            self.assertIn("command_line", [tool["name"] for tool in first.tools])
            self.assertEqual(episodes.submit(self.answer).reward, 0.0)
            episodes.reset(sample="example_3")
            episodes.step("write_file", {"path": "example/errors.py", "content": self.original})
            last = episodes.submit(self.answer)
            self.assertEqual((last.reward, last.done, last.truncated), (1.0, True, False))
            self.assertTrue(episodes.state()["done"])
            with self.assertRaises(ae.EpisodeError) as caught:
                episodes.step("command_line", {"command": "ls"})
            self.assertEqual(caught.exception.kind, "EXECUTION_ERROR")
            with self.assertRaises(ae.EpisodeError) as caught:
                episodes.reset(sample="example_99")
            self.assertEqual(caught.exception.kind, "VALIDATION_ERROR")

    def test_long_texts_arrive_whole(self) -> None:
        with self.server.connect("plain") as episodes:
            episodes.reset(n=1)
            for length in (125, 126, 65_535, 65_536, 300_000):
                episodes.step("write_file", {"path": "long.txt", "content": "\u00e4" * length})
                shown = episodes.step("command_line", {"command": "wc -m < long.txt"}).text
                self.assertIn(str(length), shown)

    def test_without_a_server_the_error_says_so(self) -> None:
        with self.assertRaises(ae.MachineError) as caught:
            ae.Episodes("http://127.0.0.1:9")
        self.assertIn("autoexperiment serve", str(caught.exception.hint))
        with self.assertRaises(ae.UsageError):
            ae.serve(suite=self.suite, runs=self.folder / "runs", options=["--held-out", "2"])

    def test_the_server_ends_with_a_killed_script(self) -> None:
        code = (
            "import sys, time; import autoexperiment as ae; "
            "server = ae.serve(suite=sys.argv[1], runs=sys.argv[2], name='killed', options=['--no-baseline']); "
            "print(server.url, flush=True); time.sleep(600)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(self.suite), str(self.folder / "runs")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        ae.Episodes(url).close()
        process.kill()
        process.wait()
        process.stdout.close()
        for _ in range(300):
            try:
                ae.Episodes(url).close()
            except ae.MachineError:
                return
            time.sleep(0.1)
        self.fail("the server goes on")

    def test_trl_finds_tools_and_reward(self) -> None:
        from autoexperiment.trl import AutoExperimentEnvironment, rows

        environment = AutoExperimentEnvironment(self.server.url)
        # As GRPOTrainer of TRL 1.16 does: functions of the class, those without an underscore are tools.
        found = dict(inspect.getmembers(type(environment), predicate=inspect.isfunction))
        tools = {name for name in found if not name.startswith("_")} - {"reset", "get_reward"}
        self.assertEqual(tools, {"command_line", "read_file", "write_file", "submit", "final_answer"})
        for name in tools:
            documented = inspect.getdoc(found[name]) or ""
            arguments = [it for it in inspect.signature(found[name]).parameters if it != "self"]
            self.assertTrue(all(f"    {argument}: " in documented for argument in arguments), name)
        # A row is passed whole, with its prompt.
        task = environment.reset(**rows(1, n=1)[0])
        self.assertIsInstance(task, str)
        self.assertEqual(environment.get_reward(), 0.0)
        environment.reset(prompt=[], sample="example_3")
        environment.write_file("example/errors.py", self.original)
        self.assertIn("def quantile", environment.read_file("example/errors.py"))
        environment.submit(self.answer)
        self.assertEqual(environment.get_reward(), 1.0)
        self.assertEqual(environment.command_line("ls"), "The episode is over.")
        # A learner must not be able to choose that its episode has no reward.
        environment.reset(sample="example_3")
        self.assertIn("Nothing was run", environment.command_line("echo \ud83d"))
        self.assertEqual(environment.get_reward(), 0.0)
        self.assertIn("hello", environment.command_line("echo hello"))

    @unittest.skipIf(is_missing("gymnasium"), "gymnasium is not installed")
    def test_gymnasiums_check_passes_and_environments_are_vectorised(self) -> None:
        import gymnasium
        from gymnasium.utils.env_checker import check_env

        from autoexperiment.gym import AutoExperimentEnv, action

        environment = AutoExperimentEnv(self.server.url, render_mode="ansi")
        check_env(environment)
        environment.reset(options={"sample": "example_3"})
        wrong = environment.step("no call at all")
        self.assertEqual((wrong[1], wrong[2]), (0.0, False))
        environment.step(action("write_file", path="example/errors.py", content=self.original))
        self.assertEqual(environment.step(action("submit", answer=self.answer))[1:4], (1.0, True, False))
        environment.close()
        for vector, options in ((gymnasium.vector.SyncVectorEnv, {}), (gymnasium.vector.AsyncVectorEnv, {"shared_memory": False})):
            several = vector([lambda: AutoExperimentEnv(self.server.url, n=1) for _ in range(3)], **options)
            texts, _ = several.reset(seed=1)
            self.assertEqual(len(texts), 3)
            _, rewards, terminated, _, _ = several.step([action("submit", answer="{}")] * 3)
            self.assertEqual((list(rewards), list(terminated)), ([0.0] * 3, [True] * 3))
            several.close()

    @unittest.skipIf(is_missing("gymnasium"), "gymnasium is not installed")
    def test_a_malformed_action_takes_a_step_and_raises_nothing(self) -> None:
        from autoexperiment.gym import AutoExperimentEnv, action

        environment = AutoExperimentEnv(self.server.url)
        call = '{"tool": "command_line", "arguments": {"command": %s}}'
        malformed = ['{"tool": "wait"}', call % '"echo \\ud83d"', call % ("[" * 200 + "]" * 200), call % ("[" * 100_000), "no call"]
        environment.reset(options={"sample": "example_3"})
        for number, wrong in enumerate(malformed, 1):
            text, reward, terminated, truncated, info = environment.step(wrong)
            self.assertEqual((reward, terminated, truncated), (0.0, number == len(malformed), False), (wrong[:80], text))
        self.assertEqual((info["end"], info["steps"]), ("format_errors", len(malformed)))
        with self.assertRaises(environment_is_over()):
            environment.step(action("command_line", command="ls"))
        # NaN as a result is an answer, which is wrong, and a huge number is one, too.
        for result in ("NaN", "1" + "0" * 400):
            environment.reset(options={"sample": "example_3"})
            answer = '{"tool": "submit", "arguments": {"answer": {"Experiment 1": {"mean": %s}}}}' % result
            _, reward, terminated, _, info = environment.step(answer)
            self.assertEqual((reward, terminated, info["end"]), (0.0, True, "answered"))
        environment.close()

    @unittest.skipIf(is_missing("gymnasium"), "gymnasium is not installed")
    def test_a_refused_action_does_not_end_the_episode_for_gymnasium(self) -> None:
        from autoexperiment.gym import AutoExperimentEnv, action

        answers = iter([observation("begun"), refusal("INVALID_JSON"), observation("ls"), refusal("SESSION_ERROR")])
        server = ScriptedServer(lambda _: next(answers))
        self.addCleanup(server.close)
        environment = AutoExperimentEnv(server.url)
        environment.reset()
        text, *ended = environment.step("anything")[:4]
        self.assertEqual((text, ended), ("error: refused: INVALID_JSON", [0.0, False, False]))
        self.assertEqual(environment.step(action("command_line", command="ls"))[0], "ls")
        self.assertTrue(environment.step("anything")[4]["lost"])

    @unittest.skipIf(is_missing("gymnasium"), "gymnasium is not installed")
    def test_a_lost_episode_is_truncated_for_gymnasium(self) -> None:
        from autoexperiment.gym import AutoExperimentEnv, action

        answer = None
        server = ScriptedServer(lambda message: observation("begun") if message["type"] == "reset" else answer)
        self.addCleanup(server.close)
        environment = AutoExperimentEnv(server.url)
        for answer in (observation("lost", None, True, lost=True), None):
            environment.reset()
            _, reward, terminated, truncated, info = environment.step(action("submit", answer="{}"))
            self.assertEqual((reward, terminated, truncated, info["lost"]), (0.0, False, True, True), answer)
        answer = observation("over", 1.0, True)
        environment.reset()
        self.assertEqual(environment.step(action("submit", answer="{}"))[1:4], (1.0, True, False))

    @unittest.skipIf(is_missing("verifiers"), "verifiers is not installed")
    def test_a_lost_episode_is_an_error_for_verifiers_and_a_refused_call_is_not(self) -> None:
        from autoexperiment_verifiers import AutoExperimentTask, ServerConfig, State, Tools

        answer = None

        async def play(first) -> Tools:
            server = ScriptedServer(lambda message: first if message["type"] == "reset" else answer)
            self.addCleanup(server.close)
            tools = Tools(ServerConfig(url=server.url))
            await tools.setup_task(types.SimpleNamespace(sample="example_3"))
            await asyncio.gather(tools.command_line("ls"), tools.final_answer("{}"))
            return tools

        begun = observation("begun")
        for first, answer, reward, lost in (
            (begun, observation("over", 1.0, True), 1.0, False),
            (begun, refusal("EXECUTION_ERROR"), None, False),
            (begun, observation("lost", None, True, lost=True), None, True),
            (begun, None, None, True),
            (refusal("VALIDATION_ERROR"), None, None, True),
            (observation("lost", None, True, lost=True), None, None, True),
        ):
            state = asyncio.run(play(first)).state
            self.assertEqual((state.played, state.reward, state.lost), (True, reward, lost), (first, answer))
        with self.assertRaises(RuntimeError):
            asyncio.run(AutoExperimentTask.verified(None, types.SimpleNamespace(state=State(lost=True)), None))

    @unittest.skipIf(is_missing("openenv"), "openenv is not installed")
    def test_openenvs_client_plays_and_its_validation_passes(self) -> None:
        from openenv.core.generic_client import GenericEnvClient

        with GenericEnvClient(base_url=self.server.url).sync() as client:
            first = client.reset(sample="example_3")
            self.assertIn("quantile", first.observation["prompt"])
            client.step({"tool": "write_file", "arguments": {"path": "example/errors.py", "content": self.original}})
            last = client.step({"tool": "submit", "arguments": {"answer": self.answer}})
            self.assertEqual((last.reward, last.done), (1.0, True))
            self.assertEqual(client.state()["reward"], 1.0)
        for target, options in ((self.server.url, []), (str(ENVIRONMENT), ["--level", "static"])):
            done = subprocess.run([script("openenv"), "validate", target, *options], capture_output=True, text=True)
            self.assertIn("Verdict: PASS", done.stdout, done.stderr)

    @unittest.skipIf(is_missing("verifiers"), "verifiers is not installed")
    def test_gold_is_right_and_no_work_wrong_for_verifiers(self) -> None:
        out = self.folder / "verifiers"
        command = [
            script("vf-validate"), "autoexperiment-verifiers", "--runtime.type", "subprocess", "-n", "2", "--no-rich",
            "--taskset.task.server.url", self.server.url, "--taskset.task.suite", str(self.suite), "-o", str(out),
        ]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (summary,) = out.rglob("summary.json")
        checks = json.loads(summary.read_text())["checks"]
        self.assertEqual([checks[check]["valid"] for check in ("gold", "noop")], [2, 2], checks)

    def test_prompts_are_listed_without_an_episode(self) -> None:
        body = json.dumps({"split": "train", "start": 0, "stop": 2}).encode()
        request = urllib.request.Request(f"{self.server.url}/autoexperiment/task_range", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            tasks = json.load(answer)["tasks"]
        self.assertEqual(len(tasks), 2)
        self.assertTrue(all("example" in task["prompt"] and task["system"] for task in tasks))

    def test_the_examples_of_the_documentation_run(self) -> None:
        if not DOCS.exists():
            self.skipTest("the documentation is not here")
        examples = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.M | re.S)
        self.assertEqual(len(examples), 5)
        environment = {
            **os.environ, "AUTOEXPERIMENT_SUITE": str(self.suite), "PYTHONPATH": os.pathsep.join(sys.path),
            "AUTOEXPERIMENT_PROGRAM": str(ae.program()),
        }
        for number, example in enumerate(examples):
            libraries = [name for name in ("gymnasium", "openenv", "mcp") if re.search(rf"^(from|import) {name}\b", example, re.M)]
            missing = [name for name in libraries if is_missing(name)] or (
                ["mcp 2.3"] if "from mcp import Client" in example and not has_client() else []
            )
            with self.subTest(example=number, missing=missing):
                if missing:
                    continue
                folder = self.folder / f"example-{number}"
                folder.mkdir()
                done = subprocess.run([sys.executable, "-c", example], cwd=folder, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("0.0", done.stdout)


def has_client() -> bool:
    """Whether the installed `mcp` is new enough; verifiers and openenv bring others along."""
    from importlib.metadata import version

    return tuple(map(int, version("mcp").split(".")[:2])) >= (2, 3)


if __name__ == "__main__":
    unittest.main()
