"""A taskset for ``verifiers`` (v1) over ``autoexperiment serve``: ``vf-eval autoexperiment-verifiers``.

Each task is a sample. Its tools are a server per rollout, which plays an episode and keeps the reward in the rollout's
state. The gold check attempts the sample with the agent ``gold``, on this machine and apart from the server.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

import autoexperiment as ae

__all__ = ["AutoExperimentTaskset"]

# Tasks per request.
_PART = 50
_LOST = "the episode was lost to a failure of the machine"


class ServerConfig(vf.ToolsetConfig):
    url: str = "http://127.0.0.1:8000"
    """Address of ``autoexperiment serve``."""
    token: str | None = None
    """The server's token, if it has one."""


class TaskConfig(vf.TaskConfig):
    server: ServerConfig = ServerConfig()
    """The server."""
    suite: str | None = None
    """Folder of the suite, for gold checks; by default the bundled one."""


class Config(vf.TasksetConfig):
    split: str = "train"
    """The part of the server's tasks."""
    task: TaskConfig = TaskConfig()


class Data(vf.TaskData):
    sample: str
    """The sample's id."""


class State(vf.State):
    played: bool = False
    """Whether the model has called a tool."""
    reward: float | None = None
    """The reward, once the episode has ended."""
    lost: bool = False
    """Whether the machine or the connection failed, so that the rollout says nothing about the model."""


class Tools(vf.Toolset[ServerConfig, State]):
    """The model's tools. The episode begins with the first call."""

    TOOL_PREFIX = None

    async def setup_task(self, task: Data) -> None:
        self._sample = task.sample
        self._episodes: ae.Episodes | None = None
        self._reward: float | None = None
        self._lost = False
        self._turn = asyncio.Lock()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        async with self._turn:
            text = await asyncio.to_thread(self._act, tool, arguments)
            # Each of several calls at once has its own copy of the state, and the last copy is kept: write all of it.
            self.state.played, self.state.reward, self.state.lost = True, self._reward, self._lost
            return text

    def _act(self, tool: str, arguments: dict[str, Any]) -> str:
        """Calls a tool. Returns failures as texts, because the state is not kept if a tool raises an exception."""
        if self._reward is not None or self._lost:
            return "The episode is over."
        try:
            step = self._step(tool, arguments)
        except (ae.Error, OSError) as error:
            if self._episodes is not None and isinstance(error, ae.EpisodeError) and error.refuses_call:
                return f"error: {error.message}"
            self._lost = True
            return f"error: {_LOST}: {error}"
        if step.done:
            self._reward, self._lost = step.reward, step.lost
        return step.text

    def _step(self, tool: str, arguments: dict[str, Any]) -> ae.Step:
        if self._episodes is None:
            episodes = ae.Episodes(self.config.url, client="verifiers", token=self.config.token)
            try:
                first = episodes.reset(sample=self._sample)
            except BaseException:
                episodes.close()
                raise
            self._episodes = episodes
            if first.done:
                return first
        return self._episodes.step(tool, arguments)

    @vf.tool
    async def command_line(self, command: str) -> str:
        """Run a command with sh in the repository. Shows its exit code, stdout and stderr."""
        return await self._call("command_line", {"command": command})

    @vf.tool
    async def read_file(self, path: str) -> str:
        """Show a file from its beginning, as much of it as fits."""
        return await self._call("read_file", {"path": path})

    @vf.tool
    async def write_file(self, path: str, content: str) -> str:
        """Create a file, or replace all of its content."""
        return await self._call("write_file", {"path": path, "content": content})

    @vf.tool
    async def submit(self, answer: str) -> str:
        """Report the results of all experiments, a JSON object written as text, and finish."""
        return await self._call("submit", {"answer": answer})

    @vf.tool
    async def final_answer(self, answer: str) -> str:
        """Do the same as submit, under the name that the task mentions."""
        return await self._call("submit", {"answer": answer})


class AutoExperimentTask(vf.Task[Data, State, TaskConfig]):
    @classmethod
    def toolsets(cls, config: TaskConfig) -> list[vf.Toolset]:
        return [Tools(config.server)]

    @vf.reward(weight=1.0)
    async def verified(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        state: State = trace.state
        if state.lost:
            raise RuntimeError(_LOST)
        if state.reward is None and not state.played:
            return await asyncio.to_thread(self._untouched)
        return state.reward or 0.0

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether the original functions pass."""
        return await asyncio.to_thread(self._gold)

    def _untouched(self) -> float:
        """The reward of an episode in which nothing is done."""
        server = self.config.server
        with ae.Episodes(server.url, client="verifiers", token=server.token) as episodes:
            first = episodes.reset(sample=self.data.sample)
            reward = None if first.done else episodes.submit({}).reward
        if reward is None:
            raise RuntimeError(_LOST)
        return reward

    def _gold(self) -> bool:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            run = ae.run(["gold"], samples=[self.data.sample], suite=self.config.suite, runs=folder, progress=False)
            return all(record["pass"] for record in run.records)


class AutoExperimentTaskset(vf.Taskset[AutoExperimentTask, Config]):
    """The server's tasks."""

    def load(self) -> Iterator[AutoExperimentTask]:
        config = self.config
        server = config.task.server
        for task in _tasks(server, config.split):
            names = {"name": task["sample"], "sample": task["sample"]}
            yield AutoExperimentTask(
                Data(**names, prompt=task["prompt"], system_prompt=task["system"]), config.task
            )


def _tasks(server: ServerConfig, split: str) -> Iterator[dict[str, Any]]:
    """The tasks with their prompts, asked for in parts."""
    headers = {"Content-Type": "application/json"}
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token}"
    start = 0
    while True:
        body = json.dumps({"split": split, "start": start, "stop": start + _PART}).encode()
        request = urllib.request.Request(f"{server.url.rstrip('/')}/autoexperiment/task_range", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            tasks: list[dict[str, Any]] = json.load(answer)["tasks"]
        if not tasks:
            return
        yield from tasks
        start += len(tasks)


if __name__ == "__main__":
    Tools.run()
