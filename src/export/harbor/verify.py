"""Scores an attempt: what it reports, and what its code gives when it is run again here, against gold.

Runs in an environment of its own. The attempt's changes are laid over a fresh copy of the masked repo, but for files that
the task protects and new files that Python would import in the place of something else. Experiments run as a user who can
read neither the gold results nor write the reward.
"""

import fnmatch
import json
import math
import os
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
MOST_BYTES = 16 << 20
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
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


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


def protects(globs, path):
    return any(fnmatch.fnmatchcase(path, glob) for glob in globs)


def library():
    """Names that Python imports from its library and the environment."""
    names = set(sys.stdlib_module_names) | {"sitecustomize", "usercustomize"}
    for kind in ["purelib", "platlib"]:
        folder = Path(sysconfig.get_paths()[kind])
        if folder.is_dir():
            names.update(entry.name.split(".")[0] for entry in folder.iterdir())
    return names


def shadows(path, modules, roots, names):
    """Whether Python would import a new file of this path in the place of something else."""
    for module in modules:
        rest = path.removeprefix(module)
        if rest != path and (rest.startswith("/") or (rest.startswith(".") and rest.endswith((".so", ".pyc")))):
            return True
    for root in roots:
        inside = path if not root else path.removeprefix(root + "/")
        if root and inside == path:
            continue
        first = inside.split("/")[0]
        if ("/" in inside or first.endswith((".py", ".so", ".pyc"))) and first.split(".")[0] in names:
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
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST_BYTES:
                found[os.path.relpath(path, root)] = path
    return found


def rebuild(original, workspace, globs, target):
    """The masked repo with the attempt's changes; paths of those that were not taken over."""
    shutil.copytree(original, target, symlinks=True)
    before, after = files(original), files(workspace)
    modules = {path[:-3] for path in before if path.endswith(".py") and protects(globs, path)}
    packages = {os.path.dirname(path) for path in before if os.path.basename(path) == "__init__.py"}
    roots = {""} | {os.path.dirname(module) for module in modules if os.path.dirname(module) not in packages}
    names, ignored = library(), []
    for path, source in sorted(after.items()):
        if path in TASK_FILES:
            continue
        if path in before and Path(before[path]).read_bytes() == Path(source).read_bytes():
            continue
        if protects(globs, path) or (path not in before and shadows(path, modules, roots, names)):
            ignored.append(path)
            continue
        place = Path(target, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)
    for path in before.keys() - after.keys() - TASK_FILES:
        if not protects(globs, path):
            Path(target, path).unlink(missing_ok=True)
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


def main(tests, workspace, logs):
    task = json.loads((tests / "task.json").read_text())
    try:
        reported = measure.read_json((workspace / "answer.json").read_text())
    except (OSError, ValueError):
        reported = {}
    if not isinstance(reported, dict):
        reported = {}
    user = USER if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "repo")
        ignored = rebuild(tests / "original", workspace, task["protected"], root)
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
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "verdict.json").write_text(json.dumps(verdict, indent=2))
    (logs / "reward.json").write_text(json.dumps(reward))


if __name__ == "__main__":
    folders = sys.argv[1:] or ["/tests", "/workspace", "/logs/verifier"]
    main(*[Path(folder) for folder in folders])
