"""The environment class of TRL's ``GRPOTrainer(environment_factory=...)`` over ``autoexperiment serve``.

TRL need not be installed, because it requires only certain methods and no base class. ``reset`` gets a row of the data set.
``get_reward`` returns the reward, or ``None`` for an episode that was lost because the machine failed. All other public
methods are the model's tools.

>>> from functools import partial
>>> factory = partial(AutoExperimentEnvironment, "http://127.0.0.1:8000")
"""

from __future__ import annotations

import json
from typing import Any

from ._episodes import EpisodeError, Episodes, Step, begin
from ._errors import Error

__all__ = ["AutoExperimentEnvironment", "rows"]

_ASKED = ("sample", "paper", "n", "seed", "split", "index")


def rows(count: int, *, seed: int = 0, **asked: Any) -> list[dict[str, Any]]:
    """Returns the rows of a data set, one per episode. Each row has another seed, with which its task is drawn."""
    prompt = [{"role": "user", "content": ""}]
    return [{"prompt": prompt, "seed": seed + number, **asked} for number in range(count)]


class AutoExperimentEnvironment:
    """An environment whose episodes are attempts at samples."""

    def __init__(self, url: str = "http://127.0.0.1:8000", client: str = "trl", token: str | None = None) -> None:
        self._connection = {"url": url, "client": client, "token": token}
        self._episodes: Episodes | None = None
        self._last: Step | None = None
        self._lost = False

    def reset(self, **row: Any) -> str | None:
        """Begins an episode. The row chooses the task: ``sample``, or ``paper``, ``n``, ``seed``, ``split`` and ``index``."""
        self._last, self._lost = None, False
        asked = {name: row[name] for name in _ASKED if row.get(name) is not None}
        self._episodes, first = begin(self._episodes, self._connection, asked)
        self._last = first
        return f"{first.observation.get('system', '')}\n\n{first.text}".strip()

    def command_line(self, command: str) -> str:
        """Runs a command with sh in the repository.

        Args:
            command: The command, for a POSIX shell.

        Returns:
            Its exit code, stdout and stderr.
        """
        return self._call("command_line", {"command": command})

    def read_file(self, path: str) -> str:
        """Shows a file from its beginning.

        Args:
            path: The file's path.

        Returns:
            The file's text, as much of it as fits.
        """
        return self._call("read_file", {"path": path})

    def write_file(self, path: str, content: str) -> str:
        """Creates a file, or replaces all of its content.

        Args:
            path: The file's path; missing folders are made.
            content: The whole new content.

        Returns:
            What was written.
        """
        return self._call("write_file", {"path": path, "content": content})

    def submit(self, answer: str) -> str:
        """Reports the results of all experiments and finishes. Nothing can be done afterwards.

        Args:
            answer: The results, a JSON object written as text: {"Experiment 1": {...}}.

        Returns:
            How the episode ended.
        """
        return self._call("submit", {"answer": answer})

    def final_answer(self, answer: str) -> str:
        """Does the same as `submit`, under the name that the task mentions.

        Args:
            answer: The results, a JSON object written as text: {"Experiment 1": {...}}.

        Returns:
            How the episode ended.
        """
        return self._call("submit", {"answer": answer})

    def get_reward(self) -> float | None:
        """Returns the episode's reward: 0 without an answer; None if the episode was lost, so that the trainer masks it."""
        if self._lost:
            return None
        if self._last is None or not self._last.done:
            return 0.0
        return self._last.reward

    def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        if self._episodes is None or self._last is None:
            raise RuntimeError("call `reset` first")
        if self._last.done or self._lost:
            return "The episode is over."
        if not isinstance(arguments.get("answer", ""), str):
            arguments = {"answer": json.dumps(arguments["answer"])}
        try:
            self._last = self._episodes.step(tool, arguments)
        except (Error, OSError) as error:
            self._lost = not (isinstance(error, EpisodeError) and error.refuses_call)
            raise
        return self._last.text
