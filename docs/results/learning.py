#!/usr/bin/env python3
"""Does a policy learn from verified episodes? The study of learning.md.

    docs/results/learning.py FOLDER --study 1 --base-url http://127.0.0.1:8099/v1 --model NAME

The model's weights stay as they are. What is learnt is a choice between four prompts (Thompson sampling) and, in the first
study, a memory of solutions that verification has passed. Every episode goes through `autoexperiment serve`. Each is a line of
FOLDER/episodes.jsonl; the same command continues after an interruption, and prints the results at the end.
"""

import argparse
import ast
import json
import math
import random
import re
import sys
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "python"))
import autoexperiment as ae  # noqa: E402

HELD_OUT = 0.45
EXAMPLES = 3
WINDOW = 30


class Prompt:
    """What a prompt has beside the function's header, and the temperature of its reply."""

    def __init__(self, file=False, memory=False, section=False, temperature=0.8):
        self.file, self.memory, self.section, self.temperature = file, memory, section, temperature


class Study:
    """The prompts, those used before training (in turns), and the numbers of episodes."""

    def __init__(self, prompts, before, training, attempts):
        self.prompts, self.before, self.training, self.attempts = prompts, before, training, attempts


STUDIES = {
    1: Study(
        {"plain": Prompt(), "file": Prompt(file=True), "memory": Prompt(memory=True),
         "file and memory": Prompt(file=True, memory=True)},
        before=["plain"], training=120, attempts=5,
    ),
    2: Study(
        {"header": Prompt(), "section": Prompt(section=True), "header, cool": Prompt(temperature=0.2),
         "section, cool": Prompt(section=True, temperature=0.2)},
        before=["header", "section", "header, cool", "section, cool"], training=100, attempts=8,
    ),
}


class Policy:
    """Chooses prompts, remembers solutions, and asks the model."""

    def __init__(self, base_url, model, prompts):
        self.base_url, self.model, self.prompts = base_url, model, prompts
        self.chance = random.Random()
        self.passed = dict.fromkeys(prompts, 0)
        self.failed = dict.fromkeys(prompts, 0)
        self.memory = {}

    def learn(self, episode):
        """Counts a training episode, and remembers its solution if it passed."""
        counts = self.passed if episode["pass"] else self.failed
        counts[episode["prompt"]] += 1
        if episode["pass"]:
            self.memory.setdefault(episode["function"], (episode["header"], episode["code"]))

    def draw(self):
        """Thompson sampling: the prompt whose drawn success rate is the highest."""
        return max(self.prompts, key=lambda one: self.chance.betavariate(1 + self.passed[one], 1 + self.failed[one]))

    def best(self):
        """The prompt with the highest expected success rate."""
        return max(self.prompts, key=lambda one: (1 + self.passed[one]) / (2 + self.passed[one] + self.failed[one]))

    def examples(self, function, header):
        """The remembered solutions of other functions whose headers share most words with this one."""
        wanted = words(header)
        others = [entry for name, entry in sorted(self.memory.items()) if name != function]
        share = lambda entry: len(wanted & words(entry[0])) / max(1, len(wanted | words(entry[0])))  # noqa: E731
        return sorted(others, key=share, reverse=True)[:EXAMPLES]

    def ask(self, prompt, function, header, beside, section):
        """Returns the model's reply for a function."""
        prompt = self.prompts[prompt]
        messages = [{"role": "system", "content": "You write Python functions. Answer with one code block and nothing else."}]
        for other, code in self.examples(function, header) if prompt.memory else []:
            messages += [{"role": "user", "content": f"Complete this function:\n\n```python\n{other}\n```"},
                         {"role": "assistant", "content": f"```python\n{code}\n```"}]
        text = f"Complete this function:\n\n```python\n{header}\n```"
        if prompt.file:
            text = f"A file contains:\n\n```python\n{beside}\n```\n\nUse what it has. {text}"
        if prompt.section:
            text = f"A text says:\n\n{section}\n\n{text}"
        body = {"model": self.model, "messages": [*messages, {"role": "user", "content": text}], "temperature": prompt.temperature,
                "max_tokens": 300, "seed": self.chance.randrange(1 << 30)}
        request = urllib.request.Request(self.base_url + "/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)["choices"][0]["message"]["content"] or ""


def words(text):
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def header_of(source, name):
    """The masked function's first lines: its `def` and docstring."""
    node = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    last = node.body[0].end_lineno if ast.get_docstring(node) else node.body[0].lineno - 1
    return "\n".join(source.splitlines()[node.lineno - 1:last]), node


def beside_of(source, name):
    """Imports of a file, and the headers of its other functions."""
    kept = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kept.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name != name:
            kept.append(f"def {node.name}({ast.unparse(node.args)}): ...")
    return "\n".join(kept)


def section_of(paper, header):
    """The section of the paper's text that shares most words with a header."""
    return max(re.split(r"\n(?=#)", paper), key=lambda section: len(words(section) & words(header)))


def code_of(reply, name):
    """The function in a reply, with the imports before it; `None` if there is none."""
    block = re.search(r"```(?:python)?\n(.*?)(?:```|\Z)", reply, re.DOTALL)
    text = block.group(1) if block else reply
    lines = text.splitlines()
    # A reply that was cut off may begin with a function that is whole.
    for end in range(len(lines), 0, -1):
        try:
            nodes = ast.parse("\n".join(lines[:end])).body
        except (SyntaxError, ValueError):
            continue
        kept = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef))]
        names = [node.name for node in kept if isinstance(node, ast.FunctionDef)]
        return "\n\n".join(ast.unparse(node) for node in kept) if name in names else None
    return None


