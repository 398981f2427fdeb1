"""Runs hand-written variants of the papers' functions against the papers' experiments.

    python tests/variants/run.py [--pool a,b] [--paper kmeanspp,...] [--sample N] [--seed S] [--jobs J] [--list]

PYTHON must be that of the papers' env (`autoexperiment env path numpy-sklearn`, or any with its packages). A variant is
caught if some experiment that needs its function fails, or gives a value outside its tolerance. Exit code 1 if a right
variant is caught, or if fewer of the wrong ones are caught than `--least` asks for.

A pool is `tests/variants/POOL/PAPER.py`. It is executed with two functions in scope,

    wrong("kmeanspp/lloyd.py::StoppingRule.update", "relative to the new value", ("/ self._value", "/ value"))
    right("kmeanspp/lloyd.py::StoppingRule.update", "another loop", body)

each with a function's selector, a few words, and either pairs of texts, each of which replaces the one place of the
function where it stands, or a whole new body. Bodies are indented by four spaces for each level, as in the file.

Every variant runs in a fork of this process, which has numpy loaded already, in a copy of the repo with the changed
file. That takes a tenth of the time of new processes.
"""

import argparse
import ast
import contextlib
import importlib
import io
import json
import math
import os
import pathlib
import random
import re
import runpy
import shlex
import shutil
import signal
import sys
import tempfile
import textwrap
import tomllib
import traceback

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pool", default="a,b,c,d")
    parser.add_argument("--paper", default=None)
    parser.add_argument("--only", default="", help="a part of the selector")
    parser.add_argument("--sample", type=int, default=0, help="so many of each paper, chosen by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--least", type=float, default=0.0, help="share of the wrong ones that must be caught")
    parser.add_argument("--list", action="store_true", help="name every variant and what caught it")
    parser.add_argument("--old", action="store_true", help="without the experiments whose id begins with `cases`")
    parser.add_argument("--fresh", action="store_true", help="what those give now, unchanged, in place of their gold")
    arguments = parser.parse_args()
    load_packages()
    papers = arguments.paper.split(",") if arguments.paper else sorted(p.name for p in (ROOT / "papers").iterdir())
    total = {}
    failures = []
    for pool in arguments.pool.split(","):
        for name in papers:
            path = FOLDER / pool / f"{name}.py"
            if not path.exists():
                continue
            paper = Paper(name, arguments.old, arguments.fresh)
            variants = [it for it in read_pool(path) if arguments.only in it.at]
            if arguments.sample:
                variants = random.Random(f"{arguments.seed} {name}").sample(variants, min(arguments.sample, len(variants)))
            fates = run_all(paper, variants, arguments.jobs)
            wrong = [fate for variant, fate in zip(variants, fates) if variant.wrong]
            right = [fate for variant, fate in zip(variants, fates) if not variant.wrong]
            caught, failed = sum(map(bool, wrong)), sum(map(bool, right))
            print(f"pool {pool}, {name}: {caught} of {len(wrong)} wrong ones caught, {len(right) - failed} of {len(right)} right ones pass")
            for variant, fate in zip(variants, fates):
                if arguments.list or bool(fate) != variant.wrong:
                    said = "caught by " + fate if fate else "passes"
                    print(f"  {'wrong' if variant.wrong else 'RIGHT'} {variant.at}: {variant.why}: {said}")
            sums = total.setdefault(pool, [0, 0, 0, 0])
            for place, value in enumerate((caught, len(wrong), len(right) - failed, len(right))):
                sums[place] += value
            if failed:
                failures.append(f"{failed} right variants of {name} in pool {pool} are caught")
    for pool, (caught, wrong, passed, right) in total.items():
        share = caught / max(wrong, 1)
        print(f"pool {pool}: {caught} of {wrong} wrong ones caught ({share:.3f}), {passed} of {right} right ones pass")
        if share < arguments.least:
            failures.append(f"{share:.3f} of pool {pool} is caught, less than {arguments.least}")
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


