"""The client of episodes and the class for TRL, against a scripted server: failures of the machine and of connections."""

import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Callable, Optional

sys.path.insert(0, str(Path(__file__).parent))

import autoexperiment as ae  # noqa: E402
from autoexperiment import _episodes  # noqa: E402
from autoexperiment.trl import AutoExperimentEnvironment  # noqa: E402
from scripted_server import ScriptedServer, observation, refusal  # noqa: E402


class Scripted(unittest.TestCase):
    def server(self, answer: Callable[[dict[str, Any]], Optional[dict[str, Any]]]) -> ScriptedServer:
        server = ScriptedServer(answer)
        self.addCleanup(server.close)
        return server


def slow(message: dict[str, Any]) -> dict[str, Any]:
    if message["type"] == "reset":
        return observation("begun")
    tool = message["data"]["tool"]
    if tool == "slow":
        time.sleep(1)
    return observation(f"answer to {tool}")


class Client(Scripted):
    def test_after_a_timeout_the_late_answer_is_not_taken_for_another_one(self) -> None:
        episodes = ae.Episodes(self.server(slow).url, timeout=0.2)
        episodes.reset()
        with self.assertRaises(ae.MachineError):
            episodes.step("slow")
        self.assertFalse(episodes.usable)
        with self.assertRaises(ae.MachineError) as caught:
            episodes.step("fast")
        self.assertEqual(caught.exception.message, "the connection was interrupted")

    def test_after_ctrl_c_the_late_answer_is_not_taken_for_another_one(self) -> None:
        episodes = ae.Episodes(self.server(slow).url)
        episodes.reset()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            episodes.step("slow")
        with self.assertRaises(ae.MachineError):
            episodes.step("fast")

    def test_calls_of_several_threads_get_their_own_answers(self) -> None:
        episodes = ae.Episodes(self.server(slow).url)
        episodes.reset()
        wrong = []

        def call(name: str) -> None:
            for _ in range(50):
                if episodes.step(name).text != f"answer to {name}":
                    wrong.append(name)

        threads = [threading.Thread(target=call, args=(f"tool_{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_refused_call_does_not_end_the_session(self) -> None:
        answers = iter([observation("begun"), refusal("EXECUTION_ERROR"), observation("ls")])
        episodes = ae.Episodes(self.server(lambda _: next(answers)).url)
        episodes.reset()
        with self.assertRaises(ae.EpisodeError):
            episodes.step("wait")
        self.assertEqual(episodes.step("ls").text, "ls")

    def test_a_call_that_cannot_be_sent_is_sent_as_a_malformed_one(self) -> None:
        sent: list[dict[str, Any]] = []

        def answer(message: dict[str, Any]) -> dict[str, Any]:
            sent.append(message)
            return observation("error")

        episodes = ae.Episodes(self.server(answer).url)
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        for arguments, wrong in (({"content": "x" * (4 << 20)}, "too long"), ({"content": deep}, "nested too deeply")):
            step = episodes.step("write_file", arguments)
            self.assertFalse(step.done)
            self.assertIn(wrong, step.text)
            data = sent.pop()["data"]
            self.assertEqual(data["tool"], "write_file")
            self.assertIn(wrong, data["arguments"])
        # Taken apart here, because Python's own way is recursive.
        while deep:
            deep = deep.pop()

    def test_a_text_that_cannot_be_sent_does_not_change_the_call(self) -> None:
        sent: list[dict[str, Any]] = []

        def answer(message: dict[str, Any]) -> dict[str, Any]:
            sent.append(message)
            return observation("ls")

        episodes = ae.Episodes(self.server(answer).url)
        for text, kept in (("x" * (5 << 20) + "end", "x" * 39_997 + "end"), ("a\ud83d b\ud83d\ude00", "a\ufffd b\U0001f600")):
            self.assertEqual(episodes.step("bash", {"command": "ls"}, text).text, "ls")
            self.assertEqual(sent.pop()["data"], {"tool": "bash", "arguments": {"command": "ls"}, "text": kept})

    def test_addresses_that_are_none_are_refused(self) -> None:
        for url in ("ftp://127.0.0.1", "http://", "http://127.0.0.1:99999", "http://127.0.0.1:x"):
            with self.assertRaises(ae.MachineError) as caught:
                ae.Episodes(url)
            self.assertIn("is no address", caught.exception.message)

    def test_the_path_of_an_address_is_kept(self) -> None:
        server = self.server(lambda _: observation("begun"))
        ae.Episodes(f"{server.url}/behind/proxy/").close()
        self.assertEqual(server.requests, [b"GET /behind/proxy/ws?client=client HTTP/1.1"])

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_an_encrypted_connection_needs_a_trusted_certificate(self) -> None:
        folder = Path(tempfile.mkdtemp())
        files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
        name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *files, *name]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        server = ScriptedServer(lambda _: observation("begun"), context)
        self.addCleanup(server.close)
        for scheme in ("https", "wss"):
            url = server.url.replace("http://127.0.0.1", f"{scheme}://localhost")
            with self.assertRaises(ae.MachineError) as caught:
                ae.Episodes(url)
            self.assertIn("no secure connection", caught.exception.message)
            with unittest.mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(folder / "certificate.pem")}):
                with ae.Episodes(url) as episodes:
                    self.assertEqual(episodes.reset().text, "begun")

    def test_a_reset_waits_while_the_server_is_full_but_not_for_ever(self) -> None:
        answers = [refusal("CAPACITY_REACHED"), refusal("CAPACITY_REACHED"), observation("begun")]
        server = self.server(lambda _: answers.pop(0) if answers else refusal("CAPACITY_REACHED"))
        with unittest.mock.patch.object(_episodes, "_PAUSES", (0.01, 0.02)):
            episodes = ae.Episodes(server.url)
            self.assertEqual(episodes.reset().text, "begun")
            with self.assertRaises(ae.EpisodeError) as caught:
                episodes.reset(wait=0.1)
        self.assertEqual(caught.exception.kind, "CAPACITY_REACHED")

    def test_a_reset_connects_again_if_a_full_server_closed_the_connection(self) -> None:
        answers = iter([refusal("CAPACITY_REACHED"), None, observation("begun")])
        server = self.server(lambda _: next(answers))
        with unittest.mock.patch.object(_episodes, "_PAUSES", (0.01, 0.02)):
            self.assertEqual(ae.Episodes(server.url).reset().text, "begun")
        self.assertEqual(server.connections, 2)