def play(episodes, policy, prompt, asked):
    """Plays one episode, and returns what is kept of it."""
    first = episodes.reset(**asked)
    path, name = re.search(r"^- `(\S+?)::(\S+?)`", first.text, re.MULTILINE).groups()
    source = episodes.step("command_line", {"command": f"cat {path}"}).text.split("stdout:\n", 1)[1]
    header, node = header_of(source, name)
    paper = episodes.step("command_line", {"command": "cat paper.txt"}).text.split("stdout:\n", 1)[1]
    reply = policy.ask(prompt, f"{path}::{name}", header, beside_of(source, name), section_of(paper, header))
    code = code_of(reply, name)
    answer = {}
    if code is not None:
        lines = source.splitlines()
        changed = [*lines[:node.lineno - 1], code, *lines[node.end_lineno:], ""]
        episodes.step("write_file", {"path": path, "content": "\n".join(changed)}, text=reply)
        for experiment, command in re.findall(r"^- (Experiment \d+):.*\n  Command [^`]*`([^`]+)`", first.text, re.MULTILINE):
            said = episodes.step("command_line", {"command": command}).text
            found = [line for line in said.splitlines() if line.startswith("{")]
            try:
                answer[experiment] = json.loads(found[-1])
            except (IndexError, ValueError):
                pass
    last = episodes.submit(answer)
    if last.reward is None:
        raise SystemExit(f"an episode was lost: {last.text}")
    return {"prompt": prompt, "sample": first.metadata["sample"], "function": f"{path}::{name}", "header": header,
            "code": code, "pass": last.reward == 1.0}


