"""``gymnasium.Env`` over ``autoexperiment serve``: actions and observations are texts.

>>> env = AutoExperimentEnv("http://127.0.0.1:8000")  # doctest: +SKIP
>>> text, info = env.reset(seed=1, options={"n": 2})  # doctest: +SKIP

An action is a call as JSON, ``{"tool": "command_line", "arguments": {"command": "ls"}}``. Any other text counts as a
malformed call: it takes a step, and the server answers it with an error. No action raises an exception. ``info["tools"]``
describes the tools.

An episode that is lost because the machine failed counts as truncated. Its reward is 0, and ``info["lost"]`` is true. Learners
should ignore such episodes.
"""

from __future__ import annotations

import json
from typing import Any

import gymnasium

from ._episodes import EpisodeError, Episodes, Step, begin
from ._errors import MachineError

__all__ = ["AutoExperimentEnv", "Texts", "action"]

_VARYING = ("attempt", "tool_seconds", "verify_seconds", "seconds_left")


class Texts(gymnasium.Space[str]):
    """Texts of any characters. ``gymnasium.spaces.Text`` does not suffice, because observations contain output of commands.

    Samples of this space are harmless calls. ``AsyncVectorEnv`` needs ``shared_memory=False``, because texts of any length
    cannot be in shared memory.
    """

    def __init__(self) -> None:
        super().__init__(shape=(), dtype=None)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return action("list_files", path=".")

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Texts)


def action(tool: str, **arguments: Any) -> str:
    """Returns a call as an action."""
    return json.dumps({"tool": tool, "arguments": arguments})


class AutoExperimentEnv(gymnasium.Env[str, str]):
    """An environment whose episodes are attempts at samples."""

    metadata = {"render_modes": ["ansi"]}

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        client: str = "gymnasium",
        token: str | None = None,
        split: str = "train",
        render_mode: str | None = None,
        **asked: Any,
    ) -> None:
        self.observation_space = Texts()
        self.action_space = Texts()
        self.render_mode = render_mode
        self._connection = {"url": url, "client": client, "token": token}
        self._asked = {"split": split, **asked}
        self._episodes: Episodes | None = None
        self._last: Step | None = None
        self._shown = ""
        self.last: dict[str, Any] = {}
        """All metadata of the last step, including the attempt's number and times, which ``info`` does not contain."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        asked = {**self._asked, **(options or {})}
        if seed is not None and "index" not in asked:
            asked["seed"] = seed
        self._episodes, first = begin(self._episodes, self._connection, asked)
        self._last = first
        return self._seen(first), {**self._info(first), "tools": first.tools, "system": first.observation.get("system", "")}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._episodes is None or self._last is None:
            raise gymnasium.error.ResetNeeded("call `reset` before `step`")
        if self._last.done and not self._last.lost:
            raise gymnasium.error.ResetNeeded("the episode is over: call `reset`")
        # If the episode was lost before it began, report this now: `reset` cannot report that an episode has ended.
        step = self._last if self._last.lost else self._call(action)
        self._last = step
        truncated = step.done and (step.truncated or step.lost)
        return self._seen(step), step.reward or 0.0, step.done and not truncated, truncated, self._info(step)

    def _call(self, action: str) -> Step:
        assert self._episodes is not None
        tool, arguments, text = _parsed(action)
        try:
            return self._episodes.step(tool, arguments, text)
        except (EpisodeError, MachineError) as error:
            if isinstance(error, EpisodeError) and error.refuses_call:
                return Step(f"error: {error.message}", None, False, {}, {})
            return Step(f"The episode was lost: {error.message}", None, True, {}, {"lost": True})

    def render(self) -> str | None:  # type: ignore[override]
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        if self._episodes is not None:
            self._episodes.close()
            self._episodes = None
            self._last = None

    def _info(self, step: Step) -> dict[str, Any]:
        """Stores all metadata in ``last``, and returns them without those that differ between equal episodes."""
        self.last = dict(step.metadata)
        return {name: value for name, value in step.metadata.items() if name not in _VARYING}

    def _seen(self, step: Step) -> str:
        self._shown = step.text
        return self._shown


def _parsed(action: str) -> tuple[str, dict[str, Any], str]:
    """Returns an action's tool, arguments and text. For an invalid action, the tool is empty and the text is the action."""
    try:
        call = json.loads(action)
    except (ValueError, RecursionError):
        return "", {}, action
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or not isinstance(call.get("arguments", {}), dict):
        return "", {}, action
    return call["tool"], call.get("arguments", {}), str(call.get("text", ""))