class Trl(Scripted):
    def setUp(self) -> None:
        self.answer: Optional[dict[str, Any]] = None
        server = self.server(lambda message: observation("begun") if message["type"] == "reset" else self.answer)
        self.environment = AutoExperimentEnvironment(server.url)

    def test_a_lost_episode_has_no_reward_and_the_next_one_has(self) -> None:
        for answer, error in (
            (observation("lost", None, True, lost=True), None),
            (None, ae.MachineError),
            (refusal("SESSION_ERROR"), ae.EpisodeError),
        ):
            self.answer = answer
            self.environment.reset()
            if error is None:
                self.environment.submit("{}")
            else:
                with self.assertRaises(error):
                    self.environment.submit("{}")
            self.assertIsNone(self.environment.get_reward(), answer)
            self.answer = observation("over", 1.0, True)
            self.environment.reset()
            self.assertEqual(self.environment.get_reward(), 0.0, "no answer yet")
            self.environment.final_answer("{}")
            self.assertEqual(self.environment.get_reward(), 1.0)

    def test_a_session_that_the_server_closed_between_two_episodes_is_opened_again(self) -> None:
        answers = iter([observation("first"), None, observation("second")])
        server = self.server(lambda _: next(answers))
        environment = AutoExperimentEnvironment(server.url)
        self.assertEqual([environment.reset(), environment.reset()], ["first", "second"])
        self.assertEqual(server.connections, 2)

    def test_a_refused_call_leaves_the_reward(self) -> None:
        for kind in ("EXECUTION_ERROR", "VALIDATION_ERROR", "INVALID_JSON", "UNKNOWN_TYPE"):
            self.answer = refusal(kind)
            self.environment.reset()
            with self.assertRaises(ae.EpisodeError):
                self.environment.command_line("ls")
            self.assertEqual(self.environment.get_reward(), 0.0, kind)

    def test_a_learner_cannot_void_its_episode_with_a_call_that_is_too_long(self) -> None:
        self.answer = observation("error")
        self.environment.reset()
        self.environment.write_file("a", "x" * (5 << 20))
        self.assertEqual(self.environment.get_reward(), 0.0)