def count(url, split):
    """The number of tasks in a split."""
    request = urllib.request.Request(url + "/autoexperiment/num_tasks", json.dumps({"split": split}).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["num_tasks"]


def interval(differences, chance):
    """Mean over functions, its 95% bootstrap interval, and the p of random signs in one direction."""
    mean = lambda values: math.fsum(values) / len(values)  # noqa: E731
    means = sorted(mean(chance.choices(differences, k=len(differences))) for _ in range(20_000))
    found = mean(differences)
    signs = [mean([value * chance.choice((-1, 1)) for value in differences]) for _ in range(20_000)]
    p = (1 + sum(value >= found - 1e-12 for value in signs)) / 20_001
    return found, means[500], means[19_499], p


def results(episodes, prompts):
    """Prints the curve, the prompts, and the held-out functions before and after."""
    training = [one for one in episodes if one["part"] == "training"]
    print("| training episodes | passed | prompts drawn |\n|---|---|---|")
    for begin in range(0, len(training), WINDOW):
        part = training[begin:begin + WINDOW]
        drawn = ", ".join(f"{name} {sum(one['prompt'] == name for one in part)}" for name in prompts)
        print(f"| {begin + 1} to {begin + len(part)} | {sum(one['pass'] for one in part)} | {drawn} |")
    print("\n| prompt | passed in training |\n|---|---|")
    for name in prompts:
        own = [one["pass"] for one in training if one["prompt"] == name]
        print(f"| {name} | {sum(own)} of {len(own)} |")
    held = {}
    for one in episodes:
        if one["part"] != "training":
            held.setdefault(one["function"], {}).setdefault(one["part"], []).append(one["pass"])
    print("\n| held-out function | before | after |\n|---|---|---|")
    for function, parts in sorted(held.items()):
        print(f"| `{function.split('::')[1]}` | {sum(parts['before'])} of {len(parts['before'])} | {sum(parts['after'])} of {len(parts['after'])} |")
    rate = lambda values: sum(values) / len(values)  # noqa: E731
    differences = [rate(parts["after"]) - rate(parts["before"]) for parts in held.values()]
    mean, low, high, p = interval(differences, random.Random(0))
    for part in ("before", "after"):
        every = [value for parts in held.values() for value in parts[part]]
        print(f"\n{part}: {sum(every)} of {len(every)}", end="")
    after = {one["prompt"] for one in episodes if one["part"] == "after"}
    remembered = len({one["function"] for one in training if one["pass"]})
    print(f"\n\ndifference {100 * mean:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}), p = {p:.4f}; "
          f"after training: prompt \"{', '.join(after)}\", {remembered} solutions in memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--study", type=int, choices=sorted(STUDIES), required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    study = STUDIES[given.study]
    given.folder.mkdir(parents=True, exist_ok=True)
    journal = given.folder / "episodes.jsonl"
    done = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    options = ["--held-out", str(HELD_OUT), "--seed", str(given.seed)]
    with ae.serve(suite=PROJECT / "docs/results/primer", runs=given.folder / "runs", n=1, jobs=1, options=options) as server:
        held_out = count(server.url, "test")
        # Each part has every held-out function equally often, in turns.
        tests = [(turn, index) for turn in range(study.attempts) for index in range(held_out)]
        untrained = [study.before[turn % len(study.before)] for turn, _ in tests]
        plan = [("before", {"split": "test", "index": index}) for _, index in tests]
        plan += [("training", {"split": "train", "seed": 1000 + number}) for number in range(study.training)]
        plan += [("after", {"split": "test", "index": index}) for _, index in tests]
        policy = Policy(given.base_url.rstrip("/"), given.model, study.prompts)
        for one in done:
            if one["part"] == "training":
                policy.learn(one)
        with server.connect("learning") as episodes, journal.open("a") as kept:
            for number, (part, asked) in list(enumerate(plan))[len(done):]:
                # What is drawn follows from the number of the episode, so that an interruption changes nothing.
                policy.chance.seed(given.seed * 100_000 + number)
                prompt = untrained[number] if part == "before" else policy.draw() if part == "training" else policy.best()
                one = {"part": part, **play(episodes, policy, prompt, asked)}
                if part == "training":
                    policy.learn(one)
                done.append(one)
                kept.write(json.dumps(one) + "\n")
                kept.flush()
                print(f"{number + 1} of {len(plan)}: {part}, {prompt}, {one['function']}: {one['pass']}", file=sys.stderr)
    results(done, study.prompts)


if __name__ == "__main__":
    main()
