"""Agents in a module of their own."""

import autoexperiment as ae

QUANTILE = """place = math.ceil(share * len(numbers))
    return sorted(numbers)[max(place, 1) - 1]"""


@ae.agent
def rewrites_quantile(task: ae.Task, sandbox: ae.Sandbox) -> dict[str, object]:
    """Knows one function by heart, and runs the experiments."""
    import json

    path = "example/errors.py"
    text = sandbox.read_text(path)
    sandbox.write(path, text.replace("raise NotImplementedError", QUANTILE))
    results = {}
    for experiment in task.experiments:
        done = sandbox.exec(experiment.command)
        if done.ok:
            results[experiment.key] = json.loads(done.stdout.splitlines()[-1])
    return results
