"""Agents in Python, as users write them; the tests of tests/it/function.rs say what comes of each."""

import json
import os
import signal
import subprocess
import sys
import time

import autoexperiment as ae
from autoexperiment import BudgetExceeded, SandboxRefused, agent

BODY = "return sum(values) / len(values)"


def results(task, sandbox):
    found = {}
    for experiment in task.experiments:
        done = sandbox.exec(experiment.command)
        assert done.ok, done.stderr
        if experiment.id == "means":
            found[experiment.key] = json.loads(done.stdout.splitlines()[-1])
        elif experiment.id == "spread":
            found[experiment.key] = json.loads(sandbox.read_text("results/spread.json"))
        else:
            found[experiment.key] = {"first": float(done.stdout.split(":")[1])}
    return found


@agent
def solves(task, sandbox):
    print("this goes to the record, not to the harness")
    os.write(1, b"{\"call\": \"nonsense\"}\n")
    assert [function.at for function in task.functions] == ["tiny/means.py::arithmetic"]
    assert "arithmetic mean" in task.paper and task.left.seconds > 1
    assert {"tiny", "data.json"} <= {entry.name for entry in sandbox.list()}
    try:
        sandbox.read("nowhere.txt")
        raise AssertionError("there is no such file")
    except SandboxRefused:
        pass
    text = sandbox.read_text("tiny/means.py")
    sandbox.write("tiny/means.py", text.replace("raise NotImplementedError", BODY))
    return results(task, sandbox)


@ae.agent
async def waits_for_nothing(task, sandbox):
    return await answer()


async def answer():
    return {}


@agent
def raises(task):
    return 1 / 0


@agent
def leaves(task):
    os._exit(3)


@agent
def crashes(task):
    os.kill(os.getpid(), signal.SIGSEGV)


@agent
def is_killed(task):
    os.kill(os.getpid(), signal.SIGKILL)


@agent
def is_killed_once(task):
    marker = os.path.join(os.path.dirname(__file__), "killed-once")
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return {}


@agent
def eats(task):
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 24))


@agent
def nibbles(task):
    eaten = []
    while True:
        eaten.append([0] * 1000)


@agent
def has_a_child_that_eats(task):
    child = subprocess.run([sys.executable, "-c", "eaten = b'x' * (1 << 30)"], stderr=subprocess.PIPE, text=True)
    return {"child": child.stderr.strip().splitlines()[-1]}


@agent
def talks_nonsense(task, sandbox):
    sandbox._channel.writer.write("nonsense\n")
    sandbox._channel.writer.flush()
    time.sleep(1000)


@agent
def sleeps(task):
    child = subprocess.Popen(["sleep", "1000"])
    with open(os.path.join(os.path.dirname(__file__), "child"), "w") as file:
        file.write(str(child.pid))
    time.sleep(1000)


@agent
def returns_nothing(task):
    pass


@agent
def asks(task, model):
    said = []
    messages = [{"role": "user", "content": "Say something."}]
    try:
        while True:
            reply = model.ask(messages)
            said.append(reply.text)
            messages += [reply.message, {"role": "user", "content": "More."}]
    except BudgetExceeded:
        pass
    assert task.left.steps == 0 and os.environ.get("OPENAI_API_KEY") is None
    return {"said": said}


@agent
def asks_on(task, model):
    while True:
        model.ask("More?")


@agent
def never_stops_asking(task, model):
    while True:
        try:
            model.ask("More?")
        except BudgetExceeded:
            pass


def unmarked(task, wrong):
    return {}
