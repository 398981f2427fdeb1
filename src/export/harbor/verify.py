"""Scores an attempt: what it reports, and what its code gives when it is run again here, against gold.

Runs in an environment of its own. The attempt's changes are laid over a fresh copy of the masked repo, but for files that
the task protects and new files that Python would import in the place of something else. Experiments run as a user who can
read neither the gold results nor write the reward.
"""

import json
import math
import os
import re
import shutil
import signal
import stat
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import measure

SLACK = 4.0 * sys.float_info.epsilon
# A user of this verification's own.
USER = 20000 + os.getpid() % 10000
TASK_FILES = {"paper.txt", "experiments.md", "run_experiments.sh", "answer.json"}
LEFT_OUT = {".git", ".hg", ".svn", "__pycache__"}


def number(value):
    """A finite number, bare or in a text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if "_" in value:
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def agrees(gold, got, tolerance):
    """Whether every value of gold has its counterpart within tolerance."""
    if isinstance(gold, dict):
        return isinstance(got, dict) and all(key in got and agrees(gold[key], got[key], tolerance) for key in gold)
    if isinstance(gold, list):
        same = isinstance(got, list) and len(got) == len(gold)
        return same and all(agrees(one, other, tolerance) for one, other in zip(gold, got))
    if isinstance(gold, bool) or not isinstance(gold, (int, float)):
        return type(gold) is type(got) and gold == got
    found = number(got)
    if found is None:
        return False
    difference = abs(found - gold)
    if gold == 0:
        return difference <= tolerance["absolute"] * (1.0 + SLACK)
    return difference <= tolerance["relative"] * abs(gold) + SLACK * max(abs(gold), abs(found))


def compiled(expressions):
    """The task's globs, written as expressions over bytes, as whoever wrote them matches them."""
    return [re.compile(expression.encode(), re.DOTALL) for expression in expressions]


def protects(globs, path):
    return any(glob.fullmatch(os.fsencode(path)) for glob in globs)


def library():
    """Names that can be imported from Python's library and the environment, and those that Python imports of itself."""
    paths = sysconfig.get_paths()
    folders = {Path(paths[kind]) for kind in ["stdlib", "platstdlib", "purelib", "platlib"]}
    folders |= {Path(paths[kind], "lib-dynload") for kind in ["stdlib", "platstdlib"]}
    names = {"sitecustomize", "usercustomize"}
    for folder in folders:
        for entry in folder.iterdir() if folder.is_dir() else []:
            if entry.suffix in (".py", ".so") or entry.is_dir():
                names.add(entry.name.split(".")[0])
    return names


def shadows(path, original, modules, roots, names):
    """Whether Python would import a new file of this path in the place of something else."""
    for module in modules:
        rest = path.removeprefix(module)
        if rest == path:
            continue
        if rest.startswith("/") and not Path(original, module).exists():
            return True
        if rest.startswith(".") and rest.endswith((".so", ".pyc")):
            return True
    for root in roots:
        inside = path if not root else path.removeprefix(root + "/")
        if root and inside == path:
            continue
        first, _, rest = inside.partition("/")
        is_module = bool(rest) or first.endswith((".py", ".so", ".pyc"))
        is_known = bool(rest) and Path(original, root, first).exists()
        if is_module and first.split(".")[0] in names and not is_known:
            return True
    return False


def files(root):
    """Regular files by path, without links, caches and version control."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not os.path.islink(os.path.join(folder, name))]
        for name in names:
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= measure.MOST_BYTES:
                found[os.path.relpath(path, root)] = path
    return found


def rebuild(original, workspace, globs, target):
    """The masked repo with the attempt's changes; paths of those that were not taken over."""
    shutil.copytree(original, target, symlinks=True)
    before, after = files(original), files(workspace)
    modules = {path[:-3] for path in before if path.endswith(".py") and protects(globs, path)}
    roots = {""}
    for folder in map(os.path.dirname, modules):
        if not Path(original, folder, "__init__.py").exists():
            roots.add(folder)
    names, ignored = library(), []
    for path in before.keys() - after.keys() - TASK_FILES:
        if not protects(globs, path):
            Path(target, path).unlink(missing_ok=True)
    for path, source in sorted(after.items()):
        if path in TASK_FILES:
            continue
        if path in before and Path(before[path]).read_bytes() == Path(source).read_bytes():
            continue
        is_new = not Path(original, path).exists()
        if protects(globs, path) or (is_new and shadows(path, original, modules, roots, names)):
            ignored.append(path)
            continue
        place = Path(target, path)
        try:
            if place.is_dir() and not files(place):
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
        except OSError:
            # Something that is protected is in its place.
            ignored.append(path)
    return ignored


def sweep(user):
    """Ends what the experiments left running: it could still write to the logs."""
    for _ in range(100):
        left = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    os.kill(int(entry.name), signal.SIGKILL)
                    left.append(entry.name)
            except OSError:
                continue
        if not left:
            return
        time.sleep(0.05)


def write(logs, verdict, reward):
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "verdict.json").write_text(json.dumps(verdict, indent=2))
    (logs / "reward.json").write_text(json.dumps(reward))


def main(tests, workspace, logs):
    """Whatever goes wrong is the attempt's loss: a verifier that it can end without a reward would let it choose."""
    nothing = {"reward": 0.0, "reported": 0.0, "verified": 0.0}
    write(logs, {"error": "verification did not end"}, nothing)
    try:
        verdict, reward = verify(tests, workspace)
        write(logs, verdict, reward)
    except Exception as error:
        write(logs, {"error": f"{type(error).__name__}: {error}"[:1000]}, nothing)


def verify(tests, workspace):
    task = json.loads((tests / "task.json").read_text())
    try:
        reported = measure.read_json(measure.read_file(workspace, "answer.json"))
    except (OSError, ValueError):
        reported = {}
    if not isinstance(reported, dict):
        reported = {}
    user = USER if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        root = Path(scratch, "repo")
        ignored = rebuild(tests / "original", workspace, compiled(task["protected"]), root)
        if user is not None:
            os.chmod(scratch, 0o755)
            for folder, folders, names in os.walk(root):
                for name in [".", *folders, *names]:
                    os.chown(os.path.join(folder, name), user, user, follow_symlinks=False)
        verdict = {"ignored": ignored, "experiments": {}}
        for experiment in task["experiments"]:
            outcome = measure.run(experiment, root, user)
            gold, tolerance = experiment["gold"], experiment["tolerance"]
            verdict["experiments"][experiment["id"]] = {
                "reported": agrees(gold, reported.get(experiment["key"]), tolerance),
                "verified": "result" in outcome and agrees(gold, outcome["result"], tolerance),
                **outcome,
            }
        if user is not None:
            sweep(user)
    scores = list(verdict["experiments"].values())
    both = [all(score[source] for score in scores) and bool(scores) for source in ["reported", "verified"]]
    reward = {"reward": float(all(both)), "reported": float(both[0]), "verified": float(both[1])}
    return verdict, reward


if __name__ == "__main__":
    folders = sys.argv[1:] or ["/tests", "/workspace", "/logs/verifier"]
    main(*[Path(folder) for folder in folders])