class Server(unittest.TestCase):
    """`serve`, with a program that writes down its environment and waits for signals."""

    def setUp(self) -> None:
        folder = Path(tempfile.mkdtemp())
        program = folder / "program"
        program.write_text(textwrap.dedent(f"""\
            #!{sys.executable}
            import os, pathlib, signal, sys, time
            signals = []
            # More than a pipe holds.
            sys.stderr.buffer.write(b"\\xff warning\\n" * 20_000)
            pathlib.Path({str(folder)!r}, "arguments").write_text(" ".join(sys.argv[1:]))
            if "broken" in sys.argv:
                sys.exit("error: it is broken")
            signal.signal(signal.SIGINT, lambda *_: signals.append(1))
            pathlib.Path({str(folder)!r}, "about").write_text(f"{{os.environ.get('AUTOEXPERIMENT_TOKEN')}} {{os.getpgid(0)}}")
            print("http://127.0.0.1:1", flush=True)
            while not signals:
                time.sleep(0.05)
            """))
        program.chmod(0o755)
        self.about = folder / "about"
        changed = {"AUTOEXPERIMENT_PROGRAM": str(program), "AUTOEXPERIMENT_TOKEN": "of the environment"}
        patched = unittest.mock.patch.dict(os.environ, changed)
        patched.start()
        self.addCleanup(patched.stop)

    def test_the_token_reaches_the_server_and_its_sessions(self) -> None:
        for given, token in (
            ({}, "of the environment"),
            ({"token": "given"}, "given"),
            ({"options": ["--token", "of the options"]}, "of the options"),
            ({"options": ["--token=of the options"]}, "of the options"),
        ):
            with ae.serve(**given) as server:
                self.assertEqual(server.token, token)
                self.assertEqual(self.about.read_text().rsplit(" ", 1)[0], token)
                with unittest.mock.patch.object(_episodes, "Episodes") as session:
                    server.connect("me")
                session.assert_called_once_with(server.url, client="me", token=token)

    def test_papers_and_numbers_are_given_as_to_the_other_functions(self) -> None:
        for papers, n, expected in (
            ("kmeanspp", "1..3", "serve kmeanspp -n 1..3 "),
            (["a", "b"], range(1, 4), "serve a b -n 1..3 "),
            ((), [1, 3], "serve -n 1,3 "),
        ):
            with ae.serve(papers, n=n):
                arguments = (self.about.parent / "arguments").read_text()
            self.assertTrue(arguments.startswith(expected), arguments)
        with self.assertRaises(ae.UsageError):
            ae.serve([1])

    def test_the_error_of_a_server_that_does_not_start_is_shown(self) -> None:
        with self.assertRaises(ae.Error) as caught:
            ae.serve("broken")
        self.assertEqual(caught.exception.message, "it is broken")

    def test_ctrl_c_in_a_terminal_does_not_reach_the_server_itself(self) -> None:
        with ae.serve():
            self.assertNotEqual(int(self.about.read_text().rsplit(" ", 1)[1]), os.getpgid(0))


class Records(unittest.TestCase):
    def test_records_are_read_from_all_shards_and_may_contain_any_character(self) -> None:
        folder = Path(tempfile.mkdtemp())
        (folder / "run.json").write_text("{}")
        (folder / "attempts-1.jsonl").write_text('{"answer": "one\u2028two\u0085three\u2029"}\n{"cut', encoding="utf-8")
        (folder / "attempts-2.jsonl").write_text('{"answer": "four"}\n', encoding="utf-8")
        answers = [record["answer"] for record in ae.load(folder).records]
        self.assertEqual(answers, ["one\u2028two\u0085three\u2029", "four"])

    def test_lines_that_were_written_in_part_or_are_broken_are_skipped(self) -> None:
        folder = Path(tempfile.mkdtemp())
        (folder / "run.json").write_text("{}")
        whole = b'{"answer": {"a": {"b": 1}}, "end": "answered"}\n'
        for torn in (b'{"answer": {"a": {"b": 1}', b'{"answer": "\xc3'):
            (folder / "attempts.jsonl").write_bytes(whole + b'{"answer": {"a"}\n[]\n' + whole + torn)
            self.assertEqual(len(ae.load(folder).records), 2, torn)


if __name__ == "__main__":
    unittest.main()
