"""Reads trajectories, and tasks if there are any, with Harbor's own models and prints the findings as JSON."""

import json
import sys
from pathlib import Path

from harbor.models.agent.rollout_detail import RolloutDetail
from harbor.models.trajectories import Trajectory
from pydantic import TypeAdapter

folder = Path(sys.argv[1])
found = {"trajectories": {}, "tasks": {}, "rollouts": {}}
for path in sorted(folder.rglob("*.json")):
    if "tasks" in path.relative_to(folder).parts:
        continue
    if path.name.endswith(".rollout_details.json"):
        details = TypeAdapter(list[RolloutDetail]).validate_json(path.read_text(), strict=True)
        found["rollouts"][f"{path.parent.name}/{path.name}"] = [len(one["prompt_token_ids"]) for one in details]
        continue
    trajectory = Trajectory.model_validate_json(path.read_text())
    found["trajectories"][f"{path.parent.name}/{path.stem}"] = {
        "steps": [step.source for step in trajectory.steps],
        "calls": [call.function_name for step in trajectory.steps for call in step.tool_calls or []],
        "observations": sum(len(step.observation.results) for step in trajectory.steps if step.observation),
        "tokens": sum((step.metrics.prompt_tokens or 0) for step in trajectory.steps if step.metrics),
        "total": trajectory.final_metrics.total_prompt_tokens,
    }
if (folder / "tasks").is_dir():
    from harbor.models.task.task import Task
    from harbor.models.task.verifier_mode import (
        resolve_task_verifier_mode,
        resolve_verifier_environment_definition,
    )

    for path in sorted((folder / "tasks").iterdir()):
        task = Task(path)
        definition = resolve_verifier_environment_definition(task.config, task.paths)
        found["tasks"][path.name] = {
            "name": task.name,
            "instruction": len(task.instruction),
            "verifier": resolve_task_verifier_mode(task.config).value,
            "verifier_folder": definition.directory.name,
            "network": definition.config.network_mode.value,
            "solution": task.paths.discovered_solve_path is not None,
            "test": task.paths.discovered_test_path is not None,
        }
print(json.dumps(found))
