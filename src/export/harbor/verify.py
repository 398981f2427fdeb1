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
# More is no number of an experiment.
MOST_NUMBER = 2**32 - 1


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


def same(one, other):
    """Whether two values are equal, where 1 and 1.0 are and True is not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def number_of(key):
    """The number in "Experiment 3", "experiment_3", "experiment3" or "3"."""
    lower = key.strip().lower()
    rest = lower.removeprefix("experiment")
    digits = lower if rest == lower else rest.lstrip(" _-#:")
    if not re.fullmatch("[0-9]{1,400}", digits):
        return None
    return int(digits) if int(digits) <= MOST_NUMBER else None


def owner(key, experiments):
    """Which experiment a key of an answer means: by its key, its id, the key in another spelling, the id in other case."""
    number, lower = number_of(key), key.strip().lower()
    rules = [
        lambda one: one["key"] == key,
        lambda one: one["id"] == key,
        lambda one: number is not None and number_of(one["key"]) == number,
        lambda one: one["id"].lower() == lower,
    ]
    return next((one["key"] for rule in rules for one in experiments if rule(one)), None)


def placed(answer, experiments):
    """What an answer holds for each experiment, by its key; nothing where two entries for it differ."""
    found = {}
    for key, value in answer.items():
        found.setdefault(owner(key, experiments), []).append(value)
    return {one: values[0] for one, values in found.items() if all(same(values[0], other) for other in values)}


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


def files(root, left_out):
    """Regular files by path, without links, and without what is left out: caches, version control, backups."""
    endings = tuple(left_out["endings"])

    def is_kept(name):
        return name not in left_out["names"] and not name.endswith(endings)

    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if is_kept(name) and not os.path.islink(os.path.join(folder, name))]
        for name in filter(is_kept, names):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and facts.st_size <= measure.MOST_BYTES:
                found[os.path.relpath(path, root)] = path
    return found


def rebuild(original, workspace, globs, left_out, target):
    """The masked repo with the attempt's changes; paths of those that were not taken over."""
    shutil.copytree(original, target, symlinks=True)
    before, after = files(original, left_out), files(workspace, left_out)
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
            if place.is_dir() and not files(place, left_out):
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
    reported = placed(reported, task["experiments"])
    user = USER if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        root = Path(scratch, "repo")
        ignored = rebuild(tests / "original", workspace, compiled(task["protected"]), task["left_out"], root)
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