def load_packages():
    """What most experiments import, once for all forks."""
    for name in ("numpy", "numpy.linalg", "numpy.random", "scipy.special", "scipy.optimize", "argparse", "gzip", "heapq"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


class Variant:
    def __init__(self, wrong, at, why, changes):
        self.wrong, self.at, self.why, self.changes = wrong, at, why, changes

    def text(self, source):
        """The file with this variant in it."""
        start, end, indent = body_lines(source, self.at.split("::")[1])
        lines = source.splitlines(keepends=True)
        body = "".join(lines[start:end])
        if isinstance(self.changes[0], str):
            body = textwrap.indent(textwrap.dedent(self.changes[0]).strip("\n") + "\n", " " * indent)
        else:
            for before, after in self.changes:
                if body.count(before) != 1:
                    raise SystemExit(f"{self.at}: {self.why}: {before!r} stands {body.count(before)} times in the body")
                body = body.replace(before, after)
        text = "".join(lines[:start]) + body + "".join(lines[end:])
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise SystemExit(f"{self.at}: {self.why}: {error}") from error
        return text


def body_lines(source, name):
    """The lines of a function's body behind its docstring, from and to, and their indentation."""
    scope = ast.parse(source)
    for part in name.split("."):
        found = [it for it in ast.walk(scope) if isinstance(it, (ast.FunctionDef, ast.ClassDef)) and it.name == part]
        if not found:
            raise SystemExit(f"there is no {name}")
        scope = found[0]
    body = scope.body
    if len(body) > 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return body[0].lineno - 1, body[-1].end_lineno, body[0].col_offset


def read_pool(path):
    variants = []
    scope = {
        "wrong": lambda at, why, *changes: variants.append(Variant(True, at, why, changes)),
        "right": lambda at, why, *changes: variants.append(Variant(False, at, why, changes)),
    }
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return variants


class Paper:
    """What of a paper decides over a variant."""

    def __init__(self, name, old=False, fresh=False):
        folder = ROOT / "papers" / name
        manifest = tomllib.loads((folder / "paper.toml").read_text())
        self.repo = ROOT / "repos" / manifest["repo"]
        self.needs = json.loads((folder / "dependencies.json").read_text())["needs"]
        self.gold = json.loads((folder / "gold.json").read_text())["results"]["curtailed"]
        self.experiments = [it for it in manifest["experiment"] if not (old and it["id"].startswith("cases"))]
        for experiment in self.experiments if fresh else []:
            if experiment["id"].startswith("cases"):
                with tempfile.TemporaryDirectory() as scratch:
                    folder = pathlib.Path(scratch) / "repo"
                    shutil.copytree(self.repo, folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
                    got = outcome(experiment, folder, 60.0)
                    if isinstance(got, str):
                        raise SystemExit(f"{name}: {experiment['id']}: {got}")
                    self.gold[experiment["id"]] = {"result": got[0], "seconds": [0.1]}
                    self.needs.pop(experiment["id"], None)
        # The quickest first.
        self.experiments.sort(key=lambda it: min(self.gold.get(it["id"], {}).get("seconds", [0.0])))

    def tests(self, at):
        # An experiment that has not been measured yet may need anything.
        return [it for it in self.experiments if it["id"] in self.gold and at in self.needs.get(it["id"], [at])]


def run_all(paper, variants, jobs):
    """What caught each variant, or nothing."""
    fates = [None] * len(variants)
    running = {}
    waiting = list(range(len(variants)))
    with tempfile.TemporaryDirectory() as scratch:
        while waiting or running:
            while waiting and len(running) < jobs:
                place = waiting.pop(0)
                folder = pathlib.Path(scratch) / str(place)
                shutil.copytree(paper.repo, folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
                file = folder / variants[place].at.split("::")[0]
                file.write_text(variants[place].text(file.read_text()))
                running[start(judge, paper, variants[place].at, folder)] = place, folder
            child, status = os.wait()
            if child in running:
                place, folder = running.pop(child)
                fates[place] = (folder / ".fate").read_text() if (folder / ".fate").exists() else f"its end, {status}"
                shutil.rmtree(folder)
    return fates


def start(function, *arguments):
    """A fork of this process that calls a function and ends."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


def judge(paper, at, folder):
    for experiment in paper.tests(at):
        gold = paper.gold[experiment["id"]]
        limit = max(20.0, 10.0 * max(gold.get("seconds", [1.0])))
        got = outcome(experiment, folder, limit)
        why = got if isinstance(got, str) else difference(gold["result"], got[0], experiment)
        if why:
            (folder / ".fate").write_text(f"{experiment['id']}: {why}")
            return
    (folder / ".fate").write_text("")


def outcome(experiment, folder, limit):
    """What an experiment gives in a folder, in a tuple, or why it gives nothing; in a fork of its own."""
    reader, writer = os.pipe()
    child = start(experiment_in, experiment, folder, limit, reader, writer)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return "killed or out of time" if os.WIFSIGNALED(status) else "an error"
    got = json.loads(text)
    return got if isinstance(got, str) else (got[0],)


def experiment_in(experiment, folder, limit, reader, writer):
    os.close(reader)
    # Of CPU time, so that nothing depends on what else runs.
    signal.setitimer(signal.ITIMER_PROF, limit)
    os.chdir(folder)
    values = experiment.get("parameters", {}).get("curtailed", {})
    command = re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), experiment["command"])
    words = shlex.split(command)
    assert words[:2] == ["python", "-m"], command
    sys.path.insert(0, str(folder))
    sys.argv = words[2:]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            got = f"exit code {end.code}"
        else:
            got = read_result(experiment, folder, output.getvalue())
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    else:
        got = read_result(experiment, folder, output.getvalue())
    with os.fdopen(writer, "w") as stream:
        stream.write(json.dumps(got))


def read_result(experiment, folder, text):
    rule = experiment["result"]
    try:
        if "json_file" in rule:
            return [json.loads((folder / rule["json_file"]).read_text())]
        if "json_line" in rule:
            return [json.loads(text.strip().splitlines()[-1])]
        return [{name: float(re.search(pattern, text)[1]) for name, pattern in rule["regex"].items()}]
    except Exception as error:
        return f"no result: {error}"


def difference(gold, got, experiment, path=""):
    """The first value that is not within its tolerance."""
    if isinstance(gold, dict):
        if not isinstance(got, dict):
            return f"{path} is no object"
        for key, value in gold.items():
            if key not in got:
                return f"no {path}.{key}"
            if found := difference(value, got[key], experiment, f"{path}.{key}"):
                return found
        return ""
    if isinstance(gold, list):
        if not isinstance(got, list) or len(got) != len(gold):
            return f"{path} has another length"
        return next((it for it in (difference(*pair, experiment, path) for pair in zip(gold, got)) if it), "")
    if not isinstance(got, (int, float)) or not math.isfinite(got):
        return f"{path} is {got}"
    bound = experiment.get("tolerance", 0.05) * abs(gold) if gold else experiment.get("absolute_tolerance", 1e-9)
    return "" if abs(gold - got) <= bound + 1e-12 * abs(gold) else f"{path} is {got} for {gold}"


if __name__ == "__main__":
    sys.exit(main())
